"""Markdown as Discord messages: Discord's own Markdown, written anew from what the text means.

Pure. Lengths are code points, as Discord counts. What only looks like markup is escaped, so it is
shown as it was written. A text never pings, whatever the client that sends it permits: mentions get
a sign of no width. A code block goes on in the next message with its language.
"""

from __future__ import annotations

import re

from channels.markup.parsing import STOPS
from channels.markup.reading import read
from channels.markup.split import split_styled
from channels.markup.styled import Kind, Span, Styled, shows
from channels.markup.writing import APART, Piece, write
from core.messages import clean

TEXT_LIMIT = 2000
EMPTY = "(empty)"

SMALLEST = 16  # a limit below would have no room for a fence
_LONGEST_LINK = 1500
_BLOCKS = frozenset({Kind.HEADING, Kind.ITEM})
_SIGNS = {Kind.BOLD: "**", Kind.STRIKE: "~~"}
_LANGUAGE = re.compile(r"[A-Za-z0-9_+\-.#]{1,40}")

_SPECIAL = re.compile(
    rf"""
    (?P<address>https?://[^\s\x00-\x1f\x7f<>`|\\\[\]{STOPS}]+)
    | (?P<kept><t:-?\d{{1,17}}(?::[tTdDfFRsS])?> | <a?:\w{{2,32}}:\d{{1,20}}>)
    | (?P<ping>@(?=everyone|here) | <(?=[@\#] | id: | /[^<>\n]{{1,99}}:\d))
    | (?P<escaped>[\\*`_] | ~+ | \|\|+ | \](?=\())
    """,
    re.VERBOSE,
)
_FIRST = re.compile(r">|(?:\#{1,3}|-\#|[-+*]|\d{1,9}\.)(?=\s|$)")
_BROADCAST = re.compile("@(?=everyone|here)")
_ODD = {"|": "%7C", "<": "%3C", ">": "%3E", "`": "%60", "\\": "%5C"}


def render(markdown: str, limit: int = TEXT_LIMIT) -> list[str]:
    """Markdown as the contents of the messages to send; at least one, and none of them empty."""
    limit = max(limit, SMALLEST)
    styled = read(markdown, _BLOCKS, min(_LONGEST_LINK, limit // 2))
    if not shows(styled.text):
        source = clean(markdown).strip()
        styled = Styled(source if shows(source) else EMPTY)
    parts = split_styled(
        styled, limit, utf16=False, excess=lambda part: len(_written(part)) / limit
    )
    shown = [_fitting(part, limit) for part in parts]
    return [part for part in shown if shows(part)]


def _written(part: Styled) -> str:
    return write(part, _Discord()).strip("\n").rstrip()


def _fitting(part: Styled, limit: int) -> str:
    """The part; without its formats if these alone are longer than the limit."""
    shown = _written(part)
    return shown if len(shown) <= limit else _written(Styled(part.text))[:limit]


class _Discord:
    """Discord's signs."""

    def literal(self, whole: str, start: int, stop: int, first: bool, inside: list[Kind]) -> str:
        begin = ""
        if first and (found := _FIRST.match(whole, start, stop)):
            # An escaped sign that begins a number is shown; one after it is not.
            text = found[0]
            begin = f"{text[:-1]}\\." if text[-1] == "." else "\\" + text
            start = found.end()
        italic = Kind.ITALIC in inside
        parts, done = [begin], start
        for found in _SPECIAL.finditer(whole, start, stop):
            parts += [whole[done : found.start()], _quiet(whole, found, italic)]
            done = found.end()
        return "".join([*parts, whole[done:stop]])

    def sign(self, whole: str, span: Span, before: str, inside: list[Kind]) -> str:
        if span.kind is not Kind.ITALIC:
            return _SIGNS[span.kind]
        # Inside bold, signs unlike those of bold, if nothing there is or holds such a sign.
        text = whole[span.start : span.stop]
        sides = _ends_word(before[-1:]) and _ends_word(whole[span.stop : span.stop + 1])
        return "_" if Kind.BOLD in inside and sides and not {"_", "/"} & set(text) else "*"

    def code(self, text: str) -> str:
        if "`" not in text:
            return f"`{text}`"
        text = text.replace("``", f"`{APART}`").replace("``", f"`{APART}`")
        left, right = " " * text.startswith("`"), " " * text.endswith("`")
        return f"``{left}{text}{right}``"

    def link(self, label: str, target: str) -> str:
        bare = label in ("", target)
        target = _target(target)
        if bare:
            return target if target[-1:].isalnum() or target[-1:] == "/" else f"<{target}>"
        inner = self.literal(label, 0, len(label), False, [Kind.ITALIC])
        if "://" in label:  # such a label makes Discord show the whole link as it is written
            return f"{inner} (<{target}>)"
        inner = inner.replace("[", "(").replace("\\]", ")").replace("]", ")")
        return f"[{inner}](<{target}>)" if set("()") & set(target) else f"[{inner}]({target})"

    def block(self, text: str, language: str) -> str:
        named = language if _LANGUAGE.fullmatch(language) else ""
        body = text.replace("```", f"``{APART}`").replace("```", f"``{APART}`")
        return f"```{named}\n{body}\n```"

    def lead(self, piece: Piece) -> str:
        quote = "> " if piece.span(Kind.QUOTE) else ""
        heading = piece.span(Kind.HEADING)
        return quote + ("#" * min(heading.level, 3) + " " if heading else "")

    def marker(self, item: Span) -> str:
        return "- " if item.detail == "• " else item.detail

    def apart(self, before: str, after: str) -> bool:
        sign = after[:1]
        return sign in ("*", "_", "~") and before[-1:] == sign and before[-2:-1] != "\\"


def _quiet(whole: str, found: re.Match[str], italic: bool) -> str:
    text = found[0]
    match found.lastgroup:
        case "address":
            return _BROADCAST.sub("%40", text)
        case "kept":
            return text
        case "ping":
            return text + APART
    before = whole[max(0, found.start() - 1) : found.start()]
    after = whole[found.end() : found.end() + 1]
    if text == "_" and not italic and before.isalnum() and after.isalnum():
        return text
    if text == "*" and before.isspace() and after.isspace():
        return text
    if text == "~" and not before.strip() and (after.isalnum() or after == "/"):
        return text  # about so many, or a path
    return "".join("\\" + sign for sign in text)


def _ends_word(sign: str) -> bool:
    return not sign or sign.isspace() or (sign.isascii() and not sign.isalnum() and sign != "_")


def _target(target: str) -> str:
    """An address that ends neither the link nor the message's format, and names nobody."""
    return _BROADCAST.sub("%40", "".join(_ODD.get(sign, sign) for sign in target))
