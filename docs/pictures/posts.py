"""Threads of Slack and Discord as HTML, narrow as on a phone.

Pure. What is drawn is what those platforms are sent: Slack's blocks, Discord's Markdown. Only as
much of their looks as it takes to know them again. It must not know how a thread was recorded.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

import pyromark

from docs.pictures.elsewhere import Json, Post, Thread
from docs.pictures.page import clock, tint

_EMOJI = {"eyes": "👀", "sleeping": "😴", "zzz": "💤", "hourglass_flowing_sand": "⏳"}
_MENTION = re.compile(r"&lt;@[A-Z0-9]+&gt;")
_SIGNS = (("bold", "b"), ("italic", "i"), ("strike", "s"), ("code", "code"))
_STYLES = {1: "primary", 2: "", 3: "success", 4: "danger"}  # Discord's numbers
_OPTIONS = pyromark.Options.ENABLE_STRIKETHROUGH
_PAPER = '<svg viewBox="0 0 24 24"><path d="M6 2.5h8l5 5V21.500H6zM14 2.500v5h5"/></svg>'


def slack(thread: Thread) -> str:
    posts = "\n".join(_post(one, _slack_body(one.said)) for one in thread.posts)
    title = f"<h1>{escape(thread.title)}</h1><p># {escape(thread.place)}</p>"
    return _frame("slack", title, posts, "Reply…")


def discord(thread: Thread) -> str:
    posts = "\n".join(_post(one, _discord_body(one.said)) for one in thread.posts)
    title = f"<h1>{escape(thread.title)}</h1><p>thread in #{escape(thread.place)}</p>"
    return _frame("discord", title, posts, f"Message “{thread.title}”")


def _frame(kind: str, title: str, posts: str, field: str) -> str:
    return (
        f'<section class="{kind}">\n<header>{title}</header>\n<div class="thread">\n{posts}\n'
        f"</div>\n<footer><span>{escape(field)}</span></footer>\n</section>"
    )


def _post(one: Post, body: str) -> str:
    badge = '<span class="app">APP</span>' if one.bot else ""
    signs = "".join(
        f'<span class="reaction">{_EMOJI.get(name, name)} 1</span>' for name in one.reactions
    )
    return (
        f'<article><span class="avatar {tint(one.author)}">{escape(one.author[:1])}</span>'
        f'<div class="said"><div class="name"><b>{escape(one.author)}</b>{badge}'
        f"<time>{clock(one.seconds)}</time></div>{body}"
        + (f'<div class="reactions">{signs}</div>' if signs else "")
        + "</div></article>"
    )


def _mentions(text: str) -> str:
    return _MENTION.sub('<span class="mention">@Laneway</span>', text)


def _row(keys: list[tuple[str, str]]) -> str:
    shown = "".join(f'<span class="{style}">{escape(label)}</span>' for label, style in keys)
    return f'<div class="row">{shown}</div>'


# Slack ------------------------------------------------------------------------------------


def _slack_body(said: Json) -> str:
    blocks = said.get("blocks")
    if not blocks:
        return f"<p>{_mentions(escape(said['text'], quote=False))}</p>"
    return "".join(_block(block) for block in blocks)


def _block(block: Json) -> str:
    if block["type"] == "actions":
        return _row([(key["text"]["text"], key.get("style", "")) for key in block["elements"]])
    return "".join(map(_element, block["elements"]))


def _element(element: Json) -> str:
    inner: list[Any] = element.get("elements", [])
    match element["type"]:
        case "rich_text_list":
            tag = "ol" if element["style"] == "ordered" else "ul"
            items = "".join(f"<li>{''.join(map(_element, one['elements']))}</li>" for one in inner)
            return f'<{tag} start="{element.get("offset", 0) + 1}">{items}</{tag}>'
        case "rich_text_preformatted":
            return f"<pre>{''.join(map(_element, inner))}</pre>"
        case "rich_text_quote":
            return f"<blockquote>{''.join(map(_element, inner))}</blockquote>"
        case "rich_text_section":
            return f"<p>{''.join(map(_element, inner))}</p>"
        case "link":
            return f"<a>{escape(element.get('text') or element['url'])}</a>"
        case _:
            shown = escape(element["text"], quote=False)
            for style, tag in _SIGNS:
                if element.get("style", {}).get(style):
                    shown = f"<{tag}>{shown}</{tag}>"
            return shown


# Discord ----------------------------------------------------------------------------------


def _discord_body(said: Json) -> str:
    shown = pyromark.html(said["content"].replace("<@", "&lt;@"), options=_OPTIONS)
    files = "".join(
        f'<div class="file"><span class="paper">{_PAPER}</span><div><a>{escape(one["filename"])}'
        f"</a><p>{one['size']} bytes</p></div></div>"
        for one in said["attachments"]
    )
    rows = "".join(
        _row([(key["label"], _STYLES[key["style"]]) for key in row["components"]])
        for row in said.get("components", [])
    )
    return _mentions(shown) + files + rows
