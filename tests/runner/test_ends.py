"""Stops, limits, drains: the lane is free in the end, whatever the engine does."""

from pathlib import Path

import pytest

from core.engines.base import ApprovalAsked, Decision, Finished, Started, Text
from core.store import rows
from core.tools import Idle
from core.turns import Result
from tests.runner.scene import BEN, Scene


async def test_a_stop_ends_the_turn_as_stopped_and_says_who_did_it(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("long work")
        run = await scene.engine.started()
        run.say(Started("s"), Text("half"))
        await scene.until(lambda: run.handed_over)
        await scene.says("/stop")
        await scene.until(lambda: len(scene.texts()) == 2)
        said = "\n".join(scene.texts())
        assert "Ana stopped" in said
        assert "half" in said
        assert await scene.statuses() == ["stopped"]
        await scene.says("next")
        (await scene.engine.started(2)).answer_with("here")
        await scene.until(lambda: scene.texts()[-1:] == ["here"])
        assert not any(text.startswith("Waiting") for text in scene.texts())


async def test_a_stop_before_the_engine_is_ready_never_hands_over_the_prompt(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("long work")
        run = await scene.engine.started()
        await scene.says("/stop")
        await scene.until(lambda: run.stops)
        run.say(Started("too late"))
        await scene.until(lambda: not scene.parts.runner.view("main"))
        assert not run.handed_over
        assert await scene.statuses() == ["stopped"]


async def test_an_engine_that_ignores_its_stop_is_set_aside_and_its_session_with_it(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path, LANEWAY_STOP_GRACE="1s") as scene:
        await scene.says("hang")
        run = await scene.engine.started()
        run.obeys = False
        run.say(Started("s1"))
        await scene.until(lambda: run.handed_over)
        await scene.says("/stop")
        await scene.until(lambda: not scene.parts.runner.view("main"))
        await scene.says("next")
        second = await scene.engine.started(2)
        assert second.request.session == ""
        assert run.request.toolbox is not None
        assert second.request.toolbox is not None
        assert second.request.toolbox.token != run.request.toolbox.token
        with pytest.raises(Idle):  # what may still be alive knows the first one
            scene.parts.tools.seat(run.request.toolbox.token)
        second.answer_with("fresh")
        await scene.until(lambda: scene.texts()[-1:] == ["fresh"])


async def test_an_answer_that_was_ready_before_the_stop_is_done(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("quick")
        run = await scene.engine.started()
        run.say(Started("s"), Text("all of it"), Finished(Result.DONE))
        await scene.until(lambda: scene.texts() == ["all of it"])
        await scene.says("/stop")
        run.end()
        await scene.until(lambda: not scene.parts.runner.view("main"))
        assert await scene.statuses() == ["done"]


async def test_what_has_to_be_put_right_is_told_without_a_second_next_step(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await scene.engine.started()
        run.say(Finished(Result.FAILED, "The agent is signed out. Sign in first."))
        run.end()
        await scene.until(lambda: scene.texts())
        assert scene.texts() == ['"hello" failed: The agent is signed out. Sign in first.']


async def test_what_failed_at_work_can_be_sent_again(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await scene.engine.started()
        run.say(Started("s"), Finished(Result.FAILED, "the model was overloaded"))
        run.end()
        await scene.until(lambda: scene.texts())
        assert scene.texts()[0].endswith("The thread is free: send it again, or something else.")


async def test_a_member_is_sent_to_an_admin_for_what_only_admins_may(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        (await scene.engine.started()).answer_with("hi")
        await scene.until(lambda: scene.texts() == ["hi"])
        (turn,) = await scene.turns()
        await scene.parts.store.save(rows.lane_setting(turn.lane, "engine", "gone"))
        await scene.says("and now?", who=BEN)
        await scene.until(lambda: "failed" in scene.texts()[-1])
        assert "Ask an admin to choose another with /engine (demo)" in scene.texts()[1]
        assert "send it again" not in scene.texts()[1]


async def test_a_silent_engine_is_ended_by_the_idle_limit_and_told(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_TURN_IDLE_TIMEOUT="1s") as scene:
        await scene.says("silence")
        run = await scene.engine.started()
        run.say(Started("s"))
        await scene.until(lambda: any("no sign of life" in text for text in scene.texts()))
        assert await scene.statuses() == ["failed"]
        assert run.stops == 1


async def test_the_limits_pause_while_a_person_decides(tmp_path: Path) -> None:
    limits = {"LANEWAY_TURN_IDLE_TIMEOUT": "1s", "LANEWAY_TURN_TIMEOUT": "2s"}
    async with Scene(tmp_path, **limits) as scene:
        await scene.says("ask me")
        run = await scene.engine.started()
        run.say(Started("s"), ApprovalAsked("q", "shell", "ls"))
        await scene.until(lambda: scene.texts())
        await scene.clock.sleep(2.5)  # longer than both: real limits, as the runner reads them
        assert run.stops == 0
        approvals = scene.parts.intake.ground.decides
        await approvals.decide(1, "allow", "local:ana", may=True, admin=True)
        run.say(Text("thanks"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: "thanks" in scene.texts())


async def test_a_stop_cancels_what_a_person_was_asked(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("ask me")
        run = await scene.engine.started()
        run.say(Started("s"), ApprovalAsked("q", "shell", "ls"))
        await scene.until(lambda: any("ls" in text for text in scene.texts()))
        await scene.says("/stop")
        await scene.until(lambda: any("Cancelled" in text for text in scene.texts()))
        assert run.answers == [("q", Decision.CANCEL)]
        approvals = scene.parts.intake.ground.decides
        told = await approvals.decide(1, "allow", "local:ana", may=True, admin=True)
        assert told.startswith("Cancelled")


async def test_an_agent_that_takes_its_time_to_stop_gets_no_yes_and_no_tools_meanwhile(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path, LANEWAY_STOP_GRACE="8s") as scene:
        await scene.says("ask me")
        run = await scene.engine.started()
        run.obeys = False
        run.say(Started("s"), ApprovalAsked("q", "shell", "ls"))
        await scene.until(lambda: any("ls" in text for text in scene.texts()))
        await scene.says("/stop")
        await scene.until(lambda: run.answers)
        assert run.answers == [("q", Decision.CANCEL)]
        decides = scene.parts.intake.ground.decides
        told = await decides.decide(1, "allow", "local:ana", may=True, admin=True)
        assert told.startswith("Cancelled")
        assert run.request.toolbox is not None
        reply = await run.request.toolbox.call("send_message", {"text": "still here"})
        assert reply.failed
        run.say(Finished(Result.CANCELLED))
        run.end()
        await scene.until(lambda: not scene.parts.runner.view("main"))
        assert run.answers == [("q", Decision.CANCEL)]
        assert "still here" not in scene.texts()


@pytest.mark.parametrize("mode", ["ask", "full"])
async def test_once_a_turn_is_being_stopped_nobody_is_asked_and_nothing_allowed(
    tmp_path: Path, mode: str
) -> None:
    async with Scene(tmp_path, LANEWAY_APPROVALS=mode, LANEWAY_STOP_GRACE="8s") as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.obeys = False
        run.say(Started("s"))
        await scene.until(lambda: run.handed_over)
        await scene.says("/stop")
        await scene.until(lambda: run.stops)
        run.say(ApprovalAsked("q", "shell", "rm -r a"))
        await scene.until(lambda: run.answers)
        assert run.answers == [("q", Decision.CANCEL)]
        assert not any("rm -r a" in text for text in scene.texts())
        run.say(Finished(Result.CANCELLED))
        run.end()
        await scene.until(lambda: not scene.parts.runner.view("main"))


async def test_a_drain_lets_turns_finish_and_keeps_what_comes_meanwhile(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s"))
        await scene.until(lambda: run.handed_over)
        scene.drain()
        await scene.until(lambda: scene.parts.runner.lanes.draining)
        await scene.says("later", lane="other")
        assert len(scene.engine.runs) == 1
        run.say(Text("finished"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: scene.texts() == ["finished"])
    async with Scene(tmp_path) as again:
        later = await again.engine.started()
        assert later.request.prompt == "later"
        later.answer_with("now")
        await again.until(lambda: again.texts("other")[-1:] == ["now"])


async def test_a_turn_cut_off_by_the_end_of_a_drain_is_interrupted_and_told_once(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path, LANEWAY_DRAIN_TIMEOUT="1s") as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s"), Text("half"))
        await scene.until(lambda: run.handed_over)
        scene.drain()
        await scene.until(lambda: run.stops)
    assert [turn.status.value for turn in await _left(tmp_path)] == ["interrupted"]
    assert sum("cut off" in text for text in scene.texts()) == 1
    async with Scene(tmp_path) as again:
        assert again.texts() == []


async def _left(home: Path) -> list:
    async with Scene(home) as scene:
        return await scene.turns()
