"""What is due, how late it may run, what comes next; whatever clock and process do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.job_rules import (
    DAY,
    Decision,
    Ending,
    Fate,
    FiringState,
    IfBusy,
    Job,
    JobKind,
    JobState,
    as_shown,
    decide,
    due,
    ending,
    latest,
    set_right,
)
from core.turns import Status
from core.when import following, upcoming
from core.when.plan import to_instant
from tests.examples import tried

MINUTE, HOUR = 60_000, 3_600_000
CATCH_UP = 6 * HOUR
WHENS = ("every 10s", "every 24 hours", "30 2 * * *", "*/30 * * * *", "0 9 * * 1-5", "0 8 1 * *")


def at(moment: str) -> int:
    return to_instant(datetime.fromisoformat(moment).replace(tzinfo=UTC))


def job(said: str, now: int, zone: str = "UTC", kind: JobKind = JobKind.SCHEDULE) -> Job:
    new = Job(1, "main", "local:ana", kind, said, zone, now, "look", now, settled_at=now)
    return replace(new, next_at=following(new.plan, now))


def fate(one: Job, now: int, *, busy: bool = False, catch_up: int = CATCH_UP) -> Fate:
    return decide(one, one.plan, now, catch_up=catch_up, busy=busy).fate


DAILY = job("every day at 08:00", at("2027-02-08T12:00"))


def test_a_job_is_due_at_its_instant_and_not_before() -> None:
    eight = at("2027-02-09T08:00")
    assert not due(DAILY, eight - 1)
    assert due(DAILY, eight)
    assert not due(replace(DAILY, state=JobState.PAUSED), eight)
    assert not due(replace(DAILY, state=JobState.CANCELLED, asked_at=eight), eight)


def test_a_watch_that_found_nothing_for_a_while_is_shown_with_its_next_look() -> None:
    noon = at("2027-02-08T12:00")
    until = noon + 3 * MINUTE
    watch = replace(job("every 1m", noon, kind=JobKind.WATCH), what="file a exists", until=until)
    assert as_shown(watch, noon + 30_000).next_at == noon + MINUTE
    assert as_shown(watch, noon + 90_000).next_at == noon + 2 * MINUTE
    assert as_shown(watch, noon + 5 * MINUTE).next_at == until
    paused = replace(watch, state=JobState.PAUSED)
    assert as_shown(paused, noon + 90_000) == paused
    assert as_shown(DAILY, noon + DAY) == DAILY  # what was missed is decided about


def test_what_falls_into_a_short_restart_runs_once_and_the_next_is_tomorrow() -> None:
    now = at("2027-02-09T08:01")
    found = decide(DAILY, DAILY.plan, now, catch_up=CATCH_UP, busy=False)
    assert (found.fate, found.due, found.late) == (Fate.RUN, at("2027-02-09T08:00"), MINUTE)
    assert found.next_at == at("2027-02-10T08:00")


def test_what_is_later_than_its_catch_up_is_missed() -> None:
    one = replace(DAILY, catch_up=HOUR)
    assert fate(one, at("2027-02-09T09:00")) is Fate.RUN
    assert fate(one, at("2027-02-09T13:00")) is Fate.MISSED
    assert fate(DAILY, at("2027-02-09T13:00")) is Fate.RUN
    assert fate(DAILY, at("2027-02-09T14:01")) is Fate.MISSED


def test_a_few_seconds_of_a_busy_process_are_no_lateness() -> None:
    one = replace(DAILY, catch_up=0)
    assert fate(one, at("2027-02-09T08:00") + 16_000) is Fate.RUN
    assert fate(one, at("2027-02-09T08:01")) is Fate.MISSED


def test_several_missed_instants_are_one_run_for_the_latest() -> None:
    hourly = job("0 * * * *", at("2027-02-09T07:30"))
    found = decide(hourly, hourly.plan, at("2027-02-09T19:10"), catch_up=CATCH_UP, busy=False)
    assert (found.fate, found.due, found.missed) == (Fate.RUN, at("2027-02-09T19:00"), 11)
    assert found.next_at == at("2027-02-09T20:00")


def test_a_slot_that_falls_into_the_jobs_own_run_is_skipped() -> None:
    one = replace(job("every 5s", 0), turn=7)
    found = decide(one, one.plan, 12_000, catch_up=CATCH_UP, busy=True)
    assert (found.fate, found.due, found.missed) == (Fate.RUNNING, 10_000, 1)
    assert found.next_at == 15_000


def test_a_busy_thread_lets_it_wait_or_be_skipped_as_the_job_says() -> None:
    now = at("2027-02-09T08:00")
    assert fate(DAILY, now, busy=True) is Fate.RUN
    assert fate(replace(DAILY, if_busy=IfBusy.SKIP), now, busy=True) is Fate.BUSY
    assert fate(replace(DAILY, if_busy=IfBusy.SKIP), now) is Fate.RUN


def test_a_wish_to_run_now_leaves_the_times_alone() -> None:
    now = at("2027-02-08T20:00")
    found = decide(replace(DAILY, asked_at=now), DAILY.plan, now + 50, catch_up=0, busy=True)
    settled = DAILY.settled_at
    assert found == Decision(now, Fate.RUN, 0, 0, DAILY.next_at, settled, asked=True)
    busy = replace(DAILY, asked_at=now, turn=3)
    assert fate(busy, now) is Fate.RUNNING


def test_what_a_backup_does_not_know_does_not_run() -> None:
    assert fate(replace(DAILY, restored=True), at("2027-02-09T08:00")) is Fate.RESTORED


def test_a_one_time_job_has_no_next() -> None:
    once = job("in 20m", 0, kind=JobKind.WAKEUP)
    found = decide(once, once.plan, 20 * MINUTE, catch_up=0, busy=False)
    assert found == Decision(20 * MINUTE, Fate.RUN, 0, 0, None, 20 * MINUTE, asked=False)
    late = decide(once, once.plan, 60 * MINUTE, catch_up=0, busy=False)
    assert (late.fate, late.next_at) == (Fate.MISSED, None)


# Ends -------------------------------------------------------------------------------------


def test_three_failures_in_a_row_pause_a_job_and_success_forgets_them() -> None:
    one = DAILY
    for failures in (1, 2):
        end = ending(one, 0, Status.FAILED, 1, CATCH_UP)
        assert (end.failures, end.state) == (failures, None)
        one = replace(one, failures=end.failures)
    assert ending(one, 0, Status.FAILED, 1, CATCH_UP).state is JobState.PAUSED
    assert ending(one, 0, Status.DONE, 1, CATCH_UP).failures == 0
    assert ending(one, 0, Status.STOPPED, 1, CATCH_UP).failures == 2


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (Status.DONE, JobState.DONE),
        (Status.FAILED, JobState.FAILED),
        (Status.STOPPED, JobState.DONE),
        (Status.INTERRUPTED, JobState.FAILED),
        (Status.DROPPED, JobState.DONE),
    ],
)
def test_a_one_time_job_ends_with_its_run(status: Status, state: JobState) -> None:
    once = replace(job("in 20m", 0, kind=JobKind.WAKEUP), next_at=None)
    assert ending(once, 20 * MINUTE, status, 21 * MINUTE, CATCH_UP).state is state


def test_a_run_that_was_asked_for_does_not_end_a_one_time_job_that_is_still_to_come() -> None:
    once = job("in 20m", 0, kind=JobKind.WAKEUP)
    assert ending(once, MINUTE, Status.DONE, 2 * MINUTE, CATCH_UP).state is None


def test_the_end_of_a_run_changes_no_job_that_has_ended() -> None:
    ended = replace(DAILY, state=JobState.CANCELLED, next_at=None, failures=2)
    assert ending(ended, 0, Status.FAILED, 1, CATCH_UP) == Ending(FiringState.FAILED, 3)


def test_what_waited_for_longer_than_its_catch_up_was_missed() -> None:
    one = replace(DAILY, catch_up=HOUR)
    assert ending(one, 0, Status.DROPPED, HOUR + 1, CATCH_UP).firing is FiringState.MISSED
    assert ending(one, 0, Status.DROPPED, HOUR - 1, CATCH_UP).firing is FiringState.DROPPED


# Clocks -----------------------------------------------------------------------------------


def test_a_small_step_back_repeats_nothing_and_is_waited_out() -> None:
    ran = replace(DAILY, next_at=at("2027-02-10T08:00"), settled_at=at("2027-02-09T08:00"))
    back = at("2027-02-09T07:30")
    assert not due(ran, back)
    assert set_right(ran, ran.plan, back) is None


def test_a_job_that_a_wrong_clock_sent_far_ahead_comes_back() -> None:
    sent = replace(DAILY, next_at=at("2031-02-10T08:00"), settled_at=at("2031-02-09T08:00"))
    now = at("2027-02-09T07:30")
    assert set_right(sent, sent.plan, now) == at("2027-02-09T08:00")


@pytest.mark.parametrize("said", WHENS)
@pytest.mark.parametrize("away", [1, MINUTE, 5 * HOUR, 40 * DAY, 3 * 366 * DAY])
def test_the_latest_of_many_missed_instants_is_found_quickly(said: str, away: int) -> None:
    one = job(said, at("2027-03-20T12:00"), "Europe/Berlin")
    assert one.next_at is not None
    now = one.next_at + away
    found, _, after = latest(one.plan, one.next_at, now)
    assert found <= now
    assert after == following(one.plan, found) == following(one.plan, now)


@tried(60)
@given(
    said=st.sampled_from(WHENS),
    steps=st.lists(st.integers(1, 3 * DAY), min_size=1, max_size=12),
    ran=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_every_instant_is_decided_about_once_and_in_order(
    said: str, steps: list[int], ran: list[bool]
) -> None:
    """The process looks now and then; its run goes on meanwhile or not."""
    now = at("2027-10-29T12:00")
    one = job(said, now, "Europe/Berlin")
    decided: list[int] = []
    for step, running in zip(steps, ran, strict=False):
        now += step
        one = replace(one, turn=1 if running else None)
        while due(one, now):
            found = decide(one, one.plan, now, catch_up=CATCH_UP, busy=False)
            assert found.due <= now
            assert (found.fate is Fate.RUNNING) is running
            assert found.next_at is not None
            assert found.next_at > now
            decided.append(found.due)
            one = replace(one, next_at=found.next_at, settled_at=found.settled_at)
    assert decided == sorted(set(decided))
    # The first look after an instant has passed decides about it.
    first = upcoming(one.plan, at("2027-10-29T12:00"), 1)[0]
    assert bool(decided) is (first <= now)


@tried(40)
@given(steps=st.lists(st.integers(-2 * HOUR, 2 * HOUR), min_size=1, max_size=20))
def test_no_instant_comes_twice_however_the_clock_steps(steps: list[int]) -> None:
    now = at("2027-10-30T22:00")
    one = job("*/20 * * * *", now, "Europe/Berlin")
    fired: list[int] = []
    for step in steps:
        now += step
        while due(one, now):
            found = decide(one, one.plan, now, catch_up=CATCH_UP, busy=False)
            fired.append(found.due)
            one = replace(one, next_at=found.next_at, settled_at=found.settled_at)
    assert len(fired) == len(set(fired))


def test_a_daily_job_fires_once_a_local_day_while_the_clocks_change() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    for begin, days in (("2027-10-29T22:00", 3), ("2027-03-26T23:00", 3)):
        one = job("30 2 * * *", at(begin), "Europe/Berlin")
        fired = []
        for minute in range(0, days * 24 * 60, 5):
            now = at(begin) + minute * MINUTE
            while due(one, now):
                found = decide(one, one.plan, now, catch_up=CATCH_UP, busy=False)
                fired.append(datetime.fromtimestamp(found.due / 1000, berlin).date())
                one = replace(one, next_at=found.next_at, settled_at=found.settled_at)
        assert len(fired) == days
        assert len(set(fired)) == days
