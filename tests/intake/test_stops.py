"""Stops: at once and from memory, by whom they may be, each of them once."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Literal

import pytest

from core.lane_commands import News, Refusal, Tell
from core.turns import Status, Stop, StopKind
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, BEN, LAB, MAL, Scene, opened


async def test_a_stop_cancels_before_it_is_stored_and_is_stored_as_well(scene: Scene) -> None:
    await scene.say("work")
    await scene.say("/stop")
    (turn,) = await scene.turns()
    assert scene.rules.cancelled == [(turn.lane, Stop(StopKind.STOP, ANA), None)]
    assert turn.stop == Stop(StopKind.STOP, ANA)


async def test_a_stop_does_not_wait_for_a_disk_that_does_not_answer(scene: Scene) -> None:
    await scene.say("work")
    scene.rules.stuck = asyncio.Event()
    message = scene.message("/stop")
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.intake.accept([message]), name="accept")
        async with asyncio.timeout(30):
            while not scene.rules.cancelled:
                await asyncio.sleep(0.001)
        scene.rules.stuck.set()
    assert len(scene.rules.cancelled) == 1
    assert (await scene.turns())[0].stop is not None


async def test_a_glance_carries_out_a_stop_and_stores_nothing(scene: Scene) -> None:
    await scene.say("work")
    stop = scene.message("/stop")
    scene.intake.glance([stop, scene.message("more work")])
    assert len(scene.rules.cancelled) == 1
    assert len(await scene.turns()) == 1
    await scene.intake.accept([stop])
    assert len(scene.rules.cancelled) == 1, "one stop cancels once"
    assert (await scene.turns())[0].stop is not None


async def test_a_stop_that_is_delivered_again_does_not_end_the_next_turn(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with opened(tmp_path, clock) as scene:
        await scene.say("work")
        stop = await scene.say("/stop")
    async with opened(tmp_path, clock) as scene:
        await scene.say("next")
        await scene.intake.accept([stop])
        assert scene.rules.cancelled == []
        assert (await scene.turns())[-1].stop is None


async def test_a_stranger_stops_nothing(scene: Scene) -> None:
    await scene.mention("work")
    stop = scene.message("/stop", MAL, chat=LAB, addressed=True)
    scene.intake.glance([stop])
    await scene.intake.accept([stop])
    assert scene.rules.cancelled == []


async def test_a_stop_that_is_not_for_us_is_nothing(scene: Scene) -> None:
    await scene.mention("work")
    stop = scene.message("!stop", BEN, chat=LAB)
    scene.intake.glance([stop])
    await scene.intake.accept([stop])
    assert scene.rules.cancelled == []
    assert scene.told == []


async def test_in_an_engaged_thread_a_stop_needs_no_mention(scene: Scene) -> None:
    await scene.mention("work", thread="36", engages=True)
    scene.intake.glance([scene.message("!stop", BEN, chat=LAB, thread="36", engages=True)])
    assert [lane for lane, _, _ in scene.rules.cancelled] == [f"telegram:{LAB}:36"]


async def test_a_stop_names_what_it_dropped_and_drops_only_ones_own_for_others(
    scene: Scene,
) -> None:
    await scene.mention("work of Ana")
    await scene.mention("waits of Ana")
    await scene.mention("waits of Ben", BEN)
    await scene.mention("/stop", BEN)
    (told,) = scene.told
    assert isinstance(told, Tell)
    assert told.news is News.STOPPED
    assert [turn.label for turn in told.dropped] == ["waits of Ben"]
    assert [turn.status for turn in await scene.turns()][1] is Status.WAITING


async def test_a_skip_ends_what_runs_and_keeps_what_waits(scene: Scene) -> None:
    await scene.say("work")
    await scene.say("next")
    await scene.say("/skip")
    assert scene.rules.cancelled[0][1].kind is StopKind.SKIP
    assert [turn.status for turn in await scene.turns()] == [Status.STARTING, Status.WAITING]


async def test_a_stop_button_ends_its_own_turn_only(scene: Scene) -> None:
    await scene.say("work")
    (turn,) = await scene.turns()
    button = await scene.button(turn.lane, "stop", turn.id)
    assert await scene.press(button) == "Stopping."
    assert {one for _, _, one in scene.rules.cancelled} == {turn.id}
    await scene.run(turn.id)
    await scene.say("next")
    assert "over already" in await scene.press(button)
    assert (await scene.turns())[1].stop is None


async def test_a_senders_stop_drops_the_group_that_was_still_open(scene: Scene) -> None:
    await scene.say("work")
    await scene.say("x" * 4000)
    await scene.say("/stop")
    assert [turn.status for turn in await scene.turns()][1] is Status.DROPPED


async def test_a_disk_that_cannot_be_read_holds_messages_up_but_no_stop(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.say("work")
    readable = scene.store._read

    async def unreadable(query: str, parameters: dict[str, object]) -> list[sqlite3.Row]:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    monkeypatch.setattr(scene.store, "_read", unreadable)
    stop, after = scene.message("/stop"), scene.message("next")
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.intake.accept([stop, after]), name="accept")
        await scene.clock.advance(10)
        assert len(scene.rules.cancelled) == 1
        monkeypatch.setattr(scene.store, "_read", readable)
        await scene.clock.advance(10)
    turns = await scene.turns()
    assert [turn.label for turn in turns] == ["work", "next"]
    assert turns[0].stop is not None
    assert len(scene.rules.cancelled) == 1


class Jam(asyncio.Event):
    """A disk that does not answer; known to be asked."""

    reached = False

    async def wait(self) -> Literal[True]:
        self.reached = True
        return await super().wait()


async def test_a_skip_that_is_stored_late_ends_no_later_turn(scene: Scene) -> None:
    await scene.say("work")
    await scene.say("next")
    first, _ = await scene.turns()
    scene.rules.stuck = jam = Jam()
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.say("/skip"), name="skip")
        while not jam.reached:
            await asyncio.sleep(0)
        scene.rules.stuck = None
        await scene.run(first.id)
        assert (await scene.turns())[1].status is Status.STARTING
        jam.set()
    assert (await scene.turns())[1].stop is None
    (told,) = scene.told
    assert isinstance(told, Tell)
    assert told.reason is Refusal.OVER


async def test_a_stop_that_is_stored_late_ends_what_it_would_have_dropped(scene: Scene) -> None:
    await scene.mention("work", ANA)
    await scene.mention("of Ben", BEN)
    first, _ = await scene.turns()
    scene.rules.stuck = jam = Jam()
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.mention("/stop", ANA), name="stop")
        while not jam.reached:
            await asyncio.sleep(0)
        scene.rules.stuck = None
        await scene.run(first.id)
        jam.set()
    stop = (await scene.turns())[1].stop
    assert stop is not None
    assert stop.by == ANA


@pytest.mark.parametrize("direct", [True, False])
async def test_a_strangers_stop_costs_no_look_into_the_store(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    async def noting(query: str, **parameters: object) -> list[sqlite3.Row]:
        raise AssertionError("the store was asked")

    monkeypatch.setattr(scene.store, "fetch_now", noting)
    where = {} if direct else {"chat": LAB, "addressed": True}
    await scene.intake._stopping.first([scene.message("/stop", MAL, **where)])
    assert scene.rules.cancelled == []
