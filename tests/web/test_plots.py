"""Days of a zone, and the geometry of bars: what the page of usage is drawn from."""

from __future__ import annotations

from datetime import date, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from core import usage
from gateway.web.plots import HEIGHT, plot, round_up, share

ZONE = ZoneInfo("Europe/Berlin")


def at(*when: int, zone: ZoneInfo = ZONE) -> int:
    return int(datetime(*when, tzinfo=zone).timestamp() * 1000)  # type: ignore[misc, arg-type]


def test_days_of_the_zone_have_as_many_hours_as_their_clocks() -> None:
    spring = usage.days(ZONE, at(2026, 3, 30, 12), 3)
    assert [(day.end - day.start) // 3_600_000 for day in spring] == [24, 23, 24]
    autumn = usage.days(ZONE, at(2026, 10, 26, 12), 3)
    assert [(day.end - day.start) // 3_600_000 for day in autumn] == [24, 25, 24]
    assert autumn[1].date == date(2026, 10, 25)


def test_days_follow_each_other_without_a_gap_also_where_midnight_does_not_exist() -> None:
    days = usage.days(ZoneInfo("America/Santiago"), at(2026, 9, 8, 12, zone=ZoneInfo("UTC")), 5)
    assert all(one.end == after.start for one, after in pairwise(days))
    assert days[-1].date == date(2026, 9, 8)


def test_bars_stand_on_the_ground_and_their_parts_on_each_other() -> None:
    drawn = plot([("a", (1.0, 3.0)), ("b", (0.0, 0.0))])
    first, second = drawn.bars
    lower, upper = first.pieces
    assert drawn.top == 5.0
    assert (lower.y + lower.height, upper.y + upper.height) == (HEIGHT, lower.y)
    assert (lower.height, upper.height) == (HEIGHT / 5, HEIGHT * 3 / 5)
    assert second.pieces == ()
    assert second.x == first.x + first.width


def test_a_cap_is_drawn_where_it_does_not_press_the_bars_flat() -> None:
    assert plot([("a", (1.0,))], 2.0).line == 0.0
    assert plot([("a", (1.0,))], 100.0).line is None
    assert plot([("a", (1.0,))]).line is None


@pytest.mark.parametrize(
    ("number", "top"), [(0, 1), (0.003, 0.005), (1, 1), (1.1, 2), (21, 25), (99, 100), (1000, 1000)]
)
def test_an_axis_ends_at_a_number_that_is_easy_to_read(number: float, top: float) -> None:
    assert round_up(number) == pytest.approx(top)


def test_a_share_stays_within_its_bar() -> None:
    assert (share(1, 4), share(5, 4), share(1, 0)) == (25.0, 100.0, 100.0)
