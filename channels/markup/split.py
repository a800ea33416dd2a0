"""Cutting text into parts that a platform takes, where it hurts least.

Pure, and linear in the text. Nothing is lost: the parts joined are the text (but for parts of
nothing but blanks). Knows no platform: limits are parameters.
"""

from __future__ import annotations

import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

from channels.markup.styled import ALONE, Kind, Span, Styled

_SEPARATORS = ("\n\n", "\n", " ")
_JOINER = "\u200d"
_SIGN = 64  # no sign is made of more


class Ruler:
    """Lengths of ranges of one text, in UTF-16 units or in code points."""

    def __init__(self, text: str, utf16: bool = True) -> None:
        self._ends: list[int] | None = None
        if utf16 and not text.isascii() and max(text) > "\uffff":
            self._ends = list(accumulate((1 + (sign > "\uffff") for sign in text), initial=0))

    def size(self, start: int, stop: int) -> int:
        return self._ends[stop] - self._ends[start] if self._ends else stop - start

    def furthest(self, start: int, limit: int) -> int:
        """The last position up to which the text from ``start`` on fits the limit."""
        if self._ends is None:
            return start + limit
        return bisect_right(self._ends, self._ends[start] + limit) - 1


def best_cut(text: str, start: int, stop: int) -> int:
    """Where to end a part that may go from ``start`` to ``stop`` at most.

    After a blank line, else a line, else a word, if that leaves the part half full; else after
    the last of any of these; else right at ``stop``, but inside no sign made of several.
    """
    if stop >= len(text):
        return len(text)
    for least in (start + (stop - start) // 2, start):
        for mark in _SEPARATORS:
            found = text.rfind(mark, least, stop)
            if found > start or (found == start and len(mark) + found <= stop):
                return found + len(mark)
    return _between_signs(text, start, stop)


def _between_signs(text: str, start: int, stop: int) -> int:
    at = stop
    while at > max(start + 1, stop - _SIGN) and _joined(text, at, start):
        at -= 1
    return stop if _joined(text, at, start) else at


def _joined(text: str, at: int, start: int) -> bool:
    """Whether the signs before and after ``at`` are shown as one."""
    after, before = text[at], text[at - 1]
    if after == _JOINER or before == _JOINER or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if _is_flag(after) and _is_flag(before):
        first = at
        while first > max(start, at - _SIGN) and _is_flag(text[first - 1]):
            first -= 1
        return (at - first) % 2 == 1
    if "\u1160" <= after <= "\u11ff":  # the later letters of a Korean syllable
        return "\u1100" <= before <= "\u11ff"
    # Marks of every kind (those that choose a variant too), and the letters of a flag's region.
    return unicodedata.category(after)[0] == "M" or "\U000e0020" <= after <= "\U000e007f"


def _is_flag(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


# Text with marked ranges ------------------------------------------------------------------


Excess = Callable[[Styled], float]


def split_styled(
    styled: Styled,
    limit: int,
    most_spans: int = sys.maxsize,
    utf16: bool = True,
    excess: Excess | None = None,
) -> list[Styled]:
    """Parts of at most ``limit`` units and ``most_spans`` ranges; no link is cut that fits one.

    ``excess`` tells how many times too long a part is once it is written as the platform wants
    it: parts are made smaller until it is at most 1 (or they are one sign).
    """
    cutter = _Cutter(styled, most_spans, Ruler(styled.text, utf16))
    parts: list[Styled] = []
    while cutter.at < len(styled.text):
        room, tries = limit, 0
        part = cutter.part(room)
        while excess is not None and room > 1 and part.text.strip():
            over = excess(part)
            if over <= 1:
                break
            tries += 1
            room = min(room, len(part.text))
            room = max(1, min(room - 1, int(room / max(over, 2 if tries > _TRIES else 1))))
            part = cutter.part(room)
        cutter.take(part)
        if part.text.strip():
            parts.append(part)
    return parts


_TRIES = 6  # by then a part fits, or it holds something that no small step makes fit


class _Cutter:
    """One walk through a text; what was taken is never looked at again."""

    def __init__(self, styled: Styled, most_spans: int, ruler: Ruler) -> None:
        self.at = 0
        self._text, self._spans = styled.text, styled.spans
        self._most, self._ruler = most_spans, ruler
        self._whole = [span for span in styled.spans if span.kind in ALONE]
        self._starts = [span.start for span in self._whole]
        self._nth = 0
        self._carried: list[Span] = []  # ranges that began in an earlier part and go on

    def part(self, room: int) -> Styled:
        """The next part, of at most so many units. Nothing changes."""
        at, spans = self.at, self._spans
        stop = min(len(self._text), self._ruler.furthest(at, room))
        fits = self._nth + max(0, self._most - len(self._carried))
        if fits < len(spans):
            stop = min(stop, max(spans[fits].start, at + 1))
        cut = _around(self._whole, self._starts, at, best_cut(self._text, at, stop))
        cut = max(_line_of_code(self._text, self._whole, self._starts, at, cut), at + 1)
        inside = self._inside(cut)
        return Styled(self._text[at:cut], tuple(_clipped(inside, at, cut)))

    def take(self, part: Styled) -> None:
        stop = self.at + len(part.text)
        inside = self._inside(stop)
        self._nth += len(inside) - len(self._carried)
        self._carried = [span for span in inside if span.stop > stop]
        self.at = stop

    def _inside(self, stop: int) -> list[Span]:
        nth = self._nth
        while nth < len(self._spans) and self._spans[nth].start < stop:
            nth += 1
        return [*self._carried, *self._spans[self._nth : nth]]


def _clipped(spans: list[Span], start: int, stop: int) -> Iterator[Span]:
    for span in spans:
        first, last = max(span.start, start) - start, min(span.stop, stop) - start
        yield Span(span.kind, first, last, span.detail, span.level)


_SHORT = 400  # a link or piece of code up to this long goes into the next part as a whole


def _around(whole: list[Span], starts: list[int], start: int, cut: int) -> int:
    """The cut, moved before the link or short code it would go through."""
    nth = bisect_left(starts, cut) - 1
    if nth < 0:
        return cut
    span = whole[nth]
    short = span.stop - span.start <= _SHORT
    return span.start if short and start < span.start < cut < span.stop else cut


def _line_of_code(text: str, whole: list[Span], starts: list[int], start: int, cut: int) -> int:
    """The cut, moved to where a line of the code (or a row of the table) around it ends."""
    nth = bisect_left(starts, cut) - 1
    if nth < 0 or whole[nth].kind is not Kind.PRE or cut >= whole[nth].stop:
        return cut
    first = whole[nth].start
    line = text.rfind("\n", max(start, first), cut) + 1
    if line > start:
        return line
    return first if first > start else cut
