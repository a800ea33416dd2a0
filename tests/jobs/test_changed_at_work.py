"""Jobs that somebody pauses, resumes or cancels, at the very moment in which they fire as well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.firing import Fired
from core.job_rules import JobState
from core.turns import Status
from tests.jobs.scene import HOUR, JobScene, clock_at, jobs_in


@pytest.mark.parametrize("verb", ["pause", "cancel"])
async def test_a_job_that_was_paused_or_cancelled_is_silent(tmp_path: Path, verb: str) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 1h : look")
        await house.says(f"/job 1 {verb}")
        await clock.advance(5 * HOUR)
        assert await house.turns() == []


async def meanwhile(house: JobScene, *commands: str) -> None:
    """These are given when a job has been read as due, and what comes of it is not stored yet."""
    store, left = house.jobs.store, list(commands)

    async def overtaken(fired: Sequence[Fired]) -> None:
        while left:
            await house.scene.say(left.pop(0))
        await store(fired)

    house.jobs.store = overtaken  # type: ignore[method-assign]


async def test_a_schedule_that_is_resumed_while_somebody_has_it_run_goes_on(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 1h : look")
        await house.says("/job 1 pause")
        await meanwhile(house, "/job 1 resume")
        await house.says("/job 1 run")
        await clock.advance(2 * HOUR + 1)
        assert (await house.job()).state is JobState.ACTIVE
        assert await house.states() == ["done", "done", "done"]


async def test_a_schedule_that_is_paused_while_it_fires_has_no_next_time(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 1h : look")
        await meanwhile(house, "/job 1 pause")
        await clock.advance(3 * HOUR)
        job = await house.job()
        assert (job.state, job.next_at) == (JobState.PAUSED, None)
        assert await house.states() == ["done"]


async def test_what_fires_while_its_job_is_cancelled_is_taken_out_of_the_queue(
    tmp_path: Path,
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, runs=False) as house:
        await house.made("/every 1h : look")
        await house.scene.say("this takes long")
        await meanwhile(house, "/job 1 cancel")
        await clock.advance(HOUR + 1)
        assert await house.states() == ["dropped"]
        assert [turn.status for turn in await house.turns() if turn.origin.job] == [Status.DROPPED]


async def test_the_only_run_of_a_wake_up_cannot_be_paused(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock, takes=60) as house:
        await house.made("/in 10s : look")
        await clock.advance(11)
        assert "there is nothing to pause" in await house.says("/job 1 pause")
        await clock.advance(60)
        assert (await house.job()).state is JobState.DONE


async def test_a_wake_up_whose_time_passes_while_it_is_paused_ends_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/in 10s : look")
        await house.says("/job 1 pause")
        await clock.advance(60)
        assert "has passed meanwhile" in await house.says("/job 1 resume")
        assert (await house.job()).state is JobState.EXPIRED
