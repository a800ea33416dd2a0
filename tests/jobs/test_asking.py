"""What people write to set up a job, and what they are told when it means nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from core import job_asking
from core.job_asking import Asked, JobLimits, split, typed
from core.job_rules import IfBusy, JobKind
from core.when import BadWhen, Plan, following, parse
from core.when.plan import to_instant

NOW = to_instant(datetime(2027, 2, 9, 12, 26, tzinfo=UTC))
HOUR = 3_600_000


def asked(text: str, name: str = "every", zone: str = "UTC", **limits: int) -> Asked:
    return typed(name, text, zone, NOW, JobLimits(**limits))


def first(text: str, name: str = "every", zone: str = "UTC") -> str:
    at = asked(text, name, zone).job(1, "main", "local:ana").next_at
    assert at is not None
    return f"{datetime.fromtimestamp(at / 1000, UTC):%a %m-%d %H:%M}"


def refusal(text: str, name: str = "every", **limits: int) -> str:
    with pytest.raises(BadWhen) as caught:
        asked(text, name, **limits)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "at"),
    [
        ("every", "15m : x", "Tue 02-09 12:41"),
        ("every", "every 15m : x", "Tue 02-09 12:41"),
        ("every", "day at 09:00 : x", "Wed 02-10 09:00"),
        ("every", "0 9 * * 1-5 : x", "Wed 02-10 09:00"),
        ("every", "monday at 18:30 : x", "Mon 02-15 18:30"),
        ("every", "month on 1 at 08:00: x", "Mon 03-01 08:00"),
        ("every", "daily at 13:00 : x", "Tue 02-09 13:00"),
        ("in", "20m : x", "Tue 02-09 12:46"),
        ("in", "2 days: x", "Thu 02-11 12:26"),
        ("at", "tomorrow 8:00 : x", "Wed 02-10 08:00"),
        ("at", "2027-12-24 18:00 : x", "Fri 12-24 18:00"),
        ("at", "18:00 : x", "Tue 02-09 18:00"),
        ("at", "9:00: x", "Wed 02-10 09:00"),
        ("at", "9am Europe/Berlin: x", "Wed 02-10 08:00"),
    ],
)
def test_a_command_lends_its_name_to_the_time(name: str, text: str, at: str) -> None:
    assert first(text, name) == at


def test_every_with_a_day_of_the_week_comes_every_week() -> None:
    assert asked("monday at 18:30 : x").job(1, "main", "a").kind is JobKind.SCHEDULE
    assert asked("20m : x", "in").job(1, "main", "a").kind is JobKind.WAKEUP


def test_at_lends_nothing() -> None:
    assert refusal("15m : x", "at") == "Once or again and again? Say: in 15m, or: every 15m."


def test_words_behind_a_length_of_time_are_not_taken_for_a_cron_line() -> None:
    assert refusal("24 hours from 9:00 : x").startswith("“every 24 hours from 9:00” is not a time")


@pytest.mark.parametrize("name", ["every", "in", "at"])
def test_without_any_time_examples_are_given(name: str) -> None:
    assert refusal(": x", name).startswith("When? Say for example: every 15m, ")


def test_the_separator_is_the_first_colon_outside_quotes_that_a_blank_follows() -> None:
    assert split("day at 09:00 : say: hello", "") == ("day at 09:00", "say: hello")
    assert split("a 'b : c' \"d: e\" x:\ny", "") == ("a 'b : c' \"d: e\" x", "y")
    assert split("15m : don't say \"hi", "") == ("15m", "don't say \"hi")
    assert split("15m:", "") == ("15m", "")


@pytest.mark.parametrize(
    "text",
    [
        "catch up 1h if busy skip budget 0.50 day at 09:00 : x",
        "day at 09:00 catch up 1h if busy skip budget 0.50 : x",
        "day at 09:00, budget $0.50, if busy skip, catch-up 60m : x",
        "budget 0.5 day at 09:00 If Busy Skip Catch Up 1h : x",
    ],
)
def test_options_stand_in_any_order(text: str) -> None:
    found = asked(text)
    assert found.said == "every day at 09:00"
    assert found.options.catch_up == HOUR
    assert found.options.if_busy is IfBusy.SKIP
    assert found.options.budget == 0.5


def test_an_option_in_front_of_a_cron_line_does_not_eat_it() -> None:
    found = asked("catch up 1h 0 9 * * 1-5 : x")
    assert (found.said, found.options.catch_up) == ("0 9 * * 1-5", HOUR)
    assert asked("0 9 * * 1-5 skip missed : x").options.catch_up == 0


def test_a_local_time_is_the_persons_and_an_offset_counts_more() -> None:
    assert first("2027-07-01T09:00 : x", "at", "Asia/Kolkata") == "Thu 07-01 03:30"
    assert first("2027-07-01T09:00+02:00 : x", "at", "Asia/Kolkata") == "Thu 07-01 07:00"
    assert first("day at 09:00 Europe/Berlin : x", zone="Asia/Kolkata") == "Wed 02-10 08:00"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("* * * * : x", "five fields"),
        ("60 * * * * : x", "minute"),
        ("*/0 * * * * : x", "minute"),
        ("0 24 * * * : x", "hour"),
        ("5-1 * * * * : x", "minute"),
        (": x", "When?"),
        ("0 0 31 2 * : x", "never"),
        ("day at 09:00 Mars/Base : x", "Mars/Base"),
        ("0 9 * * 1-5 Mars/Base : x", "Mars/Base"),
        ("-5m : x", "longer than zero"),
        ("blue moon : x", "is not a time I can read"),
        ("15m", "colon"),
        ("15m : ", "What shall I do"),
        ("9:00:x", "colon"),
        ("15m catch up : x", "How late"),
        ("15m catch up 1h skip missed : x", "not both"),
        ("15m catch up 1h catch up 2h : x", "twice"),
        ("15m if busy dance : x", "if busy"),
        ("15m budget 0 : x", "cost"),
        ("15m budget lots : x", "cost"),
        ("5s : x", "at least 10 s"),
    ],
)
def test_what_means_nothing_is_refused_with_the_reason(text: str, word: str) -> None:
    assert word in refusal(text)


@pytest.mark.parametrize("text", ["2027-02-09 12:20 : x", "2027-02-09 12:26 : x"])
def test_a_time_that_has_passed_is_refused(text: str) -> None:
    assert "has passed" in refusal(text, "at")
    assert "has passed" in refusal("-5 minutes : x", "in")


def test_two_times_of_a_cron_line_may_be_too_near() -> None:
    assert "at least 5 min" in refusal("0,1 9 * * * : x", least=5 * 60_000)
    assert asked("0,10 9 * * * : x", least=5 * 60_000).said == "0,10 9 * * *"


@pytest.mark.parametrize("piece", ["“", '"', "'", " '", "catch up 1h", "1h ", " "])
def test_a_huge_text_holds_nothing_up(piece: str) -> None:
    began = time.process_time()
    assert refusal(f"day at 9:00 {piece * 20_000}x : y")
    assert time.process_time() - began < 5  # it was minutes


def test_a_line_that_does_not_come_for_years_is_refused() -> None:
    march = to_instant(datetime(2032, 3, 1, tzinfo=UTC))
    with pytest.raises(BadWhen, match="does not come in the next nine years"):
        typed("every", "0 0 29 2 */7 : a leap day that is a Sunday", "UTC", march, JobLimits())


def test_the_shortest_time_of_a_seldom_line_is_not_looked_for_through_centuries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def counting(plan: Plan, after: int) -> int | None:
        asked.append(after)
        return following(plan, after)

    monkeypatch.setattr(job_asking, "following", counting)
    assert job_asking.shortest(parse("0 0 29 2 *", ZoneInfo("UTC"), NOW), NOW) == 1461 * 86_400_000
    assert len(asked) == 2
    assert job_asking.shortest(parse("*/5 9 * * *", ZoneInfo("UTC"), NOW), NOW) == 300_000
