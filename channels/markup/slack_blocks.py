"""Text with marked ranges → one Slack rich text block. Pure.

Bold, links, lists, quotes and code are what they are; a table is aligned monospaced text, because
Slack takes one table a message at most and lays down how large it may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from channels.markup.parsing import STOPS
from channels.markup.styled import Kind, Span, Styled
from channels.markup.writing import APART, Piece, pieces

Element = dict[str, Any]

_STYLES = {Kind.BOLD: "bold", Kind.ITALIC: "italic", Kind.STRIKE: "strike", Kind.CODE: "code"}
_DEEPEST = 8  # Slack indents no further
_NO_ADDRESS = rf"\s\0-\x1f<>`\"|\\\[\]{STOPS}"
_ADDRESS = re.compile(rf"https?://[^{_NO_ADDRESS}]*[^{_NO_ADDRESS}.,;:!?'*_~()]", re.IGNORECASE)
_ENTITY = re.compile(r"<(?=[!@#])")
_INDENTED = re.compile(r"\n +")
_LANGUAGE = re.compile(
    "c|cpp|csharp|css|diff|dockerfile|go|html|java|javascript|json|kotlin|markdown|php|python|ruby"
    "|rust|shell|sql|swift|typescript|xml|yaml"
)
_ALIASES = {
    "py": "python", "python3": "python", "js": "javascript", "ts": "typescript", "rb": "ruby",
    "rs": "rust", "sh": "shell", "bash": "shell", "zsh": "shell", "console": "shell",
    "yml": "yaml", "md": "markdown", "c++": "cpp", "cs": "csharp", "c#": "csharp",
    "golang": "go", "kt": "kotlin",
}  # fmt: skip


def rich_text(styled: Styled) -> list[Element]:
    """The blocks of a message: exactly one."""
    builder = _Builder()
    for piece in pieces(styled):
        builder.add(piece)
    return [{"type": "rich_text", "elements": builder.done()}]


def quiet(text: str) -> str:
    """Running text in which nothing names anybody, not even for those (bridges, mail, exports)
    that read rich text as if it were mrkdwn.
    """
    return _ENTITY.sub(f"<{APART}", text)


class _Builder:
    """Puts pieces that belong to one element together."""

    def __init__(self) -> None:
        self._elements: list[Element] = []
        self._inline: list[Element] = []  # of the open element
        self._kind: Kind | None = None  # what the open element is; None: running text
        self._span: Span | None = None

    def done(self) -> list[Element]:
        self._finish()
        if not self._elements:
            self._elements.append(_section([_text(" ")]))
        return self._elements

    def add(self, piece: Piece) -> None:
        span = piece.span(Kind.PRE) or piece.span(Kind.QUOTE) or piece.span(Kind.ITEM)
        text = piece.text
        if span and span.kind is Kind.ITEM:
            if span.start == piece.start and text.startswith(span.detail):
                text = text[len(span.detail) :]
                self._finish()
            elif span is not self._span:
                span = None  # an item that goes on from the message before
            if span and span.detail == "0. ":  # Slack counts from one
                span, text = None, piece.text
        if span is not self._span:
            self._finish()
            self._span, self._kind = span, span.kind if span else None
        if self._kind is Kind.ITEM:
            text = _INDENTED.sub("\n", text)
        if text:
            self._inline += _elements(text, piece, self._kind is Kind.PRE)

    def _finish(self) -> None:
        """Close the open element."""
        inline, span = self._inline, self._span
        self._inline, self._span, self._kind = [], None, None
        match span.kind if span else None:
            case Kind.PRE:
                self._preformatted(inline, span.detail if span else "")
            case Kind.QUOTE:
                self._add("rich_text_quote", _trimmed(inline, "\n"))
            case Kind.ITEM if span:
                self._item(_trimmed(inline, "\n"), span)
            case _:
                self._running(inline)

    def _add(self, kind: str, inline: list[Element]) -> None:
        if inline:
            self._elements.append({"type": kind, "elements": inline})

    def _preformatted(self, inline: list[Element], language: str) -> None:
        if inline:  # the line break at a cut; blank lines of the code are its own
            last = inline[-1]["text"].removesuffix("\n")
            inline = [*inline[:-1], *([{**inline[-1], "text": last}] if last else [])]
        if not any(element["text"].strip() for element in inline):
            return
        self._add("rich_text_preformatted", inline)
        named = _ALIASES.get(language.lower(), language.lower())
        if _LANGUAGE.fullmatch(named):  # a name that Slack does not know might be refused
            self._elements[-1]["language"] = named

    def _running(self, inline: list[Element]) -> None:
        # Elements stand on lines of their own without the line breaks around them.
        inline = _trimmed(inline, "\n")
        if any(element.get("text", "link").strip() for element in inline):
            self._add("rich_text_section", inline)

    def _item(self, inline: list[Element], span: Span) -> None:
        if not inline:
            return
        ordered = span.detail[:1].isdigit()
        style, indent = ("ordered" if ordered else "bullet"), min(span.level - 1, _DEEPEST)
        number = int(span.detail.partition(".")[0]) if ordered else 0
        last = self._elements[-1] if self._elements else {}
        same = (last.get("style"), last.get("indent")) == (style, indent)
        if same and (not ordered or last.get("offset", 0) + len(last["elements"]) + 1 == number):
            last["elements"].append(_section(inline))
            return
        made: Element = {"type": "rich_text_list", "style": style, "indent": indent}
        if number > 1:
            made["offset"] = number - 1
        self._elements.append({**made, "elements": [_section(inline)]})


def _section(inline: list[Element]) -> Element:
    return {"type": "rich_text_section", "elements": inline}


def _text(text: str, style: dict[str, bool] | None = None) -> Element:
    return {"type": "text", "text": text} | ({"style": style} if style else {})


def _elements(text: str, piece: Piece, plain: bool) -> Iterator[Element]:
    if plain:
        yield _text(text)
        return
    style = {_STYLES[span.kind]: True for span in piece.spans if span.kind in _STYLES}
    if link := piece.span(Kind.LINK):
        yield _link(link.detail, quiet(" ".join(text.split())) or link.detail, style)
    elif "code" in style:
        yield _text(text, style)
    else:
        yield from _with_addresses(text, style)


def _with_addresses(text: str, style: dict[str, bool]) -> Iterator[Element]:
    """Rich text makes no links of addresses by itself."""
    done = 0
    for found in _ADDRESS.finditer(text):
        if done < found.start():
            yield _text(quiet(text[done : found.start()]), style)
        yield _link(found[0], found[0], style)
        done = found.end()
    if done < len(text):
        yield _text(quiet(text[done:]), style)


def _link(target: str, label: str, style: dict[str, bool]) -> Element:
    link: Element = {"type": "link", "url": target}
    if label != target:
        link["text"] = label
    return link | ({"style": style} if style else {})


def _trimmed(inline: list[Element], blanks: str) -> list[Element]:
    """Without line breaks at the end, and at the start; no element is left with no text."""
    while inline and inline[-1]["type"] == "text":
        left = inline[-1]["text"].rstrip(blanks + " ")
        if left:
            return _trimmed_first([*inline[:-1], {**inline[-1], "text": left}], blanks)
        inline = inline[:-1]
    return _trimmed_first(inline, blanks)


def _trimmed_first(inline: list[Element], blanks: str) -> list[Element]:
    while inline and inline[0]["type"] == "text":
        left = inline[0]["text"].lstrip(blanks)
        if left:
            return [{**inline[0], "text": left}, *inline[1:]]
        inline = inline[1:]
    return inline
