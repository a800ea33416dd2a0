"""What Markdown becomes on Slack."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from channels.markup.reading import read
from channels.markup.slack import TEXT_LIMIT, Rendered, render
from channels.markup.styled import shows
from tests.examples import tried
from tests.fakes.slack_rules import UPDATE_TEXT_MOST, check_message
from tests.markup.agents import BIG, MARKDOWN

APART = "\u200b"
CODE = re.compile(r"^```\n.*?\n```$|`[^`]*`", re.DOTALL | re.MULTILINE)


def only(markdown: str) -> Rendered:
    (part,) = render(markdown)
    return part


def elements(part: Rendered) -> list[dict[str, Any]]:
    (block,) = part.blocks
    assert block["type"] == "rich_text"
    return list(block["elements"])


def inline(markdown: str) -> list[dict[str, Any]]:
    (element,) = elements(only(markdown))
    return list(element["elements"])


def words(element: dict[str, Any]) -> Iterator[str]:
    """What a person reads of an element, in order; markers of lists too."""
    if element["type"] in ("text", "link"):
        yield element.get("text", element.get("url", ""))
    for nth, inner in enumerate(element.get("elements", []), element.get("offset", 0) + 1):
        if element["type"] == "rich_text_list":
            yield "•" if element["style"] == "bullet" else f"{nth}."
        yield from words(inner)


def seen(text: str) -> str:
    return "".join(filter(shows, text))


class TestMrkdwn:
    @pytest.mark.parametrize(
        ("markdown", "text"),
        [
            (
                "**Title:** see [here](https://example.org/a), ~~old~~ and `**not bold**`",
                "*Title:* see <https://example.org/a|here>, ~old~ and `**not bold**`",
            ),
            (
                "[r](https://example.org/?a=1&b=2) and 1 < 2 && 3 > 2",
                "<https://example.org/?a=1&amp;b=2|r> and 1 &lt; 2 &amp;&amp; 3 &gt; 2",
            ),
            (
                "[mercury](https://en.example.org/wiki/Mercury_(planet)),"
                " [init](https://example.org/a/__init__.py#L16).",
                "<https://en.example.org/wiki/Mercury_(planet)|mercury>,"
                " <https://example.org/a/__init__.py#L16|init>.",
            ),
            ("# Heading\ntext", "*Heading*\ntext"),
            ("**bold *and* it**", "*bold _and_ it*"),
            ("snake_case and 2 * 3 * 4", "snake_case and 2 * 3 * 4"),
            ("**a**: b, (**c**)", "*a*: b, (*c*)"),
            ("**a***b*", f"*a*{APART}_b_"),
            ("in**side**s", f"in{APART}*side*{APART}s"),
            ("**a\nb**", "*a*\n*b*"),
            ("```python\nif a < b: *x*\n```", "```\nif a &lt; b: *x*\n```"),
            ("`a < b`", "`a &lt; b`"),
            ("> a quote\n> goes on\n\nend", "> a quote\n> goes on\n\nend"),
            ("- one\n  - inner\n- two", "• one\n  • inner\n• two"),
            ("3. three\n4. four", "3. three\n4. four"),
            ("![p](https://example.org/p.png)", "<https://example.org/p.png|p>"),
            ("<https://example.org/a_b>", "<https://example.org/a_b>"),
            ("[a|b](https://example.org/a|b>c)", "<https://example.org/a%7Cb%3Ec|a¦b>"),
            ("> x\n> ```\n> y\n> ```", "> x\n```\ny\n```"),
        ],
    )
    def test_is_written_in_its_own_signs(self, markdown: str, text: str) -> None:
        assert only(markdown).text == text

    def test_code_is_not_ended_by_signs_in_it(self) -> None:
        assert only("````\n```\nx\n````").text == f"```\n``{APART}`\nx\n```"
        assert only("``a`b``").text == "`aˋb`"


class TestBlocks:
    def test_formats_are_styles(self) -> None:
        assert inline("**a** *b* ~~c~~ `d` **e *f***") == [
            {"type": "text", "text": "a", "style": {"bold": True}},
            {"type": "text", "text": " "},
            {"type": "text", "text": "b", "style": {"italic": True}},
            {"type": "text", "text": " "},
            {"type": "text", "text": "c", "style": {"strike": True}},
            {"type": "text", "text": " "},
            {"type": "text", "text": "d", "style": {"code": True}},
            {"type": "text", "text": " "},
            {"type": "text", "text": "e ", "style": {"bold": True}},
            {"type": "text", "text": "f", "style": {"bold": True, "italic": True}},
        ]

    def test_signs_in_the_text_are_text(self) -> None:
        text = "2 * 3, snake_case, `x`: a < b && c > d, ~, :smile:"
        assert inline(text.replace("`", "\\`")) == [{"type": "text", "text": text}]

    def test_links_and_addresses_are_links(self) -> None:
        assert inline("[a](https://a.org/?x=1&y=2), https://b.org/c_d. (https://e.org/)") == [
            {"type": "link", "url": "https://a.org/?x=1&y=2", "text": "a"},
            {"type": "text", "text": ", "},
            {"type": "link", "url": "https://b.org/c_d"},
            {"type": "text", "text": ". ("},
            {"type": "link", "url": "https://e.org/"},
            {"type": "text", "text": ")"},
        ]

    def test_lists_are_lists_with_their_nesting_and_numbers(self) -> None:
        lists = elements(only("3. three\n   - a\n   - **b**\n4. four\n5. five"))
        assert [(one["style"], one["indent"], one.get("offset", 0)) for one in lists] == [
            ("ordered", 0, 2),
            ("bullet", 1, 0),
            ("ordered", 0, 3),
        ]
        shown = [list(words(one)) for one in lists]
        assert shown == [["3.", "three"], ["•", "a", "•", "b"], ["4.", "four", "5.", "five"]]

    def test_paragraphs_of_an_item_follow_it(self) -> None:
        shown = elements(only("- one\n  goes on\n\n  again\n- two"))
        assert [one["type"] for one in shown] == [
            *("rich_text_list", "rich_text_section", "rich_text_list")
        ]
        assert [list(words(one)) for one in shown] == [["•", "one\ngoes on"], ["  again"],
                                                       ["•", "two"]]  # fmt: skip

    def test_code_keeps_its_language_if_slack_knows_it(self) -> None:
        def code(language: str) -> dict[str, Any]:
            (element,) = elements(only(f"```{language}\n*x*\n\n```"))
            assert element["type"] == "rich_text_preformatted"
            assert list(words(element)) == ["*x*"]
            return element

        assert code("python")["language"] == code("py")["language"] == "python"
        assert "language" not in code("") | code("brainfuck")

    def test_a_quote_is_a_quote_and_code_in_it_is_code(self) -> None:
        shown = elements(only("> a **b**\n> - c\n> ```\n> d\n> ```\n\nend"))
        kinds = [(one["type"].removeprefix("rich_text_"), "".join(words(one))) for one in shown]
        assert kinds == [("quote", "a b\n• c"), ("preformatted", "d"), ("section", "end")]

    def test_a_table_is_aligned_and_its_links_follow(self) -> None:
        table, links = elements(only("| Name | N |\n|---|---|\n| [x](https://a.org) | 12 |"))
        assert list(words(table)) == ["Name | N\n-----+---\nx    | 12"]
        assert links["elements"] == [{"type": "link", "url": "https://a.org", "text": "x"}]

    def test_tasks_show_whether_they_are_done(self) -> None:
        assert inline("- [x] a\n- [ ] b") == [{"type": "text", "text": "☑ a\n☐ b"}]


class TestNobodyIsPinged:
    @pytest.mark.parametrize(
        "ping", ["<!channel>", "<!here|here>", "<@U123ABC>", "<#C123|lab>", "<!subteam^S1>"]
    )
    def test_by_what_slack_would_read_as_somebody(self, ping: str) -> None:
        part = only(f"hey {ping} `{ping}` [{ping}](https://a.org)\n\n    {ping}")
        assert re.findall("<[^<>]*>", part.text) == [
            f"<https://a.org|{ping.replace('<', '&lt;').replace('>', '&gt;').replace('|', '¦')}>"
        ]
        kinds = {inner["type"] for one in elements(part) for inner in one["elements"]}
        assert kinds == {"text", "link"}

    @pytest.mark.parametrize("word", ["@here", "@channel", "@everyone", "@Here"])
    def test_by_a_word(self, word: str) -> None:
        assert only(f"`{word}`").text == f"`{word}`"
        assert only(f"hey {word}!").text == f"hey @{APART}{word[1:]}!"
        assert only("write to it@hereford.org").text == "write to it@hereford.org"


class TestParts:
    def test_a_line_without_blanks_is_cut_at_the_limit(self) -> None:
        assert [len(part.text) for part in render("k" * 5000, 2000)] == [2000, 2000, 1000]
        assert [len(part.text) for part in render("k" * 5000, 4096)] == [4096, 904]

    def test_lengths_are_those_of_what_is_sent(self) -> None:
        parts = render("<" * 2000)
        assert all(len(part.text) <= TEXT_LIMIT for part in parts)
        assert "".join(part.text for part in parts) == "&lt;" * 2000
        assert len(render("😀" * (TEXT_LIMIT // 2))) == 1

    def test_many_formats_are_fewer_words_a_message(self) -> None:
        parts = render("**a** *b* " * 1000)
        for part in parts:
            check_message({"text": part.text, "blocks": part.blocks}, UPDATE_TEXT_MOST)
        shown = seen("".join(word for p in parts for one in elements(p) for word in words(one)))
        assert shown == "ab" * 1000

    def test_a_long_fence_is_code_with_its_language_in_every_part(self) -> None:
        lines = [f"value_{n:03} = {n} * 2" for n in range(400)]
        parts = render("Result:\n\n```python\n" + "\n".join(lines) + "\n```\n\nDone.")
        code = [one for part in parts for one in elements(part) if "language" in one]
        assert len(code) == len(parts) > 2
        shown = [line for one in code for word in words(one) for line in word.splitlines()]
        assert shown == lines
        for part in parts:
            assert len(re.findall("^```", part.text, re.MULTILINE)) == 2

    def test_rows_of_a_table_are_whole(self) -> None:
        rows = "\n".join(f"| row {n} | {'x ' * 20} |" for n in range(200))
        parts = render(f"| a | b |\n|---|---|\n{rows}")
        lines = [line for p in parts for one in elements(p) for word in words(one)
                 for line in word.splitlines()]  # fmt: skip
        assert len(parts) > 2
        assert sum(bool(re.fullmatch(r"row \d+ +\| (x ?){20}", line)) for line in lines) == 200

    def test_blank_lines_of_code_survive_every_cut(self) -> None:
        code = "\n".join(f"{'    ' * (n % 3)}value = {n}  \n\n" for n in range(60)).rstrip("\n")
        shown = [
            "".join(words(element))
            for part in render(f"Result:\n\n```python\n{code}\n```\n\nDone.", 150)
            for element in elements(part)
            if element["type"] == "rich_text_preformatted"
        ]
        assert len(shown) > 5
        assert "\n".join(shown) == code

    def test_a_list_that_begins_with_zero_keeps_its_numbers(self) -> None:
        first, rest = elements(only("0. zero\n1. one"))
        assert list(words(first)) == ["0. zero"]
        assert list(words(rest)) == ["1.", "one"]

    def test_a_list_goes_on_with_its_numbers(self) -> None:
        parts = render("\n".join(f"{n}. some words" for n in range(1, 400)), 1000)
        starts = [elements(part)[0] for part in parts]
        counts = [len(one["elements"]) for one in starts]
        assert [one.get("offset", 0) for one in starts] == [
            sum(counts[:nth]) for nth in range(len(counts))
        ]

    def test_links_are_never_cut(self) -> None:
        link = "[the page](https://example.org/a_b)"
        parts = render(f"some words {link} more " * 200, 300)
        whole = "".join(part.text for part in parts)
        assert whole.count("<https://example.org/a_b|the page>") == 200

    def test_a_link_too_long_for_slack_stands_in_the_text(self) -> None:
        target = "https://example.org/" + "q" * 2000
        assert only(f"see [this]({target}) now").text == f"see this ({target}) now"

    def test_what_has_no_text_is_shown_as_it_was_written(self) -> None:
        assert [part.text for part in render(">")] == ["&gt;"]
        assert only(" \n").text == only("\u200d\u2800").text == "(empty)"

    @pytest.mark.parametrize("markdown", BIG, ids=lambda text: text[:8])
    def test_big_inputs_take_no_longer_than_their_size(self, markdown: str) -> None:
        started = time.process_time()
        render(markdown)
        assert time.process_time() - started < 3


@tried(40)
@given(MARKDOWN, st.integers(2, 60) | st.just(TEXT_LIMIT))
@example("", TEXT_LIMIT)
@example("> ```\n> x\n- y", 32)
def test_whatever_an_agent_writes_slack_takes(markdown: str, limit: int) -> None:
    parts = render(markdown, limit)
    assert parts == render(markdown, limit)
    for part in parts:
        check_message({"text": part.text, "blocks": part.blocks}, UPDATE_TEXT_MOST)
        assert part.text.strip()
        assert len(part.text.encode("utf-16-le")) // 2 <= max(limit, 32)
        assert not re.search(r"<(?!https?://)", part.text)
        assert all(one["elements"] for one in elements(part))
        assert all(word for one in elements(part) for word in words(one))


@tried(40)
@given(MARKDOWN, st.integers(40, 80) | st.just(TEXT_LIMIT))
def test_people_see_the_words_that_were_meant(markdown: str, limit: int) -> None:
    def unmarked(text: str) -> str:
        # An item that holds nothing but a list has no marker of its own.
        return re.sub(r"•|\d+\.", "", seen(text))

    meant = unmarked(read(markdown, longest=limit // 2).text)
    parts = render(markdown, limit)
    shown = unmarked("".join(word for p in parts for one in elements(p) for word in words(one)))
    assert not meant or shown == meant
