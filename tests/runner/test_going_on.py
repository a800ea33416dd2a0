"""Turns that a crash cut off and that go on by themselves: whatever else crashes, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.engines.base import Started, Text
from tests.runner.scene import Scene


async def cut_off(home: Path) -> None:
    """A turn that works when the process dies."""
    async with Scene(home) as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s"), Text("half"))
        await scene.until(lambda: run.handed_over)
        await scene.crash()


def going_on(home: Path) -> Scene:
    """A later life in which cut-off turns go on."""
    scene = Scene(home)

    async def go_on(turn: int) -> None:
        await scene.parts.intake.go_on(turn)

    scene.go_on = go_on
    return scene


async def started_and_killed(home: Path, *, before: bool) -> None:
    """A start that dies right before, or right after, the turn went on."""
    scene = Scene(home)
    reached = asyncio.Event()

    async def go_on(turn: int) -> None:
        if not before:
            await scene.parts.intake.go_on(turn)
        reached.set()
        await asyncio.Event().wait()

    scene.go_on = go_on
    life = asyncio.create_task(scene.__aenter__(), name="a start")
    await reached.wait()
    await scene.crash()
    await asyncio.wait((life,))


@pytest.mark.parametrize("before", [True, False])
async def test_a_start_that_dies_after_it_said_so_is_made_up_for_by_the_next(
    tmp_path: Path, before: bool
) -> None:
    await cut_off(tmp_path)
    await started_and_killed(tmp_path, before=before)
    async with going_on(tmp_path) as scene:
        run = await scene.engine.started()
        assert "You were cut off" in run.request.prompt
        run.answer_with("done")
        await scene.until(lambda: scene.texts()[-1:] == ["done"])
        assert await scene.statuses() == ["interrupted", "done"]
    async with going_on(tmp_path) as scene:
        assert await scene.statuses() == ["interrupted", "done"]


async def test_what_people_were_offered_to_continue_waits_for_them(tmp_path: Path) -> None:
    await cut_off(tmp_path)
    async with Scene(tmp_path) as scene:
        await scene.until(lambda: any("Continue" in str(m.keyboard) for m in scene.channel.shown()))
    async with going_on(tmp_path) as scene:
        assert await scene.statuses() == ["interrupted"]
