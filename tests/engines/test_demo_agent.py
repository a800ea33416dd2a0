"""The demo agent: what a person sees who tries it."""

from __future__ import annotations

import asyncio
import csv
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines.base import (
    ApprovalAsked,
    Decision,
    FileMade,
    Finished,
    Request,
    Started,
    Text,
    Thought,
    Usage,
)
from core.engines.demo import AGENT, demo_engine
from core.turns import Result
from tests.contracts.engine_contract import Play, processes_of, until
from tests.engines.scenes import Scene

DONE = Finished(Result.DONE)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    home, folder = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    folder.mkdir()
    scene = Scene(home, folder, demo_engine(home, SystemClock(), speed=0))
    yield scene
    await scene.engine.close()
    assert processes_of(home) == []


async def test_a_greeting_is_answered_with_what_can_be_tried(scene: Scene) -> None:
    session = ""
    for greeting in ("hello", "Hi!", "HELP", "help?", "Ana: hello"):  # one warm process hears all
        play = await scene.say(greeting, session=session)
        session = play.started.session
        for word in ("story", "run something", "take your time", "make a file", "what did I say"):
            assert word in play.text, greeting


async def test_a_story_streams_word_by_word(scene: Scene) -> None:
    play = await scene.say("Tell me a story")
    assert sum(isinstance(event, Text) for event in play.events) > 50
    assert play.saw(Thought)


async def test_a_tool_asks_and_then_really_makes_a_file(scene: Scene) -> None:
    play = await scene.say("run something")
    (asked,) = [event for event in play.events if isinstance(event, ApprovalAsked)]
    assert asked.command == "write demo-note.txt: made by the demo agent"
    assert (scene.folder / "demo-note.txt").read_text() == "made by the demo agent\n"
    assert "Done" in play.text
    again = await scene.say("run something", session=play.started.session)
    assert "demo-note-2.txt" in again.text


async def test_a_denied_tool_changes_nothing(scene: Scene) -> None:
    play = await scene.say("run something", decision=Decision.DENY)
    assert list(scene.folder.iterdir()) == []
    assert "left everything as it was" in play.text
    assert play.last == DONE


async def test_a_file_is_made_and_sent(scene: Scene) -> None:
    play = await scene.say("make a file")
    (made,) = [event for event in play.events if isinstance(event, FileMade)]
    assert made.path.parent == scene.folder
    with made.path.open() as file:
        assert next(csv.reader(file)) == ["day", "messages"]


async def test_a_picture_is_made_and_sent(scene: Scene) -> None:
    play = await scene.say("draw something")
    (made,) = [event for event in play.events if isinstance(event, FileMade)]
    assert made.path.read_text().startswith("<svg")


async def test_a_slow_task_shows_progress_and_stops_at_once(scene: Scene) -> None:
    quick = await scene.say("take your time 50ms")
    assert "Step 5 of 5" in quick.text
    play = scene.play("take your time 600s")
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(Text))
        await play.run.stop(4.0)
    assert play.last == Finished(Result.CANCELLED)


async def test_it_remembers_the_conversation_even_after_a_crash(scene: Scene) -> None:
    first = await scene.say("my cat is called Tom")
    session = first.started.session
    crashed = await scene.say("crash", session=session)
    assert isinstance(crashed.last, Finished)
    assert "exit code 70" in crashed.last.error
    play = await scene.say("What did I say?", session=session)
    assert play.started.resumed
    assert "1. my cat is called Tom" in play.text


async def test_a_failure_is_told_as_one(scene: Scene) -> None:
    play = await scene.say("fail")
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert "nothing is broken" in play.last.error


async def test_anything_else_is_understood_honestly(scene: Scene) -> None:
    play = await scene.say("book me a flight to Lisbon")
    assert "> book me a flight to Lisbon" in play.text
    assert "no model" in play.text
    (used,) = [event for event in play.events if isinstance(event, Usage)]
    assert used.tokens_in == 6
    assert used.cost is None  # it costs nothing, and makes up no price


async def test_a_side_answer_knows_the_conversation_and_changes_nothing(scene: Scene) -> None:
    assert scene.engine.abilities.side
    main = scene.play("take your time 600s")
    async with asyncio.TaskGroup() as group:
        group.create_task(main.through())
        await until(lambda: main.saw(Started) and main.saw(Text))
        session = main.started.session
        side = await scene.say("run something", session=session, read_only=True)
        await main.run.stop(4.0)
    assert "may only read" in side.text
    assert not side.saw(ApprovalAsked)
    assert list(scene.folder.iterdir()) == []


async def test_a_folder_named_core_in_the_workspace_is_not_imported(scene: Scene) -> None:
    for name in ("core", "acp", "pydantic"):
        (scene.folder / name).mkdir()
        (scene.folder / name / "__init__.py").write_text("raise SystemExit('imported')")
    assert (await scene.say("hello")).last == DONE


def test_it_runs_without_the_gateway(tmp_path: Path) -> None:
    """By its path alone, in another folder, with nothing of the project on the path."""
    alone = tmp_path / "agent.py"
    alone.write_text(AGENT.read_text())
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(
        [sys.executable, "-I", str(alone), str(tmp_path / "state")],
        input=hello, capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"PATH": os.environ["PATH"]}, timeout=30,
    )  # fmt: skip
    assert '"laneway-demo"' in done.stdout


async def test_its_sessions_are_numbered_the_same_way_each_time(scene: Scene) -> None:
    first = await scene.say("hello", lane="one")
    second = await scene.say("hello", lane="two")
    assert (first.started.session, second.started.session) == ("demo-0001", "demo-0002")


async def test_many_lanes_begin_at_once(scene: Scene) -> None:
    runs = [
        scene.engine.run(Request(lane=str(n), turn=n, folder=scene.folder, prompt="hi"))
        for n in range(4)
    ]
    plays = [Play(run) for run in runs]
    async with asyncio.TaskGroup() as group:
        for play in plays:
            group.create_task(play.through())
    assert len({play.started.session for play in plays}) == 4
