"""The Markdown parser, pulldown-cmark, which takes linear time; and addresses written as they are.

Pure. Knows no platform.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyromark

_OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_STRIKETHROUGH
)

Event = tuple[str, Any, int, int]


def events(source: str) -> Iterator[Event]:
    """The parser's events as (name, data, start, stop); offsets are bytes."""
    for event, at in pyromark.events_with_range(source, options=_OPTIONS, merge_text=True):
        if isinstance(event, str):
            yield event, None, at["start"], at["end"]
        else:
            ((name, data),) = event.items()
            yield name, data, at["start"], at["end"]


def named(data: Any) -> tuple[str, Any]:
    """A tag's name and what it carries."""
    if isinstance(data, str):
        return data, None
    ((name, detail),) = data.items()
    return name, detail


# Addresses written as they are ------------------------------------------------------------

_ADDRESS = re.compile(rb"https?://[^\x00-\x20\x7f<>`\"|\\\[\]]+")
_KEPT = frozenset({"Link", "Image", "CodeBlock", "HtmlBlock"})


def keep_addresses(source: str) -> str:
    """Put bare addresses that hold ``_``, ``*`` or ``~`` into angle brackets.

    Markdown would take these signs for emphasis, and a link to ``/_next_/`` would be broken.
    """
    raw = source.encode()
    found = [at for at in _ADDRESS.finditer(raw) if set(at[0]) & set(b"_*~")]
    if not found:
        return source
    parts: list[bytes] = []
    done = 0
    for start, stop in _outside(found, _kept(source)):
        stop = _trimmed(raw, start, stop)
        if set(raw[start:stop]) & set(b"_*~") and raw[start - 1 : start] != b"\\":
            parts += [raw[done:start], b"<", raw[start:stop], b">"]
            done = stop
    return b"".join([*parts, raw[done:]]).decode()


def _kept(source: str) -> list[tuple[int, int]]:
    """Where an address already is a link, or is code."""
    ranges: list[tuple[int, int]] = []
    for name, data, start, stop in events(source):
        kept = name in ("Code", "InlineHtml") or (name == "Start" and named(data)[0] in _KEPT)
        if kept and (not ranges or start >= ranges[-1][1]):
            ranges.append((start, stop))
    return ranges


def _outside(
    found: list[re.Match[bytes]], kept: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    nth = 0
    for at in found:
        while nth < len(kept) and kept[nth][1] <= at.start():
            nth += 1
        if nth == len(kept) or kept[nth][0] >= at.end():
            yield at.span()


def _trimmed(raw: bytes, start: int, stop: int) -> int:
    """Without what belongs to the sentence around it."""
    before = raw[start - 1 : start]
    spare = raw.count(b")", start, stop) - raw.count(b"(", start, stop)
    while stop > start:
        match raw[stop - 1 : stop]:
            case b")" if spare > 0:
                spare -= 1
            case b"_" if before == b"_":
                pass
            case b"." | b"," | b";" | b":" | b"!" | b"?" | b"'" | b"*" | b"~":
                pass
            case _:
                break
        stop -= 1
    return stop
