"""``laneway render``: Markdown as the messages that would be sent, as a JSON array."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from gateway.cli import Failed


def main(args: argparse.Namespace) -> int:
    from channels.markup import telegram

    parts = telegram.render(_read(args.file), args.limit or telegram.TEXT_LIMIT)
    shown = json.dumps([asdict(part) for part in parts], ensure_ascii=False, indent=1)
    sys.stdout.buffer.write(f"{shown}\n".encode())  # UTF-8, whatever the terminal's locale is
    return 0


def _read(name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise Failed(f"{name} cannot be read: {error.strerror}") from None
    return raw.decode(errors="replace").removeprefix("\ufeff")
