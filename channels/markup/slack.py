"""Markdown as Slack messages: rich text blocks, and the same as mrkdwn to fall back to.

Pure. Rich text says what each stretch of text is, so nothing is parsed: no text can ping or be
taken for markup, and none is refused for its format. Mrkdwn is for notifications and for whoever
cannot show blocks; there ``&``, ``<`` and ``>`` are escaped, so no text can ping either. Lengths
are UTF-16 units: Slack does not say what it counts, and these are never fewer than signs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from channels.markup.reading import read
from channels.markup.slack_blocks import rich_text
from channels.markup.split import split_styled
from channels.markup.styled import Kind, Span, Styled, shows
from channels.markup.writing import APART, Piece, write
from core.messages import clean

TEXT_LIMIT = 3000  # chat.update takes about 4,000, a section 3,000
BLOCKS_LIMIT = 11_000  # signs of JSON; Slack takes about 13,000, and buttons want some too
EMPTY = "(empty)"

Block = dict[str, Any]

_MOST_RANGES = 240  # more would not fit the limit of JSON anyway
SMALLEST = 32
_LONGEST_LINK = 1500
_BLOCKS = frozenset({Kind.ITEM})
_SIGNS = {Kind.BOLD: "*", Kind.ITALIC: "_", Kind.STRIKE: "~"}
_BROADCAST = re.compile(r"@(?=(?:here|channel|everyone|group)\b)", re.IGNORECASE)
_ODD = {"|": "%7C", "<": "%3C", ">": "%3E", "&": "&amp;"}


@dataclass(frozen=True, slots=True)
class Rendered:
    """One message: ``blocks`` as ``chat.postMessage`` takes them, ``text`` without them."""

    text: str
    blocks: list[Block]


def render(markdown: str, limit: int | None = None) -> list[Rendered]:
    """Markdown as the messages to send; at least one, and none of them empty.

    ``limit`` is for ``text``, in UTF-16 units.
    """
    limit = max(limit or TEXT_LIMIT, SMALLEST)
    styled = read(markdown, _BLOCKS, min(_LONGEST_LINK, limit // 2))
    if not shows(styled.text):
        source = clean(markdown).strip()
        styled = Styled(source if shows(source) else EMPTY)

    def excess(part: Styled) -> float:
        over = _units(_written(part)) / limit
        return over if over > 1 else _size(rich_text(part)) / BLOCKS_LIMIT

    parts = split_styled(styled, limit, _MOST_RANGES, excess=excess)
    return [_rendered(part, limit) for part in parts if shows(part.text)]


def escaped(text: str) -> str:
    """Text as mrkdwn shows it; what names people or places in it is text too."""
    return _BROADCAST.sub(f"@{APART}", _in_code(text))


def _in_code(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _rendered(part: Styled, limit: int) -> Rendered:
    """The part; without its formats if these alone are longer than the limit."""
    text = _written(part)
    if _units(text) > limit:
        part = Styled(part.text)
        text = _written(part)
    return Rendered(text or part.text, rich_text(part))


def _written(part: Styled) -> str:
    return write(part, _Mrkdwn()).strip("\n").rstrip()


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _size(blocks: list[Block]) -> int:
    return len(json.dumps(blocks, ensure_ascii=False))


class _Mrkdwn:
    """The signs of mrkdwn. It has no way to escape its own, so those in the text stay."""

    def literal(self, whole: str, start: int, stop: int, first: bool, inside: list[Kind]) -> str:
        return escaped(whole[start:stop])

    def sign(self, whole: str, span: Span, before: str, inside: list[Kind]) -> str:
        return _SIGNS[span.kind]

    def code(self, text: str) -> str:
        return f"`{_in_code(text.replace('`', 'ˋ'))}`"

    def link(self, label: str, target: str) -> str:
        target = "".join(_ODD.get(sign, sign) for sign in target)
        label = escaped(label).replace("|", "¦")
        return f"<{target}|{label}>" if label and label != target else f"<{target}>"

    def block(self, text: str, language: str) -> str:
        text = text.replace("```", f"``{APART}`").replace("```", f"``{APART}`")
        return f"```\n{_in_code(text)}\n```"

    def lead(self, piece: Piece) -> str:
        # A fence inside a quote would be shown as text.
        quoted = piece.span(Kind.QUOTE) and not piece.span(Kind.PRE)
        return "> " if quoted else ""

    def marker(self, item: Span) -> str:
        return item.detail

    def apart(self, before: str, after: str) -> bool:
        last, first = before[-1:], after[:1]
        signs = last in ("*", "_", "~") and first in ("*", "_", "~")
        return signs or last.isalnum() or first.isalnum()
