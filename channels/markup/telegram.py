"""Markdown as Telegram messages: text and entities, never a parse mode.

Pure. Lengths and offsets are UTF-16 units, as Telegram counts. Entities cannot be unparseable, so
no answer is refused for its format. A text never pings: what Telegram would take for a mention of
somebody is shown as code, which it leaves alone, and only web addresses become links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from channels.markup.reading import read
from channels.markup.split import Ruler, split_styled
from channels.markup.styled import ALONE, INLINE, Kind, Span, Styled, ordered
from core.messages import clean

TEXT_LIMIT = 4096
ENTITY_LIMIT = 100
EMPTY = "(empty)"

Entity = dict[str, str | int]

_MENTION = re.compile(r"(?<![A-Za-z0-9_])@[A-Za-z0-9_]{2,}")
_DETAIL = {Kind.LINK: "url", Kind.PRE: "language"}


@dataclass(frozen=True, slots=True)
class Rendered:
    """One message as ``sendMessage`` takes it."""

    text: str
    entities: list[Entity]


def render(markdown: str, limit: int = TEXT_LIMIT) -> list[Rendered]:
    """Markdown as the messages to send; at least one, and none of them empty."""
    styled = read(markdown)
    if not styled.text.strip():
        # Nothing but signs, such as a quote that holds nothing: they are all there is to show.
        styled = Styled(clean(markdown).strip() or EMPTY)
    parts = split_styled(_quiet(styled), limit, ENTITY_LIMIT)
    return [Rendered(part.text, list(_entities(part))) for part in parts]


def quiet(text: str) -> list[Entity]:
    """The entities that keep plain text, shown as it is, from pinging anybody."""
    styled = _quiet(Styled(text))
    if len(styled.spans) > ENTITY_LIMIT:
        styled = Styled(text, (Span(Kind.CODE, 0, len(text)),))
    return list(_entities(styled))


def _entities(styled: Styled) -> Iterator[Entity]:
    ruler = Ruler(styled.text)
    for span in styled.spans:
        entity: Entity = {
            "type": span.kind.value,
            "offset": ruler.size(0, span.start),
            "length": ruler.size(span.start, span.stop),
        }
        if span.detail and span.kind in _DETAIL:
            entity[_DETAIL[span.kind]] = span.detail
        yield entity


def _quiet(styled: Styled) -> Styled:
    """The same with every mention as code; bold and the like end before it and go on after."""
    alone = [span for span in styled.spans if span.kind in ALONE]
    mentions: list[Span] = []
    nth = 0
    for found in _MENTION.finditer(styled.text):
        while nth < len(alone) and alone[nth].stop <= found.start():
            nth += 1
        if nth == len(alone) or alone[nth].start >= found.end():
            mentions.append(Span(Kind.CODE, *found.span()))
    if not mentions:
        return styled
    spans = [*mentions]
    first = 0
    for span in styled.spans:
        if span.kind not in INLINE:
            spans.append(span)
            continue
        while first < len(mentions) and mentions[first].stop <= span.start:
            first += 1
        spans += _without(span, mentions, first)
    return Styled(styled.text, ordered(spans))


def _without(span: Span, holes: list[Span], nth: int) -> Iterator[Span]:
    at = span.start
    while nth < len(holes) and holes[nth].start < span.stop:
        if at < holes[nth].start:
            yield replace(span, start=at, stop=holes[nth].start)
        at = holes[nth].stop
        nth += 1
    if at < span.stop:
        yield replace(span, start=at)
