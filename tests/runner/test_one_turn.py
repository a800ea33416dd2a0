"""What happens to one turn between the engine's first word and the lane being free again."""

import asyncio
from pathlib import Path

from core.engines.base import (
    ApprovalAsked,
    Decision,
    Finished,
    Started,
    Text,
    Unsent,
    Usage,
)
from core.turns import Result
from tests.runner.scene import BEN, Scene


async def test_an_answer_is_shown_once_and_stored_with_its_usage(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await scene.engine.started()
        run.say(Started("s1", "m1"), Text("hi "), Text("there"), Usage(3, 5, 0.25))
        run.say(Finished(Result.DONE))
        run.end()
        await scene.until(lambda: scene.texts() == ["hi there"])
        (turn,) = await scene.turns()
        assert (turn.status.value, turn.answer, turn.session) == ("done", "hi there", "s1")
        assert (turn.tokens_in, turn.tokens_out, turn.cost) == (3, 5, 0.25)


async def test_the_prompt_leaves_only_when_it_is_stored_that_it_does(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await scene.engine.started()
        assert not run.handed_over
        (turn,) = await scene.turns()
        assert turn.prompted_at is None
        run.say(Started("s1"))
        await scene.until(lambda: run.handed_over)
        (turn,) = await scene.turns()
        assert turn.prompted_at is not None
        run.say(Finished(Result.DONE))
        run.end()


async def test_the_next_message_starts_only_when_the_engine_is_gone(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("one")
        await scene.says("two")
        first = await scene.engine.started()
        first.say(Started("s"), Text("1"), Finished(Result.DONE))
        await scene.until(lambda: "1" in scene.texts())
        assert len(scene.engine.runs) == 1
        first.end()
        second = await scene.engine.started(2)
        assert second.request.prompt == "two"
        second.answer_with("2")


async def test_a_turn_that_fails_is_told_once_and_frees_its_lane(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("do it")
        run = await scene.engine.started()
        run.say(Started("s"), Text("half"), Finished(Result.FAILED, "its disk is full"))
        run.end()
        await scene.until(lambda: len(scene.texts()) == 1 and "failed" in scene.texts()[0])
        (text,) = scene.texts()
        assert text.startswith("half")
        assert "its disk is full" in text
        await scene.says("ping")
        (await scene.engine.started(2)).answer_with("pong")
        await scene.until(lambda: scene.texts()[-1:] == ["pong"])


async def test_an_adapter_that_breaks_ends_its_own_turn_and_no_other(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("good", lane="quiet")
        await scene.says("bad", lane="broken")
        good = await scene.engine.started(1)
        bad = await scene.engine.started(2)
        bad.say(Started("s"))
        bad.fail(RuntimeError("a bug of the adapter"))
        await scene.until(lambda: len(scene.texts("broken")) == 1)
        assert "bug of the adapter" not in scene.texts("broken")[0]
        good.answer_with("still here")
        await scene.until(lambda: scene.texts("quiet") == ["still here"])
        assert sorted(await scene.statuses()) == ["done", "failed"]


async def test_a_prompt_that_never_left_is_tried_again_and_then_given_up(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        for number in (1, 2, 3):
            async with asyncio.timeout(20):
                while len(scene.engine.runs) < number:
                    await asyncio.sleep(0.05)
            run = await scene.engine.started(number)
            run.say(Started("s"), Unsent("connection refused"))
            run.end()
        await scene.until(lambda: len(scene.texts()) == 1)
        assert "could not be reached" in scene.texts()[0]
        assert "connection refused" in scene.texts()[0]
        assert await scene.statuses() == ["failed"]
        assert [turn.error for turn in await scene.turns()] == ["connection refused"]
        assert len(scene.engine.runs) == 3


async def test_a_turn_whose_every_start_dies_with_the_process_has_failed_and_says_why(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        await scene.engine.started()
        await scene.crash()
    for _ in range(2):
        async with Scene(tmp_path) as scene:
            await scene.engine.started()
            await scene.crash()
    async with Scene(tmp_path) as scene:
        await scene.until(lambda: any("could not be reached" in text for text in scene.texts()))
        (turn,) = await scene.turns()
        assert (turn.status.value, turn.error) == ("failed", "the agent could not be reached")


async def test_the_second_of_two_turns_goes_on_with_the_session_of_the_first(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("one")
        (await scene.engine.started(1)).answer_with("1")
        await scene.until(lambda: scene.texts() == ["1"])
        await scene.says("two")
        run = await scene.engine.started(2)
        assert run.request.session == "session"
        run.answer_with("2")


async def test_a_fresh_session_begins_after_new_even_if_the_old_turn_still_runs(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("one")
        run = await scene.engine.started(1)
        run.say(Started("old"), Text("1"))
        await scene.says("/new")
        run.say(Finished(Result.DONE))
        run.end()
        await scene.says("two")
        second = await scene.engine.started(2)
        assert second.request.session == ""
        second.answer_with("2")


async def test_a_question_waits_for_one_decision_and_the_engine_hears_it_once(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("do it")
        run = await scene.engine.started()
        run.say(Started("s"), ApprovalAsked("q1", "shell", "rm -r build"))
        await scene.until(lambda: any("rm -r build" in text for text in scene.texts()))
        approvals = scene.parts.intake.ground.decides
        told = await approvals.decide(1, "allow", BEN, may=False, admin=False)
        assert "Nothing was changed" in told
        assert run.answers == []
        first, second = await asyncio.gather(
            approvals.decide(1, "allow", "local:ana", may=True, admin=True),
            approvals.decide(1, "deny", "local:ana", may=True, admin=True),
        )
        assert first == "Allowed."
        assert second.startswith("Already decided")
        assert run.answers == [("q1", Decision.ALLOW)]
        run.say(Text("done"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: "done" in scene.texts())
