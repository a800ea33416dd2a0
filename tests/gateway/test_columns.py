"""Listings stand in columns whatever is written in them, and however narrow the terminal is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.columns import NONE, cut, table, width
from tests.examples import tried

COLUMNS = {"id": "ID", "text": "TEXT", "answer": "ANSWER", "since": "SINCE"}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Grüße", 5),
        ("漢字", 4),
        ("ｆｕｌｌ", 8),
        ("é", 1),
        ("😀", 2),
        ("❤️", 2),
        ("👍🏽", 2),
        ("👨‍👩‍👧", 2),
        ("🇩🇪", 2),
        ("한국", 4),
        ("שלום", 4),
        ("", 0),
    ],
)
def test_a_text_takes_as_many_columns_as_it_is_drawn(text: str, columns: int) -> None:
    assert width(text) == columns


def test_wide_signs_leave_the_next_column_in_its_place() -> None:
    rows = [
        {"id": 1, "text": "漢字かな", "since": "now"},
        {"id": 2, "text": "👨‍👩‍👧 ok", "since": "now"},
        {"id": 3, "text": "plain words", "since": "now"},
    ]
    lines = table(rows, COLUMNS).splitlines()
    assert {width(line[: line.index("now")]) for line in lines[1:]} == {
        width(lines[0][: lines[0].index("SINCE")])
    }


def test_what_runs_from_right_to_left_does_not_pull_its_neighbours_along() -> None:
    (row,) = table([{"id": 1, "text": "שלום", "since": "5"}], COLUMNS).splitlines()[1:]
    between = row[row.index("ם") + 1 : row.index("5")]
    assert any(unicodedata.bidirectional(sign) == "L" for sign in between)


@pytest.mark.parametrize("room", [84, 100, 140])
def test_a_narrow_terminal_shortens_words_and_never_what_is_typed_again(room: int) -> None:
    lane = "telegram:-1001234567890:36"
    row = {"id": 7, "lane": lane, "text": "words " * 20, "answer": "more " * 20}
    row |= {"since": "2026-12-01T01:13:58.785+00:00"}
    shown = table([row], {"lane": "LANE", **COLUMNS}, room)
    assert all(width(line) <= room for line in shown.splitlines())
    assert lane in shown
    assert "…" in shown
    assert "2026-12-01T01:13:58+00:00" in shown, "when it was is worth more than more words"
    assert lane * 3 in table([{"lane": lane * 3}], {"lane": "LANE"}), "a name has no end"


def test_where_no_column_fits_a_row_is_a_paragraph() -> None:
    rows = [{"id": 1, "text": "first words"}, {"id": 2, "text": "other words", "since": "now"}]
    assert table(rows, COLUMNS, 20) == (
        "ID: 1\nTEXT: first words\n\nID: 2\nTEXT: other words\nSINCE: now"
    )
    assert table([], COLUMNS, 20) == NONE


@tried(50)
@given(st.text(st.sampled_from("ab漢😀é\u0301\u200d👍🏽❤️"), max_size=30), st.integers(2, 20))
def test_a_cut_text_fits_and_is_a_beginning(text: str, most: int) -> None:
    short = cut(text, most)
    assert width(short) <= most
    assert short == text or text.startswith(short[:-1])


def test_yes_and_no_are_words_of_people() -> None:
    listed = table([{"waiting": False}, {"waiting": True}], {"waiting": "WAITING"})
    assert listed.split() == ["WAITING", "no", "yes"]
