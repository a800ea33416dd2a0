"""Claude Code that crashes, hangs, floods and lies: its turn ends with words, its lane is free."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines.base import (
    Finished,
    Text,
)
from core.engines.claude import ClaudeEngine
from tests.contracts.engine_contract import processes_of, until
from tests.contracts.program_contract import DONE, ProgramContract, failure
from tests.engines.claude_scenes import Make
from tests.engines.program_scenes import Program


class TestClaudeInTrouble(ProgramContract):
    broken = "/broken"

    @pytest.fixture
    def program(self, claude: Make) -> Program:
        return claude


# Stopping -----------------------------------------------------------------------------------


async def test_what_was_done_before_a_stop_is_done(claude: Make) -> None:
    scene = claude("--stay")
    play = scene.play("/say all of it")
    async with asyncio.TaskGroup() as group:
        async for event in play.run.events():
            play.events.append(event)
            if isinstance(event, Text):
                await until(lambda: scene.sessions())  # its result is on its way
                group.create_task(play.run.stop(0.4))
    assert play.last == DONE


# Why it failed ------------------------------------------------------------------------------


async def test_a_failure_that_calls_itself_a_success_is_a_failure_and_no_answer(
    claude: Make,
) -> None:
    play = await claude().say("/error 529 Overloaded")
    assert "has a problem just now (529)" in failure(play)
    assert play.text == ""


async def test_a_limit_is_told_with_its_end(claude: Make) -> None:
    at = SystemClock().now() // 1000 + 2 * 3600
    play = await claude().say(f"/limit {at}\n/error 429 You've hit your limit")
    assert "reached its limit of use until" in failure(play)
    assert "UTC (in 1 h 59 min)" in failure(play) or "UTC (in 2 h 0 min)" in failure(play)


# The program --------------------------------------------------------------------------------


async def test_a_program_that_is_not_there_is_told_with_what_to_do(
    claude: Make, tmp_path: Path
) -> None:
    scene = claude()
    scene.engine = ClaudeEngine(["no-such-claude"], home=tmp_path, clock=SystemClock())
    assert "no-such-claude was not found on PATH. Install it" in failure(await scene.say("hello"))
    (finding,) = await scene.engine.check()
    assert not finding.ok
    assert "pip install 'laneway[claude]'" in finding.fix


async def test_the_doctor_tells_version_login_and_models_without_a_turn(claude: Make) -> None:
    scene = claude("--signed-out")
    findings = {finding.name: finding for finding in await scene.engine.check()}
    assert findings["claude: hand-shake"].detail == "version 2.1.332"
    assert not findings["claude: login"].ok
    assert "sign in with /login" in findings["claude: login"].fix
    assert findings["claude: models"].detail == "default, opus, haiku"
    assert scene.prompts() == []


async def test_a_stop_after_the_result_waits_for_nothing(claude: Make) -> None:
    scene = claude()
    play = scene.play("hello")
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        async for event in play.run.events():
            play.events.append(event)
            if isinstance(event, Finished):
                group.create_task(play.run.stop(60.0))
                await asyncio.sleep(0)
    assert play.last == DONE
    assert processes_of(scene.home) == []
