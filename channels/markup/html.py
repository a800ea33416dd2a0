"""Markdown as HTML for the page: only what stands in this file can come out of it.

Pure. Every text is escaped, HTML of the source is shown as it was written, and a link leads by
http, https or mail and tells nobody where it was clicked. Pictures are links: a page that loads
them from elsewhere would tell who reads it. There are no ids, styles or scripts in what it writes;
classes are from a closed list.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from channels.markup.parsing import STOPS, address_of, events, keep_meaning, named
from channels.markup.styled import Seen
from core.messages import clean

DEEPEST = 24  # blocks inside one another; deeper ones are shown as if they were one
_SIMPLE = {
    "Paragraph": "p",
    "BlockQuote": "blockquote",
    "Emphasis": "em",
    "Strong": "strong",
    "Strikethrough": "s",
    "TableRow": "tr",
}
_ALIGNED = {"Right": ' class="right"', "Center": ' class="center"'}
_OPENS = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_BARE = re.compile(rf"https?://[^\s\x00-\x1f\x7f<>`\"|\\\[\]{STOPS}]+", re.IGNORECASE)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,40}")
_CODE = '<div class="code"><button type="button" class="copy small">Copy</button><pre tabindex="0"'
_AROUND = ".,;:!?'*~"  # what follows an address belongs to the sentence around it


def render(markdown: str) -> str:
    """HTML of one message. Never raises; empty where nothing was written."""
    source = keep_meaning(clean(markdown).replace("\r\n", "\n").replace("\r", "\n"))
    return _Writer().write(source)


def plain(text: str) -> str:
    """A text that is no Markdown: as it is, with its lines and its addresses."""
    lines = clean(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "<br>".join(map(_linked, lines))


class _Writer:
    """One pass over the parser's events."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._ends: list[str] = []  # how each open tag is closed
        self._code = False
        self._seen = Seen()
        self._links: list[tuple[int, str]] = []  # where their labels begin, and where they lead
        self._aligned: list[str] = []
        self._column = 0
        self._head = False

    def write(self, source: str) -> str:
        for name, data, _, _ in events(source):
            if name == "Start":
                self._start(*named(data))
            elif name == "End":
                self._end(named(data)[0])
            else:
                self._leaf(name, data)
        while self._ends:
            self._out.append(self._ends.pop())
        return "".join(self._out)

    def _open(self, start: str, end: str) -> None:
        if len(self._ends) >= DEEPEST:
            start = end = ""
        self._out.append(start)
        self._ends.append(end)

    def _start(self, tag: str, detail: Any) -> None:
        match tag:
            case "Heading":
                level = min(int(detail["level"][1:]) + 2, 6)  # the page has two above
                self._open(f"<h{level}>", f"</h{level}>")
            case "CodeBlock":
                self._block(detail)
            case "List":
                if detail is None:
                    self._open("<ul>", "</ul>")
                else:
                    first = "" if detail == 1 else f' start="{int(detail)}"'
                    self._open(f"<ol{first}>", "</ol>")
            case "Item":
                self._open("<li>", "</li>")
            case "Table":
                self._aligned = [_ALIGNED.get(str(one), "") for one in detail]
                self._open('<div class="scroll"><table>', "</table></div>")
            case "TableHead":
                self._head, self._column = True, 0
                self._open("<thead><tr>", "</tr></thead>")
            case "TableCell":
                kind = "th" if self._head else "td"
                aligned = self._aligned[self._column] if self._column < len(self._aligned) else ""
                self._column += 1
                self._open(f"<{kind}{aligned}>", f"</{kind}>")
            case "Link" | "Image":
                self._link(tag, detail)
            case "HtmlBlock":
                self._open("<p>", "</p>")
            case _:
                if tag == "TableRow":
                    self._column = 0
                element = _SIMPLE.get(tag, "")
                self._open(f"<{element}>", f"</{element}>") if element else self._open("", "")

    def _end(self, tag: str) -> None:
        if tag in ("Link", "Image"):
            label, target = self._links.pop()
            if not self._seen.since(self._out, label):  # there would be nothing to press
                self._out.append(escape(target))
        if self._ends:
            self._out.append(self._ends.pop())
        match tag:
            case "TableHead":
                self._head = False
            case "CodeBlock":
                self._code = False

    def _block(self, detail: Any) -> None:
        info = detail["Fenced"] if isinstance(detail, dict) else ""
        language = (info.split() or [""])[0]
        named_so = f' data-language="{language}"' if _LANGUAGE.fullmatch(language) else ""
        self._code = True
        self._open(f"{_CODE}{named_so}><code>", "</code></pre></div>")

    def _link(self, tag: str, detail: Any) -> None:
        target = address_of(detail)
        if detail["link_type"] == "Email":
            target = f"mailto:{target}"
        if tag == "Image":
            self._out.append("🖼 ")
        opens = not self._links and _OPENS.fullmatch(target) is not None
        if opens:
            self._open(_anchor(target), "</a>")
        else:
            self._open("", f" ({escape(target)})" if target and not self._links else "")
        self._links.append((len(self._out), target if opens else ""))

    def _leaf(self, name: str, data: Any) -> None:
        match name:
            case "SoftBreak" | "HardBreak":
                self._out.append("<br>")
            case "Code":
                self._out.append(f"<code>{escape(data)}</code>")
            case "Rule":
                self._out.append("<hr>")
            case "TaskListMarker":
                self._out.append("☑ " if data else "☐ ")
            case "InlineHtml" if _BREAK.fullmatch(data):
                self._out.append("<br>")
            case "Text" if self._code or self._links:
                self._out.append(escape(data))
            case "Text":
                self._out.append(_linked(data))
            case "Html":
                self._out.append(escape(data).replace("\n", "<br>"))
            case _:
                self._out.append(escape(str(data)))


def _linked(text: str) -> str:
    """Text in which addresses are links."""
    out, done = [], 0
    for found in _BARE.finditer(text):
        address = found[0].rstrip(_AROUND)
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(_AROUND)
        if not _OPENS.fullmatch(address):
            continue
        out += [escape(text[done : found.start()]), _anchor(address), escape(address), "</a>"]
        done = found.start() + len(address)
    return "".join([*out, escape(text[done:])])


def _anchor(target: str) -> str:
    return f'<a href="{escape(target)}" rel="noopener noreferrer nofollow" target="_blank">'
