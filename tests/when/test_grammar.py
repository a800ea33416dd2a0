"""What people may write for a time, what it means, and what they are told when it means nothing."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.when import BadWhen, parse, upcoming
from core.when.plan import to_instant
from tests.examples import tried

BERLIN, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")
TUESDAY = "2027-02-09T12:26"


def instant(moment: str, zone: ZoneInfo | None = None) -> int:
    return to_instant(datetime.fromisoformat(moment).replace(tzinfo=zone or UTC))


def firings(
    text: str, now: str = TUESDAY, zone: ZoneInfo | None = None, count: int = 3
) -> list[str]:
    zone = zone or ZoneInfo("UTC")
    began = instant(now, zone)
    plan = parse(text, zone, began)
    return [f"{plan.local(one):%a %Y-%m-%d %H:%M%z}" for one in upcoming(plan, began, count)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("every 15m", "Tue 2027-02-09 12:41+0000"),
        ("Every  5  Minutes", "Tue 2027-02-09 12:31+0000"),
        ("every 24 hours", "Wed 2027-02-10 12:26+0000"),
        ("every hour", "Tue 2027-02-09 13:26+0000"),
        ("every 1h 30m", "Tue 2027-02-09 13:56+0000"),
        ("every day at 09:00", "Wed 2027-02-10 09:00+0000"),
        ("daily at 13:00", "Tue 2027-02-09 13:00+0000"),
        ("every weekday at 9:00", "Wed 2027-02-10 09:00+0000"),
        ("every weekend at 9:00", "Sat 2027-02-13 09:00+0000"),
        ("every monday at 18:30", "Mon 2027-02-15 18:30+0000"),
        ("every tue at 12:26", "Tue 2027-02-16 12:26+0000"),
        ("every monday and thursday at 9pm", "Thu 2027-02-11 21:00+0000"),
        ("every mon, wed, and fri at 9:00", "Wed 2027-02-10 09:00+0000"),
        ("in an hour", "Tue 2027-02-09 13:26+0000"),
        ("*/60 * * * *", "Tue 2027-02-09 13:00+0000"),
        ("every month on 1 at 08:00", "Mon 2027-03-01 08:00+0000"),
        ("every month on the 9th at 12:30", "Tue 2027-02-09 12:30+0000"),
        ("0 9 * * 1-5", "Wed 2027-02-10 09:00+0000"),
        ("15 10 * jan-mar sun", "Sun 2027-02-14 10:15+0000"),
        ("in 20m", "Tue 2027-02-09 12:46+0000"),
        ("in 2 days", "Thu 2027-02-11 12:26+0000"),
        ("tomorrow at 8:00", "Wed 2027-02-10 08:00+0000"),
        ("today at 18:00", "Tue 2027-02-09 18:00+0000"),
        ("fri 18:00", "Fri 2027-02-12 18:00+0000"),
        ("tuesday at 13:00", "Tue 2027-02-09 13:00+0000"),
        ("tuesday at 12:26", "Tue 2027-02-16 12:26+0000"),
        ("2027-12-24 18:00", "Fri 2027-12-24 18:00+0000"),
        ("2027-07-01T09:00+02:00", "Thu 2027-07-01 07:00+0000"),
        ("2027-07-01T09:00:30Z", "Thu 2027-07-01 09:00+0000"),
    ],
)
def test_a_time_means(text: str, first: str) -> None:
    assert firings(text, count=1) == [first]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("tomorrow at 8:00 Europe/Berlin", "Wed 2027-02-10 08:00+0100"),
        ("0 9 * * 1-5 america/new_york", "Tue 2027-02-09 09:00-0500"),
        ("every 15m UTC", "Tue 2027-02-09 12:41+0000"),
        ("every day at 9:00, Europe/Berlin", "Wed 2027-02-10 09:00+0100"),
        ("every day at 9 am CET", "Wed 2027-02-10 09:00+0100"),
        ("15 10 * * sun japan", "Sun 2027-02-14 10:15+0900"),
    ],
)
def test_a_zone_may_follow(text: str, first: str) -> None:
    assert firings(text, count=1) == [first]


def test_a_time_without_a_zone_is_the_persons_wherever_the_server_stands() -> None:
    assert firings("2027-07-01T09:00", zone=KOLKATA) == ["Thu 2027-07-01 09:00+0530"]
    plan = parse("2027-07-01T09:00+02:00", KOLKATA, instant(TUESDAY))
    assert upcoming(plan, 0, 1) == [instant("2027-07-01T07:00")]


def test_weekdays_count_from_sunday_and_seven_is_sunday_too() -> None:
    monday = "2027-01-04T12:00"
    assert firings("0 9 * * 0", monday, count=1) == ["Sun 2027-01-10 09:00+0000"]
    assert firings("0 9 * * 7", monday, count=1) == ["Sun 2027-01-10 09:00+0000"]
    assert firings("30 7 * * 4", monday, count=1) == ["Thu 2027-01-07 07:30+0000"]
    assert firings("0 9 * * MON", monday, count=1) == ["Mon 2027-01-11 09:00+0000"]
    assert [one[:3] for one in firings("0 9 * * 1-5", monday, count=5)] == [
        "Tue", "Wed", "Thu", "Fri", "Mon",
    ]  # fmt: skip


def test_with_both_day_fields_set_either_is_enough() -> None:
    assert [one[:14] for one in firings("0 9 13 * 5", count=4)] == [
        "Fri 2027-02-12", "Sat 2027-02-13", "Fri 2027-02-19", "Fri 2027-02-26",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "When?"),
        ("   ", "When?"),
        ("whenever", "not a time I can read"),
        ("x" * 400, "too long"),
        ("2027-02-09 12:20", "has passed"),
        ("2027-02-09 12:26", "has passed"),
        ("in -5 minutes", "has passed"),
        ("in 0m", "has passed"),
        ("today at 8:00", "has passed"),
        ("every 0s", "longer than zero"),
        ("every -5m", "longer than zero"),
        ("every 5 parsecs", "no length of time"),
        ("in 99999999999999999999d", "hundred years"),
        ("every day", "Say for example: every day at 09:00"),
        ("24 hours", "Say: in 24 hours, or: every 24 hours"),
        ("5  Minutes", "Say: in 5 minutes, or: every 5 minutes"),
        ("18:00", "Say: today at 18:00, tomorrow at 18:00, or: every day at 18:00"),
        ("at 9 pm", "today at 9 pm"),
        ("every day at 9", "Write it as 9:00"),
        ("every day at 25:00", "no time 25:00"),
        ("every day at 9:60", "no time 9:60"),
        ("every day at 13pm", "no 13 pm"),
        ("every month on 32 at 8:00", "No month has a day 32"),
        ("2027-02-30 10:00", "no such date"),
        ("2027-12-24", "At what time"),
        ("2027-13", "not a date and time"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("60 * * * *", "field minute"),
        ("*/0 * * * *", "field minute"),
        ("5-1 * * * *", "field minute"),
        ("1,,2 * * * *", "field minute"),
        ("0 24 * * *", "field hour"),
        ("0 0 0 * *", "field day-of-month"),
        ("0 0 32 * *", "field day-of-month"),
        ("0 0 L * *", "field day-of-month"),
        ("0 0 15W * *", "field day-of-month"),
        ("0 0 1 13 *", "field month"),
        ("0 0 1 MON *", "field month"),
        ("a * * * *", "field minute"),
        ("-1 9 * * 1", "field minute"),
        ("5-1 * * * *", "field minute of the cron line, “5-1”, runs backwards"),
        ("0 9 20-10 * *", "field day-of-month of the cron line, “20-10”, runs backwards"),
        ("0 9 */0 * *", "field day-of-month of the cron line, “*/0”, has a step of nothing"),
        ("0 0 * * 8", "field day-of-week"),
        ("0 0 * * 5L", "field day-of-week"),
        ("0 0 * * 5#2", "field day-of-week"),
        ("*/90 * * * *", "a step beyond its 60 values"),
        ("0 1-5,*/25 * * *", "a step beyond its 24 values"),
        ("0 0 31 2 *", "never comes true"),
        ("0 0 31 4,6,9,11 *", "never comes true"),
        ("@daily", "not a time I can read"),
        ("20", "not a time I can read"),
        ("15m until friday", "not a time I can read"),
        ("0 9 * * * Mars/Base", "no time zone Mars/Base"),
        ("every day at 9:00 Europe/Berln", "Did you mean Europe/Berlin"),
        ("every day at 9:00 New_York", "no time zone New_York. Did you mean America/New_York?"),
        ("0 9 * * MON Tokyo", "no time zone Tokyo. Did you mean Asia/Tokyo?"),
        ("every day at 9:00 localtime", "no time zone localtime"),
        ("9880-01-01 10:00", "hundred years"),
    ],
)
def test_what_means_nothing_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BadWhen, match=re.escape(why)):
        parse(text, UTC, instant(TUESDAY))


@tried(30)
@given(st.text(max_size=60) | st.from_regex(r"[0-9*/,LW#-]{1,5}( [0-9*/,A-Z-]{1,5}){3,5}"))
def test_any_text_is_read_or_refused_and_what_is_read_has_a_next_time(text: str) -> None:
    now = instant(TUESDAY)
    refusal, plan = "", None
    try:
        plan = parse(text, BERLIN, now)
    except BadWhen as refused:
        refusal = str(refused)
    assert refusal.endswith((".", "?")) or (plan and upcoming(plan, now, 1)[0] > now)


@pytest.mark.parametrize("first", ["fri", "5", "MON"])
def test_a_span_of_days_may_end_with_sunday(first: str) -> None:
    now = to_instant(datetime(2027, 1, 1, tzinfo=UTC))  # a Friday
    zone = ZoneInfo("UTC")
    seventh = {"fri": "5-7", "5": "5-7", "MON": "1-7"}[first]
    named = parse(f"0 9 * * {first}-sun", zone, now)
    counted = parse(f"0 9 * * {seventh}", zone, now)
    assert upcoming(named, now, 5) == upcoming(counted, now, 5)
