"""Markdown as HTML for the page: what it shows, and that nothing else can come out of it."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.markup.html import DEEPEST, plain, render
from tests.examples import tried
from tests.markup.agents import BIG, MARKDOWN

# All that may stand in a page: elements, and what each may carry.
ALLOWED: dict[str, set[str]] = {
    **{name: set() for name in ("p", "em", "strong", "s", "code", "blockquote", "ul", "li")},
    **{name: set() for name in ("h3", "h4", "h5", "h6", "br", "hr", "table", "thead", "tr")},
    "ol": {"start"},
    "th": {"class"},
    "td": {"class"},
    "div": {"class"},
    "pre": {"tabindex", "data-language"},
    "button": {"type", "class"},
    "a": {"href", "rel", "target"},
}
VALUES = {
    "class": {"right", "center", "code", "scroll", "copy small"},
    "rel": {"noopener noreferrer nofollow"},
    "target": {"_blank"},
    "tabindex": {"0"},
    "type": {"button"},
}
EMPTY = {"br", "hr"}

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>*{background:url(//e.org)}</style>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](\\x6aavascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](//e.org/x)",
    "[x](/settings)",
    '[x](https://e.org/"onmouseover="alert(1))',
    "[x](https://e.org/'><script>alert(1)</script>)",
    '[x](https://e.org "title\\" onclick=alert(1)")',
    "![x](javascript:alert(1))",
    '![" onerror="alert(1)](https://e.org/x.png)',
    "<javascript:alert(1)>",
    "<https://e.org/<script>>",
    "[a]: javascript:alert(1)\n\n[a]",
    "```<script>alert(1)</script>\n<script>alert(1)</script>\n```",
    '```"onmouseover="alert(1)\nx\n```',
    "`<script>alert(1)</script>`",
    "| <script>alert(1)</script> | a |\n|---|---|\n| [x](javascript:alert(1)) | <b onclick=x> |",
    "# <img src=x onerror=alert(1)>",
    "> <script>alert(1)</script>",
    "- <script>alert(1)</script>",
    "<!-- --><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<div\nonclick=alert(1)>",
    "https://e.org/<script>alert(1)</script>",
    'https://e.org/"onclick="alert(1)',
    "https://e.org/&quot;onclick=alert(1)",
    "\u2028<script>alert(1)</script>\u2029",
    "\0<script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "[![x](https://e.org/a.png)](javascript:alert(1))",
    "<mailto:a@e.org?subject=<script>>",
    "~~<script>~~ **<script>** _<script>_",
    "<details open ontoggle=alert(1)>",
    "<math><mtext></p><img src onerror=alert(1)>",
]


class Checker(HTMLParser):
    """Reads HTML as a browser does, and notes all that may not be there."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name not in ALLOWED.get(tag, set()):
                self.wrong.append(f"{tag} {name}")
            if name in VALUES and value not in VALUES[name]:
                self.wrong.append(f"{tag} {name}={value}")
            if name == "href":
                self.links.append(value or "")
                if not re.match(r"(https?://|mailto:)[^\s]", value or "", re.IGNORECASE):
                    self.wrong.append(f"leads to {value}")
            if name == "start" and not re.fullmatch(r"\d+", value or ""):
                self.wrong.append(f"starts at {value}")
            if name == "data-language" and not re.fullmatch(r"[\w+#.-]+", value or ""):
                self.wrong.append(f"language {value}")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> ends nothing")

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.wrong.append(f"declaration {decl}")

    def handle_pi(self, data: str) -> None:
        self.wrong.append(f"instruction {data}")

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["button"]:
            self.text += data


def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert not checker.wrong, (checker.wrong, html)
    assert not checker.open, (checker.open, html)
    return checker


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_but_text_and_links_comes_out_of_an_attack(attack: str) -> None:
    for text in (attack, f"before {attack} after", f"> - {attack}", f"```\n{attack}"):
        checked(render(text))
        checked(plain(text))


PIECES = st.sampled_from([*ATTACKS, "| a | b |\n|---|---:|\n", "](", "![", '"', "#"]) | MARKDOWN


@tried(200)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_whatever_is_written_only_what_is_allowed_comes_out(text: str) -> None:
    checked(render(text))
    checked(plain(text))


@pytest.mark.parametrize("nth", range(len(BIG)))
def test_much_text_takes_little_time(nth: int) -> None:
    begun = time.process_time()
    checked(render(BIG[nth]))
    assert time.process_time() - begun < 3


@tried(100)
@given(st.text(alphabet="ab c<>&\"'", max_size=60))
def test_no_sign_of_a_plain_text_is_lost(text: str) -> None:
    assert checked(plain(text)).text == text


def test_what_markdown_means_is_shown() -> None:
    assert render("# Title\n\nA *b* **c** ~~d~~ `e`") == (
        "<h3>Title</h3><p>A <em>b</em> <strong>c</strong> <s>d</s> <code>e</code></p>"
    )
    assert render("1. a\n2. b\n   - c") == ("<ol><li>a</li><li>b<ul><li>c</li></ul></li></ol>")
    assert render("- [x] done\n- [ ] open") == "<ul><li>☑ done</li><li>☐ open</li></ul>"
    assert render("one\ntwo<br>three") == "<p>one<br>two<br>three</p>"


def test_a_table_is_a_table() -> None:
    html = render("| a | b |\n|---|---:|\n| 1 | 2 |")
    assert html == (
        '<div class="scroll"><table><thead><tr><th>a</th><th class="right">b</th></tr></thead>'
        '<tr><td>1</td><td class="right">2</td></tr></table></div>'
    )


def test_code_stands_as_it_is_with_a_button_to_copy_it() -> None:
    html = render("```py\nif a < b:\n    print('**x**')\n```")
    assert '<pre tabindex="0" data-language="py"><code>' in html
    assert checked(html).text == "if a < b:\n    print('**x**')\n"
    assert html.count('<button type="button" class="copy small">Copy</button>') == 1


def test_a_link_tells_nobody_where_it_was_clicked() -> None:
    html = render("[docs](https://e.org/a_b?x=1&y=2)")
    assert 'href="https://e.org/a_b?x=1&amp;y=2" rel="noopener noreferrer nofollow"' in html


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("see https://e.org/x.", "https://e.org/x"),
        ("(https://e.org/x)", "https://e.org/x"),
        ("https://e.org/a_(b)", "https://e.org/a_(b)"),
        ("https://e.org/_next_/x_y", "https://e.org/_next_/x_y"),
        ("<mail@e.org>", "mailto:mail@e.org"),
    ],
)
def test_addresses_are_links_without_the_sentence_around_them(text: str, link: str) -> None:
    assert checked(render(text)).links == [link]


@pytest.mark.parametrize(
    ("text", "address", "label"),
    [
        ("[a b](<https://e.org/a b_c>)", "https://e.org/a%20b_c", "a b"),
        ("[ ](https://e.org/k)", "https://e.org/k", " https://e.org/k"),
        ("见https://e.org/ab。下一句", "https://e.org/ab", "https://e.org/ab"),
    ],
)
def test_a_link_leads_where_it_was_meant_to_and_can_be_seen(
    text: str, address: str, label: str
) -> None:
    assert re.findall(r'<a href="([^"]*)"[^>]*>(.*?)</a>', render(text)) == [(address, label)]


def test_a_picture_is_a_link_and_loads_nothing() -> None:
    html = render("![a cat](https://e.org/cat.png)")
    assert checked(html).links == ["https://e.org/cat.png"]
    assert "<img" not in html


def test_a_link_that_leads_nowhere_safe_is_shown_with_where_it_leads() -> None:
    assert checked(render("[x](javascript:alert)")).text == "x (javascript:alert)"


def test_half_an_answer_is_shown_whole() -> None:
    for half in ("```py\nx = 1", "**bold", "| a | b |\n|--", "[link](https://e", "> quote\n> - it"):
        checked(render(half))


def test_what_is_nested_without_end_stays_small() -> None:
    deep = render("> " * 3000 + "deep")
    assert deep.count("<blockquote>") <= DEEPEST
    assert checked(deep).text == "deep"
