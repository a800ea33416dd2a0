"""Claude Code that crashes, hangs, floods and lies: its turn ends with words, its lane is free."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines import claude_program
from core.engines.base import (
    ApprovalAsked,
    ApprovalWithdrawn,
    Finished,
    Started,
    Text,
    Unsent,
)
from core.engines.claude import ClaudeEngine
from core.turns import Result
from tests.contracts.engine_contract import Play, processes_of, until
from tests.engines.claude_scenes import Make

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
async def test_an_end_in_the_middle_is_told_and_the_session_goes_on(
    claude: Make, script: str, words: str
) -> None:
    scene = claude()
    before = await scene.say("hello")
    session = before.started.session
    play = await scene.say(script, session=session)
    assert failure(play).endswith(words)
    assert play.text == "half"
    after = await scene.say("/turns", session=session)
    assert after.started.resumed
    assert after.text == "1"


async def test_a_program_that_ends_after_its_answer_is_started_again(claude: Make) -> None:
    scene = claude()
    first = await scene.say("/say x\n/exit-after 1")
    assert first.last == DONE
    second = await scene.say("/turns", session=first.started.session)
    assert second.started.resumed
    assert (second.text, second.last) == ("1", DONE)


async def test_an_end_before_it_is_ready_may_work_the_next_time(claude: Make) -> None:
    play = await claude("--crash-start", "7").say("hello")
    (event,) = play.events
    assert isinstance(event, Unsent)
    assert "exit code 7" in event.error
    assert "laneway doctor" in event.error


async def test_one_that_never_gets_ready_is_told_and_ended(claude: Make) -> None:
    scene = claude("--hang-start", handshake=0.3, grace=0.4)
    assert "did not open a session within" in failure(await scene.say("hello"))
    assert processes_of(scene.home) == []


async def test_a_result_is_the_end_although_the_program_stays(claude: Make) -> None:
    scene = claude("--stay", grace=0.4)
    async with asyncio.timeout(5):
        play = await scene.say("hello")
    assert play.last == DONE


async def test_a_lost_session_is_told_and_one_process_is_left(claude: Make) -> None:
    scene = claude()
    play = await scene.say("/turns", session="00000000-0000-4000-8000-000000000000")
    assert not play.started.resumed
    assert (play.text, play.last) == ("0", DONE)
    assert len(processes_of(scene.home)) == 1


async def test_what_works_by_itself_after_its_turn_is_not_gone_on_with(claude: Make) -> None:
    scene = claude()
    first = await scene.say("/say one\n/late stray words")
    second = await scene.say("/turns", session=first.started.session)
    assert (first.text, second.text) == ("one", "1")
    assert second.started.resumed


# What it says -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 1_000_000, 20_000_000])
async def test_a_line_may_be_long(claude: Make, size: int) -> None:
    play = await claude().say(f"/line {size}\n/say done")
    assert play.text == "done"
    assert play.last == DONE


async def test_what_a_tool_printed_may_be_longer_than_any_line(
    claude: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engines.processes.LINE_LIMIT", 3_000_000)
    play = await claude().say("/line 5000000\n/say done")
    assert (play.text, play.last) == ("done", DONE)
    other = await claude().say("/long-line 5000000\n/say done")
    assert "a line of more than" in failure(other)


async def test_a_flood_is_held_back_and_whole(claude: Make) -> None:
    play = await claude().say("/flood 3000")
    assert play.text == "".join(f"w{number} " for number in range(3000))


async def test_error_output_blocks_nothing_and_is_not_posted(claude: Make) -> None:
    play = await claude("--stderr-start", "2000000").say("/stderr 2000000\n/say done")
    assert (play.text, play.last) == ("done", DONE)


@pytest.mark.parametrize("script", ["/badline", "/unknown"])
async def test_what_cannot_be_understood_is_passed_over(claude: Make, script: str) -> None:
    play = await claude().say(f"{script}\n/say done")
    assert (play.text, play.last) == ("done", DONE)


# Stopping -----------------------------------------------------------------------------------


async def test_one_that_is_deaf_and_ignores_term_is_killed_in_time(claude: Make) -> None:
    scene = claude()
    play = scene.play("/deaf\n/ignore-term\n/spawn 60\n/say working\n/hang")
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(Text))
        async with asyncio.timeout(2.5):
            await play.run.stop(0.8)
    assert play.last == CANCELLED
    assert processes_of(scene.home) == []


async def test_a_stop_with_an_open_question_withdraws_it(claude: Make) -> None:
    scene = claude()
    play = scene.play("/run rm -r build", decision=None)
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(ApprovalAsked))
        await play.run.stop(4.0)
    assert play.saw(ApprovalWithdrawn)
    assert play.last == CANCELLED
    assert "ran" not in play.text


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


async def test_its_own_words_are_told_where_nothing_better_is_known(claude: Make) -> None:
    play = await claude().say("/broken the printer is out of ink")
    assert failure(play) == "The agent reported an error: the printer is out of ink"


async def test_an_error_names_no_secret_it_was_given(
    claude: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN_KEY", "sk-very-secret")
    play = await claude(env=["GIVEN_KEY"]).say("/broken bad key sk-very-secret")
    assert failure(play) == "The agent reported an error: bad key …"


async def test_nothing_is_left_warm_after_a_failure(claude: Make) -> None:
    scene = claude()
    await scene.say("/error 500 no")
    assert processes_of(scene.home) == []


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


async def test_the_doctor_says_why_a_program_ends_at_once(claude: Make) -> None:
    *_, finding = await claude("--crash-start", "7").engine.check()
    assert not finding.ok
    assert finding.fix == "It ended at once: it cannot start"


def test_the_program_is_looked_for_on_the_path_then_in_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "claude_agent_sdk"
    (library / "_bundled").mkdir(parents=True)
    (library / "__init__.py").write_text("raise RuntimeError('imported')")
    bundled = library / "_bundled" / "claude"
    bundled.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    empty = tmp_path / "empty"
    empty.mkdir()
    assert claude_program.find_program(str(empty)) == ""  # it cannot be run
    bundled.chmod(0o700)
    assert claude_program.find_program(str(empty)) == str(bundled)
    (empty / "claude").write_text("#!/bin/sh\n")
    (empty / "claude").chmod(0o700)
    assert claude_program.find_program(str(empty)) == str(empty / "claude")
    monkeypatch.setattr(sys, "path", [])
    assert claude_program.find_program(str(library)) == ""


async def test_a_session_set_aside_is_never_used_again(claude: Make) -> None:
    scene = claude()
    first = await scene.say("hello")
    scene.engine.quarantined.add(first.started.session)
    again = await scene.say("/turns", session=first.started.session)
    assert isinstance(again.events[0], Started)
    assert not again.started.resumed
    assert again.text == "0"


async def test_a_stop_after_the_result_waits_for_nothing(claude: Make) -> None:
    scene = claude()
    play = scene.play("hello")
    async with asyncio.timeout(3), asyncio.TaskGroup() as group:
        async for event in play.run.events():
            play.events.append(event)
            if isinstance(event, Finished):
                group.create_task(play.run.stop(60.0))
                await asyncio.sleep(0)
    assert play.last == DONE
    assert processes_of(scene.home) == []
