"""A Markdown table as aligned monospaced text. Pure; knows no platform."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_WIDEST = 40  # a longer cell is shown in full, but does not push the others' columns apart


class Table:
    """Takes cells as they come, draws them when all are known."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows: list[list[str]] = []
        self._links: dict[tuple[str, str], None] = {}
        self._open: list[tuple[str, int]] = []
        self._column = 0

    def row(self) -> None:
        self._rows.append([])
        self._column = 0

    def cell(self) -> None:
        self._column += 1

    def write(self, text: str) -> None:
        row = self._rows[-1]
        # The parser fills short rows up; empty cells at a row's end are not kept.
        row += [""] * (self._column - len(row))
        row[-1] += text

    def link(self, target: str) -> None:
        self.write("")
        self._open.append((target, len(self._rows[-1][-1])))

    def end_link(self) -> None:
        target, at = self._open.pop()
        if not target:
            return
        if not self._rows[-1][-1][at:].strip():
            self.write(target)
        self._links[self._rows[-1][-1][at:], target] = None

    def links(self) -> Iterator[tuple[str, str]]:
        yield from self._links

    def draw(self) -> str:
        widths = [1] * self._columns
        for row in self._rows:
            for nth, cell in enumerate(row):
                widths[nth] = max(widths[nth], min(width(cell), _WIDEST))
        lines = [" | ".join(map(_padded, row, widths)).rstrip() for row in self._rows]
        lines.insert(1, "-+-".join("-" * wide for wide in widths))
        return "\n".join(lines)


def _padded(cell: str, wide: int) -> str:
    return cell + " " * (wide - width(cell))


def width(text: str) -> int:
    """Columns that a text takes in a monospaced font."""
    if text.isascii():
        return len(text)
    total, joined, before = 0, False, 0
    for sign in text:
        if sign == "\ufe0f" and before == 1:
            total += 1  # shown as a picture, which is wide
        elif joined or ("\U0001f3fb" <= sign <= "\U0001f3ff" and before == 2):
            pass  # part of the picture before it
        elif unicodedata.category(sign) not in _NO_WIDTH:
            before = 1 + (unicodedata.east_asian_width(sign) in "WF")
            total += before
        joined = sign == "\u200d" and before == 2
    return total


_NO_WIDTH = frozenset({"Mn", "Me", "Cf"})
