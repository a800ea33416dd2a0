"""What a thread is shown while a turn works: the end of the text so far, and what is going on.

Pure: events and elapsed seconds go in, text comes out. The preview is plain text without markup,
so that half a bold span or an open fence can never be refused. It must not know tasks or clocks.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from core.engines.base import Event, Text, Thought, ToolEnded, ToolStarted
from core.messages import clean, units

ELLIPSIS = "…"
STEP = 5  # seconds between changes of the elapsed time, in the first minute
TOOL_WORDS = 60  # characters of a tool's title in the footer
_GAP = "\n\n"
_JOINERS = frozenset({0x200D, 0xFE0E, 0xFE0F, 0x20E3})  # zero-width joiner, variants, keycap
_LOOK = 2  # a frame looks at this many times its own length, for the border of a line
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of a running turn. ``text`` alone is what stays when the turn is cut off.

    ``whole`` is all of the text where it can be shown as it grows, else None.
    """

    text: str
    footer: str = ""
    whole: str | None = None

    @property
    def shown(self) -> str:
        return _GAP.join(piece for piece in (self.text, self.footer) if piece)


class Progress:
    """The text and the phase of one running turn."""

    def __init__(self, limit: int, footer: bool = True, growing: int = 0) -> None:
        self._limit = limit
        self._growing = growing  # characters of a text that is shown as it grows
        self._footer = footer
        self._pieces: list[str] = []
        self._tools: dict[str, str] = {}  # open ones, the newest last
        self._writing = False
        self.wordy = False  # there is text that can be seen
        self.fresh = False  # some of it came after this was last set to False
        self.asking = False  # a person has to decide

    def feed(self, event: Event) -> bool:
        """Take an event in; True if the picture changed."""
        match event:
            case Text(delta) if delta:
                self._pieces.append(delta)
                if not delta.isspace():
                    self.wordy = self.fresh = True
                self._writing = True
            case Thought():
                changed = self._writing
                self._writing = False
                return changed
            case ToolStarted(tool, title):
                self._tools[tool] = _one_line(title)
                self._writing = False
            case ToolEnded(tool):
                return self._tools.pop(tool, None) is not None
            case _:
                return False
        return True

    @property
    def text(self) -> str:
        """All of the text so far."""
        return clean(self._joined())

    def frame(self, elapsed: float) -> Frame:
        """How it looks now; ``elapsed`` are the seconds since the turn began."""
        footer = self._phase() if self._footer else ""
        if footer and elapsed >= STEP:  # "0 s" would say nothing
            footer += f" · {spoken(elapsed)}"
        room = self._limit - (units(footer) + units(_GAP) if footer else 0)
        whole = self._joined()
        seen = whole[-_LOOK * self._limit :]
        text = tail(_whole(seen), room, cut=len(seen) < len(whole)).strip()
        grows = len(whole) <= self._growing and self._growing and not self.asking
        return Frame(text, footer, _whole(whole).lstrip() if grows else None)

    def _phase(self) -> str:
        if self.asking:
            return "✋ waiting for a decision"
        if self._tools:
            return f"🔧 {next(reversed(self._tools.values()))}"
        return "⏳ writing…" if self._writing else "⏳ thinking…"

    def _joined(self) -> str:
        whole = "".join(self._pieces)
        self._pieces = [whole]
        return whole


def tail(text: str, limit: int, *, cut: bool = False) -> str:
    """The end of ``text`` in at most ``limit`` units, from the start of a line if one is near.

    Never cuts a character that is made of several: an emoji with its modifiers, a flag, a letter
    with its accents. ``cut``: something was left off before already.
    """
    if not cut and units(text) <= limit:
        return text
    start = len(text) - _fitting(text, limit - units(ELLIPSIS))
    while start < len(text) and _inside(text, start):
        start += 1
    line = text.find("\n", start) + 1
    if 0 < line <= start + limit // 4 and line < len(text):
        start = line
    return ELLIPSIS + text[start:].lstrip()


def _fitting(text: str, room: int) -> int:
    """How many characters at the end of ``text`` have at most ``room`` units.

    Not counted one by one: the text of a terminal can be as long as a book.
    """
    if room <= 0:
        return 0
    last = text[-room:].encode("utf-16-le", "surrogatepass")[-2 * room :]
    if len(last) > 1 and 0xDC <= last[1] <= 0xDF:  # the second half of a character
        last = last[2:]
    return len(last.decode("utf-16-le", "surrogatepass"))


def spoken(seconds: float) -> str:
    """Elapsed time in steps that grow, so that waiting alone costs few edits."""
    if seconds < 60:
        return f"{int(seconds) // STEP * STEP} s"
    if seconds < 600:
        return f"{int(seconds) // 60} min {int(seconds) % 60 // 30 * 30:02d} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60} min"


def _one_line(title: str) -> str:
    line = _BLANKS.sub(" ", clean(title)).strip() or "a tool"
    if len(line) <= TOOL_WORDS:
        return line
    end = TOOL_WORDS - 1
    while end > 0 and _inside(line, end):
        end -= 1
    return line[:end].rstrip() + ELLIPSIS


def _whole(text: str) -> str:
    """Without half a character at the end: its other half comes with the next piece."""
    if text and 0xD800 <= ord(text[-1]) <= 0xDBFF:
        text = text[:-1]
    return clean(text)


def _inside(text: str, at: int) -> bool:
    """Whether a cut before ``text[at]`` would tear one visible character apart."""
    if at <= 0 or at >= len(text):
        return False
    here, before = ord(text[at]), ord(text[at - 1])
    if here in _JOINERS or before == 0x200D or 0x1F3FB <= here <= 0x1F3FF:
        return True
    if 0xE0020 <= here <= 0xE007F or unicodedata.combining(text[at]):
        return True
    if unicodedata.category(text[at]) in ("Mc", "Me"):
        return True
    if here == 0x0A and before == 0x0D:
        return True
    if _flag_half(here) and _flag_half(before):
        first = at
        while first and _flag_half(ord(text[first - 1])):
            first -= 1
        return (at - first) % 2 == 1
    return False


def _flag_half(code: int) -> bool:
    return 0x1F1E6 <= code <= 0x1F1FF
