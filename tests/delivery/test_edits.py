"""Messages that are changed after they were sent: again and again without harm, or sent anew."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from core.channel import (
    ChatMoved,
    Delete,
    MessageGone,
    NotSent,
    RateLimited,
    Revise,
    Send,
    Uncertain,
)
from core.messages import Button
from core.store.records import DeliveryKind, DeliveryState, revises
from tests.delivery.scene import TOPIC, Scene
from tests.fakes import channel
from tests.fakes.channel import Fault

CARD, WAITING = DeliveryKind.CARD, DeliveryKind.WAITING
SENT, UNCERTAIN = DeliveryState.SENT, DeliveryState.UNCERTAIN


async def test_a_delivery_with_a_target_edits_it_with_its_keyboard(it: Scene) -> None:
    sent = await it.say("Allow?", kind=CARD, keyboard=((Button("b1", "Allow"),),))
    target = (await it.row(sent)).message_id
    await it.say("Allowed", kind=CARD, target=target)
    [message] = it.channel.shown()
    assert (message.text, message.keyboard) == ("Allowed", ())


async def test_an_edit_is_repeated_even_when_it_may_have_arrived(it: Scene) -> None:
    sent = await it.say("old")
    target = (await it.row(sent)).message_id
    it.channel.fail(Revise, Fault(Uncertain(), landed=True), NotSent(), RateLimited(2))
    delivery = await it.say("new", target=target)
    await it.clock.advance(30)
    assert await it.state(delivery) is SENT
    assert it.channel.texts() == ["new"]
    assert len(it.channel.of(Revise)) == 4


async def test_a_message_to_edit_that_is_gone_is_sent_anew_once(it: Scene) -> None:
    sent = await it.say("old")
    target = (await it.row(sent)).message_id
    it.channel.drop(target)
    delivery = await it.say("new", target=target)
    assert it.channel.texts() == ["new"]
    assert (len(it.channel.of(Revise)), len(it.channel.of(Send))) == (1, 2)
    assert (await it.row(delivery)).message_id == it.channel.shown()[0].message_id


async def test_a_lost_message_is_not_edited_again_but_the_one_in_its_place(it: Scene) -> None:
    sent = await it.say("old")
    target = (await it.row(sent)).message_id
    it.channel.drop(target)
    await it.say("new", target=target)
    await it.say("newer", target=target)
    assert it.channel.texts() == ["newer"]
    assert [call.action.message_id for call in it.channel.of(Revise)].count(target) == 1


async def test_one_that_is_named_by_what_made_it_is_not_lost_again_and_again(it: Scene) -> None:
    notice = await it.say("one waits")
    it.channel.drop((await it.row(notice)).message_id)
    await it.say("two wait", target=revises(notice.id))
    await it.say("three wait", target=revises(notice.id))
    assert it.channel.texts() == ["three wait"]
    it.channel.drop(it.channel.shown()[0].message_id)
    await it.say("four wait", target=revises(notice.id))
    await it.say("", kind=WAITING, target=revises(notice.id))
    assert it.channel.texts() == []


async def test_no_message_where_a_chat_moved_to_is_taken_for_one_it_left_behind(it: Scene) -> None:
    old = await it.say("one waits", TOPIC)
    [address] = {message.address for message in it.channel.shown()}
    await it.follow(address, "-100777")
    it.outbox.moved("telegram", "-100", "-100777")
    await it.say("an answer", TOPIC)
    calls = len(it.channel.calls)
    await it.say("", TOPIC, kind=WAITING, target=revises(old.id))
    assert len(it.channel.calls) == calls
    await it.say("two wait", TOPIC, target=revises(old.id))
    await it.say("three wait", TOPIC, target=revises(old.id))
    assert it.channel.texts("-100777") == ["an answer", "three wait"]


async def test_a_place_that_counts_its_messages_anew_may_give_a_lost_one_its_old_number(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await it.say("one waits", TOPIC)
    number = int((await it.row(old)).message_id)
    [address] = {message.address for message in it.channel.shown()}
    await it.follow(address, "-100777")
    it.outbox.moved("telegram", "-100", "-100777")
    monkeypatch.setattr(channel, "_NUMBERS", count(number))
    for text in ("two wait", "three wait"):
        async with asyncio.timeout(5):
            await it.say(text, TOPIC, target=revises(old.id))
    assert it.channel.texts("-100777") == ["three wait"]


@pytest.mark.parametrize("named", [True, False])
async def test_what_a_chat_that_moved_left_behind_is_known_after_a_restart_too(
    it: Scene, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    old = await it.say("one waits", TOPIC)
    number = (await it.row(old)).message_id
    it.channel.fail(Revise, RateLimited(60))
    if not named:
        await it.say("two wait", TOPIC, target=number)
    [address] = {message.address for message in it.channel.shown()}
    await it.follow(address, "-100777")
    edits = len(it.channel.of(Revise))
    await it.restart()
    monkeypatch.setattr(channel, "_NUMBERS", count(int(number)))
    card = await it.say("Allow?", TOPIC, kind=CARD)
    assert (await it.row(card)).message_id in (number, str(int(number) + 1))
    if named:
        await it.say("two wait", TOPIC, target=revises(old.id))
    await it.clock.advance(61)
    assert sorted(it.channel.texts("-100777")) == ["Allow?", "two wait"]
    assert len(it.channel.of(Revise)) == edits


async def test_what_was_lost_does_not_draw_a_later_message_of_its_number_to_itself(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await it.say("one waits", TOPIC)
    number = int((await it.row(old)).message_id)
    [address] = {message.address for message in it.channel.shown()}
    await it.follow(address, "-100777")
    it.outbox.moved("telegram", "-100", "-100777")
    monkeypatch.setattr(channel, "_NUMBERS", count(number - 1))
    await it.say("two wait", TOPIC, target=revises(old.id))
    card = await it.say("Allow?", TOPIC, kind=CARD)
    assert (await it.row(card)).message_id == str(number)
    await it.say("Allowed", TOPIC, kind=CARD, target=revises(card.id))
    await it.say("three wait", TOPIC, target=revises(old.id))
    assert sorted(it.channel.texts("-100777")) == ["Allowed", "three wait"]


async def test_what_waits_when_its_chat_moves_is_sent_where_it_lives_then(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(5))
    await it.say("words", TOPIC)
    [call] = it.channel.calls
    await it.follow(call.action.address, "-100777")
    it.outbox.moved("telegram", "-100", "-100777")
    await it.clock.advance(6)
    assert it.channel.texts("-100777") == ["words"]
    assert {one.action.address.chat for one in it.channel.calls[1:]} == {"-100777"}


async def test_a_crash_while_it_is_sent_anew_leaves_it_uncertain(it: Scene) -> None:
    sent = await it.say("old")
    target = (await it.row(sent)).message_id
    it.channel.drop(target)
    it.channel.slow(Send, 5)
    delivery = await it.say("new", target=target)
    await it.restart()
    await it.clock.advance(60)
    assert await it.state(delivery) is UNCERTAIN
    assert it.channel.texts() == []


async def test_an_edit_can_name_the_delivery_whose_message_it_changes(it: Scene) -> None:
    it.channel.slow(Send, 3)
    card = await it.say("Allow?", kind=CARD)
    edit = await it.say("Cancelled", kind=CARD, target=revises(card.id))
    assert it.channel.texts() == []
    await it.clock.advance(3)
    assert it.channel.texts() == ["Cancelled"]
    assert await it.state(edit) is SENT


async def test_also_after_a_restart(it: Scene) -> None:
    card = await it.say("Allow?", kind=CARD)
    await it.restart()
    await it.say("Expired", kind=CARD, target=revises(card.id))
    assert it.channel.texts() == ["Expired"]


async def test_a_change_of_what_never_came_to_be_is_withdrawn(it: Scene) -> None:
    it.channel.fail(Send, Uncertain())
    card = await it.say("Allow?", kind=CARD)
    edit = await it.say("Cancelled", kind=CARD, target=revises(card.id))
    assert await it.state(edit) is DeliveryState.WITHDRAWN
    assert len(it.channel.calls) == 1


async def test_of_edits_that_wait_only_the_newest_is_made(it: Scene) -> None:
    first = await it.say("1 waiting", kind=WAITING)
    it.channel.fail(Revise, RateLimited(10))
    edits = [
        await it.say(f"{n} waiting", kind=WAITING, target=revises(first.id)) for n in (2, 3, 4, 5)
    ]
    await it.clock.advance(11)
    assert it.channel.shown()[0].history == ["1 waiting", "2 waiting", "5 waiting"]
    assert [await it.state(edit) for edit in edits] == [
        SENT,
        DeliveryState.WITHDRAWN,
        DeliveryState.WITHDRAWN,
        SENT,
    ]


async def test_an_edit_to_nothing_takes_the_message_away(it: Scene) -> None:
    first = await it.say("1 waiting", kind=WAITING)
    await it.say("", kind=WAITING, target=revises(first.id))
    assert it.channel.texts() == []
    assert len(it.channel.of(Delete)) == 1


async def test_taking_away_what_is_gone_already_is_no_fault(it: Scene) -> None:
    first = await it.say("1 waiting", kind=WAITING)
    it.channel.fail(Delete, MessageGone())
    gone = await it.say("", kind=WAITING, target=revises(first.id))
    assert await it.state(gone) is SENT
    assert len(it.channel.of(Send)) == 1


async def test_an_edit_in_a_chat_that_moved_is_sent_anew_there(it: Scene) -> None:
    sent = await it.say("old", TOPIC)
    it.channel.fail(Revise, ChatMoved("-100777"))
    await it.say("new", TOPIC, target=(await it.row(sent)).message_id)
    assert it.channel.texts("-100777") == ["new"]
