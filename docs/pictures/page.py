"""A screen of the recording as HTML: a chat on a phone, light or dark as the reader likes it.

Pure. Text and entities are shown as Telegram shows them: lengths are UTF-16 units, a block stands
on lines of its own. It must not know where the messages come from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from docs.pictures.scene import Bubble, Json, Screen

BEGAN = 9 * 3600 + 41 * 60  # the time of day at which every picture begins
_TAGS = {
    "bold": "b",
    "italic": "i",
    "underline": "u",
    "strikethrough": "s",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "expandable_blockquote": "blockquote",
    "text_link": "a",
    "mention": "a",
    "bot_command": "a",
    "url": "a",
}
_BLOCK = re.compile(r"\n?(<(pre|blockquote)>.*?</\2>)\n?", re.DOTALL)
_BACK = '<svg class="back" viewBox="0 0 10 18"><path d="M9 1 1 9l8 8"/></svg>'
_CLIP = (
    '<svg class="clip" viewBox="0 0 24 24"><path d="m20 11-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1'
    ' 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4L14.500 7.300"/></svg>'
)
_PAPER = '<svg viewBox="0 0 24 24"><path d="M6 2.500h8l5 5V21.500H6zM14 2.500v5h5"/></svg>'


def page(phones: Sequence[str], style: str) -> str:
    """Phones side by side, in a file that needs no other."""
    shown = "\n".join(phones)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Laneway</title>\n'
        f"<style>\n{style}</style>\n<main>\n{shown}\n</main>\n</html>\n"
    )


def phone(screen: Screen) -> str:
    authors = ["", *(one.author for one in screen.bubbles), ""]
    shown = "\n".join(
        bubble(one, first=before != one.author, last=after != one.author)
        for before, one, after in zip(authors, screen.bubbles, authors[2:], strict=False)
    )
    return (
        f'<section class="phone">\n<header>{_BACK}{_initial(screen.title, "topic")}'
        f"<div><h1>{escape(screen.title)}</h1><p>{escape(screen.place)}</p></div></header>\n"
        f'<div class="chat">\n{shown}\n</div>\n'
        f"<footer>{_CLIP}<span>Message</span></footer>\n</section>"
    )


def bubble(one: Bubble, *, first: bool, last: bool) -> str:
    """One message; of several in a row the first names the author and the last shows them."""
    text = marked(one.text, one.entities)
    tight = not one.reactions and not text.endswith(("</pre>", "</blockquote>"))
    shown = f'<div class="text">{text}</div>' if text else ""
    name = f'<div class="name {tint(one.author)}">{escape(one.author)}</div>'
    reactions = "".join(f'<span class="reaction">{escape(sign)}</span>' for sign in one.reactions)
    rows = "".join(
        '<div class="row">'
        + "".join(f'<span class="{key.style}">{escape(key.label)}</span>' for key in row)
        + "</div>"
        for row in one.buttons
    )
    return (
        f'<article class="{"own" if one.own else "other"}{" first" if first else ""}">'
        f"{_initial(one.author, 'avatar') if last and not one.own else ''}"
        f'<div class="column"><div class="bubble{" tight" if tight else ""}">'
        f"{name if first and not one.own else ''}{_file(one)}"
        f'{shown}<div class="foot">{reactions}<time>{clock(one.seconds)}</time></div>'
        f"</div>{rows}</div></article>"
    )


def marked(text: str, entities: Sequence[Json]) -> str:
    """Text with its entities as elements; offsets count UTF-16 units."""
    raw = text.encode("utf-16-le")
    opened = sorted(entities, key=lambda entity: (entity["offset"], -entity["length"]))
    edges = {0, len(raw) // 2}
    for entity in opened:
        edges |= {entity["offset"], _end(entity)}
    made: list[str] = []
    for start, stop in pairwise(sorted(edges)):
        made += [f"<{_tag(one)}>" for one in opened if one["offset"] == start]
        made.append(escape(raw[2 * start : 2 * stop].decode("utf-16-le"), quote=False))
        made += [f"</{_tag(one)}>" for one in reversed(opened) if _end(one) == stop]
    return _BLOCK.sub(r"\1", "".join(made))


def _end(entity: Json) -> int:
    return int(entity["offset"]) + int(entity["length"])


def _tag(entity: Json) -> str:
    return _TAGS.get(entity["type"], "span")


def _file(one: Bubble) -> str:
    if one.file is None:
        return ""
    return (
        f'<div class="file"><span class="paper">{_PAPER}</span>'
        f"<div><b>{escape(one.file.name)}</b><p>{one.file.size} bytes</p></div></div>"
    )


def _initial(name: str, kind: str) -> str:
    return f'<span class="{kind} {tint(name)}">{escape(name[:1])}</span>'


def tint(name: str) -> str:
    """One of five colours, the same for a name wherever it stands."""
    return f"tint{sum(map(ord, name)) % 5}"


def clock(seconds: int) -> str:
    """The time of day, so long after a picture began."""
    minutes = (BEGAN + seconds) // 60
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
