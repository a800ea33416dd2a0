"""The ``laneway`` command: finds the command that was asked for and says its errors in plain words.

Exit status: 0 when it did what was asked, 2 for a wrong command line or wrong settings, 1 else.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from gateway.cli import Failed
from gateway.cli.table import COMMANDS


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    command = next(one for one in COMMANDS if one.name == args.command)
    try:
        status: int = importlib.import_module(command.module).main(args)
        sys.stdout.flush()
        return status
    except Failed as error:
        print(f"laneway {command.name}: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain at its end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="laneway",
        description="A light, safe gateway between chat threads and AI agents.",
        epilog="Settings are LANEWAY_… variables; .env.example lists them.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for one in COMMANDS:
        one.arguments(commands.add_parser(one.name, help=one.help, description=one.help))
    return parser


def _version() -> str:
    try:
        return version("laneway")
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
