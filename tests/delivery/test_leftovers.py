"""What an earlier process left to send: what goes out after a restart, and what is uncertain."""

from __future__ import annotations

from pathlib import Path

from core.channel import (
    NotSent,
    RateLimited,
    Revise,
    Send,
)
from core.store.records import DeliveryState
from tests.delivery.scene import Scene, scene

SENT, UNCERTAIN = DeliveryState.SENT, DeliveryState.UNCERTAIN


async def test_pending_deliveries_go_out_after_a_restart_in_order(it: Scene) -> None:
    it.channel.fail(Send, *[NotSent()] * 3)
    await it.say_all(["one", "two", "three"])
    await it.restart()
    await it.clock.advance(60)
    assert it.channel.texts() == ["one", "two", "three"]


async def test_a_send_in_flight_at_a_crash_is_uncertain_and_not_repeated(it: Scene) -> None:
    it.channel.slow(Send, 5, late=True)
    first, second = await it.say_all(["one", "two"])
    await it.restart()
    it.channel.land()
    await it.clock.advance(60)
    assert sorted(it.channel.texts()) == ["one", "two"]
    assert await it.state(first) is UNCERTAIN
    assert await it.state(second) is SENT


async def test_an_edit_at_a_crash_is_repeated(it: Scene) -> None:
    sent = await it.say("old")
    it.channel.slow(Revise, 5)
    edit = await it.say("new", target=(await it.row(sent)).message_id)
    await it.restart()
    assert it.channel.texts() == ["new"]
    assert await it.state(edit) is SENT


async def test_a_young_send_is_repeated_where_repetitions_are_told_apart(tmp_path: Path) -> None:
    async with scene(tmp_path, idempotent_sends=True) as it:
        it.channel.slow(Send, 5, late=True)
        await it.say("hello")
        await it.crash()
        it.channel.land()
        await it.start(restore=True)
        assert it.channel.texts() == ["hello"]
        assert len(it.channel.of(Send)) == 2


async def test_a_crash_in_a_penalty_loses_nothing(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(30))
    delivery = await it.say("hello")
    await it.clock.advance(10)
    await it.restart()
    assert it.channel.texts() == ["hello"]
    assert await it.state(delivery) is SENT
