"""Codex that crashes, hangs, floods and lies: its turn ends with words, its lane is free."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines.base import (
    SteerSettled,
)
from core.engines.codex import CodexEngine
from tests.contracts.engine_contract import processes_of, until
from tests.contracts.program_contract import DONE, ProgramContract, failure
from tests.engines.codex_scenes import Make
from tests.engines.program_scenes import CANCELLED, Program, running


class TestCodexInTrouble(ProgramContract):
    broken = "/error other"

    @pytest.fixture
    def program(self, codex: Make) -> Program:
        return codex


# Its end ------------------------------------------------------------------------------------


async def test_one_that_cannot_be_told_what_to_ask_is_handed_nothing(codex: Make) -> None:
    scene = codex("--old")
    assert "This version of Codex (0.163.0) cannot be told" in failure(await scene.say("hello"))
    assert scene.prompts() == []


# What it says -------------------------------------------------------------------------------


async def test_what_is_not_known_is_passed_over_and_an_unknown_request_refused(
    codex: Make,
) -> None:
    scene = codex()
    play = await scene.say("/unknown\n/say done")
    assert play.text == "done"
    assert any(entry.get("error", {}).get("code") == -32601 for entry in scene.log)
    assert play.last == DONE


# Stopping -----------------------------------------------------------------------------------


async def test_a_stop_interrupts_and_ends_what_it_left_running(codex: Make) -> None:
    scene = codex()
    play = scene.play("/say working\n/hang")
    clock = asyncio.get_running_loop()
    async with running(play):
        before = clock.time()
        await play.run.stop(4.0)
        assert clock.time() - before < 1.0
    assert play.last == CANCELLED
    assert scene.asked("turn/interrupt")[0]["threadId"] == play.started.session
    assert scene.asked("thread/backgroundTerminals/clean")
    assert processes_of(scene.home) == []


async def test_a_message_is_not_put_into_a_turn_that_is_being_stopped(codex: Make) -> None:
    scene = codex()
    play = scene.play("/say working\n/deaf\n/hang")
    async with running(play) as group:
        group.create_task(play.run.stop(0.4))
        await until(lambda: scene.asked("turn/interrupt"))
        await play.run.steer(7, "and be quick")
    assert SteerSettled(7, taken=False) in play.events
    assert play.last == CANCELLED


# Why it failed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("/status 401", "Codex is not signed in"),
        ("/error unauthorized no", "Codex is not signed in"),
        ("/status 429", "takes no more requests just now"),
        ("/error serverOverloaded busy", "has a problem just now"),
        ("/status 503 httpConnectionFailed", "has a problem just now (503)"),
        ("/status 0 httpConnectionFailed", "could not reach its service"),
        ("/error contextWindowExceeded no", "Make it shorter with /compact"),
        ("/error other You exceeded your current quota", "has no credit left"),
        ("/error sandboxError no", "could not set up its sandbox"),
        ("/broke-off", "broke the turn off by itself"),
        ("/error other the ink is out", "The agent reported an error: the ink is out"),
        ('/error other {"error": {"message": "so: \\"x\\""}}', 'reported an error: so: "x"'),
    ],
)
async def test_a_failure_is_told_in_plain_words(codex: Make, script: str, words: str) -> None:
    play = await codex().say(f"/say half\n{script}")
    assert words in failure(play)
    assert play.text == "half"


async def test_a_model_that_cannot_be_used_is_named(codex: Make) -> None:
    script = "/error badRequest The model is not supported for this account"
    play = await codex().say(script, model="gpt-0")
    assert "cannot use the model “gpt-0”" in failure(play)


async def test_a_limit_is_told_with_its_end(codex: Make) -> None:
    at = SystemClock().now() // 1000 + 2 * 3600
    play = await codex().say(f"/limit {at}\n/error usageLimitExceeded You've hit your limit")
    assert "reached its limit of use until" in failure(play)
    assert "UTC (in 1 h 59 min)" in failure(play) or "UTC (in 2 h 0 min)" in failure(play)
    script = "/error usageLimitExceeded You've hit your usage limit. Try again at 3:05 PM."
    play = await codex().say(script)
    assert "(it says: try again at 3:05 PM)" in failure(play)


# The program --------------------------------------------------------------------------------


async def test_a_program_that_is_not_there_is_told_with_what_to_do(
    codex: Make, tmp_path: Path
) -> None:
    scene = codex()
    scene.engine = CodexEngine(["no-such-codex"], home=tmp_path, clock=SystemClock())
    assert "no-such-codex was not found on PATH. Install it" in failure(await scene.say("hello"))
    (finding,) = await scene.engine.check()
    assert not finding.ok
    assert "npm install -g @openai/codex" in finding.fix


async def test_a_program_that_may_not_be_run_is_not_to_be_installed_again(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.touch(0o600)
    (finding,) = await CodexEngine([str(program)], home=tmp_path, clock=SystemClock()).check()
    assert finding.detail == f"{program} is not an executable program"
    assert finding.fix == "Make it executable (chmod +x), or set another command."


async def test_the_doctor_tells_version_login_and_models_without_a_turn(codex: Make) -> None:
    scene = codex("--signed-out")
    findings = {finding.name: finding for finding in await scene.engine.check()}
    assert findings["codex: hand-shake"].detail == "version 0.163.0"
    assert not findings["codex: login"].ok
    assert "codex login" in findings["codex: login"].fix
    assert findings["codex: models"].detail == "gpt-9, gpt-9-mini"
    assert findings["codex: side answers"].ok
    assert scene.prompts() == []


async def test_the_doctor_tells_that_there_is_no_sandbox(codex: Make) -> None:
    findings = {finding.name: finding for finding in await codex("--no-sandbox").engine.check()}
    sandbox = findings["codex: sandbox"]
    assert (sandbox.ok, sandbox.detail) == (False, "bwrap: no permissions")
    assert "bubblewrap" in sandbox.fix


async def test_one_that_tells_nothing_of_itself_works_all_the_same(codex: Make) -> None:
    scene = codex("--silent")
    play = await scene.say("/say done", model="some", effort="high")
    assert (play.text, play.last, play.started.model) == ("done", DONE, "some")
    assert (await scene.engine.choices()).models == []
