"""Limits and caps that change while turns run and wait."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.budgeting import Money
from core.budgets import Standing
from core.turns import Limits
from gateway.turn_parts import limits, money
from tests.runner.scene import BEN, Scene
from tests.runner.test_budgets import finish, prompted, scene_of


async def test_a_cap_of_a_day_that_is_raised_lets_go_what_waits(tmp_path: Path) -> None:
    async with scene_of(tmp_path, LANEWAY_BUDGET_PERSON_DAY="0.5") as scene:
        await scene.says("dig", who=BEN)
        finish(await prompted(scene, 1), 0.6)
        await scene.says("more", who=BEN)
        await scene.until(lambda: scene.parts.runner.budgeting.budgets.held[0] == {BEN})
        raised = replace(money(scene.settings), standing=Standing(5.0))
        await scene.parts.runner.renew(limits(scene.settings), raised)
        finish(await prompted(scene, 2), 0.1, "went on")
        await scene.until(lambda: "went on" in scene.texts())


async def test_a_cap_below_what_is_spent_already_stops_what_runs_and_tells_why(
    tmp_path: Path,
) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("dig", who=BEN)
        finish(await prompted(scene, 1), 0.6)
        await scene.says("more", who=BEN)
        await prompted(scene, 2)
        await scene.parts.runner.renew(limits(scene.settings), Money(Standing(0.5)))
        await scene.until(lambda: any("this turn cost" in text for text in scene.texts()))


async def test_more_turns_at_once_begin_at_once(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_MAX_TURNS="1") as scene:
        await scene.says("one", lane="a")
        first = await scene.engine.started(1)
        await scene.says("two", lane="b")
        wider: Limits = replace(limits(scene.settings), running=2)
        await scene.parts.runner.renew(wider, money(scene.settings))
        second = await scene.engine.started(2)
        for run in (first, second):
            run.answer_with("done")
