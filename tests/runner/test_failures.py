"""What follows a failure of an engine: another try, a pause, a stand-in, a fresh conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core import health, lifting, live, running
from core.budget_words import day_of
from core.channel import Typing
from core.engines.base import (
    Abilities,
    Failure,
    FailureKind,
    Finished,
    Started,
    Text,
    ToolEnded,
    ToolStarted,
    Unsent,
    Usage,
)
from core.items import Item
from core.lane_events import PauseAsked, ResumeAsked
from core.lanes import Lanes
from core.store import reads, rows
from core.turns import EnginePause, Limits, Result, Status
from tests.fakes.clock import FakeClock
from tests.fakes.engine import PuppetEngine, PuppetRun
from tests.runner.scene import Scene

BUSY = Failure(FailureKind.BUSY)
BROKEN = Failure(FailureKind.BROKEN)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FIRST_WAIT", 0.02)
    monkeypatch.setattr(health, "LIMIT_LEAST", 0)
    monkeypatch.setattr(lifting, "TICK", 0.1)
    monkeypatch.setattr(running, "RETRY_PAUSE", 0.02)


def fails(run: PuppetRun, failure: Failure | None, words: str = "it is out of order") -> None:
    run.say(Finished(Result.FAILED, words, failure))
    run.end()


async def begun(engine: PuppetEngine, number: int = 1, session: str = "s") -> PuppetRun:
    run = await engine.started(number)
    run.say(Started(session, resumed=run.request.session == session))
    return run


# Tried again


async def test_a_busy_service_is_asked_again_and_the_thread_sees_one_answer(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        fails(await begun(scene.engine), BUSY)
        (await scene.engine.started(2)).answer_with("hi")
        await scene.until(lambda: scene.texts() == ["hi"])
        assert await scene.statuses() == ["done"]


async def test_nobody_seems_to_write_while_a_busy_service_is_given_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float | None] = []
    wait = health.Health.wait

    def seen(self: health.Health, turn: int) -> float | None:
        waits.append(wait(self, turn))
        return waits[-1]

    monkeypatch.setattr(health.Health, "wait", seen)
    async with Scene(tmp_path, times=20) as scene:
        await scene.says("hello")
        fails(await begun(scene.engine), Failure(FailureKind.BUSY, wait=health.WAIT_MOST))
        await scene.until(lambda: waits == [None, health.WAIT_MOST])
        signs = len(scene.channel.of(Typing))
        await scene.clock.sleep(2)
        assert len(scene.channel.of(Typing)) == signs
        await scene.says("/stop")
        await scene.until(lambda: any("topped" in text for text in scene.texts()))


async def test_after_three_tries_the_reason_is_told(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        for number in (1, 2, 3):
            fails(await begun(scene.engine, number), BUSY, "the service is overloaded")
        await scene.until(lambda: any("overloaded" in text for text in scene.texts()))
        assert len(scene.texts()) == 1
        assert len(scene.engine.runs) == 3


def spent_today(scene: Scene) -> float:
    day = day_of(scene.clock.now(), scene.settings.timezone)
    return scene.parts.runner.budgeting.budgets.on_day(day)


async def test_what_every_try_used_is_kept_and_the_day_counts_each_once(tmp_path: Path) -> None:
    """Of several usages in one try the last one counts, also when it came too late to be stored."""
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        for number, cost in ((1, 0.3), (2, None)):
            run = await begun(scene.engine, number)
            run.say(Usage(100, 10, 0.1), Usage(300, 30, cost))
            fails(run, BUSY)
        last = await begun(scene.engine, 3)
        last.say(Usage(5, 1, 0.1), Usage(7, 2, 0.2), Text("hi"), Finished(Result.DONE))
        last.end()
        await scene.until(lambda: scene.texts() == ["hi"])
        (turn,) = await scene.turns()
        assert (turn.tokens_in, turn.tokens_out) == (607, 62)
        assert turn.cost == pytest.approx(0.3 + 0.1 + 0.2)
        assert spent_today(scene) == pytest.approx(0.3 + 0.1 + 0.2)


async def test_what_the_first_engine_used_is_kept_when_its_stand_in_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "IN_A_ROW", 1)
    async with Pair(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        run.say(Usage(100, 10, 0.3))
        fails(run, BROKEN)
        other = await begun(scene.other)
        other.say(Usage(50, 5, 0.2), Text("hi"), Finished(Result.DONE))
        other.end()
        await scene.until(lambda: "hi" in scene.texts())
        (turn,) = await scene.turns()
        assert (turn.tokens_in, turn.tokens_out, turn.cost) == (150, 15, pytest.approx(0.5))
        assert spent_today(scene) == pytest.approx(0.5)


async def test_what_earlier_tries_used_outlives_a_crash(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        run.say(Usage(100, 10, 0.3))
        fails(run, BUSY)
        await scene.engine.started(2)
        await scene.crash()
    after = Scene(tmp_path)
    async with after:
        run = await begun(after.engine)
        run.say(Usage(50, 5, 0.2), Text("hi"), Finished(Result.DONE))
        run.end()
        await after.until(lambda: "hi" in after.texts())
        (turn,) = await after.turns()
        assert (turn.tokens_in, turn.tokens_out, turn.cost) == (150, 15, pytest.approx(0.5))
        assert spent_today(after) == pytest.approx(0.5)


async def test_the_cap_of_a_turn_holds_for_all_its_tries_together(tmp_path: Path) -> None:
    async with Scene(tmp_path, PuppetEngine(Abilities(resume=True, cost=True))) as scene:
        await scene.says("/budget 0.5")
        await scene.says("hello")
        run = await begun(scene.engine)
        run.say(Usage(100, 10, 0.3))
        fails(run, BUSY)
        second = await begun(scene.engine, 2)
        assert second.request.budget == pytest.approx(0.2)
        second.say(Usage(50, 5, 0.25))
        await scene.until(lambda: any("stopped at its cap" in text for text in scene.texts()))
        (turn,) = await scene.turns()
        assert turn.status is Status.STOPPED
        assert turn.cost == pytest.approx(0.55)
        assert any("$0.55" in text for text in scene.texts())


@pytest.mark.parametrize(
    "effect", [Text("I began"), ToolStarted("1", "rm -r build"), ToolEnded("1", "rm -r build")]
)
async def test_what_had_an_effect_is_not_tried_again(
    tmp_path: Path, effect: Text | ToolStarted | ToolEnded
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        run.say(effect)
        fails(run, BUSY, "the service is overloaded")
        await scene.until(lambda: any("overloaded" in text for text in scene.texts()))
        assert await scene.statuses() == ["failed"]


@pytest.mark.parametrize(
    "failure",
    [
        Failure(FailureKind.BUSY, tried=True),
        Failure(FailureKind.BUSY, wait=3600),
        Failure(FailureKind.REQUEST),
        BROKEN,
        None,
    ],
)
async def test_what_will_not_help_is_not_tried(tmp_path: Path, failure: Failure | None) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        fails(await begun(scene.engine), failure, "no luck")
        await scene.until(lambda: any("no luck" in text for text in scene.texts()))
        assert await scene.statuses() == ["failed"]


async def test_a_stop_ends_the_wait_for_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "FIRST_WAIT", 60.0)
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        fails(await begun(scene.engine), BUSY)
        await scene.until(lambda: (v := scene.parts.runner.view("main")) and v.main.unsent == 1)
        await scene.says("/stop")
        await scene.until(lambda: scene.parts.runner.view("main") is None)
        assert await scene.statuses() == ["stopped"]
        assert len(scene.engine.runs) == 1


# A limit of use


def limit(scene: Scene, seconds: float) -> Failure:
    return Failure(FailureKind.LIMIT, until=scene.clock.now() + round(seconds * 1000))


async def ends_now(scene: Scene) -> None:
    """What was told of the limit's end was too late by an hour."""
    why = EnginePause("its limit of use is reached", scene.clock.now() - 1)
    row = rows.pause("engine:demo", why.reason, scene.clock.now(), why.until)
    await scene.parts.runner.take(Item(event=PauseAsked(engine="demo", why=why), rows=(row,)))


async def test_a_limit_pauses_the_engine_and_its_turn_runs_when_it_is_over(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        fails(run, limit(scene, 3600))
        await scene.until(lambda: scene.parts.runner.lanes.engine_pauses)
        await scene.says("me too", lane="other")
        for lane in ("main", "other"):
            await scene.until(lambda lane=lane: len(scene.texts(lane)) == 1)
            (notice,) = scene.texts(lane)
            assert "demo is paused (its limit of use is reached), it runs after that, at" in notice
        await ends_now(scene)
        second = await scene.engine.started(2)
        assert second.request.lane == "main"
        second.answer_with("hi")
        await scene.until(lambda: scene.texts() == ["hi"])
        (await scene.engine.started(3)).answer_with("you too")
        assert await reads.pauses(scene.parts.store) == []


async def test_what_waits_for_a_limit_is_told_also_where_the_engine_is_slow_to_leave(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        run.say(Finished(Result.FAILED, "it is out of order", limit(scene, 3600)))
        await scene.until(lambda: scene.parts.runner.lanes.engine_pauses)
        await scene.says("me too", lane="other")
        await scene.until(lambda: scene.texts("other"))
        assert scene.texts("main") == []  # what is not over does not wait
        run.end()
        await scene.until(lambda: scene.texts("main"))
        assert scene.texts("main")[0].startswith("Waiting: 1 message; demo is paused")


async def test_nothing_seems_to_think_while_a_limit_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "FIRST", 0.02)
    monkeypatch.setattr(live, "THINKING", 0.05)
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        await scene.until(lambda: any("thinking" in text for text in scene.texts()))
        fails(run, limit(scene, 3600))
        await scene.until(lambda: [text[:7] for text in scene.texts()] == ["Waiting"])
        await ends_now(scene)
        (await scene.engine.started(2)).answer_with("hi")
        await scene.until(lambda: scene.texts() == ["hi"])


async def test_a_limit_survives_a_restart_and_ends_by_the_clock(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        fails(run, limit(scene, 3600))
        await scene.until(lambda: len(scene.texts()) == 1)
        assert await scene.parts.outbox.flushed(20)  # cut off in a send, it would be looked for
        await scene.crash()
    async with Scene(tmp_path) as scene:
        assert scene.parts.runner.lanes.engine_pauses
        await ends_now(scene)
        (await scene.engine.started()).answer_with("hi")
        await scene.until(lambda: scene.texts()[-1:] == ["hi"])


async def test_a_limit_in_the_middle_of_the_work_ends_the_turn_and_holds_the_next(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        run.say(Text("half"))
        fails(run, limit(scene, 3600), "the limit is reached")
        await scene.until(lambda: scene.parts.runner.view("main") is None)
        assert await scene.statuses() == ["failed"]
        await scene.says("go on")
        await scene.until(lambda: any("is paused" in text for text in scene.texts()))


async def test_an_admin_can_let_a_limited_engine_go_on_at_once(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        fails(await begun(scene.engine), Failure(FailureKind.LIMIT))  # nobody told until when
        while not await reads.pauses(scene.parts.store):  # a command knows what is stored
            await asyncio.sleep(0.002)
        await scene.says("/resume demo")
        (await scene.engine.started(2)).answer_with("hi")
        await scene.until(lambda: "hi" in scene.texts())


# A conversation that is lost, or refused


async def test_a_thread_is_told_that_its_conversation_is_lost(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("one")
        (await scene.engine.started()).answer_with("1")
        await scene.until(lambda: scene.texts() == ["1"])
        await scene.says("two")
        run = await scene.engine.started(2)
        assert run.request.session == "session"
        run.say(Started("another"), Text("2"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: len(scene.texts()) == 3)
        assert "does not know what was said before" in scene.texts()[1]


async def test_a_refused_conversation_is_set_aside_and_a_fresh_one_tried_once(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("one")
        (await scene.engine.started()).answer_with("1")
        await scene.until(lambda: scene.texts() == ["1"])
        await scene.says("two")
        fails(await begun(scene.engine, 2, "session"), Failure(FailureKind.SESSION))
        third = await begun(scene.engine, 3, "fresh")
        assert third.request.session == ""
        third.say(Text("2"), Finished(Result.DONE))
        third.end()
        await scene.until(lambda: len(scene.texts()) == 3)
        assert "refused to go on with its earlier conversation" in scene.texts()[1]
        assert scene.texts()[2] == "2"
        assert (await reads.sessions(scene.parts.store, "main"))["demo"].session == "fresh"


@pytest.mark.parametrize(
    "then", [Failure(FailureKind.SESSION), Failure(FailureKind.REQUEST), BROKEN, None], ids=str
)
async def test_a_conversation_that_was_not_to_blame_is_kept(
    tmp_path: Path, then: Failure | None
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("one")
        (await scene.engine.started()).answer_with("1")
        await scene.until(lambda: scene.texts() == ["1"])
        await scene.says("something it never does")
        fails(await begun(scene.engine, 2, "session"), Failure(FailureKind.SESSION), "I will not")
        fails(await begun(scene.engine, 3, "fresh"), then, "I will not")
        await scene.until(lambda: "it is kept" in scene.texts()[-1])
        assert "I will not" in scene.texts()[-1]
        await scene.says("two")
        fourth = await scene.engine.started(4)
        assert fourth.request.session == "session"
        fourth.answer_with("2")
        await scene.until(lambda: scene.texts()[-1:] == ["2"])


async def test_a_conversation_that_was_refused_is_kept_when_another_engine_takes_its_turn(
    tmp_path: Path,
) -> None:
    async with Pair(tmp_path) as scene:
        await scene.says("one")
        (await scene.engine.started()).answer_with("1")
        await scene.until(lambda: scene.texts() == ["1"])
        await scene.says("two")
        fails(await begun(scene.engine, 2, "session"), Failure(FailureKind.SESSION))
        fails(await begun(scene.engine, 3, "fresh"), Failure(FailureKind.LIMIT))
        (await scene.other.started()).answer_with("2")
        await scene.until(lambda: scene.texts()[-1] == "2")
        held = await reads.sessions(scene.parts.store, "main")
        assert (held["demo"].session, held["demo"].quarantined) == ("session", "")


# A stand-in


class Pair(Scene):
    """The lane's engine is ``demo``; ``openai`` stands in for it."""

    def __init__(self, home: Path, **more: str) -> None:
        super().__init__(
            home,
            LANEWAY_FALLBACK_ENGINE="openai",
            LANEWAY_OPENAI_BASE_URL="http://127.0.0.1:9/v1",
            LANEWAY_OPENAI_MODEL="m",
            **more,
        )
        self.other = PuppetEngine()
        self.other.name = "openai"
        self.more_engines = {"openai": self.other}


async def test_after_three_failures_in_a_row_another_engine_takes_the_turns(
    tmp_path: Path,
) -> None:
    async with Pair(tmp_path) as scene:
        for number in (1, 2):
            await scene.says(f"try {number}")
            fails(await begun(scene.engine, number), BROKEN)
            await scene.until(lambda: scene.parts.runner.view("main") is None)
        await scene.says("try 3")
        fails(await begun(scene.engine, 3), BROKEN)
        (await scene.other.started()).answer_with("here I am")  # the same message
        await scene.until(lambda: scene.texts()[-1:] == ["here I am"])
        assert "openai takes its turns here" in scene.texts()[-2]
        await scene.says("and now")
        (await scene.other.started(2)).answer_with("still me")
        await scene.until(lambda: scene.texts()[-2:] == ["here I am", "still me"])  # told once
        assert len(scene.engine.runs) == 3


async def test_a_turn_that_ends_well_ends_the_row(tmp_path: Path) -> None:
    async with Pair(tmp_path) as scene:
        for number, broken in enumerate((True, True, False, True, True), 1):
            await scene.says(f"try {number}")
            run = await scene.engine.started(number)
            if broken:
                fails(run, BROKEN)
            else:
                run.answer_with("well")
            await scene.until(lambda: scene.parts.runner.view("main") is None)
        assert scene.other.runs == []


async def test_the_first_engine_is_tried_again_and_its_return_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(health, "IN_A_ROW", 1)
    async with Pair(tmp_path) as scene:
        await scene.says("one")
        fails(await begun(scene.engine), BROKEN)
        fails(await begun(scene.engine, 2), BROKEN)  # tried at once, and then the other has it
        monkeypatch.setattr(health, "LOOK_AGAIN", 600.0)
        scene.parts.runner._life.health._down["demo"].try_at = scene.clock.now() + 600_000
        (await scene.other.started()).answer_with("from the other")
        await scene.until(lambda: "from the other" in scene.texts())
        scene.parts.runner._life.health._down["demo"].try_at = 0
        await scene.says("two")
        third = await scene.engine.started(3)
        third.answer_with("me again")
        await scene.until(lambda: any("works again and takes" in text for text in scene.texts()))
        assert scene.texts()[-2] == "me again"


async def test_a_limit_hands_the_turns_over_at_once_where_another_engine_can_stand_in(
    tmp_path: Path,
) -> None:
    async with Pair(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        fails(run, limit(scene, 3600))
        (await scene.other.started()).answer_with("here I am")
        await scene.until(lambda: scene.texts()[-1:] == ["here I am"])
        assert not scene.parts.runner.lanes.engine_pauses


async def test_settings_of_the_first_engine_mean_nothing_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "IN_A_ROW", 1)
    async with Pair(tmp_path) as scene:
        await scene.says("/model big")
        await scene.says("hello")
        fails(await begun(scene.engine), BROKEN)
        other = await scene.other.started()
        assert other.request.model == ""
        other.answer_with("hi")
        await scene.until(lambda: scene.texts()[-1:] == ["hi"])


async def test_an_engine_that_cannot_be_reached_counts_as_failing(tmp_path: Path) -> None:
    async with Pair(tmp_path) as scene:
        await scene.says("hello")
        for number in (1, 2, 3):
            run = await scene.engine.started(number)
            run.say(Unsent("no connection"))
            run.end()
        (await scene.other.started()).answer_with("here I am")
        await scene.until(lambda: scene.texts()[-1:] == ["here I am"])


async def test_a_limit_does_not_end_the_pause_of_an_admin(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await begun(scene.engine)
        await scene.says("/pause demo")
        await scene.until(lambda: "demo" in scene.parts.runner.lanes.engine_pauses)
        soon = scene.clock.now() + 50
        fails(run, Failure(FailureKind.LIMIT, soon))
        await scene.until(lambda: not run_is_on(scene))
        await scene.clock.sleep(1)
        (pause,) = await reads.pauses(scene.parts.store)
        assert pause.until is None
        assert scene.parts.runner.lanes.engine_pauses["demo"].until is None
        assert len(scene.engine.runs) == 1
        await scene.says("/resume demo")
        (await scene.engine.started(2)).answer_with("hi")
        await scene.until(lambda: "hi" in scene.texts())


def run_is_on(scene: Scene) -> bool:
    view = scene.parts.runner.view("main")
    return view is not None and view.main is not None


async def test_an_engine_paused_by_an_admin_stands_in_for_nobody(tmp_path: Path) -> None:
    async with Pair(tmp_path) as scene:
        pause = EnginePause("an admin paused it")
        scene.parts.runner._life.health.paused = lambda: {"openai": pause}
        for number in (1, 2, 3):
            await scene.says(f"try {number}")
            fails(await begun(scene.engine, number), BROKEN)
            await scene.until(lambda: scene.parts.runner.view("main") is None)
        assert scene.other.runs == []


async def test_an_engine_without_a_sign_of_life_counts_as_failing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "IN_A_ROW", 1)
    async with Pair(tmp_path, LANEWAY_TURN_IDLE_TIMEOUT="1s") as scene:
        await scene.says("hello")
        await begun(scene.engine)
        await scene.until(lambda: any("no sign of life" in text for text in scene.texts()))
        await scene.says("are you there?")
        (await scene.other.started()).answer_with("I am")
        await scene.until(lambda: scene.texts()[-1:] == ["I am"])


# The end of a pause


async def test_a_pause_ends_by_the_wall_clock_also_when_that_is_set_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifting, "TICK", 15.0)
    clock, lanes = FakeClock(), Lanes(Limits())
    taken: list[Item] = []

    async def take(*items: Item) -> list[bool]:
        taken.extend(items)
        for item in items:
            assert item.event is not None
            lanes.handle(item.event)
        return [True for _ in items]

    in_an_hour = EnginePause("limit", clock.now() + 3_600_000)
    lanes.handle(PauseAsked(engine="demo", why=in_an_hour))
    lanes.handle(PauseAsked(engine="other", why=EnginePause("an admin paused it")))
    task = asyncio.create_task(lifting.lift(take, lanes, clock))
    await clock.advance(60)
    assert taken == []
    clock.jump(-7200)  # set back: it is not time any more
    await clock.advance(3600)
    assert taken == []
    clock.jump(7200)
    await clock.advance(15)
    assert [item.event for item in taken] == [ResumeAsked(engine="demo")]
    assert list(lanes.engine_pauses) == ["other"]
    task.cancel()
    await asyncio.wait((task,))
