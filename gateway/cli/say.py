"""``laneway say``: a message from the terminal, and its answer as it streams."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gateway import saved
from gateway.cli import streams
from gateway.cli.border import harmless, one_line, plain
from gateway.cli.client import Talk, talk
from gateway.config import Settings
from gateway.trouble import Trouble

NOTES = """\
A lane is made when it is new; the page shows the same lanes. Quote a text of several words, and put
-- before one that begins with a dash. Commands work as in a chat: laneway say /help lists them.
A question of the agent is answered by typing a number; without a terminal the answer is no.
Ctrl-C leaves, and the turn goes on. Exit status: 0 when it was answered, else 1.
"""
NOBODY_DECIDES = (
    "(denied: nobody can decide here. To be asked, use laneway say in a terminal, "
    "or the buttons of a chat)"
)
STAYS_OPEN = (
    "Nothing was decided. Type a number, or leave with Ctrl-C: the question stays open, "
    "and the next laneway say in this lane shows it again."
)
AWAY = 0.5  # seconds until a terminal is looked at again in which somebody else is in front
ENDED = "the gateway ended before this was answered; laneway turns shows what became of it"
NOT_RUNNING = "the gateway is not running here; start it in another terminal with: laneway run"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lane", default="main", metavar="NAME", help="the thread (default: main)")
    parser.epilog = NOTES
    parser.add_argument("text", metavar="TEXT", help="what to say; - reads standard input")


def main(options: argparse.Namespace) -> int:
    """0 when it was answered, 1 when the turn ended otherwise."""
    text = streams.typed() if options.text == "-" else options.text
    return asyncio.run(_say(saved.load(), options.lane, text))


async def _say(settings: Settings, lane: str, text: str) -> int:
    async with talk(settings.home) as gateway:
        if gateway is None:
            raise Trouble(NOT_RUNNING)
        attended = sys.stdin.isatty()
        gateway.send({"do": "say", "lane": lane, "text": text, "attended": attended})
        try:
            status = await _follow(gateway)
        except asyncio.CancelledError:
            print(f"\n{goes_on(lane)}", file=sys.stderr)
            raise
    return 0 if status == "done" else 1


def goes_on(lane: str) -> str:
    """What somebody is told who leaves before the answer."""
    name = shlex.quote(plain(lane))
    return (
        f"The turn goes on. laneway turns {name} shows what becomes of it; "
        f"laneway say --lane {name} /stop stops it."
    )


async def _follow(gateway: Talk) -> str:
    """Show what comes until it is answered; how it ended."""
    screen, status = Screen(), ""
    with _questions(gateway, screen) as questions:
        async for answer in gateway.answers():
            if shown := answer.get("shown"):
                screen.show(shown)
                questions.see(shown)
            status = answer.get("end", status)
    screen.end()
    if not status:
        raise Trouble(ENDED)
    return status


class Questions:
    """Buttons that are shown now; a number typed presses one.

    A number is given once: what somebody types while another question comes is about the one that
    they read, or about none.
    """

    def __init__(self, gateway: Talk, screen: Screen) -> None:
        self._gateway = gateway
        self._screen = screen
        self._open: dict[str, dict[int, dict[str, str]]] = {}  # by message, then by number
        self._given = 0
        self._typed = b""
        self._later: asyncio.TimerHandle | None = None

    def listen(self) -> None:
        """Take what is typed from now on."""
        asyncio.get_running_loop().add_reader(sys.stdin, self.read)

    def leave(self) -> None:
        if self._later is not None:
            self._later.cancel()
        asyncio.get_running_loop().remove_reader(sys.stdin)

    def see(self, shown: dict[str, Any]) -> None:
        """A message came, changed or went, and its buttons with it."""
        ident = shown["message_id"]
        before = self._open.pop(ident, {})
        buttons = [button for row in shown["buttons"] for button in row]
        if buttons and buttons == [*before.values()]:
            self._open[ident] = before
        elif buttons:
            self._open[ident] = dict(enumerate(buttons, self._given + 1))
            self._given += len(buttons)
            self.offer()

    def offer(self) -> None:
        """Say which numbers stand for what, below the message that they belong to."""
        if self._open:
            ident, buttons = list(self._open.items())[-1]
            self._screen.again(ident)
            named = ((number, one_line(button["label"])) for number, button in buttons.items())
            offer = ", ".join(f"{number} {label}" for number, label in named)
            print(f"\n[{offer}] ", end="", flush=True)

    def read(self) -> None:
        """Take what was typed; a terminal hands over whole lines.

        It is read only when there is something: made non-blocking, it would be so for what is
        printed as well, for both are one file.
        """
        if _behind():
            # Whoever reads a terminal from behind is stopped, and what is typed is not for us.
            self.leave()
            self._later = asyncio.get_running_loop().call_later(AWAY, self.listen)
            return
        try:
            data = os.read(sys.stdin.fileno(), 65536)
        except OSError:
            data = b""
        if not data:
            self._ended()
        *lines, self._typed = (self._typed + data).split(b"\n")
        with suppress(OSError):  # nothing can be printed: whoever shows the answer meets it as well
            for line in lines:
                self._choose(line.decode(errors="replace").strip())

    def _ended(self) -> None:
        """Ctrl-D decides nothing, and a terminal that is there can be typed at again."""
        if not sys.stdin.isatty():  # it is gone
            asyncio.get_running_loop().remove_reader(sys.stdin)
        elif self._open:
            print(f"\n{STAYS_OPEN}", file=sys.stderr)
            self.offer()

    def _choose(self, typed: str) -> None:
        if not self._open:
            return
        number = int(typed) if typed.isdecimal() and len(typed) < 10 else 0
        ident = next((one for one, buttons in self._open.items() if number in buttons), "")
        if not ident:
            *_, newest = self._open.values()
            print(f"a number from {min(newest)} to {max(newest)}: ", end="", flush=True)
            return
        button = self._open.pop(ident)[number]
        self._gateway.send({"press": button["id"], "message_id": ident})
        self.offer()


class Unattended(Questions):
    """Nobody is there to decide: an agent's question is answered with no, the rest is left."""

    def see(self, shown: dict[str, Any]) -> None:
        buttons = {button["label"]: button["id"] for row in shown["buttons"] for button in row}
        if "Allow" in buttons and "Deny" in buttons:
            self._gateway.send({"nobody": buttons["Deny"]})
            print(f"\n{NOBODY_DECIDES}", file=sys.stderr)


@contextmanager
def _questions(gateway: Talk, screen: Screen) -> Iterator[Questions]:
    if not sys.stdin.isatty():
        yield Unattended(gateway, screen)
        return
    questions = Questions(gateway, screen)
    questions.listen()
    try:
        yield questions
    finally:
        questions.leave()


def _behind() -> bool:
    """Whether a shell lets us run in the background of this terminal."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp()
    except OSError:  # it is not the one that controls us
        return False


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
        self._last: str | None = None  # of the message printed last

    def show(self, shown: dict[str, Any]) -> None:
        """Print what is new: the rest of a text that grew, or a text that is another one now."""
        kind, ident = shown["kind"], shown["message_id"]
        text = harmless(unescaped(shown["text"]), growing=True)
        if kind == "deleted":
            self._shown.pop(ident, None)
            return
        if kind == "file":
            text = f"[file {one_line(shown['text'])}: {plain(shown['path'])}]"
        before = self._shown.get(ident, "")
        if text == before:
            return
        grown = ident == self._last and before and text.startswith(before)
        if grown:
            print(text[len(before) :], end="", flush=True)
        else:
            print(("" if self._last is None else "\n") + text, end="", flush=True)
        self._shown[ident], self._last = text, ident

    def again(self, ident: str) -> None:
        """Print a message once more, if others were printed since."""
        if ident != self._last and (text := self._shown.get(ident)):
            print(f"\n{text}", end="", flush=True)
            self._last = ident

    def end(self) -> None:
        if self._last is not None:
            print()
