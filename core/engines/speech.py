"""What every engine tells of a turn in the same way: the answer's text, and what it cost.

Pure. Texts are whole characters and end somewhere; costs are those of the turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.engines.base import Text
from core.engines.plain import COST_MOST, words

ANSWER_MOST = 10_000_000  # characters of one turn's answer
CUT = "\n\n(This answer was longer than ten million characters; the rest was left out.)"


@dataclass(slots=True)
class Speech:
    """The answer of one turn, piece by piece."""

    _length: int = 0  # of the answer so far
    _last: str = ""  # its last character
    _half: str = ""  # the first half of a character that was cut in two
    _apart_since: bool = False

    def say(self, text: str) -> Iterator[Text]:
        """A piece of the answer. Agents cut it anywhere, also in the middle of a character."""
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = words(text[: len(text) - len(self._half)])
        room = ANSWER_MOST - self._length
        if not text or room <= 0:
            return
        self._length += len(text)
        apart = self._between(text)
        self._last = text[-1]
        yield Text(apart + (text if len(text) <= room else text[:room] + CUT))

    def apart(self) -> None:
        """What comes next is another message of the agent: a paragraph between them."""
        self._apart_since = True

    def _between(self, text: str) -> str:
        between = self._apart_since and bool(self._last.strip()) and not text[0].isspace()
        self._apart_since = False
        return "\n\n" if between else ""


@dataclass(slots=True)
class Meter:
    """Turns a session's running total into what this turn has cost, in US dollars."""

    before: float | None = None  # the total when the turn began
    total: float | None = None  # the newest one
    _earlier: float = 0.0  # spent on counters of this turn that have fallen since

    def count(self, total: float) -> None:
        """Take in a total. One that falls is a new counter, from zero."""
        if self.total is not None and total < self.total:
            self._earlier += self.total - (self.before or 0.0)
            self.before = 0.0
        self.total = total

    @property
    def cost(self) -> float | None:
        if self.total is None:
            return None
        spent = self._earlier + self.total - (self.before or 0.0)
        return min(max(spent, 0.0), COST_MOST)
