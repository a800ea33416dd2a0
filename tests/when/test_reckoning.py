"""Local times over a year, in zones that change their clocks in every way there is.

The reckoning that is checked against walks through the year in steps of real time and looks at
the clock on the wall; it knows nothing of how the next time is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from core.when import Plan, following, parse, upcoming
from core.when.plan import to_instant
from tests.examples import PROFILE

STEP = timedelta(minutes=15)
YEARS = {
    "UTC": 2027,
    "Europe/Berlin": 2027,
    "America/New_York": 2027,
    "America/St_Johns": 2027,
    "Asia/Kolkata": 2027,
    "Asia/Kathmandu": 2027,
    "Australia/Lord_Howe": 2027,  # by half an hour
    "Africa/Cairo": 2027,  # at midnight
    "America/Havana": 2027,  # back at one, to midnight
    "America/Santiago": 2027,
    "Africa/Casablanca": 2027,  # back for a month, then forward
    "Pacific/Apia": 2011,  # a whole day left out
    "America/Sao_Paulo": 2018,
}
LINES = (
    "30 2 * * *",
    "0 0 * * *",
    "15,45 0-3 * * *",
    "0 9 * * 1-5",
    "30 1 31 * *",
    "0 2 29 2 *",
    "0 3 1 1,7 0",
    "0 */2 * * *",
    "*/15 */1 * * *",
    "30 * 28-31 3,10 *",
)


def at(moment: datetime) -> int:
    return to_instant(moment)


class Line:
    """The sets of values that a cron line allows."""

    def __init__(self, line: str) -> None:
        fields = line.split()
        ends = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
        self.sets = [self.values(field, *end) for field, end in zip(fields, ends, strict=True)]
        self.real = fields[1].startswith("*")
        self.both = fields[2].startswith("*") or fields[4].startswith("*")

    @staticmethod
    def values(field: str, least: int, most: int) -> set[int]:
        found: set[int] = set()
        for term in field.split(","):
            span, _, step = term.partition("/")
            low, _, high = span.partition("-")
            first, last = (least, most) if span == "*" else (int(low), int(high or low))
            found.update(range(first, last + 1, int(step or 1)))
        return found

    def fits(self, local: datetime) -> bool:
        minutes, hours, days, months, weekdays = self.sets
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        day, weekday = local.day in days, local.isoweekday() % 7 in weekdays
        return (day and weekday) if self.both else (day or weekday)


def walked(line: Line, walls: list[tuple[int, datetime]]) -> Iterator[int]:
    """Instants of a line by looking at the clock on the wall every quarter of an hour."""
    latest = walls[0][1] - STEP
    for instant, wall in walls:
        if line.real or wall - latest == STEP:
            hit = (line.real or wall > latest) and line.fits(wall)
            latest = max(wall, latest)
        else:
            hit = False
            while latest < wall:  # the clocks went forward: what they left out comes now
                latest += STEP
                hit = hit or line.fits(latest)
        if hit:
            yield instant


def weeks(zone: ZoneInfo, year: int) -> Iterator[list[tuple[int, datetime]]]:
    """The clock on the wall, a quarter of an hour apart: the days around each change of the
    clocks, the last of February, the turn of the year and two days for comparison. The whole
    year where many inputs are asked for.
    """
    days = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(366)]
    wanted = [day for day in days if (day.month, day.day) in ((1, 1), (2, 28), (6, 30), (12, 30))]
    offsets = [day.astimezone(zone).utcoffset() for day in days]
    wanted += [day for n, day in enumerate(days[1:]) if offsets[n] != offsets[n + 1]]
    spans = [(day - timedelta(days=1), 3) for day in wanted]
    for first, length in spans if PROFILE == "usual" else [(days[0], 365)]:
        moments = (first + n * STEP for n in range(length * 96))
        yield [(at(one), one.astimezone(zone).replace(tzinfo=None)) for one in moments]


@pytest.mark.parametrize("name", YEARS)
def test_a_year_equals_the_year_that_was_walked_through(name: str) -> None:
    zone, year = ZoneInfo(name), YEARS[name]
    for walls in weeks(zone, year):
        for line in LINES:
            plan = parse(line, zone, walls[0][0])
            expected = list(walked(Line(line), walls))
            found = upcoming(plan, walls[0][0] - 1, len(expected) + 1)
            assert [one for one in found if one <= walls[-1][0]] == expected, line


def berlin(text: str, since: str) -> tuple[Plan, int]:
    zone = ZoneInfo("Europe/Berlin")
    began = at(datetime.fromisoformat(since).replace(tzinfo=zone))
    return parse(text, zone, began), began


def test_an_interval_is_real_time_and_a_daily_time_is_local() -> None:
    plan, began = berlin("every 24 hours", "2027-03-27T09:00")
    assert plan.local(upcoming(plan, began, 1)[0]).hour == 10
    plan, began = berlin("daily at 09:00", "2027-03-27T09:00")
    assert plan.local(upcoming(plan, began, 1)[0]).hour == 9


def test_a_repeated_hour_counts_once_and_a_skipped_one_at_its_end() -> None:
    plan, began = berlin("30 2 * * *", "2027-10-30T00:00")
    assert [f"{plan.local(one):%d %H:%M%z}" for one in upcoming(plan, began, 3)] == [
        "30 02:30+0200",
        "31 02:30+0200",
        "01 02:30+0100",
    ]
    plan, began = berlin("30 2 * * *", "2027-03-27T12:00")
    assert f"{plan.local(upcoming(plan, began, 1)[0]):%d %H:%M%z}" == "28 03:00+0200"


def test_asked_inside_the_second_pass_the_answer_lies_ahead() -> None:
    plan, _ = berlin("30 2 * * *", "2027-10-30T00:00")
    inside = at(datetime(2027, 10, 31, 1, 10, tzinfo=UTC))
    found = following(plan, inside)
    assert found is not None
    assert f"{plan.local(found):%d %H:%M}" == "01 02:30"


def test_the_next_time_is_asked_of_any_instant_and_never_moves_back() -> None:
    plan, began = berlin("*/20 * * * *", "2027-10-30T23:07")
    instants = [began + minutes * 60_000 for minutes in range(0, 600, 7)]
    answers = [following(plan, instant) for instant in instants]
    assert all(
        answer is not None and answer > instant
        for answer, instant in zip(answers, instants, strict=True)
    )
    assert answers == sorted(answers, key=lambda answer: answer or 0)


def test_what_is_over_has_no_next_time() -> None:
    plan, began = berlin("in 20m", "2027-03-27T09:00")
    assert upcoming(plan, began, 5) == [began + 20 * 60_000]
    assert following(plan, began + 20 * 60_000) is None


def test_at_the_end_of_the_calendar_there_is_nothing_more() -> None:
    plan, _ = berlin("0 9 * * *", "2027-03-27T09:00")
    assert following(plan, at(datetime(9985, 1, 1, tzinfo=UTC))) is None
