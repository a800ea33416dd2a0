"""Caps on money at work: one for the next turn, one for each day; what is spent ends a turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core.budget_words import day_of
from core.budgets import State
from core.engines.base import (
    Abilities,
    Failure,
    FailureKind,
    Finished,
    Started,
    Text,
    Usage,
)
from core.prices import FILE
from core.showing import Action
from core.store import budgets as stored
from core.store import reads
from core.turns import Result
from tests.fakes.alarm import ClockAlarm
from tests.fakes.clock import QuickClock
from tests.fakes.engine import PuppetEngine, PuppetRun
from tests.runner.scene import BEN, Scene

PAID = Abilities(resume=True, side=True, cost=True)


def scene_of(home: Path, **settings: Any) -> Scene:
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
        assert "$0.15" in told
        assert "$0.20" in told
        await scene.says("and now?")
        run = await prompted(scene, 2)
        assert run.request.budget is None
        assert run.request.session == "s"
        finish(run, 0.9, "free")
        await scene.until(lambda: "free" in scene.texts())
        assert await scene.statuses() == ["stopped", "done"]


async def test_an_engine_that_says_its_cap_is_reached_has_its_turn_stopped_by_the_cap(
    tmp_path: Path,
) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("/budget 0.15")
        await scene.says("dig")
        run = await prompted(scene, 1)
        spent = Failure(FailureKind.SPENT)
        run.say(Text("half"), Usage(10, 10, 0.14), Finished(Result.FAILED, "spent", spent))
        run.end()
        await scene.until(lambda: any("stopped at its cap" in text for text in scene.texts()))
        assert await scene.statuses() == ["stopped"]
        await scene.says("and now?")
        run = await prompted(scene, 2)
        finish(run, 0.9, "free")
        await scene.until(lambda: "free" in scene.texts())


async def test_an_engine_with_a_cap_of_its_own_fails_in_its_own_words(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("dig")
        run = await prompted(scene, 1)
        run.say(Finished(Result.FAILED, "it is spent", Failure(FailureKind.SPENT)))
        run.end()
        await scene.until(lambda: any("it is spent" in text for text in scene.texts()))
        assert await scene.statuses() == ["failed"]


async def test_it_is_the_next_turns_that_starts_and_nobody_elses(tmp_path: Path) -> None:
    """Not that of what runs, not a side answer's, not that of the turn after; once."""
    async with scene_of(tmp_path) as scene:
        await scene.says("t0")
        first = await prompted(scene, 1)
        await scene.says("/budget 0.25", who=BEN)
        await scene.says("/btw how far are you?")
        side = await prompted(scene, 2)
        await scene.says("t1")
        await scene.says("t2")
        side.say(Usage(1, 1, 0.9))
        first.say(Usage(1, 1, 0.9))
        finish(side, 0.9, "aside")
        finish(first, 0.9, "zero")
        capped = await prompted(scene, 3)
        assert capped.request.budget == 0.25
        finish(capped, 0.2, "one")
        after = await prompted(scene, 4)
        assert after.request.budget is None
        finish(after, 0.9, "two")
        await scene.until(lambda: "two" in scene.texts())
        assert await scene.statuses() == ["done"] * 4


async def test_of_two_starts_in_one_batch_one_has_it(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("/budget 1", lane="x")
        async with asyncio.TaskGroup() as group:
            for text in ("one", "two"):
                group.create_task(scene.says(text, lane="x"))
        run = await prompted(scene, 1)
        finish(run, 0.1)
        later = await prompted(scene, 2)
        finish(later, 0.1)
        assert [run.request.budget, later.request.budget] == [1, None]


async def test_a_turn_that_is_stopped_before_its_prompt_leaves_gives_it_back(
    tmp_path: Path,
) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("/budget 1")
        await scene.says("one")
        await scene.engine.started(1)
        await scene.says("/stop")
        await scene.until(lambda: any("stopped" in text for text in scene.texts()))
        await scene.says("two")
        run = await prompted(scene, 2)
        assert run.request.budget == 1
        finish(run, 0.1)


async def test_a_kill_between_the_start_and_the_prompt_neither_loses_nor_doubles_it(
    tmp_path: Path,
) -> None:
    scene = scene_of(tmp_path)
    async with scene:
        await scene.says("/budget 1")
        await scene.says("one")
        await scene.engine.started(1)
        (open_,) = await stored.open_budgets(scene.parts.store)
        assert open_.state is State.RESERVED
        await scene.crash()
    after = scene_of(tmp_path)
    async with after:
        run = await prompted(after, 1)
        assert run.request.budget == 1
        run.say(Usage(1, 1, 0.4), Text("x"))
        await after.until(lambda: after.parts.runner.budgeting.budgets.on_day(today(after)) > 0)
        await after.crash()
    last = scene_of(tmp_path)
    async with last:
        assert await stored.open_budgets(last.parts.store) == []
        await last.says("two")
        run = await prompted(last, 1)
        assert run.request.budget is None
        finish(run, 0.1)


def today(scene: Scene) -> str:
    return day_of(scene.clock.now(), scene.settings.timezone)


async def test_a_turn_that_goes_on_after_a_crash_keeps_what_is_left(tmp_path: Path) -> None:
    scene = scene_of(tmp_path)
    async with scene:
        await scene.says("/budget 1")
        await scene.says("long work")
        run = await prompted(scene, 1)
        run.say(Usage(1, 1, 0.7), Text("x"))
        await scene.until(lambda: scene.parts.runner.budgeting.budgets.on_day(today(scene)) > 0.5)
        await scene.crash()
    after = scene_of(tmp_path)
    async with after:
        (cut,) = await after.turns()
        lane = await reads.lane(after.parts.store, cut.lane)
        assert lane is not None
        pressing = after.parts.intake._pressing
        assert await pressing.once_more(lane, cut, Action.CONTINUE) == "Going on."
        run = await prompted(after, 1)
        assert run.request.budget == pytest.approx(0.3)
        run.say(Usage(1, 1, 0.35))
        await after.until(lambda: any("stopped at its cap" in text for text in after.texts()))


async def test_its_wait_ends_by_a_timer_and_is_told(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("/budget 1 for 1s")
        await scene.until(lambda: any("no turn began in time" in text for text in scene.texts()))
        await scene.says("hello")
        run = await prompted(scene, 1)
        assert run.request.budget is None
        finish(run, 0.1)


async def test_a_cap_is_refused_where_nobody_tells_what_turns_cost(tmp_path: Path) -> None:
    async with Scene(tmp_path, PuppetEngine(Abilities(resume=True))) as scene:
        await scene.says("/budget 1")
        await scene.until(lambda: any("prices.toml" in text for text in scene.texts()))
        assert await stored.open_budgets(scene.parts.store) == []


async def test_a_turn_of_which_nobody_tells_the_cost_is_refused_and_leaves_the_cap(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path, PuppetEngine(Abilities(resume=True))) as scene:
        (scene.settings.home / FILE).write_text('[demo]\n"big" = { in = 2, out = 10 }\n')
        await scene.says("/budget 1")
        await scene.says("hello")
        run = await scene.engine.started(1)
        run.say(Started("s", "small"))
        await scene.until(lambda: any("small costs" in text for text in scene.texts()))
        assert not run.handed_over
        assert await scene.statuses() == ["failed"]
        await scene.says("again")
        run = await scene.engine.started(2)
        assert run.request.budget == 1
        run.say(Started("s", "big"), Usage(100_000, 50_000), Usage(300_000, 50_000))
        await scene.until(lambda: any("$1.10 are spent" in text for text in scene.texts()))


async def test_a_spent_day_stops_its_persons_turns_and_lets_others_run(tmp_path: Path) -> None:
    async with scene_of(tmp_path, LANEWAY_BUDGET_PERSON_DAY="1") as scene:
        await scene.says("mine", who=BEN)
        await scene.says("mine too", lane="x", who=BEN)
        await scene.says("another's", lane="y")
        runs = [await prompted(scene, number) for number in (1, 2, 3)]
        assert [run.request.budget for run in runs] == [None] * 3  # what is left is shared
        runs[0].say(Usage(1, 1, 0.5))
        runs[1].say(Usage(1, 1, 0.4))
        await scene.until(lambda: any("90 % of what you" in text for text in scene.texts("x")))
        runs[0].say(Usage(1, 1, 0.7))
        for lane, cost in (("main", "$0.70"), ("x", "$0.40")):
            await scene.until(
                lambda lane=lane, cost=cost: any(  # type: ignore[misc]
                    f"this turn cost {cost}" in text for text in scene.texts(lane)
                )
            )
        await scene.says("more", who=BEN)
        await scene.until(lambda: any("its sender may spend" in text for text in scene.texts()))
        await scene.says("/resume all")
        finish(runs[2], 0.1, "well")
        await scene.until(lambda: "well" in scene.texts("y"))
        assert await scene.statuses() == ["stopped", "stopped", "done", "waiting"]
        await scene.crash()
    again = scene_of(tmp_path, LANEWAY_BUDGET_PERSON_DAY="1")
    async with again:
        assert await again.statuses() == ["stopped", "stopped", "done", "waiting"]
        await again.crash()
    raised = scene_of(tmp_path, LANEWAY_BUDGET_PERSON_DAY="2")
    async with raised:
        run = await prompted(raised, 1)
        finish(run, 0.1)


async def test_what_waits_for_the_next_day_runs_when_it_begins(tmp_path: Path) -> None:
    async with scene_of(tmp_path, LANEWAY_BUDGET_DAY="1") as scene:
        await scene.says("one")
        finish(await prompted(scene, 1), 1.5)
        await scene.until(lambda: "done" in scene.texts())
        await scene.says("two")
        await scene.says("/btw three?")
        await scene.until(lambda: any("was not started" in text for text in scene.texts()))
        assert (await scene.statuses())[1] == "waiting"
        clock = scene.clock
        assert isinstance(clock, QuickClock)
        clock._from += 24 * 3600 * 10**9  # tomorrow
        run = await prompted(scene, 2)
        finish(run, 0.1, "morning")
        await scene.until(lambda: "morning" in scene.texts())


async def test_what_is_on_its_way_to_its_engine_as_the_day_is_spent_waits(tmp_path: Path) -> None:
    async with scene_of(tmp_path, LANEWAY_BUDGET_DAY="1") as scene:
        await scene.says("one")
        await scene.says("two", lane="x")
        first, second = await prompted(scene, 1), await scene.engine.started(2)
        finish(first, 1.2)
        await scene.until(lambda: "done" in scene.texts())
        second.say(Started("s2"))
        await scene.until(lambda: any("what all may spend" in text for text in scene.texts("x")))
        assert not second.handed_over
        assert await scene.statuses() == ["done", "waiting"]
        assert (await scene.turns())[1].attempts == 0


async def test_an_agent_that_told_no_cost_after_all_is_told_of(tmp_path: Path) -> None:
    engine = PuppetEngine(Abilities(resume=True, cost=None))
    async with Scene(tmp_path, engine) as scene:
        await scene.says("/budget 1")
        await scene.says("one")
        run = await prompted(scene, 1)
        run.say(Text("done"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: any("did not tell what" in text for text in scene.texts()))


async def test_the_money_of_a_step_that_cannot_be_stored_is_taken_back(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("/budget 1")
        async with scene.full_disk():
            asking = asyncio.create_task(scene.says("one " * 20_000), name="one")
            await scene.until(lambda: scene.parts.store.trouble)
        await asking
        run = await prompted(scene, 1)
        assert run.request.budget == 1
        finish(run, 0.2)


async def test_status_and_budget_tell_what_holds(tmp_path: Path) -> None:
    async with scene_of(tmp_path, LANEWAY_BUDGET_PERSON_DAY="5") as scene:
        await scene.says("/budget 1.5 for 2h")
        await scene.says("/status")
        await scene.until(lambda: any("Cap of the next turn: $1.50" in t for t in scene.texts()))
        await scene.says("go")
        run = await prompted(scene, 1)
        run.say(Usage(1, 1, 0.25))
        await scene.until(lambda: scene.parts.runner.budgeting.budgets.on_day(today(scene)) > 0)
        await scene.says("/budget")
        await scene.until(lambda: any("$0.25 of $1.50 spent" in t for t in scene.texts()))
        assert any("You, today: $0.25 of $5.00 spent" in text for text in scene.texts())
        await scene.says("/budget off")
        await scene.until(lambda: any("What runs now keeps its own" in t for t in scene.texts()))
        finish(run, 0.3)


async def test_each_run_of_a_job_is_stopped_at_the_cap_it_was_given(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene, asyncio.TaskGroup() as group:
        await scene.says("/budget 5")
        jobs = scene.parts.jobs
        jobs._alarm = ClockAlarm(scene.clock, 1.0)
        task = group.create_task(jobs.run(asyncio.Event()), name="jobs")
        await scene.says("/in 1s budget 0.10 : dig")
        run = await prompted(scene, 1)
        assert run.request.budget == 0.1
        run.say(Usage(1, 1, 0.2))
        await scene.until(lambda: any("its cap of $0.10" in text for text in scene.texts()))
        await scene.says("mine")
        run = await prompted(scene, 2)
        assert run.request.budget == 5
        finish(run, 0.1)
        task.cancel()
