"""Watches that agents set up: asked of a person, a command always, and with the person's rights."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from core.job_rules import JobKind
from tests.jobs.test_job_tools import calls, jobs
from tests.runner.scene import ANA, BEN, Scene
from tests.runner.test_tools import finish, press, working

PAGE = {"what": "url https://example.org/ changed", "when": "every 5m for 2d", "prompt": "look"}
MAKE = {"what": 'run "make test" exit 0', "when": "every 5m", "prompt": "look"}


async def test_where_it_is_allowed_an_agent_watches_an_address_and_lists_it(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path, LANEWAY_AGENT_JOBS="allow") as scene:
        run = await working(scene, who=BEN)
        reply = await calls(run, "watch", **PAGE)
        assert reply.text.startswith("Set up. ")
        assert (await calls(run, "watch", **PAGE)).text.startswith(
            "It was set up before and stays as it is. "
        )
        (job,) = await jobs(scene)
        assert (job.kind, job.person, job.made_by) == (JobKind.WATCH, BEN, "agent")
        (listed,) = json.loads((await calls(run, "list_jobs")).text)
        assert listed["when"] == "url https://example.org/ changed every 5m"
        await scene.until(lambda: any("The agent set this up. Job 1" in t for t in scene.texts()))
        finish(run)


async def test_a_command_is_asked_about_in_full_although_jobs_are_allowed(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_AGENT_JOBS="allow") as scene:
        run = await working(scene, who=ANA)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(calls(run, "watch", **MAKE), name="watch")
            await scene.until(lambda: any("wants to set up a watch" in t for t in scene.texts()))
            (asked,) = [text for text in scene.texts() if "wants to set up a watch" in text]
            assert 'run "make test" exit 0' in asked
            assert await jobs(scene) == []
            await press(scene, "Set it up", ANA)
        assert call.result().text.startswith("Set up. ")
        finish(run)


async def test_a_command_is_shown_blank_by_blank_and_what_is_hidden_is_refused(
    tmp_path: Path,
) -> None:
    blanks = {**MAKE, "what": 'run "make  b" exit 0'}
    async with Scene(tmp_path) as scene:
        run = await working(scene, who=ANA)
        reply = await calls(run, "watch", **{**MAKE, "what": 'run "make \u202eb" exit 0'})
        assert "without control characters" in reply.text
        async with asyncio.TaskGroup() as group:
            call = group.create_task(calls(run, "watch", **blanks), name="watch")
            await scene.until(lambda: call.done() or any("a watch" in t for t in scene.texts()))
            asked = [text for text in scene.texts() if "wants to set up a watch" in text]
            assert 'run "make  b" exit 0' in asked[0]
            await press(scene, "No", ANA)
        assert call.result().failed
        finish(run)


async def test_an_agent_of_a_member_watches_no_commands_and_no_files(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_AGENT_JOBS="allow") as scene:
        run = await working(scene, who=BEN)
        for wrong, word in (
            (MAKE, "Only admins"),
            ({**MAKE, "what": "file /etc/passwd changed"}, "Only admins"),
            ({**PAGE, "what": "url http://10.0.0.1/ changed"}, "private address"),
            ({**PAGE, "when": "in 5m"}, "What shall I|do not understand|How often"),
        ):
            reply = await calls(run, "watch", **wrong)
            assert reply.failed
            assert any(one in reply.text for one in word.split("|")), reply.text
        assert await jobs(scene) == []
        finish(run)
