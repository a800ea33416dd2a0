"""Agents that crash, hang, flood, lie or will not die: told in plain words, and gone afterwards."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.clock import SystemClock
from core.engines.acp import AcpEngine
from core.engines.agents import Totals
from core.engines.base import (
    ApprovalAsked,
    Decision,
    Finished,
    Request,
    Started,
    Text,
    ToolReply,
    ToolSpec,
    Unsent,
)
from core.engines.processes import READ_AHEAD, STDERR_TAIL, Child
from core.turns import Result
from tests.contracts.engine_contract import Play, processes_of, until
from tests.engines import scenes
from tests.engines.program_scenes import running
from tests.engines.scenes import Scene

Make = Callable[..., Scene]
DONE = Finished(Result.DONE)
CANCELLED = Finished(Result.CANCELLED)


def error_of(play: Play) -> str:
    assert isinstance(play.last, Finished | Unsent)
    assert play.last != DONE
    return play.last.error


# Before the prompt ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "settings", "words"),
    [
        (("--crash-start", "3"), {}, "ended before it was ready (exit code 3)"),
        (("--hang-start",), {"handshake": 0.4, "grace": 0.4}, "did not open a session within"),
        (("--version", "2"), {}, "version 2"),
        (("--refuse-new", "Authentication required"), {}, "sign in"),
        (("--refuse-new", "out of paper"), {}, "out of paper"),
    ],
)
async def test_an_agent_that_cannot_be_opened(
    make: Make, options: tuple[str, ...], settings: dict[str, Any], words: str
) -> None:
    scene = make(*options, **settings)
    play = await scene.say("hello")
    assert len(play.events) == 1
    assert words in error_of(play)
    assert processes_of(scene.home) == []
    findings = await scene.engine.check()
    assert [finding.ok for finding in findings] == [True, False]
    assert findings[-1].fix


async def test_a_program_that_is_not_there(make: Make) -> None:
    scene = make()
    engine = AcpEngine("acp", ["no-such-agent"], home=scene.home, clock=SystemClock())
    request = Request(lane="one", turn=1, folder=scene.folder, prompt="hello")
    (event,) = await Play(engine.run(request)).through()
    assert isinstance(event, Finished)
    assert "no-such-agent was not found on PATH" in event.error
    (finding,) = await engine.check()
    assert not finding.ok


async def test_a_program_that_is_not_executable(make: Make, tmp_path: Path) -> None:
    scene = make()
    plain = tmp_path / "agent.txt"
    plain.write_text("hello")
    engine = AcpEngine("acp", [str(plain)], home=scene.home, clock=SystemClock())
    request = Request(lane="one", turn=1, folder=scene.folder, prompt="hello")
    (event,) = await Play(engine.run(request)).through()
    assert isinstance(event, Finished)
    assert "chmod +x" in event.error


async def test_a_program_that_is_no_program(make: Make, tmp_path: Path) -> None:
    scene = make()
    broken = tmp_path / "agent"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    engine = AcpEngine("acp", [str(broken)], home=scene.home, clock=SystemClock())
    request = Request(lane="one", turn=1, folder=scene.folder, prompt="hello")
    (event,) = await Play(engine.run(request)).through()
    assert isinstance(event, Finished)
    assert "could not be started" in event.error


async def test_a_workspace_that_is_gone(make: Make, tmp_path: Path) -> None:
    play = await make().say("hello", folder=tmp_path / "gone")
    assert "/workspace" in error_of(play)


async def test_the_agent_dies_before_it_is_given_the_prompt(make: Make) -> None:
    scene = make()
    play = scene.play("a message")
    events: Any = play.run.events()
    async with aclosing(events):
        assert isinstance(await anext(events), Started)
        (agent,) = processes_of(scene.home)
        agent.kill()
        await until(lambda: not processes_of(scene.home))
        rest = [event async for event in events]
    assert rest == [Unsent("The agent ended before it was given the message.")]


async def test_a_broken_connection_may_be_tried_again_a_fault_to_fix_may_not(make: Make) -> None:
    assert isinstance((await make("--crash-start", "1").say("hello")).last, Unsent)
    assert isinstance((await make("--version", "2").say("hello")).last, Finished)


async def test_a_closed_engine_starts_nothing(make: Make) -> None:
    scene = make()
    await scene.engine.close()
    play = await scene.say("hello")
    assert isinstance(play.last, Unsent)
    assert scene.log == []


# In the middle ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("/crash 70", "exit code 70"),
        ("/crash 0", "exit code 0"),
        ("/kill", "SIGKILL"),
        ("/halfline", "ended in the middle"),
        ("/error the model is overloaded", "the model is overloaded (scripted)"),
        ("/error Please log in", "sign in"),
        ("/stop-reason max_tokens", "cut off"),
        ("/stop-reason max_turn_requests", "go on"),
        ("/stop-reason refusal", "refused"),
        ("/stop-reason cancelled", "by itself"),
    ],
)
async def test_an_end_that_is_none(make: Make, script: str, words: str) -> None:
    scene = make()
    play = await scene.say(f"/say half an ans\n{script}")
    assert play.text == "half an ans"
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert words in play.last.error
    assert processes_of(scene.home) == []
    assert (await scene.say("hello", session=play.started.session)).last == DONE


async def test_secrets_of_the_agent_are_not_told(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret")
    play = await make(env=("SOME_API_KEY",)).say("/error bad key sk-very-secret, sorry")
    assert "secret" not in error_of(play)
    assert "bad key …, sorry" in error_of(play)


async def test_lines_that_are_no_messages_are_passed_over(make: Make) -> None:
    play = await make().say("/badline\n/unknown\n/say fine")
    assert (play.text, play.last) == ("fine", DONE)


async def test_lines_of_any_length_pass(make: Make) -> None:
    sizes = (65_535, 65_536, 65_537, 1_000_000, 5_000_000)
    script = "\n".join(f"/line {size}" for size in sizes)
    play = await make().say(f"{script}\n/say done\n/big 3000")
    assert play.last == DONE
    assert play.text.startswith("done")
    assert len(play.text) == len("done") + 3000 * 1024


async def test_a_monstrous_line_is_thrown_away(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.engines.processes.LINE_LIMIT", 4_000_000)
    scene = make()
    play = await scene.say("/line 9000000\n/say done")
    assert (play.text, play.last) == ("done", DONE)


async def test_a_monstrous_line_before_the_session_fails_the_turn_and_the_check(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engines.processes.LINE_LIMIT", 1000)
    scene = make("--models", ",".join(f"model-{n}" for n in range(200)))
    assert "a line of more than" in error_of(await scene.say("hello"))
    assert "a line of more than" in (await scene.engine.check())[-1].fix


async def test_error_output_never_blocks_and_is_never_posted(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scene = make("--stderr-start", "600000")
    play = await scene.say("/stderr 600000\n/say one\n/stderr 2000000\n/say two\n/crash 1")
    assert play.text == "onetwo"
    assert "eee" not in error_of(play)
    assert 0 < max(map(len, caplog.messages)) < STDERR_TAIL


async def test_a_flood_is_held_back_by_its_own_pipe(make: Make) -> None:
    scene = make()
    play = scene.play("/flood 25000")
    events: Any = play.run.events()
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Text):
                break
        child = play.run._child  # type: ignore[attr-defined]  # what it holds back is no event
        buffer = child.stdout._buffer
        await until(lambda: len(buffer) > READ_AHEAD)
        seen = []
        for _ in range(20):  # it must stop growing although the agent goes on
            seen.append(len(buffer))
            await asyncio.sleep(0.01)
        assert max(seen) <= 2 * READ_AHEAD + 512 * 1024
        count = 1 + sum([1 async for event in events if isinstance(event, Text)])
    assert count == 25_000


# Ends that are resisted -----------------------------------------------------------------------


async def stopped(scene: Scene, script: str, grace: float) -> tuple[Play, float]:
    """Play until the agent has spoken, stop; the play and how long the stop took."""
    play = scene.play(script)
    async with running(play):
        start = time.monotonic()
        await play.run.stop(grace)
        took = time.monotonic() - start
        assert processes_of(scene.home) == []
    return play, took


async def test_an_obedient_agent_is_stopped_at_once(make: Make) -> None:
    play, took = await stopped(make(), "/say working\n/hang", 40.0)
    assert play.last == CANCELLED
    assert took < 20.0  # and not after the grace


@pytest.mark.parametrize(
    "script",
    [
        "/ignore-cancel\n/say working\n/hang",
        "/ignore-cancel\n/ignore-term\n/say working\n/hang",
        "/ignore-cancel\n/ignore-term\n/spawn 60\n/hang",
        "/spawn 60\n/hang",
        "/spawn 60 clean\n/hang",
        "/ignore-cancel\n/ignore-term\n/flood 10000000",
    ],
)
async def test_a_stop_is_done_within_the_grace_and_a_second(make: Make, script: str) -> None:
    scene = make()
    play, took = await stopped(scene, script, 0.8)
    assert play.last == CANCELLED
    assert took < 1.8 + 10  # the machine may be busy
    assert not strays(scene.folder)


def strays(folder: Path) -> list[psutil.Process]:
    """Processes that write time stamps into this folder, marked or not."""
    stamps = str(folder / "stamps.txt")
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if stamps in (process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.parametrize("script", ["/spawn 60\n/crash 1", "/spawn 60\n/error no"])
async def test_a_failed_turn_ends_what_it_has_started(make: Make, script: str) -> None:
    scene = make(grace=0.8)
    play = await scene.say(script)
    assert play.saw(Started)
    assert strays(scene.folder) == []


async def test_what_a_warm_agent_started_ends_with_it(make: Make) -> None:
    scene = make(grace=0.8)
    await scene.say("/spawn 60")
    assert len(strays(scene.folder)) == 1
    await scene.engine.close()
    assert strays(scene.folder) == []


async def test_an_agent_that_does_not_exit_when_told(make: Make) -> None:
    scene = make("--stay", grace=0.8)
    await scene.say("/say x\n/ignore-term")
    start = time.monotonic()
    await scene.engine.close()
    assert time.monotonic() - start < 1.8 + 10


async def test_a_refused_agent_that_hangs_is_freed_by_a_stop(make: Make) -> None:
    scene = make()
    play = scene.play("/approve tea\n/hang-if-denied", decision=Decision.DENY)
    async with running(play, lambda: play.saw(ApprovalAsked) and "denied" in play.text):
        await play.run.stop(0.8)
    assert play.last == CANCELLED


async def test_an_agent_that_had_finished_before_the_stop_is_done(make: Make) -> None:
    scene = make()
    play = scene.play("/say all of it")
    events: Any = play.run.events()
    async with aclosing(events):
        async for event in events:
            play.events.append(event)
            if isinstance(event, Finished):
                await play.run.stop(1.0)
    assert play.last == DONE
    assert processes_of(scene.home) == []


class Undying(Child):
    """A process that signals do not reach, as one that hangs in the kernel."""

    async def _signal(self, number: signal.Signals) -> None:
        await self._look()


class Undead(AcpEngine):
    """Its agents are undying."""

    async def spawn(self, lane: str, folder: Path) -> Child:
        child = await super().spawn(lane, folder)
        child.__class__ = Undying
        return child


async def test_a_survivor_is_set_aside_with_its_session(make: Make) -> None:
    scene = make()
    engine = Undead("acp", scenes.command(scene.home), home=scene.home, clock=SystemClock())
    scene.engine = engine
    play = scene.play("/ignore-cancel\n/ignore-term\n/say working\n/hang")
    async with running(play):
        await play.run.stop(0.4)
    assert play.last == CANCELLED
    assert "would not end" in play.run.quarantine  # type: ignore[attr-defined]  # ACP's own
    again = await scene.say("hello", session=play.started.session)
    assert not again.started.resumed


# Warm processes -------------------------------------------------------------------------------


class Steps(SystemClock):
    """Its monotonic time moves by hand; each sleep is one step of it."""

    def __init__(self) -> None:
        self.time = 0.0
        self.step = asyncio.Event()

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await self.step.wait()
        self.step.clear()


async def test_an_idle_process_ends_after_a_while(make: Make) -> None:
    clock = Steps()
    scene = make(clock=clock, idle=600.0)
    await scene.say("hello")
    async with asyncio.TaskGroup() as group:
        tending = group.create_task(scene.engine.tend(), name="tend")
        clock.time = 599.0
        clock.step.set()
        await until(lambda: not clock.step.is_set())
        assert len(processes_of(scene.home)) == 1
        clock.time = 600.0
        clock.step.set()
        await until(lambda: not processes_of(scene.home))
        tending.cancel()


async def test_beyond_the_cap_the_longest_idle_process_ends(make: Make) -> None:
    clock = Steps()
    scene = make(clock=clock, warm=2)
    pids = []
    async with asyncio.TaskGroup() as group:
        tending = group.create_task(scene.engine.tend(), name="tend")
        for lane in ("one", "two", "three"):
            clock.time += 1
            pids.append(int((await scene.say("/pid", lane=lane)).text))
        await until(lambda: len(processes_of(scene.home)) == 2)
        tending.cancel()
    assert {process.pid for process in processes_of(scene.home)} == set(pids[1:])


async def test_no_turn_waits_for_the_end_of_another_lanes_agent(make: Make) -> None:
    scene = make("--stay", warm=1, grace=40.0)
    async with asyncio.TaskGroup() as group:
        tending = group.create_task(scene.engine.tend(), name="tend")
        await scene.say("/ignore-term", lane="deaf")
        async with asyncio.timeout(20):
            await scene.say("hello", lane="two")
            await scene.say("hello", lane="three")
        scene.engine.grace = 0.2
        tending.cancel()


async def test_a_lane_does_not_begin_beside_its_own_process_that_is_being_ended(
    make: Make,
) -> None:
    scene = make("--stay", warm=1, grace=0.6)
    async with asyncio.TaskGroup() as group:
        tending = group.create_task(scene.engine.tend(), name="tend")
        first = await scene.say("/pid\n/ignore-term", lane="deaf")
        await scene.say("hello", lane="two")
        await until(lambda: scene.engine._retiring)
        play = scene.play("/pid", lane="deaf", session=first.started.session)
        async with asyncio.timeout(30):
            await play.through()
        assert play.started.resumed
        assert int(play.text) != int(first.text)
        assert not psutil.pid_exists(int(first.text))
        tending.cancel()


async def test_a_total_that_cannot_be_kept_costs_nothing_else(tmp_path: Path) -> None:
    totals = Totals(tmp_path / "totals")
    totals.write("one", 0.25)
    (tmp_path / "in the way").write_text("")
    Totals(tmp_path / "in the way").write("one", 0.5)
    assert totals.read("one") == 0.25
    assert Totals(tmp_path / "in the way").read("one") is None


class _Box:
    url, token = "http://127.0.0.1:1/mcp", "name.0123456789abcdef"

    def offered(self) -> Sequence[ToolSpec]:
        return []

    async def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        return ToolReply("")


async def test_an_agent_that_prints_the_token_of_its_tools_does_not_bring_it_into_the_log(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await make().say(f"/complain got {_Box.token}\n/crash 3", toolbox=_Box())
    assert "got …" in caplog.text
    assert _Box.token not in caplog.text
