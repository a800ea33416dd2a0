"""Text with marked ranges → text with signs, for platforms that read a markup of their own.

Pure. Knows no platform: a ``Dialect`` says which signs. Signs never cross the end of a line, a
link or a piece of code, enclose no blanks at their edges, and are closed last opened first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from channels.markup.styled import ALONE, INLINE, Kind, Span, Styled

APART = "\u200b"  # takes no room, and ends a word


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text all of which lies in the same ranges, given longest first."""

    start: int
    text: str
    spans: tuple[Span, ...]

    def span(self, kind: Kind) -> Span | None:
        for span in self.spans:
            if span.kind is kind:
                return span
        return None


class Dialect(Protocol):
    """How one platform writes what a range means."""

    def literal(self, whole: str, start: int, stop: int, first: bool, inside: list[Kind]) -> str:
        """``whole[start:stop]`` so that it is shown as it is; ``first`` on its line or not."""

    def sign(self, whole: str, span: Span, before: str, inside: list[Kind]) -> str:
        """What opens and closes bold and the like; ``before`` is what it will stand after."""

    def code(self, text: str) -> str: ...

    def link(self, label: str, target: str) -> str: ...

    def block(self, text: str, language: str) -> str:
        """A code block; the lines it takes, with no line break after the last."""

    def lead(self, piece: Piece) -> str:
        """What a line of a quote or heading begins with."""

    def marker(self, item: Span) -> str:
        """What a list item begins with."""

    def apart(self, before: str, after: str) -> bool:
        """Whether a sign needs something between itself and its neighbour on its line."""


def pieces(styled: Styled) -> Iterator[Piece]:
    """The text in order, cut wherever a range begins or ends."""
    spans = sorted(_settled(styled), key=_outermost)
    edges = sorted({0, len(styled.text), *(at for s in spans for at in (s.start, s.stop))})
    active: list[Span] = []
    nth = 0
    for start, stop in pairwise(edges):
        active = [span for span in active if span.stop > start]
        while nth < len(spans) and spans[nth].start <= start:
            active.append(spans[nth])
            nth += 1
        yield Piece(start, styled.text[start:stop], tuple(active))


def _outermost(span: Span) -> tuple[int, int, bool]:
    return span.start, -span.stop, span.kind is not Kind.BOLD


def _settled(styled: Styled) -> Iterator[Span]:
    """Ranges without blank edges; bold and the like lies around a link or code, never inside."""
    alone = [span for span in styled.spans if span.kind in ALONE]
    starts = [span.start for span in alone]
    for span in styled.spans:
        if span.kind in INLINE:
            start, stop = _outside(alone, starts, span.start, span.stop)
            inner = styled.text[start:stop]
            start = stop - len(inner.lstrip())
            stop = start + len(inner.strip())
            if (start, stop) == (span.start, span.stop):
                yield span
            elif start < stop:
                yield replace(span, start=start, stop=stop)
        elif span.start < span.stop:
            yield span


def _outside(alone: list[Span], starts: list[int], start: int, stop: int) -> tuple[int, int]:
    nth = bisect_right(starts, start) - 1
    if (
        nth >= 0
        and start < alone[nth].stop
        and (alone[nth].start < start or alone[nth].stop > stop)
    ):
        start = min(stop, alone[nth].stop)
    nth = bisect_right(starts, max(start, stop - 1)) - 1
    if nth >= 0 and start < alone[nth].start < stop < alone[nth].stop:
        stop = alone[nth].start
    return start, stop


def write(styled: Styled, dialect: Dialect) -> str:
    writer = _Writer(styled.text, dialect)
    for piece in pieces(styled):
        writer.add(piece)
    return writer.done()


class _Writer:
    def __init__(self, whole: str, dialect: Dialect) -> None:
        self._whole = whole
        self._dialect = dialect
        self._out: list[str] = []
        self._open: list[tuple[Span, str]] = []
        self._gap = ""  # blanks that are written once it is known what follows
        self._first = True  # nothing stands on the line but what it begins with
        self._started = False  # not even that
        self._flush = False  # what comes next stands right after what its line begins with
        self._signed = False  # the last thing written is a sign that closes
        self._fenced = False  # the present line ends a code block

    def done(self) -> str:
        self._close(0)
        return "".join(self._out)

    def add(self, piece: Piece) -> None:
        if not piece.spans:
            self._lines(piece, piece.start)
            return
        if block := piece.span(Kind.PRE):
            self._block(piece, block.detail)
            return
        at = piece.start
        item = piece.span(Kind.ITEM)
        if item and item.start == at and piece.text.startswith(item.detail):
            self._item(piece, item)
            at += len(item.detail)
        link = piece.span(Kind.LINK)
        if link or piece.span(Kind.CODE):
            self._alone(piece, link)
        else:
            self._lines(piece, at)

    def _lines(self, piece: Piece, at: int) -> None:
        stop = piece.start + len(piece.text)
        while (end := self._whole.find("\n", at, stop)) >= 0:
            self._text(piece, at, end)
            self._end_line(piece)
            at = end + 1
        self._text(piece, at, stop)

    def _end_line(self, piece: Piece) -> None:
        self._close(0)
        self._gap = ""
        self._lead(piece)
        self._break()

    def _break(self) -> None:
        self._out.append("\n")
        self._first, self._started, self._signed, self._fenced = True, False, False, False

    def _start(self, piece: Piece) -> None:
        if self._fenced:
            self._break()
        self._lead(piece)

    def _lead(self, piece: Piece) -> None:
        if not self._started:
            lead = self._dialect.lead(piece)
            self._out.append(lead)
            self._started, self._flush = True, bool(lead)

    def _item(self, piece: Piece, item: Span) -> None:
        self._close(0)
        self._start(piece)
        self._out += [self._gap, self._dialect.marker(item)]
        self._gap, self._flush = "", False

    def _text(self, piece: Piece, start: int, stop: int) -> None:
        text = self._whole[start:stop]
        inner = text.strip()
        if not inner:
            self._gap += text
            return
        self._gap += text[: len(text) - len(text.lstrip())]
        start = stop - len(text.lstrip())
        kinds = [span.kind for span in piece.spans]
        end = start + len(inner)
        self._put(piece, self._dialect.literal(self._whole, start, end, self._first, kinds))
        self._gap = self._whole[end:stop]

    def _alone(self, piece: Piece, link: Span | None) -> None:
        if link:
            shown = self._dialect.link(" ".join(piece.text.split()), link.detail)
        else:
            shown = self._dialect.code(piece.text.replace("\n", " "))
            if self._out and not self._gap and self._out[-1].endswith("`"):
                shown = APART + shown  # two pieces of code would become one
        self._put(piece, shown)

    def _block(self, piece: Piece, language: str) -> None:
        self._close(0)
        if not self._first:
            self._break()
        self._gap = ""
        lead = self._dialect.lead(piece)
        text = piece.text[:-1] if piece.text.endswith("\n") else piece.text
        lines = self._dialect.block(text, language)
        self._out.append("\n".join(lead + line for line in lines.split("\n")))
        self._first, self._started, self._signed, self._fenced = False, True, False, True

    def _put(self, piece: Piece, shown: str) -> None:
        """Write something visible, after the signs that end and begin before it."""
        self._start(piece)
        wanted = [span for span in piece.spans if span.kind in INLINE]
        keep = 0
        while keep < len(self._open) and self._open[keep][0] in wanted:
            keep += 1
        self._close(keep)
        if self._gap and not self._flush:
            self._out.append(self._gap)
            self._signed = False
        self._gap, self._flush = "", False
        opened = [span for span, _ in self._open]
        for span in wanted:
            if span not in opened:
                self._sign(span)
        if self._signed and shown and self._dialect.apart(self._out[-1], shown[0]):
            self._out.append(APART)
        self._out.append(shown)
        self._first, self._signed = False, False

    def _sign(self, span: Span) -> None:
        before = self._out[-1] if self._out else ""
        sign = self._dialect.sign(self._whole, span, before, [s.kind for s, _ in self._open])
        inner = bool(self._open) and self._out[-1] == self._open[-1][1]
        if before and not inner and self._dialect.apart(before, sign):
            self._out.append(APART)
        self._out.append(sign)
        self._open.append((span, sign))
        self._signed = False

    def _close(self, keep: int) -> None:
        while len(self._open) > keep:
            self._out.append(self._open.pop()[1])
            self._signed = True
