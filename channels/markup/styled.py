"""Text with marked ranges: what Markdown means once its signs are gone.

Pure. Knows no platform; offsets are code points.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    """What a range of text is. The names are Telegram's, which has the longest list."""

    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strikethrough"
    CODE = "code"
    PRE = "pre"
    LINK = "text_link"
    QUOTE = "blockquote"
    HEADING = "heading"
    ITEM = "list_item"


INLINE = frozenset({Kind.BOLD, Kind.ITALIC, Kind.STRIKE})
ALONE = frozenset({Kind.CODE, Kind.PRE, Kind.LINK})  # nothing else may be decided inside these


@dataclass(frozen=True, slots=True)
class Span:
    """``detail`` is a link's target, a code block's language or an item's marker.

    ``level`` is a heading's (1 is the highest) or an item's (1 is the outermost list).
    """

    kind: Kind
    start: int
    stop: int
    detail: str = ""
    level: int = 0

    def moved(self, by: int) -> Span:
        return replace(self, start=self.start + by, stop=self.stop + by)


@dataclass(frozen=True, slots=True)
class Styled:
    """``spans`` are in order of their start, longer ones first."""

    text: str
    spans: tuple[Span, ...] = ()


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
_BLANK = "\u2800\u3164\uffa0\u115f\u1160\u034f"  # drawn as nothing, whatever their category says


def shows(text: str) -> bool:
    """Whether anything of a text can be seen; platforms refuse a message of nothing."""
    return any(sign not in _BLANK and unicodedata.category(sign) not in _UNSEEN for sign in text)


class Seen:
    """Where in a growing list of pieces something shows; each piece is looked at once."""

    def __init__(self) -> None:
        self._looked, self._last = 0, -1

    def since(self, pieces: Sequence[str], nth: int) -> bool:
        """Whether anything shows in the pieces from the ``nth`` on."""
        for at in range(self._looked, len(pieces)):
            if shows(pieces[at]):
                self._last = at
        self._looked = len(pieces)
        return self._last >= nth

    def cut(self, length: int) -> None:
        """Only so many pieces are left."""
        self._looked, self._last = min(self._looked, length), min(self._last, length - 1)


def ordered(spans: list[Span]) -> tuple[Span, ...]:
    return tuple(sorted(spans, key=lambda span: (span.start, -span.stop)))
