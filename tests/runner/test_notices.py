"""What a lane is told while its messages wait: always true, and no more often than needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.channel import Revise
from core.engines.base import ApprovalAsked, Finished, Started
from core.items import Item
from core.lane_events import LimitsChanged
from core.messages import Address
from core.turns import Limits, Result
from tests.runner.scene import Scene


async def busy(scene: Scene, *lanes: str) -> None:
    """One slot: the first lane works, the others wait for it."""
    for number, lane in enumerate(lanes):
        await scene.says("work", lane=lane)
        if number:
            await scene.until(lambda lane=lane: scene.texts(lane))
        else:
            await scene.engine.started()


def says(scene: Scene, lane: str, words: str) -> bool:
    return any(words in text for text in scene.texts(lane))


def offered(scene: Scene, lane: str) -> list[str]:
    """The buttons of the lane's notice."""
    address = Address(scene.channel.name, lane)
    for shown in scene.channel.messages.values():
        if shown.address == address and shown.text.startswith("Waiting"):
            return [button.label for line in shown.keyboard for button in line]
    return []


async def test_the_place_in_the_line_is_told_as_it_changes(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_MAX_TURNS="1") as scene:
        await busy(scene, "a", "b", "c")
        await scene.until(lambda: says(scene, "c", "you are 2nd"))
        scene.engine.runs[0].answer_with("done")
        await scene.until(lambda: says(scene, "c", "you are 1st"))
        for number in (2, 3):
            (await scene.engine.started(number)).answer_with("done")
        await scene.until(lambda: scene.texts("c") == ["done"])


async def test_a_pause_of_everything_is_told_wherever_something_waits(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_MAX_TURNS="1") as scene:
        await busy(scene, "a", "b")
        await scene.says("/pause all", lane="elsewhere")
        await scene.until(lambda: says(scene, "b", "when an admin sends /resume all"))
        await scene.says("/resume all", lane="elsewhere")
        await scene.until(lambda: says(scene, "b", "free slot"))
        scene.engine.runs[0].answer_with("done")
        (await scene.engine.started(2)).answer_with("done")
        await scene.until(lambda: scene.texts("b") == ["done"])


async def test_new_limits_are_told(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_MAX_TURNS="1") as scene:
        await busy(scene, "a", "b")
        await scene.until(lambda: says(scene, "b", "free slot"))
        limits = Limits(running=8, per_person=1)
        await scene.parts.runner.take(Item(event=LimitsChanged(limits)))
        await scene.until(lambda: says(scene, "b", "1 turn of yours runs already"))
        scene.engine.runs[0].answer_with("done")
        (await scene.engine.started(2)).answer_with("done")


async def test_a_restart_is_told(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_MAX_TURNS="1") as scene:
        await busy(scene, "a", "b")
        scene.drain()
        await scene.until(lambda: says(scene, "b", "restarting"))
        scene.engine.runs[0].answer_with("done")


async def test_that_the_turn_before_waits_for_a_person_is_told(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s"))
        await scene.says("next")
        await scene.until(lambda: says(scene, "main", "running"))
        run.say(ApprovalAsked("q", "sh", "make"))
        await scene.until(lambda: says(scene, "main", "waiting for a decision"))
        run.answer_with("done")
        (await scene.engine.started(2)).answer_with("done")


async def test_time_that_passes_is_no_change(tmp_path: Path) -> None:
    """What happens in other lanes costs a waiting lane no edit that says the same."""
    async with Scene(tmp_path) as scene:
        await scene.says("work")
        await scene.engine.started()
        await scene.says("next")
        await scene.until(lambda: says(scene, "main", "running 0 s"))
        scene.parts.runner.since = lambda turn: 1  # type: ignore[method-assign] # much later
        for number in (2, 3):
            await scene.says("work", lane="other")
            (await scene.engine.started(number)).answer_with("done")
            await scene.until(lambda n=number: len(scene.texts("other")) == n - 1)
        await scene.parts.runner._notices._show(scene.parts.runner.take, scene.parts.runner)
        assert says(scene, "main", "running 0 s")
        assert not scene.channel.of(Revise)
        scene.engine.runs[0].answer_with("done")
        (await scene.engine.started(4)).answer_with("done")


async def test_a_side_answer_is_offered_only_beside_what_runs(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_MAX_TURNS="1") as scene:
        scene.engine.abilities = replace(scene.engine.abilities, side=True)
        await busy(scene, "a", "b")
        assert offered(scene, "b") == ["Drop"]
        await scene.says("next", lane="a")
        await scene.until(lambda: offered(scene, "a") == ["Answer on the side", "Drop"])
        await scene.says("/pause", lane="a")
        await scene.until(lambda: offered(scene, "a") == ["Drop"])
        await scene.says("/stop", lane="a")
        await scene.says("/stop", lane="b")


async def test_a_notice_that_cannot_be_made_costs_no_other_lane_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Scene(tmp_path, LANEWAY_MAX_TURNS="1") as scene:
        notices = scene.parts.runner._notices
        text = notices._text

        def breaking(view, *rest, **more):  # type: ignore[no-untyped-def] # as it comes
            if view.waiting[0].lane.endswith("b"):
                raise RuntimeError("a bug")
            return text(view, *rest, **more)

        monkeypatch.setattr(notices, "_text", breaking)
        await scene.says("work", lane="a")
        await scene.engine.started()
        await scene.says("work", lane="b")
        await scene.says("work", lane="c")
        await scene.until(lambda: says(scene, "c", "you are 2nd"))
        assert scene.texts("b") == []
        for number in (1, 2, 3):
            (await scene.engine.started(number)).answer_with("done")
        await scene.until(lambda: scene.texts("b") == scene.texts("c") == ["done"])


async def test_who_waits_for_the_end_of_what_was_stopped_is_told_nothing(tmp_path: Path) -> None:
    async with Scene(tmp_path, LANEWAY_MAX_TURNS="1") as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.obeys = False
        run.say(Started("s"))
        await scene.says("/stop")
        await scene.until(lambda: run.stops > 0)
        await scene.says("next")
        await scene.says("elsewhere", lane="b")
        await scene.until(lambda: says(scene, "b", "Waiting"))  # both were looked at
        assert not says(scene, "main", "Waiting")
        run.say(Finished(Result.CANCELLED))
        run.end()
        for number in (2, 3):
            (await scene.engine.started(number)).answer_with("done")
        await scene.until(lambda: scene.texts("b") == ["done"])
        # Which of the two was first is open: the other may have been told that it waits for it.
        assert not says(scene, "main", "behind")
