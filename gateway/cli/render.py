"""``laneway render``: Markdown as the messages that would be sent, as a JSON array."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from gateway.cli.border import as_json
from gateway.trouble import Trouble

Messages = list[dict[str, object]]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", choices=list(_PLATFORMS), required=True, help="the platform")
    parser.add_argument("--limit", type=_limit, metavar="N", help="longest message, in its units")
    parser.add_argument("file", metavar="FILE", help="a Markdown file; - is standard input")


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 2 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("N must be a whole number from 2 to 1000000")
    return int(text)


def main(options: argparse.Namespace) -> int:
    parts = _PLATFORMS[options.to](_read(options.file), options.limit)
    shown = as_json(parts, indent=1)
    sys.stdout.buffer.write(f"{shown}\n".encode())  # UTF-8, whatever the terminal's locale is
    return 0


def _read(name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise Trouble(f"{name} cannot be read: {error.strerror}") from None
    return raw.decode(errors="replace").removeprefix("\ufeff")


# Imported when asked for: the other commands have no use for a Markdown parser.


def _telegram(markdown: str, limit: int | None) -> Messages:
    from channels.markup import telegram

    return [asdict(part) for part in telegram.render(markdown, limit or telegram.TEXT_LIMIT)]


def _slack(markdown: str, limit: int | None) -> Messages:
    from channels.markup import slack

    _not_below(limit, slack.SMALLEST)
    return [asdict(part) for part in slack.render(markdown, limit)]


def _discord(markdown: str, limit: int | None) -> Messages:
    from channels.markup import discord

    _not_below(limit, discord.SMALLEST)
    parts = discord.render(markdown, limit or discord.TEXT_LIMIT)
    return [{"content": part} for part in parts]


def _not_below(limit: int | None, least: int) -> None:
    """A limit that its marks alone would break is no limit."""
    if limit is not None and limit < least:
        raise Trouble(f"--limit must be at least {least} there: less has no room for markup")


_PLATFORMS: dict[str, Callable[[str, int | None], Messages]] = {
    "telegram": _telegram,
    "slack": _slack,
    "discord": _discord,
}
