"""The commands of ``laneway``: what each is called, takes and means, and the module that does it.

A module is imported when its command is called, so that every command starts fast. It has
``main(args) -> int``, which returns the exit status. Nothing here may import what is slow.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Arguments = Callable[[argparse.ArgumentParser], None]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    module: str
    help: str
    arguments: Arguments


def _nothing(parser: argparse.ArgumentParser) -> None:
    """The command takes nothing."""


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def _say(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lane", metavar="NAME", default="main", help="made if it is new")
    parser.add_argument("text", metavar="TEXT", nargs="+")


def _turns(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lane", metavar="LANE", nargs="?", help="only those of this lane")
    parser.add_argument(
        "--release", action="store_true", help="let what a restore left waiting go out"
    )
    _json(parser)


def _pair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", metavar="CODE", help="the code that /whoami told the person")


def _render(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", choices=["telegram"], required=True, help="the platform")
    parser.add_argument("--limit", type=_limit, metavar="N", help="longest message, in its units")
    parser.add_argument("file", metavar="FILE", help="a Markdown file; - is standard input")


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 2 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("N must be a whole number of at least 2")
    return int(text)


def _backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="where the copy goes")


def _restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="a copy that backup made")
    parser.add_argument("--force", action="store_true", help="replace the database that is there")


COMMANDS = (
    Command("run", "gateway.cli.run", "start the gateway in the foreground", _nothing),
    Command("doctor", "gateway.cli.doctor", "check everything, and say how to mend it", _json),
    Command("say", "gateway.cli.say", "send a message and print the answer as it comes", _say),
    Command("lanes", "gateway.cli.listing", "list the lanes and what they do", _json),
    Command("turns", "gateway.cli.listing", "list what was asked and what became of it", _turns),
    Command("people", "gateway.cli.listing", "list the people who are known", _json),
    Command("pair", "gateway.cli.pair", "let a waiting person in", _pair),
    Command("render", "gateway.cli.render", "show Markdown as the messages it becomes", _render),
    Command("backup", "gateway.cli.backup", "copy the database, also while it runs", _backup),
    Command("restore", "gateway.cli.backup", "put a copy in the database's place", _restore),
)
