"""Jobs over time: what fires, when, how often; through restarts, busy threads and lost rights."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from core.firing import Fired, Firing
from core.job_rules import Decision, Fate, Job, JobKind, JobState
from core.messages import Address
from core.store import jobs as stored
from core.store import reads, rows
from core.store.jobs import OpenFiring
from core.store.records import LaneRow
from core.turns import Origin, Result, Status
from core.when.plan import to_instant
from tests.jobs.scene import HOUR, clock_at, jobs_in


async def test_a_wake_up_becomes_a_turn_of_its_person_in_its_thread(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:26:00")
    async with jobs_in(tmp_path, clock) as house:
        answer = await house.says("/in 5s : hello")
        assert answer.startswith(
            'Job 1 is set, in 5s: "hello". It runs once, Tue 2027-02-09 12:26:05 UTC.'
        )
        await clock.advance(4.9)
        assert await house.turns() == []
        await clock.advance(0.2)
        (turn,) = await house.turns()
        assert (turn.origin, turn.person, turn.status) == (
            Origin.WAKEUP,
            "telegram:700000001",
            Status.DONE,
        )
        (prompt,) = await house.scene.prompts()
        assert prompt == (
            "(Job 1, a wake-up: in 5s. Due Tue 2027-02-09 12:26:05 UTC, on time. "
            "Nobody wrote this just now.)\n\nhello"
        )
        job = await house.job()
        assert (job.state, job.last_result, job.next_at) == (JobState.DONE, "on time", None)


async def test_a_daily_job_runs_for_weeks_once_a_day(tmp_path: Path) -> None:
    clock = clock_at("2027-03-22T12:00:00")
    async with jobs_in(tmp_path, clock, tick=6 * HOUR) as house:
        await house.says("/zone Europe/Berlin")
        answer = await house.says("/every day at 02:30 : look")
        assert "Tue 2027-03-23 02:30 CET (UTC+01:00)" in answer
        await clock.advance(14 * 24 * HOUR)
        days = [datetime.fromtimestamp(one.due / 1000, UTC) for one in await house.firings()]
        assert len(days) == 14
        assert {day.hour for day in days} == {0, 1}  # two zones' worth of half past two
        assert datetime(2027, 3, 28, 1, 0, tzinfo=UTC) in days  # the end of the gap
        assert set(await house.states()) == {"done"}


async def test_what_falls_into_a_restart_runs_right_after_it(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T07:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every day at 08:00 : look")
    clock.jump(3600 + 61)
    async with jobs_in(tmp_path, clock) as house:
        await clock.settle()
        (firing,) = await house.firings()
        assert firing.result == "late by 1 min"
        assert len(await house.turns()) == 1
        job = await house.job()
        assert job.next_at == to_instant(datetime(2027, 2, 10, 8, tzinfo=UTC))
    async with jobs_in(tmp_path, clock) as house:
        await clock.advance(3600)
        assert len(await house.turns()) == 1


async def test_what_is_later_than_its_catch_up_is_missed_and_told_once(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T07:59:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every day at 08:00 catch up 1h : look")
    clock.jump(5 * 3600 + 60)
    async with jobs_in(tmp_path, clock) as house:
        await clock.settle()
        assert await house.turns() == []
        (told,) = house.said
        assert told == (
            'Job 1 (every day at 08:00, "look") did not run at Tue 2027-02-09 08:00 UTC: '
            "I could not run it in time (5 h late). Next: Wed 2027-02-10 08:00 UTC."
        )
        assert (await house.job()).last_result == "missed by 5 h"
        assert await house.states() == ["missed"]
        assert "missed by 5 h" in await house.says("/jobs")
    async with jobs_in(tmp_path, clock) as house:
        await clock.advance(600)
        assert house.said == []


async def test_a_wake_up_that_was_missed_has_expired(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T07:59:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/in 10m skip missed : look")
    clock.jump(3600)
    async with jobs_in(tmp_path, clock) as house:
        await clock.settle()
        assert (await house.job()).state is JobState.EXPIRED
        assert "It does not run again." in house.said[0]
        assert "expired" in await house.says("/jobs")


async def test_a_blocked_process_runs_it_a_few_seconds_late(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/in 10s skip missed : look")
        clock.jump(13)  # nobody looked for so long
        await clock.advance(15)
        assert await house.states() == ["done"]


async def test_a_run_longer_than_its_interval_skips_the_slots_in_between(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=12) as house:
        await house.says("/every 10s : look")
        await clock.advance(45)
        states = await house.states()
        assert states == ["done", "skipped", "done", "skipped"]
        turns = await house.turns()
        spans = [(turn.started_at, turn.ended_at or clock.now()) for turn in turns]
        assert all(after[0] >= before[1] for before, after in pairwise(spans))
        firings = await house.firings()
        assert firings[1].result == "skipped because its earlier run goes on"


async def test_three_failures_in_a_row_pause_it_and_say_so_once(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, ends=Result.FAILED) as house:
        await house.made("/every 1m : look")
        before = len(house.said)
        await clock.advance(600)
        assert await house.states() == ["failed"] * 3
        job = await house.job()
        assert (job.state, job.last_result) == (JobState.PAUSED, "failed with: no such luck")
        (told,) = house.said[before:]
        assert told.startswith('Job 1 (every 1m, "look") is paused: it failed three times in a row')
        house.ends = Result.DONE
        assert "goes on" in await house.says("/job 1 resume")
        await clock.advance(61)
        assert (await house.states())[-1] == "done"


async def test_several_missed_times_are_one_run(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 10m : look")
    clock.jump(3 * 3600)
    async with jobs_in(tmp_path, clock) as house:
        await clock.settle()
        (firing,) = await house.firings()
        assert (firing.missed, firing.result) == (17, "on time, also for 17 earlier times")
        assert len(await house.turns()) == 1


async def test_a_busy_thread_is_waited_for_or_skipped(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=100) as house:
        await house.made("/in 10s : wait")
        await house.made("/in 20s if busy skip : be skipped")
        await clock.advance(1)
        await house.scene.say("a long one")
        await clock.advance(98)
        assert await house.states(1) == ["open"]
        assert [t.status.value for t in await house.turns()] == ["running", "waiting"]
        assert await house.states(2) == ["skipped"]
        assert (await house.job(2)).last_result == "skipped because the thread was busy"
        await clock.advance(110)
        assert await house.states(1) == ["done"]


async def test_of_two_jobs_of_one_moment_one_finds_the_thread_busy(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=60) as house:
        await house.made("/in 10s if busy skip : one")
        await house.made("/in 10s if busy skip : two")
        await clock.advance(11)
        assert [await house.states(1), await house.states(2)] == [["open"], ["skipped"]]


async def test_what_waits_for_longer_than_its_catch_up_is_left_out(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=3 * 3600) as house:
        await house.made("/in 10s catch up 1h : look")
        await house.scene.say("a long one")
        before = len(house.said)
        await clock.advance(3700)
        assert await house.states() == ["missed"]
        (told,) = house.said[before:]
        assert "waited for 1 h and could not start, so it was left out" in told
        assert (await house.job()).state is JobState.EXPIRED


async def test_nothing_fires_in_a_drain_and_the_next_start_catches_up(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/in 10s : look")
        await house.drain()
        await clock.advance(60)
        assert await house.turns() == []
    async with jobs_in(tmp_path, clock) as house:
        await clock.settle()
        assert await house.states() == ["done"]
        assert len(await house.turns()) == 1


async def test_a_firing_that_was_claimed_before_a_crash_runs_once(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, runs=False) as house:
        await house.made("/in 10s : look")
        await clock.advance(11)
        assert await house.states() == ["open"]
    async with jobs_in(tmp_path, clock) as house:
        await clock.advance(60)
        assert len(await house.turns()) == 1
        assert len(await house.firings()) == 1


async def test_the_end_of_a_run_that_a_crash_kept_from_the_job_is_recorded(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=30) as house:
        await house.made("/every 1h : look")
        await clock.advance(3601)
        assert await house.states() == ["open"]
    async with jobs_in(tmp_path, clock) as house:
        await clock.settle()
        await clock.advance(1)
        assert (await house.states())[0] in ("interrupted", "done")
        assert (await house.job()).turn is None


async def test_whoever_lost_the_right_has_nothing_run_and_costs_nothing(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        ben = "telegram:700000002"
        await house.made("/every 1h : look", sender=ben)
        lists = house.scene.ground.people.lists
        house.scene.ground.people.lists = type(lists)(admins=lists.admins)
        before = len(house.said)
        await clock.advance(5 * HOUR)
        assert await house.turns() == []
        assert house.said[before:] == []  # a stranger is not written to
        job = await house.job()
        assert (job.state, job.last_result) == (
            JobState.PAUSED,
            "paused: its person may not use me here any more",
        )


async def test_where_members_may_not_talk_any_more_the_person_is_told_alone(
    tmp_path: Path,
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.scene.say("hello")  # there is a direct chat
        await house.scene.mention("/every 1h : look")
        lists = house.scene.ground.people.lists
        house.scene.ground.people.lists = type(lists)(lists.admins, lists.members)
        before = len(house.scene.rules.deliveries)
        await clock.advance(5 * HOUR)
        (told,) = house.scene.rules.deliveries[before:]
        assert told.lane == "telegram:700000001"
        assert "is paused: its person may not use me here any more" in house.said[-1]


async def test_a_thread_that_is_gone_pauses_its_job(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.scene.say("hello")
        await house.scene.mention("/every 1h : look")
        await clock.advance(HOUR + 1)
        (turn,) = [turn for turn in await house.turns() if turn.origin.job]
        house.jobs.unreachable(turn.id)
        await clock.settle()
        assert (await house.job()).state is JobState.PAUSED
        assert "its thread cannot be written to any more" in house.said[-1]
        assert house.scene.rules.deliveries[-1].lane == "telegram:700000001"


async def test_a_job_whose_platform_is_not_set_up_waits_for_it_without_a_word(
    tmp_path: Path,
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        first = await house.made("/every 1h : look")
        address = Address("slack", "C0LAB")
        lane = rows.new_lane("slack:C0LAB", address, False, "", 1)
        await house.store.save(lane, stored.new(replace(first, id=2, lane="slack:C0LAB")))
        before = len(house.said)
        await clock.advance(HOUR + 1)
        assert await house.states(2) == ["skipped"]
        job = await house.job(2)
        assert job.state is JobState.ACTIVE
        assert job.last_result == "skipped because the platform of its thread is not set up"
        assert house.said[before:] == []


async def test_a_run_that_was_stopped_says_so_and_is_no_failure(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=60, ends=Result.CANCELLED) as house:
        await house.made("/every 1h : look")
        await clock.advance(HOUR + 5)
        await house.says("/stop")
        await clock.advance(60)
        job = await house.job()
        assert (job.last_result, job.failures, job.state) == ("stopped", 0, JobState.ACTIVE)


async def test_a_watch_that_found_something_has_a_turn_with_the_evidence(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        first = await house.made("/every 1h : look")
        watch = replace(first, id=2, kind=JobKind.WATCH, next_at=clock.now() + 1000)
        await house.store.save(stored.new(watch))
        await clock.advance(60)
        assert await house.firings(2) == []  # what watches look at is looked at elsewhere
        lane = await reads.lane(house.store, watch.lane)
        assert lane is not None
        now = clock.now()
        decision = Decision(now, Fate.RUN, next_at=now + 60_000, settled_at=now)
        firing = house.jobs.firing
        await house.jobs.store([firing.found(watch, lane, decision, "found", "Status: 503")])
        await clock.settle()
        assert await house.states(2) == ["done"]
        (turn,) = await house.turns()
        assert turn.origin is Origin.WATCH
        assert (await house.scene.prompts())[0].endswith("\n\nlook\n\nStatus: 503")
        assert (await house.job(2)).state is JobState.ACTIVE


async def test_many_jobs_due_at_once_all_run_and_other_work_goes_on(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, runs=False) as house:
        first = await house.made("/every day at 13:00 : look")
        await house.store.save(*(stored.new(replace(first, id=n)) for n in range(2, 301)))
        await clock.advance(HOUR + 1)
        steps = [count for count in house.scene.rules.batches if count > 10]
        assert max(steps) <= 26
        assert sum(steps) >= 300
        assert await house.states(300) == ["open"]
        assert await house.says("/status")


async def test_a_look_that_breaks_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/in 10s : look")
        look, broken = house.jobs._fire, [True]

        async def once(jobs: Sequence[Job]) -> None:
            if broken.pop():
                raise RuntimeError("a bug")
            await look(jobs)

        broken.insert(0, False)
        monkeypatch.setattr(house.jobs, "_fire", once)
        await clock.advance(11)
        assert await house.states() == []
        await clock.advance(15)
        assert await house.states() == ["done"]


async def test_a_job_that_breaks_keeps_no_other_from_firing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    decide, broken = Firing.of, [True]

    async def breaking(self: Firing, job: Job, lane: LaneRow, *, busy: bool) -> Fired:
        if job.id == 1 and broken:
            raise RuntimeError("a bug")
        return await decide(self, job, lane, busy=busy)

    monkeypatch.setattr(Firing, "of", breaking)
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/in 10s : one")
        await house.made("/in 10s : two")
        await clock.advance(31)
        assert (await house.states(1), await house.states(2)) == ([], ["done"])
        broken.clear()
        await clock.advance(16)
        assert await house.states(1) == ["done"]


async def test_the_end_of_a_run_that_could_not_be_recorded_is_recorded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=1) as house:
        await house.made("/every 1m : look")
        record, broken = house.jobs._ended, [True]

        async def once(firing: OpenFiring) -> None:
            if broken:
                broken.pop()
                raise OSError("the store is out of order")
            await record(firing)

        monkeypatch.setattr(house.jobs, "_ended", once)
        await clock.advance(62)
        assert await house.states() == ["open"]
        await clock.advance(70)
        assert await house.states() == ["done", "done"]


async def test_a_wake_up_that_ran_when_the_backup_was_made_has_ended_after_it(
    tmp_path: Path,
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, runs=False) as house:
        await house.made("/in 10s : look")
        await clock.advance(11)
        assert (await house.job()).turn is not None
        await house.store.save(("hold.jobs", {}))
    async with jobs_in(tmp_path, clock) as house:
        await clock.settle()
        job = await house.job()
        assert (job.state, job.restored) == (JobState.EXPIRED, False)
        assert "a backup was restored" in job.last_result


async def test_a_run_that_a_backup_brought_back_is_not_taken_for_the_one_of_today(
    tmp_path: Path,
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, runs=False) as house:
        await house.made("/every 1h : look")
        await clock.advance(HOUR + 1)
        (old,) = await house.turns()
        await house.store.save(("hold.jobs", {}))
    clock.jump(HOUR)
    async with jobs_in(tmp_path, clock, runs=False) as house:
        await clock.settle()
        await clock.advance(HOUR)
        before = await house.job()
        assert before.turn not in (None, old.id)
        await house.scene.run(old.id)  # somebody let it go on
        house.jobs.over(old.turn())
        await clock.settle()
        assert (await house.job()).turn == before.turn
        assert (await house.states())[0] == "done"


async def test_a_run_that_takes_longer_than_its_catch_up_is_not_looked_at_all_the_time(
    tmp_path: Path,
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=600) as house:
        await house.made("/in 10s skip missed : this takes long")
        await clock.advance(11)
        looks, look = [0], house.jobs._look

        async def counted(stopping: asyncio.Event) -> None:
            looks[0] += 1
            assert looks[0] < 100, "it looks all the time"
            await look(stopping)

        house.jobs._look = counted  # type: ignore[method-assign]
        await clock.advance(300)
        assert looks[0] <= 300 / 15 + 2
        await clock.advance(400)
        assert await house.states() == ["done"]


async def test_a_run_that_hangs_and_is_ended_lets_the_schedule_go_on(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=35, ends=Result.FAILED) as house:
        await house.made("/every 10s : look")
        await clock.advance(46)
        house.takes, house.ends = 1, Result.DONE
        await clock.advance(30)
        states = await house.states()
        assert states[:5] == ["failed", "skipped", "skipped", "skipped", "done"]
        assert (await house.job()).failures == 0


async def test_without_jobs_no_alarm_is_set(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock):
        await clock.settle()
        assert not clock.sleeping or clock.sleeping < 3
