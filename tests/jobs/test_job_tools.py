"""Jobs that agents make: asked of a person, made once, in their own thread."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from core.engines.base import ToolReply
from core.job_rules import JobState
from core.store import jobs as stored
from tests.fakes.engine import PuppetRun
from tests.runner.scene import ANA, BEN, Scene
from tests.runner.test_tools import finish, press, tools, working

DAILY = {"when": "every day at 09:00", "prompt": "look at the build"}


async def calls(run: PuppetRun, name: str, **given: Any) -> ToolReply:
    return await tools(run).call(name, given)


async def jobs(scene: Scene) -> list[Any]:
    return await stored.of_lane(scene.parts.store, "main", scene.clock.now())


async def test_a_person_agrees_to_what_an_agent_sets_up(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene, who=BEN)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(calls(run, "schedule", **DAILY), name="schedule")
            await scene.until(lambda: any("wants to set up" in text for text in scene.texts()))
            (asked,) = [text for text in scene.texts() if "wants to set up" in text]
            assert "look at the build" in asked
            assert asked.count("09:00") == 4
            assert await jobs(scene) == []
            twice = await calls(run, "schedule", **DAILY)
            assert twice.text == "A person is being asked about this already; wait for that answer."
            await press(scene, "Set it up", BEN)
        assert call.result().text.startswith("Set up. ")
        (job,) = await jobs(scene)
        assert (job.person, job.made_by, job.said) == (BEN, "agent", "every day at 09:00")
        finish(run)


async def test_nobody_agrees_to_words_that_cannot_be_seen(tmp_path: Path) -> None:
    hidden = "look\u200b at\nthe build\U000e0041"
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(
                calls(run, "schedule", when="every day at 09:00", prompt=hidden), name="schedule"
            )
            await scene.until(lambda: any("wants to set up" in text for text in scene.texts()))
            (asked,) = [text for text in scene.texts() if "wants to set up" in text]
            assert "look\\u200b at\nthe build\\U000e0041" in asked
            assert "Hidden in it: 2 characters" in asked
            await press(scene, "No")
        assert call.result().failed
        finish(run)


async def test_what_nobody_agrees_to_is_not_set_up(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(calls(run, "schedule", **DAILY), name="schedule")
            await scene.until(lambda: any("wants to set up" in text for text in scene.texts()))
            await press(scene, "No")
        assert call.result().failed
        assert await jobs(scene) == []
        finish(run)


async def test_one_request_makes_one_job_and_it_can_be_listed_and_cancelled(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path, LANEWAY_AGENT_JOBS="allow") as scene:
        run = await working(scene)
        first = await calls(run, "schedule", **DAILY, request_id="build")
        again = await calls(run, "schedule", **DAILY, request_id="build")
        same = await calls(run, "schedule", when="in 20m", prompt="x")
        twin = await calls(run, "schedule", when="in 20m", prompt="x")
        assert first.text.startswith("Set up. ")
        assert again.text.startswith("It was set up before and stays as it is. ")
        assert (same.text[:6], twin.text[:12]) == ("Set up", "It was set u")
        assert [job.said for job in await jobs(scene)] == ["every day at 09:00", "in 20m"]
        listed = json.loads((await calls(run, "list_jobs")).text)
        assert [job["prompt"] for job in listed] == ["look at the build", "x"]
        ident = listed[0]["id"]
        assert (await calls(run, "cancel_job", id=ident)).text == "Cancelled."
        assert "ended already" in (await calls(run, "cancel_job", id=ident)).text
        assert (await jobs(scene))[0].state is JobState.CANCELLED
        await scene.until(lambda: any("The agent cancelled job" in t for t in scene.texts()))
        anew = await calls(run, "schedule", **DAILY, request_id="build")
        assert anew.text.startswith("Set up. ")
        finish(run)


@pytest.mark.parametrize(
    ("when", "word"),
    [("60 * * * *", "minute"), ("every 1s", "at least"), ("2001-01-01 10:00", "has passed")],
)
async def test_a_time_that_means_nothing_is_refused_in_words(
    tmp_path: Path, when: str, word: str
) -> None:
    async with Scene(tmp_path, LANEWAY_AGENT_JOBS="allow") as scene:
        run = await working(scene)
        reply = await calls(run, "schedule", when=when, prompt="x")
        assert reply.failed
        assert word in reply.text
        finish(run)


async def test_an_agent_has_no_more_jobs_than_its_person_and_ends_no_others(
    tmp_path: Path,
) -> None:
    settings = {"LANEWAY_AGENT_JOBS": "allow", "LANEWAY_JOBS_PER_PERSON": "1"}
    async with Scene(tmp_path, **settings) as scene:
        await scene.says("/every 1h : mine", who=ANA)
        (anas,) = await jobs(scene)
        run = await working(scene, who=BEN)
        assert not (await calls(run, "schedule", **DAILY)).failed
        more = await calls(run, "schedule", when="in 20m", prompt="x")
        assert "as many as there may be" in more.text
        assert (await calls(run, "cancel_job", id=anas.id)).failed
        finish(run)
