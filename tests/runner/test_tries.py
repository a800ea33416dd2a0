"""A prompt that did not leave is tried again, and its turn shows itself in one message only."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import live, running
from core.engines.base import Started, Unsent
from tests.fakes.engine import PuppetRun
from tests.runner.scene import Scene


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "FIRST", 0.02)
    monkeypatch.setattr(live, "THINKING", 0.05)
    monkeypatch.setattr(running, "RETRY_PAUSE", 0.05)


def thinks(scene: Scene) -> bool:
    return any("thinking" in text for text in scene.texts())


async def first_try(scene: Scene) -> PuppetRun:
    """A slow hand-shake that shows itself, and then fails before the prompt has left."""
    await scene.says("hello")
    run = await scene.engine.started()
    await scene.until(lambda: thinks(scene))
    run.say(Unsent("the pipe is closed"))
    run.end()
    return run


async def test_the_next_try_goes_on_in_the_message_of_the_first(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await first_try(scene)
        second = await scene.engine.started(2)
        await scene.until(lambda: len(scene.texts()) == 1 and thinks(scene))
        second.answer_with("hi")
        await scene.until(lambda: scene.texts() == ["hi"])


async def test_a_turn_that_is_dropped_between_two_tries_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await scene.engine.started()
        await scene.until(lambda: thinks(scene))
        await scene.says("/pause")
        run.say(Unsent("the pipe is closed"))
        run.end()
        await scene.until(lambda: any("paused" in text for text in scene.texts()[1:]))
        await scene.says("/stop")
        await scene.until(lambda: not thinks(scene))


async def test_a_turn_that_is_given_up_says_so_in_place_of_what_it_showed(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await first_try(scene)
        for number in (2, 3):
            run = await scene.engine.started(number)
            run.say(Unsent("the pipe is closed"))
            run.end()
        await scene.until(lambda: not thinks(scene))
        (text,) = scene.texts()
        assert "could not be reached" in text


async def test_an_answer_of_a_turn_that_stood_in_a_slow_hand_shake_is_its_only_message(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await scene.engine.started()
        await scene.until(lambda: thinks(scene))
        run.say(Started("s"))
        run.answer_with("hi")
        await scene.until(lambda: scene.texts() == ["hi"])
