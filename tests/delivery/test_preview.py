"""The text of a preview: the end of what there is, whole characters only, and what goes on."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.engines.base import Text, Thought, ToolEnded, ToolStarted, Usage
from core.messages import units
from core.preview import Progress, spoken, tail
from tests.examples import tried

FAMILY = "👩\u200d👩\u200d👧"
FLAG = "🇩🇪"
THUMB = "👍🏽"
ACCENT = "e\u0301"


def picture(*pieces: str, limit: int = 3800, footer: bool = True) -> Progress:
    it = Progress(limit, footer)
    for piece in pieces:
        it.feed(Text(piece))
    return it


def test_pieces_are_joined_as_they_are() -> None:
    it = picture("Hello", "  ", "\n", " world", "\n\n")
    assert it.text == "Hello  \n world\n\n"
    assert it.frame(0).text == "Hello  \n world"


def test_the_footer_says_what_goes_on() -> None:
    it = Progress(3800)
    assert it.frame(0).footer.startswith("⏳ thinking…")
    it.feed(ToolStarted("1", "Read\nsettings.py"))
    it.feed(ToolStarted("2", "Run tests"))
    assert it.frame(0).footer.startswith("🔧 Run tests")
    it.feed(ToolEnded("2"))
    assert it.frame(0).footer.startswith("🔧 Read settings.py")
    it.feed(ToolEnded("1"))
    it.feed(Text("So"))
    assert it.frame(12).footer == "⏳ writing… · 10 s"
    it.feed(Thought("hm"))
    assert it.frame(0).footer.startswith("⏳ thinking…")
    it.asking = True
    assert it.frame(0).footer.startswith("✋")


def test_text_and_footer_are_apart_so_that_the_text_can_stay_alone() -> None:
    frame = picture("Half an ans").frame(3)
    assert frame.text == "Half an ans"
    assert frame.shown == "Half an ans\n\n⏳ writing…"


def test_without_a_footer_only_words_are_shown() -> None:
    assert Progress(100, footer=False).frame(9).shown == ""


def test_only_what_can_be_seen_changes_the_picture() -> None:
    it = picture("a")
    assert not it.feed(Text(""))
    assert not it.feed(Usage())
    assert not it.feed(ToolEnded("unknown"))
    assert it.feed(Thought())
    assert not it.feed(Thought())


def test_elapsed_time_moves_in_steps_that_grow() -> None:
    assert [spoken(s) for s in (0, 4.9, 59, 61, 95, 700, 3700)] == [
        "0 s",
        "0 s",
        "55 s",
        "1 min 00 s",
        "1 min 30 s",
        "11 min",
        "1 h 1 min",
    ]


def test_a_long_text_shows_its_end_from_the_start_of_a_line() -> None:
    text = "\n".join(f"line {n:04}" for n in range(2000))
    shown = tail(text, 3800)
    assert units(shown) <= 3800
    assert shown.startswith("…line ")
    assert text.endswith(shown[1:])


def test_a_long_line_shows_its_end() -> None:
    assert tail("k" * 5000, 100) == "…" + "k" * 99


@pytest.mark.parametrize("whole", [FAMILY, FLAG, THUMB, ACCENT, "❤️", "1️⃣"])
def test_a_character_of_several_is_shown_whole_or_not_at_all(whole: str) -> None:
    text = whole * 60
    for limit in range(20, 60):
        shown = tail(text, limit)
        assert units(shown) <= limit
        rest = shown.removeprefix("…")
        assert rest == whole * (len(rest) // len(whole))


def test_half_a_character_at_the_end_waits_for_its_other_half() -> None:
    it = picture("ok \ud83d")
    assert it.frame(0).text == "ok"
    it.feed(Text("\ude00!"))
    assert it.frame(0).text == "ok 😀!"
    assert it.text == "ok 😀!"


def test_a_tools_long_title_is_cut_to_one_line() -> None:
    it = Progress(3800)
    it.feed(ToolStarted("1", "python -c '" + "x" * 500 + "'"))
    assert len(it.frame(0).footer) < 100


@tried(50)
@given(
    st.lists(st.text(max_size=40), max_size=40),
    st.integers(60, 300),
    st.lists(st.sampled_from([FAMILY, FLAG, THUMB, "\n", "x" * 50]), max_size=20),
)
def test_every_frame_fits_and_can_be_encoded(pieces: list[str], limit: int, more: list) -> None:
    it = picture(*pieces, *more, limit=limit)
    frame = it.frame(5)
    frame.shown.encode("utf-8")
    assert units(frame.shown) <= limit
    if not frame.text.startswith("…"):
        assert frame.text == it.text.strip()


def test_a_long_answer_is_cheap_to_show() -> None:
    it = picture(*["word "] * 200_000)
    for _ in range(100):
        it.feed(Text("more "))
        assert units(it.frame(1).shown) <= 3800


def test_the_end_of_a_very_long_text_is_found_without_walking_through_it() -> None:
    def walks(frame: object, event: str, argument: object) -> None:
        steps.append(event)

    steps: list[str] = []
    text, most = "blah 😀 " * 200_000, 500_000
    sys.setprofile(walks)
    try:
        shown = tail(text, most)
    finally:
        sys.setprofile(None)
    assert len(steps) < 100
    assert units(shown) in (most, most - 1, most - 2)
    assert text.endswith(shown.removeprefix("…"))
