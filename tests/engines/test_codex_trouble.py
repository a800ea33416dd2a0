"""Codex that crashes, hangs, floods and lies: its turn ends with words, its lane is free."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines import codex_program
from core.engines.base import (
    ApprovalAsked,
    ApprovalWithdrawn,
    Finished,
    SteerSettled,
    Text,
    Unsent,
)
from core.engines.codex import CodexEngine
from core.turns import Result
from tests.contracts.engine_contract import Play, processes_of, until
from tests.engines.codex_scenes import Make

CANCELLED = Finished(Result.CANCELLED)
DONE = Finished(Result.DONE)


def failure(play: Play) -> str:
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    return play.last.error


# Its end ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("/say half\n/crash 3", "ended in the middle of its work (exit code 3)."),
        ("/say half\n/kill", "ended in the middle of its work (ended by SIGKILL)."),
        ("/say half\n/halfline", "ended in the middle of its work (exit code 0)."),
    ],
)
async def test_an_end_in_the_middle_is_told_and_the_thread_goes_on(
    codex: Make, script: str, words: str
) -> None:
    scene = codex()
    before = await scene.say("hello")
    session = before.started.session
    play = await scene.say(script, session=session)
    assert failure(play).endswith(words)
    assert play.text == "half"
    after = await scene.say("/turns", session=session)
    assert after.started.resumed
    assert after.text == "1"


async def test_a_program_that_ends_after_its_answer_is_started_again(codex: Make) -> None:
    scene = codex()
    first = await scene.say("/say x\n/exit-after 1")
    assert first.last == DONE
    second = await scene.say("/turns", session=first.started.session)
    assert second.started.resumed
    assert (second.text, second.last) == ("1", DONE)


async def test_an_end_before_it_is_ready_may_work_the_next_time(codex: Make) -> None:
    play = await codex("--crash-start", "7").say("hello")
    (event,) = play.events
    assert isinstance(event, Unsent)
    assert "exit code 7" in event.error


async def test_one_that_never_gets_ready_is_told_and_ended(codex: Make) -> None:
    scene = codex("--hang-start", handshake=0.3, grace=0.4)
    assert "did not open a session within" in failure(await scene.say("hello"))
    assert processes_of(scene.home) == []


async def test_the_end_of_a_turn_is_the_end_although_the_program_stays(codex: Make) -> None:
    scene = codex("--stay", grace=0.4)
    async with asyncio.timeout(5):
        play = await scene.say("hello")
    assert play.last == DONE


async def test_what_works_by_itself_after_its_turn_is_not_gone_on_with(codex: Make) -> None:
    scene = codex()
    first = await scene.say("/say one\n/late stray words")
    second = await scene.say("/turns", session=first.started.session)
    assert (first.text, second.text) == ("one", "1")
    assert second.started.resumed
    assert len(scene.starts) == 2


async def test_one_that_cannot_be_told_what_to_ask_is_handed_nothing(codex: Make) -> None:
    scene = codex("--old")
    assert "This version of Codex (0.163.0) cannot be told" in failure(await scene.say("hello"))
    assert scene.prompts() == []


# What it says -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 1_000_000, 20_000_000])
async def test_a_line_may_be_long(codex: Make, size: int) -> None:
    play = await codex().say(f"/line {size}\n/say done")
    assert (play.text, play.last) == ("done", DONE)


async def test_what_a_command_printed_may_be_longer_than_any_line(
    codex: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engines.processes.LINE_LIMIT", 3_000_000)
    play = await codex().say("/line 5000000\n/say done")
    assert (play.text, play.last) == ("done", DONE)
    other = await codex().say("/long-line 5000000\n/say done")
    assert "a line of more than" in failure(other)


async def test_a_flood_is_held_back_and_whole(codex: Make) -> None:
    play = await codex().say("/flood 3000")
    assert play.text == "".join(f"w{number} " for number in range(3000))


async def test_error_output_blocks_nothing_and_is_not_posted(codex: Make) -> None:
    play = await codex("--stderr-start", "2000000").say("/stderr 2000000\n/say done")
    assert (play.text, play.last) == ("done", DONE)


async def test_what_is_no_message_is_passed_over(codex: Make) -> None:
    play = await codex().say("/badline\n/say done")
    assert (play.text, play.last) == ("done", DONE)


async def test_what_is_not_known_is_passed_over_and_an_unknown_request_refused(
    codex: Make,
) -> None:
    play = await codex().say("/unknown\n/say done")
    assert play.text == "refused: -32601 done"
    assert play.last == DONE


# Stopping -----------------------------------------------------------------------------------


async def test_a_stop_interrupts_and_ends_what_it_left_running(codex: Make) -> None:
    scene = codex()
    play = scene.play("/say working\n/hang")
    clock = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(Text))
        before = clock.time()
        await play.run.stop(4.0)
        assert clock.time() - before < 1.0
    assert play.last == CANCELLED
    assert scene.asked("turn/interrupt")[0]["threadId"] == play.started.session
    assert scene.asked("thread/backgroundTerminals/clean")
    assert processes_of(scene.home) == []


async def test_one_that_is_deaf_and_ignores_term_is_killed_in_time(codex: Make) -> None:
    scene = codex()
    play = scene.play("/deaf\n/ignore-term\n/spawn 60\n/say working\n/hang")
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(Text))
        async with asyncio.timeout(2.5):
            await play.run.stop(0.8)
    assert play.last == CANCELLED
    assert processes_of(scene.home) == []


async def test_a_stop_with_an_open_question_withdraws_it(codex: Make) -> None:
    scene = codex()
    play = scene.play("/run rm -r build", decision=None)
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(ApprovalAsked))
        await play.run.stop(4.0)
    assert play.saw(ApprovalWithdrawn)
    assert play.last == CANCELLED
    assert "ran" not in play.text
    assert "accept" not in str([entry.get("result") for entry in scene.log])


async def test_a_message_is_not_put_into_a_turn_that_is_being_stopped(codex: Make) -> None:
    scene = codex()
    play = scene.play("/say working\n/deaf\n/hang")
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(Text))
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


async def test_an_error_names_no_secret_it_was_given(
    codex: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN_KEY", "sk-very-secret")
    play = await codex(env=["GIVEN_KEY"]).say("/error other bad key sk-very-secret")
    assert failure(play) == "The agent reported an error: bad key …"


async def test_nothing_is_left_warm_after_a_failure(codex: Make) -> None:
    scene = codex()
    await scene.say("/status 500")
    assert processes_of(scene.home) == []


async def test_a_thread_set_aside_is_never_used_again(codex: Make) -> None:
    scene = codex()
    first = await scene.say("hello")
    scene.engine.quarantined.add(first.started.session)
    again = await scene.say("/turns", session=first.started.session)
    assert not again.started.resumed
    assert again.text == "0"


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


async def test_the_doctor_says_why_a_program_ends_at_once(codex: Make) -> None:
    *_, finding = await codex("--crash-start", "7").engine.check()
    assert not finding.ok
    assert finding.fix == "It ended at once: it cannot start"


def test_the_program_is_looked_for_on_the_path_then_in_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "codex_cli_bin"
    (library / "bin").mkdir(parents=True)
    (library / "__init__.py").write_text("raise RuntimeError('imported')")
    bundled = library / "bin" / "codex"
    bundled.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    empty = tmp_path / "empty"
    empty.mkdir()
    assert codex_program.find_program(str(empty)) == ""  # it cannot be run
    bundled.chmod(0o700)
    assert codex_program.find_program(str(empty)) == str(bundled)
    (empty / "codex").write_text("#!/bin/sh\n")
    (empty / "codex").chmod(0o700)
    assert codex_program.find_program(str(empty)) == str(empty / "codex")
    monkeypatch.setattr(sys, "path", [])
    assert codex_program.find_program(str(library)) == ""
