"""What Markdown becomes on Discord."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from channels.markup.discord import TEXT_LIMIT, render
from channels.markup.reading import read
from channels.markup.styled import shows
from tests.examples import tried
from tests.markup.agents import BIG, MARKDOWN

APART = "\u200b"


def only(markdown: str) -> str:
    (part,) = render(markdown)
    return part


def fences(part: str) -> list[str]:
    return [line for line in part.splitlines() if line.startswith("```")]


class TestFormats:
    @pytest.mark.parametrize(
        "markdown",
        [
            "**bold** and *italic* and ~~old~~ and `code`",
            "**bold _both_**",
            "**_both_**",
            "*a **b** c*",
            "in*side*s",
            "2 * 3 * 4",
            "battery_alarm_level and snake_case_name",
            "~5 minutes, in ~/work",
            "# One\n## Two\n### Three\ntext",
            "- one\n  - inner\n- two",
            "3. three\n   - inner a\n   - inner b\n4. four",
            "> a quote\n> of two lines\n\nand text",
            "[label](https://example.org/a_b)",
            "see https://example.org/_next_/a_b now",
            "```python\nx = [1]\n```",
            "say <t:1700000000:R> or <:party_cat:123456789012345678>",
        ],
    )
    def test_what_discord_reads_the_same_way_stays(self, markdown: str) -> None:
        assert only(markdown) == markdown

    @pytest.mark.parametrize(
        ("markdown", "shown"),
        [
            ("__bold__", "**bold**"),  # two underscores underline there
            ("_it_", "*it*"),
            ("***both***", "**_both_**"),
            ("**bold *both***", "**bold _both_**"),
            ("#### deep", "**deep**"),
            ("Title\n=====", "# Title"),
            ("* one\n+ two", "- one\n- two"),
            ("- [x] done\n- [ ] open", "☑ done\n☐ open"),
            ("a<br>b", "a\nb"),
            ("![picture](https://example.org/p.png)", "[picture](https://example.org/p.png)"),
            ("<https://example.org/>", "https://example.org/"),
            ("[a](https://example.org/x_(y))", "[a](<https://example.org/x_(y)>)"),
            ("[https://a.org](https://b.org)", "https://a.org (<https://b.org>)"),
            ("[x [y] z](https://b.org)", "[x (y) z](https://b.org)"),
        ],
    )
    def test_what_it_reads_another_way_is_written_its_way(self, markdown: str, shown: str) -> None:
        assert only(markdown) == shown

    @pytest.mark.parametrize(
        ("markdown", "shown"),
        [
            (r"\*stars\*", r"\*stars\*"),
            ("if a || b: x(c || d)", r"if a \|\| b: x(c \|\| d)"),
            (r"\_\_init\_\_", r"\_\_init\_\_"),
            (r"\# no heading", r"\# no heading"),
            ("-# not small", r"\-# not small"),
            (r"1\. no list", r"1\. no list"),
            (r"\> no quote", r"\> no quote"),
            (r"\`no code\`", r"\`no code\`"),
            (r"\[no](https://link.org)", r"[no\](https://link.org)"),
            (r"C:\Users", r"C:\\Users"),
        ],
    )
    def test_what_only_looks_like_a_format_is_escaped(self, markdown: str, shown: str) -> None:
        assert only(markdown) == shown

    def test_code_is_left_alone_but_for_signs_that_would_end_it(self) -> None:
        assert only("```sh\necho *a* @here <@1> || \\_\n```") == (
            "```sh\necho *a* @here <@1> || \\_\n```"
        )
        assert only("````\n```\nx\n```\n````") == f"```\n``{APART}`\nx\n``{APART}`\n```"
        assert only("``a`b``") == "``a`b``"
        assert only("`` `a` ``") == "`` `a` ``"

    def test_a_language_that_discord_would_show_as_code_is_left_out(self) -> None:
        assert only("```{.python}\nx\n```") == "```\nx\n```"

    def test_a_table_is_a_block_of_aligned_columns(self) -> None:
        part = only("| Name | Count |\n|---|---:|\n| apples | 3 |\n| a_b | 12 |")
        opened, head, rule, *rows, closed = part.splitlines()
        assert (opened, closed) == ("```", "```")
        assert {line.index(sign) for line, sign in zip(rows, "||", strict=True)} == {7}
        assert (head[7], rule[7]) == ("|", "+")

    def test_links_of_a_table_follow_it(self) -> None:
        assert only("| a |\n|---|\n| [x](https://a.org) |").endswith("```\n[x](https://a.org)")

    def test_code_in_a_quote_is_quoted(self) -> None:
        assert only("> see\n> ```py\n> x\n> ```\n\nend") == "> see\n> ```py\n> x\n> ```\n\nend"

    def test_bold_does_not_cross_code_or_the_end_of_a_line(self) -> None:
        assert only("**a `b` c**") == "**a** `b` **c**"
        assert only("**a\nb**") == "**a**\n**b**"


class TestNobodyIsPinged:
    @pytest.mark.parametrize("words", ["@everyone", "@here", "@hereford", "mail@everyone"])
    def test_by_a_word(self, words: str) -> None:
        assert only(f"hey {words}!") == f"hey {words.replace('@', '@' + APART)}!"

    @pytest.mark.parametrize("words", ["<@123>", "<@!123>", "<@&123>", "<#123>"])
    def test_by_an_id(self, words: str) -> None:
        assert only(words) == f"<{APART}{words[1:]}"

    def test_by_a_link(self) -> None:
        part = only("[@everyone](https://example.org/@everyone) https://example.org/@here")
        assert part == (
            f"[@{APART}everyone](https://example.org/%40everyone) https://example.org/%40here"
        )

    def test_no_command_can_be_pressed(self) -> None:
        assert only("</ban:123>") == f"<{APART}/ban:123>"
        assert only("a </b> c") == "a </b> c"


LINES = [f"value_{n:03} = {n} * 2" for n in range(200)]
ANSWER = "Result:\n\n```python\n" + "\n".join(LINES) + "\n```\n\nDone."


class TestParts:
    def test_a_fence_that_goes_on_is_closed_and_opened_again_with_its_language(self) -> None:
        parts = render(ANSWER)
        assert len(parts) >= 2
        for part in parts:
            assert len(part) <= TEXT_LIMIT
            assert len(fences(part)) % 2 == 0
            assert "value_" not in part or fences(part)[0] == "```python"
        first, *rest = parts
        joined = first.removesuffix("```")
        for nth, part in enumerate(rest, 1):
            joined += part.removeprefix("```python\n")
            joined = joined.removesuffix("```") if nth < len(rest) else joined
        assert joined == ANSWER

    def test_lines_of_code_are_whole_at_every_limit(self) -> None:
        for limit in range(60, 300, 7):
            parts = render(ANSWER, limit)
            lines = [line for part in parts for line in part.splitlines() if "value_" in line]
            assert lines == LINES
            assert all(len(part) <= limit for part in parts)
            assert not any("```python\n```" in part for part in parts)

    def test_rows_of_a_table_are_whole(self) -> None:
        rows = "\n".join(f"| row {n} | {'x ' * 20} |" for n in range(100))
        parts = render(f"| a | b |\n|---|---|\n{rows}")
        assert len(parts) > 2
        assert all(len(fences(part)) == 2 for part in parts)
        assert sum(bool(re.fullmatch(r"row \d+ +\| (x ?){20}", line)) for part in parts
                   for line in part.splitlines()) == 100  # fmt: skip

    def test_a_line_without_blanks_is_cut_at_the_limit(self) -> None:
        assert [len(part) for part in render("k" * 5000)] == [2000, 2000, 1000]
        assert [len(part) for part in render("k" * 5000, 4096)] == [4096, 904]

    def test_lengths_are_code_points_of_what_is_sent(self) -> None:
        assert len(render("😀" * 2000)) == 1
        assert len(render("😀" * 2001)) == 2
        assert all(len(part) <= TEXT_LIMIT for part in render(r"\*" * 3000))

    def test_formats_links_and_code_survive_every_cut(self) -> None:
        link, code = "[the page](https://example.org/a_b)", "`a piece of code`"
        parts = render(f"**some words** {link} and {code} more " * 200, 300)
        whole = "".join(parts)
        assert whole.count(link) == whole.count(code) == whole.count("**some words**") == 200

    def test_a_link_too_long_for_a_message_stands_in_the_text(self) -> None:
        target = "https://example.org/" + "q" * 3000
        parts = render(f"see [this]({target}) now")
        assert "".join(parts).replace(" ", "") == f"seethis({target})now"

    def test_what_has_no_text_is_shown_as_it_was_written(self) -> None:
        assert render(">") == ["\\>"]
        assert render(" \n") == render("\u200d\u2800") == ["(empty)"]

    @pytest.mark.parametrize("markdown", BIG, ids=lambda text: text[:8])
    def test_big_inputs_take_no_longer_than_their_size(self, markdown: str) -> None:
        started = time.process_time()
        render(markdown)
        assert time.process_time() - started < 3


@tried(40)
@given(MARKDOWN, st.integers(2, 60) | st.just(TEXT_LIMIT))
@example("", TEXT_LIMIT)
@example("> ```\n> x\n- y", 16)
def test_whatever_an_agent_writes_discord_takes(markdown: str, limit: int) -> None:
    parts = render(markdown, limit)
    assert parts == render(markdown, limit)
    for part in parts:
        assert part.strip()
        assert len(part) <= max(limit, 16)
        part.encode()
        outside = re.sub(r"```.*?```|``.+?``|`[^`]+`", "", part, flags=re.DOTALL)
        assert not re.search(r"@everyone|@here|<[@#]", outside) or "`" in markdown


# The reader is not Discord: what both read alike is most of it, but not all.
@tried(40, derandomize=True)
@given(MARKDOWN)
@example("***a*b**")
@example("*```*```*```*```")
@example("- - > _\r_")
def test_people_see_the_same_words_as_were_meant(markdown: str) -> None:
    def seen(text: str) -> str:
        # Brackets within a label are round there, and no address names anybody.
        text = text.replace(APART, "").replace("[", "(").replace("]", ")").replace("%40", "@")
        text = re.sub(r"\\?[|¦]", "¦", text.replace("\\<", "<"))
        return "".join(filter(shows, text))

    def shown(part: str) -> str:
        # Discord knows no HTML and no tables, and a sign of no width is no letter to it.
        part = re.sub(r"<(?!https?:)", r"\\<", part.replace(APART, " "))
        return read(re.sub(r"\\?\|", "¦", part)).text

    meant = seen(read(markdown).text)
    assert not meant or "".join(seen(shown(part)) for part in render(markdown)) == meant
