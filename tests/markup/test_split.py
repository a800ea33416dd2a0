"""Markdown source cut into parts, with fences that stay whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.markup.split import best_cut, split_fenced
from tests.examples import tried

LINES = [f"value_{n:03} = {n} * 2" for n in range(200)]
ANSWER = "Result:\n\n```python\n" + "\n".join(LINES) + "\n```\n\nDone."


def fences(part: str) -> list[str]:
    return [line for line in part.splitlines() if line.startswith("```")]


def test_a_fence_that_goes_on_is_closed_and_opened_again_with_its_language() -> None:
    parts = split_fenced(ANSWER, 2000)
    assert len(parts) >= 2
    for part in parts:
        assert len(part) <= 2000
        assert len(fences(part)) % 2 == 0
        assert "value_" not in part or fences(part)[0] == "```python"
    shown = [line for part in parts for line in part.splitlines()]
    assert [line for line in shown if line.startswith("value_")] == LINES


def test_without_the_added_fences_the_parts_are_the_source() -> None:
    first, *rest = split_fenced(ANSWER, 2000)
    joined = first.removesuffix("```")
    for nth, part in enumerate(rest, 1):
        joined += part.removeprefix("```python\n")
        if nth < len(rest):
            joined = joined.removesuffix("```")
    assert joined == ANSWER


def test_no_part_shows_an_empty_block() -> None:
    for limit in range(40, 400):
        for part in split_fenced(ANSWER, limit):
            assert "```python\n```" not in part
            assert len(part) <= limit


@pytest.mark.parametrize("limit", [2000, 4096])
def test_a_line_without_blanks_is_cut_at_the_limit(limit: int) -> None:
    parts = split_fenced("k" * 5000, limit)
    assert {len(part) for part in parts[:-1]} == {limit}
    assert "".join(parts) == "k" * 5000


def test_links_and_inline_code_are_never_cut() -> None:
    link = "[the page of the project](https://example.org/a_b)"
    code = "`a piece of code`"
    text = f"some words {link} and {code} more " * 40
    parts = split_fenced(text, 200)
    assert "".join(parts) == text
    assert sum(part.count(link) for part in parts) == 40
    assert sum(part.count(code) for part in parts) == 40


def test_a_part_ends_where_a_paragraph_does() -> None:
    text = "one two three\n\nfour five\nsix"
    assert text[: best_cut(text, 0, 20)] == "one two three\n\n"
    assert text[: best_cut(text, 0, 13)] == "one two "


PIECES = st.sampled_from(
    ["```\n", "```py\n", "~~~\n", "word ", "\n", "\n\n", "k" * 30, "`x`", "😀"]
)


@tried(75)
@given(st.lists(PIECES, max_size=40).map("".join), st.integers(24, 80))
def test_parts_fit_and_lose_nothing(markdown: str, limit: int) -> None:
    parts = split_fenced(markdown, limit)
    assert all(part.strip() and len(part) <= limit for part in parts)
    plain = str.maketrans("", "", "`~ \npy")  # what fences that were added consist of
    assert "".join(parts).translate(plain) == markdown.translate(plain)
