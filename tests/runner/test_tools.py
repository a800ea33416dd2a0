"""What a running agent may do in its own thread, and that nothing of it outlives its turn."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.channel import Forbidden, Retitle, Send, SendFile
from core.engines.base import Abilities, Finished, Started, Text, Toolbox
from core.messages import Press
from core.store import reads
from core.tools import Idle, Unknown
from core.turns import Kind, Result
from tests.fakes.engine import PuppetEngine, PuppetRun
from tests.runner.scene import ANA, BEN, Scene


async def working(scene: Scene, text: str = "work", who: str = ANA) -> PuppetRun:
    """A turn whose prompt has left."""
    before = len(scene.engine.runs)
    await scene.says(text, who=who)
    run = await scene.engine.started(before + 1)
    run.say(Started("s"))
    await scene.until(lambda: run.handed_over)
    return run


def tools(run: PuppetRun) -> Toolbox:
    assert run.request.toolbox is not None
    return run.request.toolbox


async def press(scene: Scene, label: str, who: str = ANA) -> None:
    """Press the newest button with this label."""
    shown = [
        m for m in scene.channel.shown() if any(b.label == label for r in m.keyboard for b in r)
    ]
    button = next(b for row in shown[-1].keyboard for b in row if b.label == label)
    await scene.parts.intake.accept(
        [
            Press(
                f"press:{button.id}:{who}", "p", shown[-1].address, who, who, button.id,
                shown[-1].message_id, direct=True,
            )
        ]
    )  # fmt: skip


def finish(run: PuppetRun, text: str = "done") -> None:
    run.say(Text(text), Finished(Result.DONE))
    run.end()


async def test_a_message_is_shown_at_once_and_the_answer_after_it(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_PREVIEW="off") as scene:
        run = await working(scene)
        reply = await tools(run).call("send_message", {"text": "half way"})
        assert (reply.text, reply.failed) == ("Sent.", False)
        await scene.until(lambda: scene.texts() == ["half way"])
        finish(run)
        await scene.until(lambda: scene.texts() == ["half way", "done"])


@pytest.mark.parametrize("more", ["", " It goes on.", None])
async def test_the_answer_stands_below_what_was_sent_while_its_turn_ran(
    tmp_path: Path, more: str | None
) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        run.say(Text("I begin."))
        await scene.until(lambda: any("I begin." in text for text in scene.texts()))
        await tools(run).call("send_message", {"text": "half way"})
        await scene.until(lambda: "half way" in scene.texts())
        if more is not None:
            run.say(Text(more))
            await scene.until(lambda: not more or any(more in text for text in scene.texts()))
        finish(run, " The end.")
        answer = f"I begin.{more or ''} The end."
        await scene.until(lambda: scene.texts() == ["half way", answer])


async def test_a_file_of_the_workspace_is_sent(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        (run.request.folder / "report.txt").write_text("all is well")
        assert not (await tools(run).call("send_file", {"path": "report.txt"})).failed
        await scene.until(lambda: scene.channel.of(SendFile))
        (sent,) = scene.channel.of(SendFile)
        assert isinstance(sent.action, SendFile)
        assert sent.action.name == "report.txt"
        assert sent.action.path.parent != run.request.folder  # a copy made at the check
        finish(run)


async def test_a_name_of_several_lines_is_sent_as_one(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        (run.request.folder / "a\nb.txt").write_text("all is well")
        assert not (await tools(run).call("send_file", {"path": "a\nb.txt"})).failed
        await scene.until(lambda: scene.channel.of(SendFile))
        (sent,) = scene.channel.of(SendFile)
        assert isinstance(sent.action, SendFile)
        assert sent.action.name == "a b.txt"
        finish(run)


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/passwd", "link", "folder", "absent", "x\0y", "empty"]
)
async def test_nothing_but_a_regular_file_inside_is_sent(tmp_path: Path, path: str) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        folder = run.request.folder
        (folder.parent / "outside").write_text("not yours")
        (folder / "link").symlink_to("/etc/passwd")
        (folder / "folder").mkdir()
        (folder / "empty").touch()
        assert (await tools(run).call("send_file", {"path": path})).failed
        finish(run)
        await scene.until(lambda: "done" in scene.texts())
        assert not scene.channel.of(SendFile)


async def test_the_person_is_asked_and_the_answer_comes_back(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_TURN_IDLE_TIMEOUT="2s") as scene:
        run = await working(scene, who=BEN)
        asking = {"question": "Which colour?", "options": ["red", "blue"]}
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(tools(run).call("ask_person", asking), name="ask")
            await scene.until(lambda: any("Which colour?" in text for text in scene.texts()))
            view = scene.parts.runner.view("main")
            assert view is not None
            assert view.main is not None
            assert view.main.asking == 1  # its slot is lent while the person thinks
            await press(scene, "blue", who=BEN)
        assert answer.result().text == "The answer is: blue"
        await scene.until(lambda: any("➡️ blue" in text for text in scene.texts()))
        assert not any(message.keyboard for message in scene.channel.shown())
        finish(run)
        await scene.until(lambda: "done" in scene.texts())


async def test_only_who_was_asked_or_an_admin_answers_and_the_first_press_counts(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene, who=ANA)
        asking = {"question": "Go on?", "options": ["yes", "no"]}
        chooses = scene.parts.intake.ground.chooses
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(tools(run).call("ask_person", asking), name="ask")
            await scene.until(lambda: any(m.keyboard for m in scene.channel.shown()))
            (ident,) = chooses._open  # type: ignore[attr-defined]
            assert "Only the person" in chooses.choose(ident, 0, BEN, admin=False)
            assert "over" in chooses.choose(ident, 7, ANA, admin=True)
            assert chooses.choose(ident, 1, ANA, admin=True) == "You said: no"
            assert "over" in chooses.choose(ident, 0, ANA, admin=True)
        assert answer.result().text == "The answer is: no"
        finish(run)


async def test_a_question_that_its_agent_gave_up_leaves_no_trace_of_waiting(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        asking = {"question": "Which colour?", "options": ["red", "blue"]}
        call = asyncio.create_task(tools(run).call("ask_person", asking), name="ask")
        await asyncio.sleep(0)  # its question is being stored
        call.cancel()
        await asyncio.wait((call,))
        await scene.until(lambda: any("Nobody answered" in text for text in scene.texts()))
        view = scene.parts.runner.view("main")
        assert view is not None
        assert view.main is not None
        assert view.main.asking == 0
        assert not scene.parts.intake.ground.chooses._open  # type: ignore[attr-defined]
        finish(run)


async def test_a_question_that_cannot_be_shown_is_waited_for_no_longer(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        scene.channel.fail(Send, Forbidden("no right to write"))
        asking = {"question": "Which colour?", "options": ["red", "blue"]}
        async with asyncio.timeout(30):
            assert "Nobody" in (await tools(run).call("ask_person", asking)).text
        finish(run)


async def test_a_question_nobody_answers_ends_and_the_agent_goes_on(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_APPROVAL_TIMEOUT="1s") as scene:
        run = await working(scene)
        asking = {"question": "Anyone?", "options": ["yes", "no"]}
        assert (await tools(run).call("ask_person", asking)).text == "Nobody answered in time."
        await scene.until(lambda: any("Nobody answered" in text for text in scene.texts()))
        finish(run)
        await scene.until(lambda: "done" in scene.texts())


async def test_a_stop_ends_the_question_with_its_turn(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        asking = {"question": "Anyone?", "options": ["yes", "no"]}
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(tools(run).call("ask_person", asking), name="ask")
            await scene.until(lambda: any(m.keyboard for m in scene.channel.shown()))
            await scene.says("/stop")
        assert answer.result().text == "Nobody answered in time."
        await scene.until(lambda: any("No answer is needed" in text for text in scene.texts()))
        await scene.until(lambda: scene.parts.runner.view("main") is None)
        assert await scene.statuses() == ["stopped"]


async def test_the_thread_is_named_and_its_earlier_words_are_read(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        finish(await working(scene, "the first question"), "the first answer")
        await scene.until(lambda: "the first answer" in scene.texts())
        run = await working(scene, "the second question")
        assert not (await tools(run).call("set_title", {"title": " A  new\nname "})).failed
        await scene.until(lambda: scene.channel.of(Retitle))
        lane = await reads.lane(scene.parts.store, "main")
        assert lane is not None
        assert lane.title == "A new name"
        read = (await tools(run).call("read_thread", {})).text
        assert read.index("Ana: the first question") < read.index("agent: the first answer")
        assert "second" not in read
        newest = (await tools(run).call("read_thread", {"limit": 1})).text
        assert "question" not in newest
        finish(run)


async def test_the_tools_end_with_the_turn_and_come_back_with_the_next(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        first = await working(scene)
        token = tools(first).token
        assert scene.parts.tools.seat(token).turn.id == first.request.turn
        finish(first)
        await scene.until(lambda: "done" in scene.texts())
        with pytest.raises(Idle):
            scene.parts.tools.seat(token)
        assert (await tools(first).call("send_message", {"text": "late"})).failed
        second = await working(scene)
        assert tools(second).token == token  # the session's, so that a warm agent keeps it
        assert scene.parts.tools.seat(token).turn.id == second.request.turn
        assert (await tools(first).call("send_message", {"text": "late"})).failed
        finish(second)


async def test_a_fresh_session_has_a_token_of_its_own(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        first = await working(scene)
        finish(first)
        await scene.until(lambda: not scene.parts.runner.view("main"))
        await scene.says("/new")
        second = await working(scene, "afresh")
        assert tools(second).token != tools(first).token
        with pytest.raises(Idle):
            scene.parts.tools.seat(tools(first).token)
        finish(second)


@pytest.mark.parametrize("token", ["", "x", "x.y", "é.é", "0" * 32 + "." + "0" * 64])
async def test_a_token_nobody_was_given_opens_nothing(tmp_path: Path, token: str) -> None:
    async with Scene(tmp_path) as scene:
        with pytest.raises(Unknown):
            scene.parts.tools.seat(token)


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("send_message", {}, "'text' is needed"),
        ("send_message", {"text": ""}, "1 to 20000"),
        ("send_message", {"text": 5}, "1 to 20000"),
        ("set_title", {"title": "\u200b"}, "1 to 100"),
        ("send_message", {"text": "x" * 20_001}, "1 to 20000"),
        ("send_message", {"text": "x", "lane": "other"}, "no argument 'lane'"),
        ("ask_person", {"question": "?", "options": ["one"]}, "2 to 8"),
        ("ask_person", {"question": "?", "options": ["a", "a "]}, "different"),
        ("ask_person", {"question": "?", "options": "ab"}, "2 to 8"),
        ("ask_person", {"question": "?", "options": ["a", "b" * 61]}, "60"),
        ("ask_person", {"question": "?", "options": ["a", "\u200b"]}, "2 to 8"),
        ("read_thread", {"limit": 0}, "1 to 100"),
        ("read_thread", {"limit": True}, "1 to 100"),
        ("queue_for_main", {"request": "x"}, "no tool"),
        ("shell", {}, "no tool"),
    ],
)
async def test_a_call_that_does_not_fit_says_what_would(
    tmp_path: Path, name: str, arguments: dict[str, object], why: str
) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        reply = await tools(run).call(name, arguments)
        assert reply.failed
        assert why in reply.text
        finish(run)


async def test_one_turn_cannot_flood_its_thread(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        replies = [await tools(run).call("send_message", {"text": f"m{n}"}) for n in range(51)]
        assert [reply.failed for reply in replies] == [False] * 50 + [True]
        finish(run)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("set_title", {"title": "more"}),
        ("schedule", {"when": "in 20m", "prompt": "look"}),
        ("watch", {"what": "url https://example.org changed", "when": "every 1h", "prompt": "x"}),
        ("cancel_job", {"id": 1}),
        ("send_file", {"path": "x"}),
        ("ask_person", {"question": "?", "options": ["a", "b"]}),
    ],
)
async def test_whatever_a_turn_does_in_its_thread_counts_as_one_of_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, object]
) -> None:
    monkeypatch.setattr("core.tools.DONE_MOST", 2)
    async with Scene(tmp_path, LANEWAY_AGENT_JOBS="allow") as scene:
        run = await working(scene)
        await tools(run).call("send_message", {"text": "one"})
        job = await tools(run).call("schedule", {"when": "in 30m", "prompt": "two"})
        assert not job.failed
        third = await tools(run).call(name, arguments)
        assert third.failed
        assert "2 things" in third.text
        assert not (await tools(run).call("list_jobs", {})).failed  # nothing is done by looking
        finish(run)
        await scene.until(lambda: scene.parts.runner.view("main") is None)
        again = await working(scene)
        assert not (await tools(again).call("send_message", {"text": "a turn of its own"})).failed
        finish(again)


async def test_reading_is_bounded_as_well_and_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tools.READS_MOST", 2)
    async with Scene(tmp_path) as scene:
        run = await working(scene)
        read = [await tools(run).call("read_thread", {}) for _ in range(3)]
        assert [reply.failed for reply in read] == [False, False, True]
        assert not (await tools(run).call("send_message", {"text": "still"})).failed
        finish(run)


async def test_a_side_answer_only_reads_and_hands_over_one_request(tmp_path: Path) -> None:
    engine = PuppetEngine(Abilities(resume=True, side=True))
    async with Scene(tmp_path, engine) as scene:
        main = await working(scene)
        side = await working(scene, "/btw what about the tests?", who=BEN)
        assert {spec.name for spec in tools(side).offered()} == {
            "read_thread", "queue_for_main", "list_jobs"
        }  # fmt: skip
        assert tools(side).token != tools(main).token
        assert (await tools(side).call("send_message", {"text": "no"})).failed
        assert not (await tools(side).call("queue_for_main", {"request": "run the tests"})).failed
        again = await tools(side).call("queue_for_main", {"request": "and more"})
        assert "one request" in again.text
        await scene.until(lambda: any("run the tests" in text for text in scene.texts()))
        finish(side, "they pass")
        finish(main)
        queued = await scene.engine.started(3)
        assert "run the tests" in queued.request.prompt
        assert not queued.request.read_only
        assert (await scene.turns())[-1].person == BEN
        queued.answer_with("ran")
        await scene.until(lambda: "ran" in scene.texts())


@pytest.mark.parametrize("busy", ["side", "interrupt", "steer"])
async def test_what_is_handed_over_waits_whatever_messages_do_in_its_lane(
    tmp_path: Path, busy: str
) -> None:
    engine = PuppetEngine(Abilities(resume=True, side=True, steer=True))
    async with Scene(tmp_path, engine, LANEWAY_WHEN_BUSY=busy, LANEWAY_MAX_SIDE="2") as scene:
        main = await working(scene)
        side = await working(scene, "/btw what about the tests?")
        assert not (await tools(side).call("queue_for_main", {"request": "run the tests"})).failed
        assert await scene.statuses() == ["running", "running", "waiting"]
        working_turn, _, waiting = await scene.turns()
        assert (waiting.kind, waiting.offered_to) == (Kind.MAIN, None)
        assert working_turn.stop is None
        finish(side, "they pass")
        finish(main)
        queued = await scene.engine.started(3)
        assert not queued.request.read_only
        queued.answer_with("ran")
        await scene.until(lambda: "ran" in scene.texts())


async def test_a_request_for_a_full_queue_is_told_as_refused_alone(tmp_path: Path) -> None:
    engine = PuppetEngine(Abilities(resume=True, side=True))
    async with Scene(tmp_path, engine, LANEWAY_QUEUE_LIMIT="1") as scene:
        main = await working(scene)
        side = await working(scene, "/btw what about the tests?")
        await scene.says("waits already")
        reply = await tools(side).call("queue_for_main", {"request": "run the tests"})
        assert reply.failed
        await scene.until(lambda: any("full" in text for text in scene.texts()))
        assert not any("Drop it" in str(m.keyboard) for m in scene.channel.shown())
        finish(side, "they pass")
        finish(main)
        (await scene.engine.started(3)).answer_with("own")
        await scene.until(lambda: "own" in scene.texts())


async def test_a_request_that_was_handed_over_can_be_dropped(tmp_path: Path) -> None:
    engine = PuppetEngine(Abilities(resume=True, side=True))
    async with Scene(tmp_path, engine) as scene:
        main = await working(scene)
        side = await working(scene, "/btw what about the tests?")
        await tools(side).call("queue_for_main", {"request": "run the tests"})
        await scene.says("my own message")
        await scene.until(lambda: any("Drop it" in str(m.keyboard) for m in scene.channel.shown()))
        await press(scene, "Drop it")
        await scene.until(lambda: any("ropped" in text for text in scene.texts()))
        assert await scene.statuses() == ["running", "running", "dropped", "waiting"]
        finish(side)
        finish(main)
        (await scene.engine.started(3)).answer_with("own")
        await scene.until(lambda: "own" in scene.texts())
