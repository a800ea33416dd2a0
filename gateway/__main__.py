"""The ``laneway`` command: finds the command that was asked for and says its errors in plain words.

Exit status: 0 when it did what was asked, 2 for a wrong command line or wrong settings, 1 else.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from gateway.cli.table import COMMANDS
from gateway.trouble import Trouble


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    options = _parser(words).parse_args(words)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that is not UTF-8 lacks some signs
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
        # Whoever read our output has seen enough; Python must not complain at its end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="laneway",
        description="A light, safe gateway between chat threads and AI agents.",
        epilog="Settings are LANEWAY_… variables; .env.example lists them.",
    )
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
