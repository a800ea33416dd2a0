"""The Markdown parser, pulldown-cmark, which takes linear time; and what people mean by Markdown.

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
            if name == "Text" and isinstance(data, str):
                data = data.replace("\ufdd0", "")
            yield name, data, at["start"], at["end"]


def named(data: Any) -> tuple[str, Any]:
    """A tag's name and what it carries."""
    if isinstance(data, str):
        return data, None
    ((name, detail),) = data.items()
    return name, detail


def address_of(link: Any) -> str:
    """Where a link or picture leads. A blank (in angle brackets there may be some) is encoded."""
    written: str = link["dest_url"].replace("\ufdd0", "")
    return written.replace(" ", "%20") if written[:4].lower() == "http" else written


# What Markdown takes for something else than it was written for ----------------------------

_BEGIN, _EITHER, _PART = "（「『【《〈„‘", "“«»…", "，、；："
STOPS = f"{_BEGIN}{_EITHER}{_PART}。！？）」』】》〉”’،؛؟۔।॥"  # end an address that they touch
_NEVER_FIRST = f"{_PART}。！？）」』】》〉”’,;:!?)/"  # nothing that is emphasised begins with these
_SCRIPTS = (  # written without spaces between words, or with endings on them
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff"
    "\u3131-\u318e\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_MEANT = re.compile(
    rf"""
    (?P<define>
        ^(?:[ >]|[-*+][ ]|[0-9]{{1,9}}[.)][ ])*
        \[(?P<label>[^\]\[\n]{{1,200}})\]:[ \t]*(?:\n[ >\t]*)?(?=\S)
    )
    | (?P<address>https?://[^\x00-\x20\x7f<>`"|\\\[\]{STOPS}]+)
    | (?P<power>(?<=[0-9)])\*{{1,2}}(?=[0-9]))
    | (?P<close>
        (?<=[^\w\s*\\{_BEGIN}])\*{{1,3}}(?=[{_SCRIPTS}])
        | (?<=[{STOPS}])(?<![{_BEGIN}])(?:\*{{2,3}}|(?<![{_PART}])\*)(?=\w)
    )
    | (?P<open>
        (?<=[{_SCRIPTS}])(?:\*{{2,3}}|\*(?!\.))(?=[^\w\s*{_NEVER_FIRST}])
        | (?<=\w)\*{{1,3}}(?=[{_BEGIN}{_EITHER}])
    )
    """,
    re.VERBOSE | re.MULTILINE,
)
_KEPT = frozenset({"Link", "Image", "CodeBlock", "HtmlBlock", "Code", "InlineHtml"})
# No character at all. Written like this it counts as punctuation, which a star may stand beside.
_BESIDE = "&#xfdd0;"


def keep_meaning(source: str) -> str:
    """The source with what people mean, where the letter of Markdown says something else.

    Addresses that hold ``_``, ``*`` or ``~`` are put into angle brackets: a link to ``/_next_/``
    would be emphasis. A star between numbers multiplies. Where words have no spaces between them,
    stars beside a mark of punctuation open and close all the same. An address that is given a
    name which nothing uses (``[1]: https://…``) is text, and not left out.
    """
    if not _MEANT.search(source):
        return source
    parts: list[str] = []
    done = 0
    kept, names = _known(source)
    defined = -1  # where the address of a name that is used begins
    for at in _outside(source, kept):
        start, stop = at.span()
        text = at[0]
        match at.lastgroup:
            case "define":
                if _name(at["label"]) in names:
                    defined = stop
                else:
                    text = text.replace("[", "\\[", 1)
            case "address":
                stop = stop if start == defined else _trimmed(source, start, stop)
                text = source[start:stop]
                if set(text) & set("_*~") and source[start - 1 : start] != "\\":
                    text = f"<{text}>"
            case "power":
                text = "\\*" * len(text)
            case "close":
                text += _BESIDE
            case "open":
                text = _BESIDE + text
        parts += [source[done:start], text]
        done = stop
    return "".join([*parts, source[done:]])


def _name(label: str) -> str:
    return " ".join(label.split()).casefold()


def _known(source: str) -> tuple[list[tuple[int, int]], frozenset[str]]:
    """Where something already is a link, or is code, in signs; and the names that links use."""
    ranges: list[tuple[int, int]] = []
    names: set[str] = set()
    for name, data, start, stop in events(source):
        tag, detail = named(data) if name == "Start" else (name, None)
        if detail and tag in ("Link", "Image"):
            names.add(_name(detail["id"]))
        if tag in _KEPT and (not ranges or start >= ranges[-1][1]):
            ranges.append((start, stop))
    if not source.isascii():
        ranges = list(_in_signs(source.encode(), ranges))
    return ranges, frozenset(names)


def _in_signs(raw: bytes, ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    done = signs = 0
    for start, stop in ranges:
        first = signs + len(raw[done:start].decode(errors="ignore"))
        signs = first + len(raw[start:stop].decode(errors="ignore"))
        done = stop
        yield first, signs


def _outside(source: str, kept: list[tuple[int, int]]) -> Iterator[re.Match[str]]:
    """What is found, but for what is kept; an address may hold what stands after it."""
    at = nth = 0
    while found := _MEANT.search(source, at):
        while nth < len(kept) and kept[nth][1] <= found.start():
            nth += 1
        if nth < len(kept) and kept[nth][0] < found.end():
            at = max(kept[nth][1], found.start() + 1)
            continue
        yield found
        at = found.end()
        if found.lastgroup == "address":
            at = _trimmed(source, found.start(), at)


def _trimmed(source: str, start: int, stop: int) -> int:
    """Without what belongs to the sentence around it."""
    before = source[start - 1 : start]
    spare = source.count(")", start, stop) - source.count("(", start, stop)
    while stop > start:
        match source[stop - 1]:
            case ")" if spare > 0:
                spare -= 1
            case "_" if before == "_":
                pass
            case "." | "," | ";" | ":" | "!" | "?" | "'" | "*" | "~":
                pass
            case _:
                break
        stop -= 1
    return stop
