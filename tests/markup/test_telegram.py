"""What Markdown becomes on Telegram."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from channels.markup.telegram import ENTITY_LIMIT, TEXT_LIMIT, Rendered, quiet, render
from tests.examples import tried


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def covered(part: Rendered, kind: str) -> list[str]:
    """The texts that entities of a kind cover, as Telegram would cut them out."""
    raw = part.text.encode("utf-16-le")
    return [
        raw[2 * int(e["offset"]) : 2 * (int(e["offset"]) + int(e["length"]))].decode("utf-16-le")
        for e in part.entities
        if e["type"] == kind
    ]


def only(markdown: str) -> Rendered:
    (part,) = render(markdown)
    return part


def links(part: Rendered) -> list[tuple[str, str]]:
    targets = [str(e["url"]) for e in part.entities if e["type"] == "text_link"]
    return list(zip(covered(part, "text_link"), targets, strict=True))


def kinds(part: Rendered) -> set[object]:
    return {entity["type"] for entity in part.entities}


class TestLinks:
    def test_targets_are_those_of_the_source_byte_for_byte(self) -> None:
        part = only(
            "[Docs](https://example.org/my__init__file_v1_final) and"
            " [API](https://example.org/a*b*c~~d~~)"
        )
        assert part.text == "Docs and API"
        assert links(part) == [
            ("Docs", "https://example.org/my__init__file_v1_final"),
            ("API", "https://example.org/a*b*c~~d~~"),
        ]
        assert kinds(part) == {"text_link"}

    def test_brackets_and_double_underscores_belong_to_the_target(self) -> None:
        part = only(
            "[mercury](https://en.example.org/wiki/Mercury_(planet)),"
            " [init](https://example.org/a/__init__.py#L16)."
        )
        assert part.text == "mercury, init."
        assert links(part) == [
            ("mercury", "https://en.example.org/wiki/Mercury_(planet)"),
            ("init", "https://example.org/a/__init__.py#L16"),
        ]

    @pytest.mark.parametrize(
        ("markdown", "target"),
        [
            ("see https://example.org/_next_/a_b.", "https://example.org/_next_/a_b"),
            ("(https://example.org/a_(b)_c)", "https://example.org/a_(b)_c"),
            ("**https://example.org/*x*/y**", "https://example.org/*x*/y"),
            ("_https://example.org/a_b_", "https://example.org/a_b"),
        ],
    )
    def test_a_bare_address_is_not_emphasis(self, markdown: str, target: str) -> None:
        assert links(only(markdown)) == [(target, target)]

    @pytest.mark.parametrize(
        ("markdown", "target"),
        [
            ("见https://example.org/a_b。下一句", "https://example.org/a_b"),
            ("（https://example.org/c_d_）", "https://example.org/c_d_"),
            ("“https://example.org/a_b_c” is it", "https://example.org/a_b_c"),
            ("https://example.org/a_b_c، ثم", "https://example.org/a_b_c"),
        ],
    )
    def test_a_bare_address_ends_before_punctuation_of_any_script(
        self, markdown: str, target: str
    ) -> None:
        assert links(only(markdown)) == [(target, target)]

    def test_an_address_given_apart_is_that_of_its_link(self) -> None:
        part = only("[one][1] and [two]\n\n[1]: https://e.org/_a_\n[two]: https://e.org/b*c*")
        assert links(part) == [("one", "https://e.org/_a_"), ("two", "https://e.org/b*c*")]
        assert part.text == "one and two"

    @pytest.mark.parametrize(
        "markdown",
        [
            "Sources:\n\n[1]: https://a.example/x\n[2]: https://b.example\n\nend",
            "> [1]: https://a.example/x",
            "[INFO]: started\n[INFO]: stopped",
            "[Output]:\ndone",
            "[^1]: https://a.example/_x_",
        ],
    )
    def test_an_address_given_apart_that_nothing_uses_is_not_left_out(self, markdown: str) -> None:
        assert only(markdown).text == markdown.removeprefix("> ")

    @pytest.mark.parametrize("label", ["", " ", "\u200b", "![](https://example.org/p.png)"])
    def test_a_link_without_a_label_shows_its_address(self, label: str) -> None:
        part = only(f"see [{label}](https://example.org/x)")
        assert part.text.startswith("see ")
        assert [target for _, target in links(part)] == ["https://example.org/x"]
        assert "https://example.org/" in part.text

    def test_a_target_with_blanks_is_one(self) -> None:
        part = only("[a b](<https://example.org/a b_c>)")
        assert links(part) == [("a b", "https://example.org/a%20b_c")]

    def test_a_bare_address_in_code_stays_code(self) -> None:
        assert only("`https://example.org/_a_`").text == "https://example.org/_a_"

    def test_a_target_that_no_chat_program_opens_stands_in_the_text(self) -> None:
        part = only("[config](src/config.py) [boss](tg://user?id=700000001)")
        assert part.text == "config (src/config.py) boss (tg://user?id=700000001)"
        assert part.entities == []

    def test_a_picture_is_a_link_to_it(self) -> None:
        assert links(only("![plot](https://example.org/p.png)")) == [
            ("plot", "https://example.org/p.png")
        ]

    def test_a_label_of_code_is_a_link(self) -> None:
        part = only("[`run()`](https://example.org)")
        assert links(part) == [("run()", "https://example.org")]
        assert kinds(part) == {"text_link"}

    def test_links_are_never_cut(self) -> None:
        label = "a label of several words"
        for pad in range(4080, 4096):
            parts = render(f"{'k' * pad} [{label}](https://example.org/x)")
            found = [link for part in parts for link in links(part)]
            assert found == [(label, "https://example.org/x")]


class TestEmphasis:
    def test_underscores_within_words_stay(self) -> None:
        part = only("battery_alarm_level and snake_case_name are _really_ fine, 2 * 3 * 4 too")
        assert part.text == (
            "battery_alarm_level and snake_case_name are really fine, 2 * 3 * 4 too"
        )
        assert covered(part, "italic") == ["really"]
        assert kinds(part) == {"italic"}

    @pytest.mark.parametrize(
        ("markdown", "text", "bold"),
        [
            ("**重要：**请看和**“引用”**内", "重要：请看和“引用”内", ["重要：", "“引用”"]),
            ("これは**「重要」**です。", "これは「重要」です。", ["「重要」"]),
            ("한국어 **(참고)**는", "한국어 (참고)는", ["(참고)"]),
            (
                "**注意：**API 调用**（可选）**OK",
                "注意：API 调用（可选）OK",
                ["注意：", "（可选）"],
            ),
            ("**A：**B。**C：**D", "A：B。C：D", ["A：", "C："]),
            ("见**[文](https://e.org/_a_)**后", "见文后", ["文"]),
        ],
    )
    def test_stars_beside_punctuation_mark_words_that_no_spaces_divide(
        self, markdown: str, text: str, bold: list[str]
    ) -> None:
        part = only(markdown)
        assert part.text == text
        assert covered(part, "bold") == bold

    @pytest.mark.parametrize(
        "markdown",
        [
            "星号*，不是*强调", "3*，4*是脚注", "文件*.py和*.js", "指针：*p，*q。",
            "(1+2)*3*4 = 36", "他**，但是**好",
        ],
    )  # fmt: skip
    def test_a_star_that_marks_nothing_stays(self, markdown: str) -> None:
        part = only(markdown)
        assert part.text == markdown
        assert not kinds(part)

    def test_a_star_between_numbers_multiplies(self) -> None:
        part = only("5*3*2 = 30, 2**3**2, `2*3*4` and **10**%")
        assert part.text == "5*3*2 = 30, 2**3**2, 2*3*4 and 10%"
        assert covered(part, "bold") == ["10"]

    def test_nothing_else_covers_code(self) -> None:
        part = only("**bold `code` bold**")
        assert covered(part, "bold") == ["bold ", " bold"]
        assert covered(part, "code") == ["code"]

    def test_formats_inside_each_other(self) -> None:
        part = only("**bold _both_ ~~gone~~**")
        assert covered(part, "bold") == ["bold both gone"]
        assert covered(part, "italic") == ["both"]
        assert covered(part, "strikethrough") == ["gone"]

    def test_a_heading_is_bold_and_undecorated(self) -> None:
        part = only("# Plan **now**\n\ntext\n## Next\nmore")
        assert part.text == "Plan now\n\ntext\nNext\nmore"
        assert covered(part, "bold") == ["Plan now", "Next"]

    @pytest.mark.parametrize(
        "markdown", ["**bol", "[a](http://x", "a_b_ *c", "`x", "<b>", "List<int> a<b && c>d"]
    )
    def test_half_and_foreign_markup_is_shown_as_it_is(self, markdown: str) -> None:
        assert only(markdown).text == markdown


class TestBlocks:
    def test_a_table_is_one_aligned_monospaced_block(self) -> None:
        part = only("| Name | Count |\n|---|---:|\n| apples | 3 |\n| a_b | 12 |")
        (drawn,) = covered(part, "pre")
        rows = [line for line in drawn.splitlines() if "-" not in line]
        assert [[cell.strip() for cell in row.split("|")] for row in rows] == [
            ["Name", "Count"],
            ["apples", "3"],
            ["a_b", "12"],
        ]
        assert {row.index("|") for row in rows} == {7}

    def test_signs_of_any_width_stand_in_columns(self) -> None:
        part = only("| a | b |\n|---|---|\n| 👨‍👩‍👧 | x |\n| 👍🏽 | y |\n| ❤️ | z |\n| नमस्ते | w |")
        assert part.text.splitlines()[2:] == ["👨‍👩‍👧   | x", "👍🏽   | y", "❤️   | z", "नमस्ते | w"]

    @pytest.mark.parametrize("before", ["- item\n\n  ", "- "])
    def test_a_table_in_a_list_stands_in_columns(self, before: str) -> None:
        part = only(f"{before}| aa | b |\n  |---|---|\n  | 1 | 2 |\n- more")
        assert part.text.endswith("\naa | b\n---+--\n1  | 2\n• more")
        assert covered(part, "pre") == ["aa | b\n---+--\n1  | 2"]

    def test_code_in_a_list_is_not_indented_on_its_first_line(self) -> None:
        assert only("1. one\n   ```\n   x\n   y\n   ```").text == "1. one\nx\ny"
        assert only("- ```\n  x\n  y\n  ```\n- b").text == "• \nx\ny\n• b"

    def test_html_is_text_with_its_own_lines(self) -> None:
        markdown = "<div>\n**a**\n\n</div>\n\nb"
        assert only(markdown).text == markdown

    def test_links_of_a_table_follow_it(self) -> None:
        part = only("| a | b |\n|---|---|\n| [x](https://example.org) | 東京 |\n\nafter")
        assert links(part) == [("x", "https://example.org")]
        assert part.text.endswith("東京\nx\n\nafter")

    def test_lists_keep_numbers_and_nesting(self) -> None:
        text = only("3. three\n   - inner a\n   - inner b\n4. four").text
        assert text == "3. three\n   • inner a\n   • inner b\n4. four"

    def test_tasks_show_whether_they_are_done(self) -> None:
        assert only("- [x] done\n- [ ] open").text == "☑ done\n☐ open"

    def test_blank_lines_are_those_of_the_source(self) -> None:
        assert only("#\n\n##\n\na").text == "a"
        assert only("a\n\n- b\n- c\n\nd\n# e\nf").text == "a\n\n• b\n• c\n\nd\ne\nf"
        assert only("```py\nx\n```\nend").text == "x\nend"
        assert only("```py\nx\n```\n\nend").text == "x\n\nend"

    def test_code_keeps_its_language_and_blanks(self) -> None:
        part = only("```python\ndef f():\n\n    return 1\n```")
        assert part.text == "def f():\n\n    return 1"
        assert part.entities == [{"type": "pre", "offset": 0, "length": 22, "language": "python"}]

    def test_an_open_fence_is_code_already(self) -> None:
        assert covered(only("so:\n```py\nprint("), "pre") == ["print("]

    def test_a_quote(self) -> None:
        part = only("> one\n> two\n\nthen")
        assert part.text == "one\ntwo\n\nthen"
        assert covered(part, "blockquote") == ["one\ntwo"]

    def test_what_has_no_text_is_shown_as_it_was_written(self) -> None:
        assert only(">").text == ">"
        assert only("").text == "(empty)"


class TestNobodyIsPinged:
    def test_a_mention_is_code(self) -> None:
        part = only("ask @ana_b, not ana@example.org, and @everyone")
        assert part.text == "ask @ana_b, not ana@example.org, and @everyone"
        assert covered(part, "code") == ["@ana_b", "@everyone"]

    def test_bold_goes_on_round_it(self) -> None:
        part = only("**ask @ana_b now**")
        assert covered(part, "bold") == ["ask ", " now"]

    def test_markup_inside_it_does_not_hide_it(self) -> None:
        assert covered(only("@**ana**"), "code") == ["@ana"]

    def test_in_plain_text_too(self) -> None:
        text = "😀 **@ana**"
        assert covered(Rendered(text, quiet(text)), "code") == ["@ana"]
        assert len(quiet("@ana " * 500)) == 1


class TestParts:
    def test_lengths_are_utf16_units(self) -> None:
        assert [len(part.text) for part in render("\U0001f600" * 2049)] == [2048, 1]
        assert len(render("\U0001f600" * 2048)) == 1

    @pytest.mark.parametrize("sign", ["k", "<"])
    def test_a_line_without_blanks(self, sign: str) -> None:
        parts = render(sign * 5000)
        assert [len(part.text) for part in parts] == [4096, 904]
        assert "".join(part.text for part in parts) == sign * 5000
        assert [len(part.text) for part in render(sign * 5000, 2000)] == [2000, 2000, 1000]

    def test_formats_survive_every_cut(self) -> None:
        parts = render("Use `a<b && c>d` **now** & then. " * 600)
        text = "".join(part.text for part in parts)
        assert text == ("Use a<b && c>d now & then. " * 600).rstrip()
        assert sum(len(covered(part, "code")) for part in parts) == 600
        assert sum(len(covered(part, "bold")) for part in parts) == 600

    def test_a_long_fence_is_code_with_its_language_in_every_part(self) -> None:
        body = "".join(f"value_{n:03} = {n} * 2\n" for n in range(600))
        parts = render(f"Result:\n\n```python\n{body}```\n\nDone.")
        code = [entity for part in parts for entity in part.entities]
        assert len(parts) > 2
        assert len(code) == len(parts)
        assert {entity["language"] for entity in code} == {"python"}
        assert all(line.startswith("value_") for p in parts[1:-1] for line in p.text.splitlines())
        assert "".join(part.text for part in parts) == f"Result:\n\n{body}\nDone."

    def test_numbered_lines_are_whole(self) -> None:
        lines = [f"{n:04} some words that are said" for n in range(220)]
        parts = render("\n".join(lines))
        assert [line for part in parts for line in part.text.splitlines()] == lines

    def test_signs_made_of_several_are_not_cut(self) -> None:
        family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
        for part in render(family * 600):
            assert len(part.text) % len(family) == 0
        for part in render("\U0001f1e9\U0001f1ea" * 1500, 1001):
            assert len(part.text) % 2 == 0

    @pytest.mark.parametrize(
        "sign",
        [
            "1\ufe0f\u20e3",
            "ที่",
            "நி",
            "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
            "葛\U000e0100",
            "\u1112\u1161\u11ab",
        ],
        ids=ascii,
    )
    def test_nor_are_those_with_marks_of_their_own(self, sign: str) -> None:
        parts = [part.text for limit in range(98, 102) for part in render(sign * 200, limit)]
        assert {part.replace(sign, "") for part in parts} == {""}

    @pytest.mark.parametrize(
        "markdown",
        [
            "word " * 50_000,
            "*a" * 20_000,
            "[" * 50_000,
            "[a](" * 20_000,
            ">" * 5_000,
            "- " * 3_000 + "x",
            "`a``" * 20_000,
            "@ab " * 10_000,
            "**@ab ** x" * 10_000,
            "> **a" + " `b`" * 10_000 + "**",
            "https://a/_b_ " * 10_000,
            "😀 **b** " * 10_000,
            "|a" * 300 + "\n" + "|-" * 300 + "\n" + "|1\n" * 300,
            "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 5_000,
        ],
        ids=lambda text: text[:8],
    )
    def test_big_inputs_take_no_longer_than_their_size(self, markdown: str) -> None:
        started = time.process_time()
        render(markdown)
        assert time.process_time() - started < 1


SIGNS = st.sampled_from(
    [
        *"*_~`[]()<>#>-+|\\!@&:.\n \t\r\0",
        *("```", "```py\n", "\n\n", "- ", "1. ", "> ", "    ", "|-|-|\n", "- [x] ", "<br>"),
        *("https://a_b/", "@ana", "[a](http://x)", "tg://", "word"),
        *("😀", "é", "\u200d", "\ud800"),
    ]
)
MARKDOWN = st.lists(SIGNS | st.text(max_size=5), max_size=60).map("".join)


@tried(75)
@given(MARKDOWN, st.integers(2, 60) | st.just(TEXT_LIMIT))
@example("", TEXT_LIMIT)
@example("```\ud800", TEXT_LIMIT)
@example("> ```\n> x\n- y", 5)
def test_whatever_an_agent_writes_telegram_takes(markdown: str, limit: int) -> None:
    parts = render(markdown, limit)
    assert parts
    for part in parts:
        assert part.text.strip()
        assert units(part.text) <= limit
        assert len(part.entities) <= ENTITY_LIMIT
        raw = part.text.encode("utf-16-le")
        for entity in part.entities:
            start, length = int(entity["offset"]), int(entity["length"])
            assert length > 0
            assert start + length <= units(part.text)
            raw[2 * start : 2 * (start + length)].decode("utf-16-le")


@tried(50)
@given(MARKDOWN, st.integers(8, 60))
def test_the_parts_joined_are_the_whole(markdown: str, limit: int) -> None:
    joined = "".join(part.text for part in render(markdown, limit))
    whole = "".join(part.text for part in render(markdown))
    assert "".join(joined.split()) == "".join(whole.split())
