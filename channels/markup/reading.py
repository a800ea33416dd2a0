"""Markdown → text with marked ranges. The parser is pulldown-cmark, which takes linear time.

Pure. Anything is Markdown: half an answer, an open fence, HTML; nothing raises and no word of the
source is lost. Knows no platform and no lengths.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from channels.markup.parsing import address_of, events, keep_meaning, named
from channels.markup.styled import INLINE, Kind, Seen, Span, Styled, ordered
from channels.markup.tables import Table
from core.messages import clean

_FORMATS = {"Strong": Kind.BOLD, "Emphasis": Kind.ITALIC, "Strikethrough": Kind.STRIKE}
_LEAVES = frozenset({"Paragraph", "Heading", "CodeBlock", "HtmlBlock", "Table"})
_DEEPEST = 24  # columns of indentation; deeper lists would be wider than any screen
_HEADINGS = 3  # lower ones are bold on every platform
_RULE = "──────────"
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
# Only these become links: others are not opened by chat programs, or (tg:) act on people.
_LINKABLE = re.compile(r"https?://\S+", re.IGNORECASE)


def read(
    markdown: str, blocks: frozenset[Kind] = frozenset(), longest: int | None = None
) -> Styled:
    """What a person should see. The text never starts with blank lines or ends with blanks.

    ``blocks``: which of headings and list items are marked, for platforms that have their own;
    without, a heading is bold, and a list is its text. A link to an address of more than
    ``longest`` signs stands in the text instead.
    """
    source = keep_meaning(clean(markdown).replace("\r\n", "\n").replace("\r", "\n"))
    return _Reader(source.encode(), blocks, longest).read(source)


class _Reader:
    """One pass over the events; a method for each kind."""

    def __init__(self, source: bytes, blocks: frozenset[Kind], longest: int | None) -> None:
        self._source = source
        self._blocks = blocks
        self._longest = longest
        self._chunks: list[str] = []
        self._size = 0
        self._spans: list[Span] = []
        self._ended = 0  # where in the source the last block ended
        self._inside = False  # inline text goes on the present line
        self._fresh = True  # nothing stands on the present line but a list marker
        self._lists: list[int | None] = []  # next number, or None for bullets
        self._indents: list[int] = []
        self._column = 0  # the sum of these
        self._item_at: int | None = None  # an item's marker, with nothing after its first block
        self._marker, self._level = "", 0
        self._heading: tuple[int, int] | None = None  # where it began, and its level
        self._depth: dict[Kind, int] = {}
        self._since: dict[Kind, int] = {}
        self._seen = Seen()
        self._links: list[tuple[int, int, str]] = []  # where it began, in which piece, to what
        self._quotes = 0
        self._quoted: int | None = None
        self._code: str | None = None  # language of the open code block
        self._code_at = 0
        self._table: Table | None = None

    def read(self, source: str) -> Styled:
        for name, data, start, stop in events(source):
            if self._table is not None and not (name == "End" and named(data)[0] == "Table"):
                self._in_table(name, data)
            elif name == "Start":
                self._start(*named(data), start)
            elif name == "End":
                self._end(*named(data), stop)
            else:
                self._leaf(name, data, start, stop)
        text = "".join(self._chunks).rstrip()
        spans = [replace(span, stop=min(span.stop, len(text))) for span in self._spans]
        return Styled(text, ordered([span for span in spans if span.start < span.stop]))

    # Writing ----------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        if text:
            self._chunks.append(text)
            self._size += len(text)

    def _mark(self, kind: Kind, start: int, detail: str = "") -> None:
        if start < self._size:
            self._spans.append(Span(kind, start, self._size, detail))

    @property
    def _indent(self) -> str:
        return " " * min(self._column, _DEEPEST)

    def _newline(self) -> None:
        self._write("\n" + self._indent)

    def _begin(self, start: int, indent: str | None = None) -> None:
        """Start a block on a line of its own, after a blank line where the source has one."""
        if not self._fresh:
            self._end_item()
            gap = self._source.count(b"\n", self._ended, start) if start > self._ended else 1
            if self._size:  # an empty heading may have been all before
                self._write("\n" if gap < 2 else "\n\n")
            self._write(self._indent if indent is None else indent)
        if self._quotes and self._quoted is None:
            self._quoted = self._size
        self._inside, self._fresh = True, False

    def _begin_drawn(self, start: int) -> None:
        """Start what stands in columns: all its lines at the edge, none beside a marker."""
        beside = self._fresh and self._size > 0 and not self._chunks[-1].endswith("\n")
        self._begin(start, "")
        self._end_item()
        if beside:
            self._write("\n")

    def _finish(self, stop: int) -> None:
        while stop and self._source[stop - 1 : stop] == b"\n":
            stop -= 1
        self._ended = max(self._ended, stop)
        self._inside = False

    # Blocks -----------------------------------------------------------------------------

    def _start(self, tag: str, detail: Any, start: int) -> None:
        if tag in ("CodeBlock", "Table"):
            self._begin_drawn(start)
        elif tag in _LEAVES:
            self._begin(start)
        match tag:
            case "Heading":
                self._open_heading(int(detail["level"][1:]))
            case "CodeBlock":
                info = detail["Fenced"] if isinstance(detail, dict) else ""
                self._code, self._code_at = (info.split() or [""])[0][:64], self._size
            case "Table":
                self._table = Table(len(detail))
            case "BlockQuote":
                self._quotes += 1
                self._inside = False
            case "List":
                self._lists.append(detail)
                self._inside = False
            case "Item":
                self._item(start)
            case "Link" | "Image":
                self._inline(start)
                target = "" if detail["link_type"] == "Email" else address_of(detail)
                self._links.append((self._size, len(self._chunks), target))
            case _ if tag in _FORMATS:
                self._inline(start)
                self._open(_FORMATS[tag])

    def _end(self, tag: str, detail: Any, stop: int) -> None:
        match tag:
            case "Heading":
                self._close_heading()
            case "CodeBlock":
                self._end_code()
            case "HtmlBlock":
                self._trim_line()
            case "Table":
                self._end_table()
            case "BlockQuote":
                self._quotes -= 1
                if not self._quotes and self._quoted is not None:
                    self._mark(Kind.QUOTE, self._quoted)
                    self._quoted = None
            case "List":
                self._lists.pop()
            case "Item":
                self._end_item()
                self._column -= self._indents.pop()
                self._fresh = False  # the marker of an empty item has a line of its own
            case "Link" | "Image":
                self._end_link()
            case _ if tag in _FORMATS:
                self._close(_FORMATS[tag])
        if tag in _LEAVES:
            self._finish(stop)
        elif tag in ("Item", "BlockQuote", "List"):
            self._inside = False

    def _item(self, start: int) -> None:
        if self._fresh and self._item_at is not None:
            self._mark_item(self._item_at)  # it holds nothing but this list
        self._begin(start)
        number = self._lists[-1]
        marker = "• " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1
        self._item_at, self._marker, self._level = self._size, marker, len(self._lists)
        self._indents.append(len(marker))
        self._column += len(marker)
        self._write(marker)
        self._fresh = True

    def _end_item(self) -> None:
        """Mark an item from its marker to the end of its first block, if there is any text."""
        at, self._item_at = self._item_at, None
        if at is not None and self._size > at + len(self._marker):
            self._mark_item(at)

    def _mark_item(self, at: int) -> None:
        if Kind.ITEM in self._blocks:
            self._spans.append(Span(Kind.ITEM, at, self._size, self._marker, self._level))

    def _open_heading(self, level: int) -> None:
        if Kind.HEADING in self._blocks and self._item_at is None and level <= _HEADINGS:
            self._heading = self._size, level
        else:
            self._open(Kind.BOLD)

    def _close_heading(self) -> None:
        heading, self._heading = self._heading, None
        if heading is None:
            self._close(Kind.BOLD)
        elif heading[0] < self._size:
            self._spans.append(Span(Kind.HEADING, heading[0], self._size, level=heading[1]))

    def _trim_line(self) -> None:
        if self._chunks and self._chunks[-1].endswith("\n"):
            self._chunks[-1] = self._chunks[-1][:-1]
            self._size -= 1

    def _end_code(self) -> None:
        if self._size > self._code_at:
            self._trim_line()
        self._mark(Kind.PRE, self._code_at, self._code or "")
        self._code = None

    def _end_table(self) -> None:
        table, self._table = self._table, None
        if table is None:
            return
        at = self._size
        self._write(table.draw())
        self._mark(Kind.PRE, at)
        # Nothing can be linked inside monospaced text, so a table's links follow it.
        for nth, (label, target) in enumerate(table.links()):
            self._write(" · " if nth else "\n")
            at = self._size
            self._write(label)
            self._mark(Kind.LINK, at, target)

    # Inside a line ----------------------------------------------------------------------

    def _inline(self, start: int) -> None:
        if not self._inside and not self._fresh:
            self._begin(start)
        if self._quotes and self._quoted is None:
            self._quoted = self._size
        self._inside, self._fresh = True, False

    def _leaf(self, name: str, data: Any, start: int, stop: int) -> None:
        if name == "Rule":
            self._begin(start)
            self._write(_RULE)
            self._finish(stop)
            return
        if name == "TaskListMarker":
            self._tick(data)
            return
        self._inline(start)
        match name:
            case "SoftBreak" | "HardBreak":
                self._newline()
            case "Code":
                self._code_span(data)
            case "InlineHtml" if _LINE_BREAK.fullmatch(data):
                self._newline()
            case "Text" if self._code is not None:
                self._write(data)
            case _:
                self._write(str(data))
        if self._code is None:
            self._finish(stop)
            self._inside = True

    def _tick(self, done: bool) -> None:
        if self._chunks and self._chunks[-1] == "• ":
            self._size -= len(self._chunks.pop())
            self._seen.cut(len(self._chunks))
            self._item_at = None
        self._write("☑ " if done else "☐ ")

    def _code_span(self, text: str) -> None:
        if self._links:  # a link's label cannot also be code; the link matters more
            self._write(text)
            return
        paused = {kind for kind in INLINE if self._depth.get(kind)}
        for kind in paused:
            self._mark(kind, self._since[kind])
        at = self._size
        self._write(text)
        self._mark(Kind.CODE, at)
        for kind in paused:
            self._since[kind] = self._size

    def _open(self, kind: Kind) -> None:
        if not self._depth.get(kind):
            self._since[kind] = self._size
        self._depth[kind] = self._depth.get(kind, 0) + 1

    def _close(self, kind: Kind) -> None:
        self._depth[kind] -= 1
        if not self._depth[kind]:
            self._mark(kind, self._since[kind])

    def _end_link(self) -> None:
        start, nth, target = self._links.pop()
        if not self._seen.since(self._chunks, nth):  # there would be nothing to press
            self._write(target)
        if self._links or not target:  # a picture inside a link: the outer one is the link
            return
        if self._opens(target):
            self._mark(Kind.LINK, start, target)
        elif "".join(self._chunks[-1:]) != target:
            self._write(f" ({target})")

    def _opens(self, target: str) -> bool:
        """Whether a link to it can be one here."""
        short = self._longest is None or len(target) <= self._longest
        return short and _LINKABLE.fullmatch(target) is not None

    # Tables -----------------------------------------------------------------------------

    def _in_table(self, name: str, data: Any) -> None:
        table = self._table
        if table is None:
            return
        tag: str = ""
        detail: Any = None
        if name in ("Start", "End"):
            tag, detail = named(data)
        match name, tag:
            case "Start", "TableHead" | "TableRow":
                table.row()
            case "Start", "TableCell":
                table.cell()
            case "Start", "Link" | "Image":
                target = address_of(detail)
                table.link(target if self._opens(target) else "")
            case "End", "Link" | "Image":
                table.end_link()
            case (("SoftBreak" | "HardBreak"), _):
                table.write(" ")
            case "InlineHtml", _ if _LINE_BREAK.fullmatch(data):
                table.write(" ")
            case (("Text" | "Code" | "InlineHtml"), _):
                table.write(data)
