"""What threads are called: words of the first message, unless somebody named them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.messages import Address, Titled
from core.store import reads
from core.titles import TITLE_WORDS, title_of
from tests.examples import tried
from tests.intake.scene import LAB, Scene


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("fix the tests please", "fix the tests please"),
        ("  two\n\nlines ", "two lines"),
        ("**Fix** the `parser` _now_, ~~later~~", "Fix the parser now, later"),
        ("# Plan\n- one\n- two", "Plan one two"),
        ("> quoted\n1. first", "quoted first"),
        ("see [the docs](https://example.org/a) and https://example.org/b", "see the docs and"),
        ("<@U123> look at <#C1|lab> now", "look at now"),
        ("snake_case and 2 * 3 stay", "snake_case and 2 * 3 stay"),
        ("look:\n```python\nprint(1)\n```\nwhy?", "look: why?"),
        ("look:\n```\nnever closed", "look"),
        ("\\*kept\\*", "kept"),
        ("a\u202eb\u200bc", "abc"),
        ("\U0001f468\u200d\U0001f469 family", "\U0001f468\u200d\U0001f469 family"),
        ("Done!", "Done"),
        ("", ""),
        ("   ", ""),
        ("\U0001f44d", ""),
        ("...", ""),
        ("https://example.org", ""),
    ],
)
def test_a_title_is_the_first_words_without_markup(text: str, title: str) -> None:
    assert title_of(text) == title


def test_a_long_text_is_cut_between_words() -> None:
    title = title_of("please have a look at the failing tests of the parser and tell me why")
    assert title == "please have a look at the failing tests of the parser and…"
    assert len(title) <= TITLE_WORDS


def test_a_word_longer_than_a_title_is_cut() -> None:
    assert title_of("a" * 100) == "a" * 59 + "…"


@pytest.mark.parametrize(
    "piece", ["\n", " \n", "```\n", "`", "[", "[a](", "<a ", "> ", "- ", "*a", "~~~\n```\n", "\\"]
)
def test_a_huge_text_holds_nothing_up(piece: str) -> None:
    began = time.process_time()
    title_of(f"a {piece * 20_000} b")
    assert time.process_time() - began < 5  # it was minutes


def test_code_in_front_is_passed_over_however_long_it_is() -> None:
    assert title_of("```\n" + "x = 1\n" * 1000 + "```\nWhat does this do?") == "What does this do?"


@tried(100)
@given(st.text(max_size=300))
def test_any_text_makes_a_title_of_one_short_line(text: str) -> None:
    title = title_of(text)
    assert len(title) <= TITLE_WORDS
    assert title == " ".join(title.split())
    assert not title or any(one.isalnum() for one in title)


async def test_a_name_that_came_before_the_first_message_is_kept(scene: Scene) -> None:
    address = Address("telegram", LAB, "7")
    await scene.intake.accept([Titled("t1", address, "Release notes")])
    assert await reads.lane_at(scene.store, address) is None
    await scene.mention("go on", thread="7")
    lane = await reads.lane_at(scene.store, address)
    assert lane is not None
    assert lane.title == "Release notes"


async def test_names_of_threads_nobody_speaks_in_do_not_fill_the_memory(scene: Scene) -> None:
    for number in range(1100):
        scene.ground.names.keep(Address("telegram", LAB, str(number)), "x")
    assert scene.ground.names.of(Address("telegram", LAB, "50")) == ""
    assert scene.ground.names.of(Address("telegram", LAB, "1099")) == "x"
