"""A fault of our own costs what it broke and nothing else: not the line, not the outbox."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest

from core.channel import ChatMoved, Refused, Revise, Send
from core.guard import guarded
from core.messages import Address, Receipt
from core.signs import REACTION_AFTER
from core.store.records import DeliveryKind, DeliveryState
from tests.delivery.scene import ANA, BEN, TOPIC, Scene

SENT, FAILED = DeliveryState.SENT, DeliveryState.FAILED
UNCERTAIN = DeliveryState.UNCERTAIN


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a bug")


async def failing(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a bug")


async def test_a_broken_task_ends_alone_and_whoever_started_it_hears_of_it() -> None:
    heard: list[Exception] = []
    async with asyncio.TaskGroup() as group:
        task = guarded(group, failing(), "a sign", heard.append)
        other = guarded(group, asyncio.sleep(0.01), "another")
        cancelled = guarded(group, asyncio.sleep(10), "never begun")
        cancelled.cancel()
    assert [str(fault) for fault in heard] == ["a bug"]
    assert task.exception() is None
    assert not other.cancelled()
    assert cancelled.cancelled()


async def test_a_delivery_that_breaks_fails_and_what_stands_behind_it_is_sent(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(it.outbox._delivering, "_await_turn", failing)
        first = await it.say("first", kind=DeliveryKind.CARD)
    second = await it.say("second", kind=DeliveryKind.CARD)
    assert await it.state(first) is FAILED
    assert await it.state(second) is SENT
    [(failed, error)] = it.failed
    assert failed == first
    assert isinstance(error, Refused)


async def test_a_delivery_that_breaks_after_its_call_began_is_uncertain(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(it.outbox._calls, "do", failing)
        first = await it.say("first")
    second = await it.say("second")
    assert await it.state(first) is UNCERTAIN
    assert await it.state(second) is SENT
    async with asyncio.timeout(30):
        await it.outbox.rest(1)


async def test_a_message_id_that_cannot_be_stored_holds_nothing_up(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(it.channel, "_new", lambda *_: "lone \ud800")
        first = await it.say("first")
    second = await it.say("second")
    assert await it.state(first) is UNCERTAIN
    assert await it.state(second) is SENT


async def test_who_hears_of_failures_may_break_too(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    it.channel.fail(Send, Refused("no"))
    monkeypatch.setattr(it.outbox, "_on_failed", broken)
    first = await it.say("first")
    second = await it.say("second")
    assert await it.state(first) is FAILED
    assert await it.state(second) is SENT


async def test_a_preview_that_breaks_is_shown_no_more_and_the_answer_comes(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, other = await it.turn(), await it.turn(BEN)
    await it.preview(turn, "so far")
    await it.clock.advance(2)
    with monkeypatch.context() as patch:
        patch.setattr(it.outbox._calls, "do", failing)
        await it.preview(turn, "so far and on")
        await it.clock.advance(2)
    await it.preview(turn, "so far and on and on")
    await it.preview(other, "of Ben", lane=BEN)
    await it.clock.advance(2)
    assert [call.text for call in it.channel.calls] == ["so far", "of Ben"]
    answer = await it.answer("done", turn=turn)
    await it.clock.advance(2)
    assert await it.state(answer) is SENT
    assert it.channel.texts("700000001") == ["done"]


async def test_a_broken_sign_is_the_end_of_that_sign_alone(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(it.outbox._calls, "place", failing)
        patch.setattr(it.outbox._calls, "do", failing)
        it.outbox.typing(ANA)
        it.outbox.react(ANA, "41", Receipt.RECEIVED)
        it.outbox.retitle(ANA, "work")
        it.outbox.answer_press("telegram", "p1", "yes")
        await it.clock.advance(REACTION_AFTER)
    it.outbox.react(ANA, "41", Receipt.RECEIVED)
    it.outbox.retitle(ANA, "more work")
    await it.clock.advance(REACTION_AFTER)
    assert it.channel.reactions[("700000001", "41")] is Receipt.RECEIVED
    assert it.channel.titles == {Address("telegram", "700000001"): "more work"}


async def test_nothing_is_lost_while_the_disk_cannot_be_read(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(query: str, parameters: dict[str, object]) -> list[sqlite3.Row]:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    turn = await it.turn()
    with monkeypatch.context() as patch:
        patch.setattr(it.store, "_read", unreadable)
        said = await it.say("hello", BEN)
        it.outbox.typing(ANA)
        it.outbox.react(ANA, "41", Receipt.RECEIVED)
        await it.preview(turn, "so far")
        await it.clock.advance(60)
        assert it.channel.calls == []
    await it.clock.advance(10)
    assert await it.state(said) is SENT
    assert it.channel.texts("700000001") == ["so far"]


async def test_a_chat_that_moved_is_written_to_even_if_the_move_cannot_be_stored(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(it.outbox, "_follow", failing)
    it.channel.fail(Send, ChatMoved("-1007"))
    said = await it.say("hello", TOPIC)
    assert await it.state(said) is SENT
    assert it.channel.texts("-1007") == ["hello"]
    await it.say("more", TOPIC)
    assert it.channel.texts("-1007") == ["hello", "more"]


@pytest.mark.parametrize("kind", [Send, Revise])
async def test_a_platforms_code_that_breaks_is_not_called_again_and_the_person_is_told(
    it: Scene, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await it.turn()
    if kind is Revise:
        await it.preview(turn, "so far")
        await it.clock.advance(2)
    with monkeypatch.context() as patch:
        patch.setattr(it.channel, "decide", lambda action: isinstance(action, kind) and broken())
        answer = await it.answer("done", turn=turn)
        await it.clock.advance(5)
    second = await it.say("second")
    assert await it.state(answer) is (FAILED if kind is Revise else UNCERTAIN)
    assert await it.state(second) is SENT
    [(failed, error)] = it.failed
    assert failed == answer
    assert "a bug" not in str(error)
