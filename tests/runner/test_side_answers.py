"""Side answers: what their agent is told, and how people come to one."""

from __future__ import annotations

from pathlib import Path

from core.at_work import AtWork
from core.clock import SystemClock
from core.engines.base import Abilities, Finished, Started, Text, ToolStarted
from core.engines.demo import demo_engine
from core.lanes.lane import Phase
from core.messages import Press
from core.turns import Kind, Origin, Result, Turn
from tests.fakes.engine import PuppetEngine, PuppetRun
from tests.runner.scene import ANA, Scene

ABLE = Abilities(resume=True, side=True)


async def press(scene: Scene, label: str) -> None:
    """The newest button with this label."""
    shown = [
        (message, button)
        for message in scene.channel.shown()
        for line in message.keyboard
        for button in line
        if button.label == label
    ]
    message, button = shown[-1]
    number = f"press {button.id}"
    where = message.address
    pressed = Press(number, number, where, ANA, "Ana", button.id, message.message_id, direct=True)
    await scene.parts.intake.accept([pressed])


def able(home: Path, **settings: str) -> Scene:
    return Scene(home, PuppetEngine(ABLE), **settings)


async def working(scene: Scene) -> PuppetRun:
    await scene.says("build the report")
    run = await scene.engine.started()
    run.say(
        Started("s"), ToolStarted("1", "make report"), Text("I have the figures,\nnow the text")
    )
    await scene.until(lambda: any("figures" in text for text in scene.texts()))
    return run


def ends(run: PuppetRun, text: str = "") -> None:
    run.say(Text(text), Finished(Result.DONE))
    run.end()


async def test_its_agent_is_told_what_the_running_turn_is_doing(tmp_path: Path) -> None:
    async with able(tmp_path) as scene:
        main = await working(scene)
        await scene.says("/btw what are you doing?")
        side = await scene.engine.started(2)
        assert side.request.read_only
        question, _, note = side.request.prompt.partition("\n\n")
        assert question == "what are you doing?"
        assert 'on: "build the report"' in note
        assert "- make report" in note
        assert "> I have the figures,\n> now the text" in note
        side.answer_with("figures")
        await scene.until(lambda: "figures" in scene.texts())
        assert not main.stops
        ends(main)
        await scene.until(lambda: scene.parts.runner.view("main") is None)


async def test_in_an_idle_thread_it_is_answered_at_once_and_reads_only(tmp_path: Path) -> None:
    async with able(tmp_path) as scene:
        await scene.says("/btw what is here?")
        side = await scene.engine.started()
        assert side.request.read_only
        assert "Nothing else runs" in side.request.prompt
        side.answer_with("files")
        await scene.until(lambda: scene.texts() == ["files"])


async def test_an_agent_that_cannot_is_not_asked_until_the_question_is_queued(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("/btw what is here?")
        await scene.until(lambda: any("cannot answer on the side" in t for t in scene.texts()))
        assert scene.engine.runs == []
        await press(scene, "Queue it")
        run = await scene.engine.started()
        assert run.request.prompt == "what is here?"
        assert not run.request.read_only
        run.answer_with("files")
        await scene.until(lambda: scene.texts()[-1:] == ["files"])


async def test_a_second_question_waits_for_its_slot_where_somebody_queues_it(
    tmp_path: Path,
) -> None:
    async with able(tmp_path) as scene:
        await scene.says("/btw one?")
        first = await scene.engine.started()
        await scene.says("/btw two?")
        await scene.until(lambda: any("already being written" in t for t in scene.texts()))
        await press(scene, "Queue it")
        second = await scene.engine.started(2)
        assert second.request.prompt == "two?"
        for run, text in ((second, "2"), (first, "1")):
            run.answer_with(text)
            await scene.until(lambda text=text: text in scene.texts())


async def test_in_the_mode_side_a_message_is_answered_beside_the_running_turn(
    tmp_path: Path,
) -> None:
    async with able(tmp_path, LANEWAY_WHEN_BUSY="side") as scene:
        main = await working(scene)
        await scene.says("how far are you?")
        side = await scene.engine.started(2)
        assert side.request.read_only
        assert side.request.session == "s"
        side.answer_with("half way")
        await scene.until(lambda: "half way" in scene.texts())
        ends(main)
        await scene.until(lambda: scene.parts.runner.view("main") is None)
        assert [turn.kind for turn in await scene.turns()] == [Kind.MAIN, Kind.SIDE]


async def test_a_waiting_message_is_answered_aside_by_the_notices_button(tmp_path: Path) -> None:
    async with able(tmp_path) as scene:
        main = await working(scene)
        await scene.says("how far are you?")
        await scene.until(lambda: any(text.startswith("Waiting") for text in scene.texts()))
        await press(scene, "Answer on the side")
        side = await scene.engine.started(2)
        side.answer_with("half way")
        await scene.until(lambda: "half way" in scene.texts())
        await scene.until(lambda: not any(text.startswith("Waiting") for text in scene.texts()))
        ends(main)
        await scene.until(lambda: scene.parts.runner.view("main") is None)


# What is told


def turn(label: str = "work") -> Turn:
    return Turn(1, "main", ANA, Origin.PERSON, Kind.MAIN, 1, label)


def test_a_note_is_bounded_and_ends_with_its_turn() -> None:
    at_work = AtWork()
    work = at_work.begin(turn(), 0)
    for number in range(50):
        work.feed(ToolStarted(str(number), f"tool {number} " + "x" * 500))
        work.feed(Text(f"words {number} " * 100))
    note = at_work.note("main", 90_000)
    assert len(note) < 3_000
    assert "for 1 min" in note
    assert "the last 10 of 50" in note
    assert "tool 49" in note
    assert "tool 39" not in note
    assert "words 49" in note
    at_work.end(work)
    assert "Nothing else runs" in at_work.note("main", 1)


def test_a_turn_that_waits_for_a_person_says_so() -> None:
    at_work = AtWork()
    at_work.begin(turn(), 0).asking = True
    assert "waits for a person's decision, after 5 s" in at_work.note("main", 5_000)


def test_an_older_turns_end_takes_nothing_from_a_newer_one() -> None:
    at_work = AtWork()
    old = at_work.begin(turn("old"), 0)
    at_work.begin(turn("new"), 0)
    at_work.end(old)
    assert '"new"' in at_work.note("main", 1)


# With a real agent


async def test_the_demo_agent_answers_beside_its_own_work(tmp_path: Path) -> None:
    scene = able(tmp_path, LANEWAY_WHEN_BUSY="side")
    demo = demo_engine(tmp_path, SystemClock(), speed=4)
    scene.engine = demo  # type: ignore[assignment]  # a real one, for once
    async with scene:
        await scene.says("hello")
        await scene.until(lambda: any("story" in text for text in scene.texts()))
        await scene.until(lambda: scene.parts.runner.view("main") is None)
        await scene.says("take your time: 3 s")
        await scene.until(
            lambda: (view := scene.parts.runner.view("main")) and view.phase is Phase.RUNNING
        )
        await scene.says("what are you doing?")
        await scene.until(lambda: any("and only read" in text for text in scene.texts()))
        await scene.until(lambda: not scene.parts.runner.view("main").sides)
        (told,) = [text for text in scene.texts() if "and only read" in text]
        assert "The main turn has been at work for" in told
        assert "take your time: 3 s" in told
        await scene.says("/stop")
        await scene.until(lambda: scene.parts.runner.view("main") is None)
        assert await scene.statuses() == ["done", "stopped", "done"]
    await demo.close()
