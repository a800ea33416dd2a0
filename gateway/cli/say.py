"""``laneway say``: a message from the terminal, and its answer as it streams."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import AsyncIterator
from typing import Any

from gateway import config
from gateway.cli.client import Talk, talk
from gateway.config import Settings
from gateway.trouble import Trouble

NOBODY_DECIDES = "(denied: standard input is not a terminal, so nobody can decide here)"
ENDED = "the gateway ended before this was answered; laneway turns shows what became of it"
NOT_RUNNING = "the gateway is not running here; start it in another terminal with: laneway run"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lane", default="main", metavar="NAME", help="the thread (default: main)")
    parser.add_argument("text", metavar="TEXT", help="what to say; - reads standard input")


def main(options: argparse.Namespace) -> int:
    """0 when it was answered, 1 when the turn ended otherwise."""
    text = sys.stdin.read() if options.text == "-" else options.text
    return asyncio.run(_say(config.load(), options.lane, text))


async def _say(settings: Settings, lane: str, text: str) -> int:
    async with talk(settings.home) as gateway:
        if gateway is None:
            raise Trouble(NOT_RUNNING)
        gateway.send({"do": "say", "lane": lane, "text": text})
        status = await _follow(gateway)
    return 0 if status == "done" else 1


async def _follow(gateway: Talk) -> str:
    """Show what comes until it is answered; how it ended."""
    screen = Screen()
    trouble, status = None, ""
    async with asyncio.TaskGroup() as group:
        asking: set[asyncio.Task[None]] = set()
        try:
            async for answer in gateway.answers():
                if frame := answer.get("frame"):
                    screen.show(frame)
                    if frame.get("buttons") and sys.stdin.isatty():
                        asking.add(group.create_task(_choose(gateway, frame), name="choose"))
                    elif denial := _denial(frame):
                        gateway.send({"press": denial, "message_id": frame["message_id"]})
                        print(f"\n{NOBODY_DECIDES}", file=sys.stderr)
                status = answer.get("end", status)
        except Trouble as fault:
            trouble = fault  # raised in the group it would be one of several
        for task in asking:
            task.cancel()
    screen.end()
    if trouble:
        raise trouble
    if not status:
        raise Trouble(ENDED)
    return status


def _denial(frame: dict[str, Any]) -> str:
    """The button that says no to an agent's question, if the frame is one."""
    buttons = {button["label"]: button["id"] for row in frame["buttons"] for button in row}
    return str(buttons["Deny"]) if "Allow" in buttons and "Deny" in buttons else ""


async def _choose(gateway: Talk, frame: dict[str, Any]) -> None:
    """Let the person at the terminal press one of the buttons."""
    buttons = [button for row in frame["buttons"] for button in row]
    offer = ", ".join(f"{number} {button['label']}" for number, button in enumerate(buttons, 1))
    print(f"\n[{offer}] ", end="", flush=True)
    async for line in _lines():
        choice = line.strip()
        if choice.isdigit() and 0 < int(choice) <= len(buttons):
            button = buttons[int(choice) - 1]
            gateway.send({"press": button["id"], "message_id": frame["message_id"]})
            return
        print(f"a number from 1 to {len(buttons)}: ", end="", flush=True)


async def _lines() -> AsyncIterator[str]:
    """Lines typed at the terminal, without a thread that would outlive the wait."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    try:
        while line := await reader.readline():
            yield line.decode(errors="replace")
    finally:
        transport.close()


_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_ESCAPE = re.compile(r"\\([\\`*_\[\]<>~|&$()#+.!{}-])")


def unescaped(markdown: str) -> str:
    """Markdown as a terminal shows it: escaped characters without their backslash."""
    pieces = _CODE.split(markdown)  # code stands at the odd places, and stays as it is
    pieces[::2] = [_ESCAPE.sub(r"\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


class Screen:
    """Messages as they change, on a terminal that only goes forward."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._last = ""

    def show(self, frame: dict[str, Any]) -> None:
        """Print what is new: the rest of a text that grew, or a text that is another one now."""
        kind, ident, text = frame["kind"], frame["message_id"], unescaped(frame["text"])
        if kind == "deleted":
            self._shown.pop(ident, None)
            return
        if kind == "file":
            text = f"[file {text}: {frame['path']}]"
        before = self._shown.get(ident, "")
        if text == before:
            return
        grown = ident == self._last and before and text.startswith(before)
        if grown:
            print(text[len(before) :], end="", flush=True)
        else:
            print(("\n" if self._last else "") + text, end="", flush=True)
        self._shown[ident], self._last = text, ident

    def end(self) -> None:
        if self._last:
            print()
