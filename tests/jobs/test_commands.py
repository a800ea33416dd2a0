"""What people say about jobs, and what they are answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.job_asking import JobLimits
from core.job_rules import IfBusy, JobState
from core.store.store import Store
from core.when.plan import to_instant
from gateway.job_reports import JobReports
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, BEN, LAB
from tests.jobs.scene import JobScene, jobs_in

NOON = to_instant(datetime(2027, 2, 9, 12, tzinfo=UTC))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[JobScene]:
    async with jobs_in(tmp_path, FakeClock(NOON)) as made:
        yield made


async def test_the_answer_shows_the_next_three_times_in_the_persons_zone(house: JobScene) -> None:
    await house.says("/zone Asia/Kolkata")
    assert await house.says("/every day at 09:00 catch up 1h : look at *this*") == (
        'Job 1 is set, every day at 09:00: "look at \\*this\\*". It runs next:\n\n'
        "- Wed 2027-02-10 09:00 IST (UTC+05:30)\n"
        "- Thu 2027-02-11 09:00 IST (UTC+05:30)\n"
        "- Fri 2027-02-12 09:00 IST (UTC+05:30)\n\n"
        "A missed run is made up for 1 h. Change it with /job 1."
    )
    assert list(house.scene.buttons()) == ["Pause", "Run now", "Cancel"]


async def test_an_interval_and_a_daily_time_show_their_difference(house: JobScene) -> None:
    house.clock.jump((to_instant(datetime(2027, 3, 27, 8, tzinfo=UTC)) - NOON) / 1000)
    await house.says("/zone Europe/Berlin")
    interval = await house.says("/every 24 hours : x")
    daily = await house.says("/every day at 09:00 : x")
    assert "Sun 2027-03-28 10:00 CEST (UTC+02:00)" in interval
    assert "Sun 2027-03-28 09:00 CEST (UTC+02:00)" in daily


async def test_what_was_said_with_a_job_is_kept(house: JobScene) -> None:
    answer = await house.says("/every 1h skip missed if busy skip budget 0.50 : x")
    assert "Missed runs are skipped. While the thread is busy it is skipped." in answer
    assert "$0.50" in answer
    job = await house.job()
    assert (job.catch_up, job.if_busy, job.budget) == (0, IfBusy.SKIP, 0.5)


@pytest.mark.parametrize(
    "text", ["/every 60 * * * * : x", "/at 2027-02-09 11:00 : x", "/every 5s : x", "/every 1h"]
)
async def test_a_refusal_stores_nothing(house: JobScene, text: str) -> None:
    answer = await house.says(text)
    assert not answer.startswith("Job ")
    assert await house.says("/jobs") == (
        "No jobs here. Set one up like this: /every day at 09:00 : what is new in the repository?"
    )


async def test_a_person_has_no_more_jobs_than_the_settings_allow(house: JobScene) -> None:
    ground = house.scene.ground
    ground.house = replace(ground.house, jobs=JobLimits(most=2))
    await house.made("/every 1h : x")
    await house.made("/in 20m : x")
    assert "You have 2 jobs, which is as many as a person may have" in await house.says(
        "/in 20m : x"
    )
    await house.says("/job 1 cancel")
    await house.made("/in 20m : x")


async def test_the_same_command_delivered_twice_makes_one_job(house: JobScene) -> None:
    message = await house.scene.say("/every 1h : x")
    await house.scene.intake.accept([message])
    assert (await house.says("/jobs")).count("every 1h") == 1


async def test_jobs_are_listed_with_their_state_and_how_it_went(house: JobScene) -> None:
    await house.made("/every 1h : look at the build")
    await house.made("/in 30m : remind me")
    await house.clock.advance(3700)
    listed = await house.says("/jobs")
    assert (
        '- **1** every 1h: "look at the build"; next Tue 2027-02-09 14:00 UTC; '
        "last Tue 2027-02-09 13:00 UTC, on time; of Ana" in listed
    )
    assert (
        '- **2** in 30m, done: "remind me"; last Tue 2027-02-09 12:30 UTC, on time; of Ana'
        in listed
    )
    house.clock.jump(8 * 86400)
    assert "remind me" not in await house.says("/jobs")


async def test_one_job_is_shown_with_its_last_times(house: JobScene) -> None:
    await house.made("/every 1h : look")
    await house.clock.advance(2 * 3600 + 60)
    shown = await house.says("/job 1")
    assert "- Tue 2027-02-09 14:00 UTC: on time\n- Tue 2027-02-09 13:00 UTC: on time" in shown


async def test_a_job_is_paused_resumed_run_and_cancelled(house: JobScene) -> None:
    await house.made("/every 1h : look")
    assert await house.says("/job 1 pause") == "Job 1 is paused. It keeps until you resume it."
    assert await house.says("/job 1 pause") == "Job 1 is paused already."
    await house.clock.advance(2 * 3600)
    assert await house.says("/job 1 resume") == "Job 1 goes on. Next: Tue 2027-02-09 15:00 UTC."
    assert await house.states() == []
    assert await house.says("/job 1 run") == "Job 1 runs now, once more than it would."
    await house.clock.settle()
    assert await house.states() == ["done"]
    job = await house.job()
    assert (job.last_result, job.next_at) == ("asked for", NOON + 3 * 3_600_000)
    assert await house.says("/job 1 cancel") == "Job 1 is cancelled and does not run again."
    assert (await house.job()).state is JobState.CANCELLED
    assert await house.says("/job 1 resume") == (
        "Job 1 has ended (cancelled). Set it anew if you want it."
    )


async def test_buttons_do_what_the_commands_do(house: JobScene) -> None:
    await house.made("/every 1h : look")
    assert await house.scene.press(house.scene.buttons()["Pause"]) == "Saved."
    assert (await house.job()).state is JobState.PAUSED
    assert list(house.scene.buttons()) == ["Resume", "Run now", "Cancel"]
    await house.says("/jobs")
    assert list(house.scene.buttons()) == ["Resume 1", "Run 1", "Cancel 1"]
    await house.scene.press(house.scene.buttons()["Run 1"])
    await house.clock.settle()
    assert await house.states() == ["done"]


async def test_others_jobs_are_for_admins(house: JobScene) -> None:
    await house.scene.mention("/every 1h : look")
    await house.scene.mention("/every 2h : look", BEN)
    assert await house.says("/job 1 cancel", sender=BEN) == (
        "There is no job 1 of yours. /jobs shows those of this thread."
    )
    assert (await house.job(1)).state is JobState.ACTIVE
    listed = await house.says("/jobs", sender=BEN, chat=LAB, addressed=True)
    assert "every 2h" in listed
    assert "every 1h" not in listed
    assert "- and 1 of others" in listed
    assert list(house.scene.buttons()) == ["Pause 2", "Run 2", "Cancel 2"]
    button = await house.scene.button(f"telegram:{LAB}", "set", name="job", value="1 cancel")
    assert "no job 1 of yours" in await house.scene.press(button, BEN, LAB)
    await house.says("/job 2 cancel", sender=ANA)
    assert (await house.job(2)).state is JobState.CANCELLED


@pytest.mark.parametrize("text", ["/job", "/job x", "/job 1 dance", "/job 99999999999999999999"])
async def test_what_a_job_cannot_do_is_explained(house: JobScene, text: str) -> None:
    await house.made("/every 1h : look")
    assert "pause, resume, run or cancel" in await house.says(text)


async def test_a_cancelled_job_leaves_the_queue(tmp_path: Path) -> None:
    clock = FakeClock(NOON)
    async with jobs_in(tmp_path, clock, takes=600) as house:
        await house.made("/in 10s : look")
        await house.scene.say("a long one")
        await clock.advance(30)
        assert await house.states() == ["open"]
        await house.says("/job 1 cancel")
        assert await house.states() == ["dropped"]
        assert (await house.job()).state is JobState.CANCELLED
        await clock.advance(1200)
        assert [turn.status.value for turn in await house.turns()] == ["done", "dropped"]


async def test_the_terminal_owner_may_end_a_job_whose_run_waits_while_it_is_down(
    tmp_path: Path,
) -> None:
    clock = FakeClock(NOON)
    async with jobs_in(tmp_path, clock, takes=600) as house:
        await house.made("/in 10s : look")
        await house.scene.say("a long one")
        await clock.advance(30)
        people = house.scene.ground.people
    async with Store.open(tmp_path / "laneway.db", clock) as store:
        down = JobReports(store, people, JobLimits(), "UTC")
        done = await down.change({"id": 1, "verb": "cancel"})
        assert (done["state"], done["later"]) == ("cancelled", True)
    async with jobs_in(tmp_path, clock, takes=600) as house:
        await clock.settle()
        assert await house.states() == ["dropped"]
