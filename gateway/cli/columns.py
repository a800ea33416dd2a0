"""Rows for people: aligned by what a terminal shows, cut where there is no room.

How wide a sign is drawn is up to the terminal; this goes by what most of them do.
"""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.cli.border import one_line

NONE = "(none)"
WIDEST = 60  # columns of a cell
NARROWEST = 8  # columns of a cell that gives way to the others
GAP = "  "
WHOLE = frozenset({"id", "lane", "person"})  # what people type again is never cut
PROSE = frozenset({"title", "name", "text", "answer", "error", "prompt", "last_result"})
_LEFT_TO_RIGHT = (
    "\u200e"  # ends what runs the other way, so that its neighbours stay in their place
)
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+([+-]\d\d:\d\d)")
_JOINT, _PICTURE = "\u200d", "\ufe0f"


def table(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], room: int | None = None
) -> str:
    """Rows as aligned text: ``columns`` maps a field to its heading.

    ``room``: columns of the terminal. Where not even narrow ones fit, each row is a paragraph.
    """
    if not rows:
        return NONE
    cells = [[_cell(field, row.get(field)) for field in columns] for row in rows]
    headings = list(columns.values())
    widths = [max(width(line[at]) for line in [headings, *cells]) for at in range(len(columns))]
    if room is not None:
        least = [
            wide if field in WHOLE else min(wide, max(NARROWEST, width(heading)))
            for (field, heading), wide in zip(columns.items(), widths, strict=True)
        ]
        if sum(least) + len(GAP) * (len(least) - 1) > room:
            return "\n\n".join(_paragraph(headings, line) for line in cells)
        prose = [field in PROSE for field in columns]
        _narrow(widths, least, prose, room - len(GAP) * (len(widths) - 1))
    return "\n".join(_row(line, widths) for line in [headings, *cells])


def shown(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """The same for where it is printed: into a file or a pipe every line goes as it is."""
    there = sys.stdout.isatty()
    return table(rows, columns, shutil.get_terminal_size().columns if there else None)


def width(text: str) -> int:
    """Columns that a terminal takes for it."""
    return sum(_widths(text))


def cut(text: str, most: int) -> str:
    """As much of it as fits into so many columns; what is missing is shown by an ellipsis."""
    if width(text) <= most:
        return text
    room, end = most - 1, 0
    for wide in _widths(text):
        room -= wide
        if room < 0:
            break
        end += 1
    return text[:end].rstrip(_JOINT) + "…"


def _widths(text: str) -> list[int]:
    """Of each sign; one that is drawn into the sign before it takes none."""
    found: list[int] = []
    before = ""
    for sign in text:
        wide = 0 if before == _JOINT or _is_tone(sign, before) else _width(sign)
        if sign == _PICTURE and found and found[-1] == 1:
            wide = 1
        found.append(wide)
        before = sign
    return found


def _width(sign: str) -> int:
    if " " <= sign <= "~":
        return 1
    if unicodedata.category(sign) in ("Mn", "Me", "Cf", "Cc") or "\u1160" <= sign <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _is_tone(sign: str, before: str) -> bool:
    """A colour of skin, after what has one."""
    return "\U0001f3fb" <= sign <= "\U0001f3ff" and _width(before or " ") == 2


def _cell(field: str, value: Any) -> str:
    if isinstance(value, bool):
        value = "yes" if value else "no"
    line = one_line("" if value is None else str(value))
    line = _INSTANT.sub(r"\1\2", line) if _INSTANT.fullmatch(line) else line
    return line if field in WHOLE else cut(line, WIDEST)


def _narrow(widths: list[int], least: Sequence[int], prose: Sequence[bool], room: int) -> None:
    """Take from the widest, column by column, until all fit; from facts when no prose is left."""
    while sum(widths) > room:
        at = max(
            (at for at in range(len(widths)) if widths[at] > least[at]),
            key=lambda at: (prose[at], widths[at]),
        )
        widths[at] -= 1


def _row(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = []
    for text, wide in zip(line, widths, strict=True):
        cell = cut(text, wide)
        cells.append(cell + _LEFT_TO_RIGHT * _runs_left(cell) + " " * (wide - width(cell)))
    return GAP.join(cells).rstrip()


def _paragraph(headings: Sequence[str], line: Sequence[str]) -> str:
    said = [(heading, text) for heading, text in zip(headings, line, strict=True) if text]
    return "\n".join(f"{heading}: {text}" for heading, text in said)


def _runs_left(text: str) -> bool:
    """Whether something in it is written from right to left."""
    return not text.isascii() and any(
        unicodedata.bidirectional(sign) in ("R", "AL", "AN") for sign in text
    )
