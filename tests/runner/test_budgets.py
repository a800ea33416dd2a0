"""Caps on money at work: one for the next turn, one for each day; what is spent ends a turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engines.base import Abilities, Finished, Started, Text, Usage
from core.store import budgets as stored
from core.turns import Result
from tests.fakes.engine import PuppetEngine, PuppetRun
from tests.runner.scene import ANA, BEN, Scene

PAID = Abilities(resume=True, side=True, cost=True)


def scene_of(home: Path, **settings: str) -> Scene:
    return Scene(home, PuppetEngine(PAID), **settings)


def finish(run: PuppetRun, cost: float, text: str = "done") -> None:
    run.say(Usage(10, 10, cost), Text(text), Finished(Result.DONE))
    run.end()


async def prompted(scene: Scene, number: int) -> PuppetRun:
    run = await scene.engine.started(number)
    run.say(Started(run.request.session or "s"))
    await scene.until(lambda: run.handed_over)
    return run


async def test_the_next_turn_is_stopped_at_its_cap_and_told_what_was_spent(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("/budget 0.15")
        await scene.says("dig")
        run = await prompted(scene, 1)
        assert run.request.budget == 0.15
        run.say(Text("half"), Usage(10, 10, 0.05), Usage(20, 20, 0.2))
        await scene.until(lambda: any("stopped at its cap" in text for text in scene.texts()))
        told = next(text for text in scene.texts() if "stopped at its cap" in text)
        assert "$0.15" in told and "$0.20" in told
        await scene.says("and now?")
        run = await prompted(scene, 2)
        assert run.request.budget is None
        assert run.request.session == "s"
        finish(run, 0.9, "free")
        await scene.until(lambda: "free" in scene.texts())
        assert await scene.statuses() == ["stopped", "done"]
