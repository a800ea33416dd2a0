"""A wall clock that jumps: nothing fires twice, and no job is silenced by it."""

from __future__ import annotations

from pathlib import Path

from tests.jobs.scene import HOUR, clock_at, jobs_in


async def test_a_clock_that_steps_forward_runs_what_is_due_once(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 1h : look")
        clock.jump(5400)
        await clock.advance(16)  # the next tick sees it
        assert await house.states() == ["done"]


async def test_a_clock_that_steps_back_repeats_nothing(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 1h : look")
        await clock.advance(HOUR + 1)
        clock.jump(-1800)
        await clock.advance(1900)
        assert await house.states() == ["done"]
        await clock.advance(HOUR)
        assert await house.states() == ["done"] * 2


async def test_a_clock_that_was_years_ahead_does_not_silence_a_job(tmp_path: Path) -> None:
    clock = clock_at("2027-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 1h : look")
        clock.jump(3 * 366 * 86400)
        await clock.advance(16)
        clock.jump(-3 * 366 * 86400)
        await clock.advance(2 * HOUR)
        assert await house.states() == ["done", "done", "done"]


async def test_a_job_made_while_the_clock_was_far_ahead_runs_by_the_right_one(
    tmp_path: Path,
) -> None:
    clock = clock_at("2029-02-09T12:00:00")
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 15m : look")
        clock.jump(-2 * 366 * 24 * HOUR)
        await clock.advance(46 * 60)
        assert await house.states() == ["done", "done", "done"]
