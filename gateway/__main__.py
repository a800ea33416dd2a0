"""The ``laneway`` command: finds the command that was asked for and says its errors in plain words.

Exit status: 0 when it did what was asked, 2 for a wrong command line or wrong settings, 1 else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gateway.cli import streams
from gateway.cli.parser import Parser, unknown
from gateway.cli.table import COMMANDS
from gateway.trouble import Trouble

ABOUT = "A light, safe gateway between chat threads and AI agents."
NOTES = """\
Begin with: laneway run; then in another terminal: laneway say "hello"
What a command takes: laneway COMMAND --help

Settings are LANEWAY_… variables, or the same names in .env in this folder or in LANEWAY_HOME
(~/.laneway); .env.example lists them, and laneway doctor says what is wrong with them.
Exit status: 0 when it did what was asked, 2 for a wrong command line or wrong settings, 1 else.
"""


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    streams.prepare()
    options = _options(words)
    command = next(one for one in COMMANDS if one.name == options.command)
    try:
        status = command.main(options)
        sys.stdout.flush()
        return status
    except Trouble as error:
        from gateway.cli.border import plain

        print(plain(f"laneway {command.name}: {error}"), file=sys.stderr)
        return error.status
    except BrokenPipeError:
        streams.give_up()  # whoever read our output has seen enough
        return 1
    except OSError as fault:
        if not streams.cannot_write(fault):
            raise
        streams.give_up()
        words_left = f"laneway {command.name}: the output cannot be written: {fault.strerror}"
        print(words_left, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = _parser(words)
    if not words:
        parser.print_help(sys.stderr)
        parser.error("say which command")
    names = [one.name for one in COMMANDS]
    if not words[0].startswith("-") and words[0] not in names:
        parser.error(unknown(words[0], names))
    return parser.parse_args(words)


def _parser(words: Sequence[str]) -> Parser:
    parser = Parser(prog="laneway", description=ABOUT, epilog=NOTES)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for one in COMMANDS:
        made = commands.add_parser(one.name, help=one.help, description=one.help)
        if words[:1] == [one.name]:
            one.arguments(made)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: that takes longer than all the rest."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.exit(message=f"{parser.prog} {_version()}\n")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("laneway")
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
