"""``laneway render``: Markdown as the messages that would be sent, as a JSON array."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from gateway.trouble import Trouble


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", choices=["telegram"], required=True, help="the platform")
    parser.add_argument("--limit", type=_limit, metavar="N", help="longest message, in its units")
    parser.add_argument("file", metavar="FILE", help="a Markdown file; - is standard input")


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 2 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("N must be a whole number of at least 2")
    return int(text)


def main(options: argparse.Namespace) -> int:
    from channels.markup import telegram

    parts = telegram.render(_read(options.file), options.limit or telegram.TEXT_LIMIT)
    shown = json.dumps([asdict(part) for part in parts], ensure_ascii=False, indent=1)
    sys.stdout.buffer.write(f"{shown}\n".encode())  # UTF-8, whatever the terminal's locale is
    return 0


def _read(name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise Trouble(f"{name} cannot be read: {error.strerror}") from None
    return raw.decode(errors="replace").removeprefix("\ufeff")
