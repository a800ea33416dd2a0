"""Typing, reactions, titles and answers to presses: seen when possible, in the way never."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.channel import (
    AnswerPress,
    Forbidden,
    NotSent,
    RateLimited,
    React,
    Refused,
    Retitle,
    Revise,
    Send,
    Typing,
    Uncertain,
)
from core.messages import Address, Receipt
from core.signs import REACTION_AFTER
from tests.delivery.scene import ANA, BEN, OTHER_TOPIC, TOPIC, Scene, scene
from tests.fakes.channel import Fault

RECEIVED, WAITING, NONE = Receipt.RECEIVED, Receipt.WAITING, Receipt.NONE


async def typing(it: Scene, lane: str = ANA, seconds: float = 0.0) -> None:
    it.outbox.typing(lane)
    await it.clock.advance(seconds)


async def react(it: Scene, receipt: Receipt, message: str = "41", lane: str = ANA) -> None:
    it.outbox.react(lane, message, receipt)
    await it.clock.settle()


# Typing -------------------------------------------------------------------------------------


async def test_typing_goes_into_the_thread(it: Scene) -> None:
    await typing(it, TOPIC)
    assert it.channel.calls[0].action == Typing(Address("telegram", "-100", "36"))


async def test_a_penalty_for_typing_holds_typing_and_no_answer(it: Scene) -> None:
    it.channel.fail(Typing, RateLimited(30))
    for _ in range(8):
        await typing(it, seconds=3)
    assert len(it.channel.of(Typing)) == 1
    await it.answer("answer", turn=await it.turn())
    assert it.channel.texts() == ["answer"]
    await it.clock.advance(10)
    await typing(it)
    assert len(it.channel.of(Typing)) == 2


async def test_nothing_cosmetic_is_sent_inside_a_penalty(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(10))
    await it.say("hello")
    turn = await it.turn()
    for second in range(9):
        await typing(it)
        await react(it, RECEIVED)
        await it.preview(turn, f"{second}")
        await it.clock.advance(1)
    assert [call.kind for call in it.channel.calls] == [Send]


async def test_other_chats_type_on_meanwhile(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(10))
    await it.say("hello", ANA)
    await typing(it, BEN)
    assert len(it.channel.of(Typing)) == 1


async def test_a_hanging_typing_call_is_given_up_and_not_doubled(it: Scene) -> None:
    it.channel.slow(Typing, 3600)
    for _ in range(5):
        await typing(it, seconds=0.9)
    assert len(it.channel.of(Typing)) == 1
    await it.clock.advance(1)
    await typing(it)
    assert len(it.channel.of(Typing)) == 2


@pytest.mark.parametrize("fault", [Uncertain(), Forbidden(), NotSent(), Fault(seconds=3600)])
async def test_failing_typing_delays_no_answer(it: Scene, fault: Exception) -> None:
    it.channel.fail(Typing, *[fault] * 3)
    await typing(it)
    before = it.clock.monotonic()
    await it.answer("answer", turn=await it.turn())
    assert it.channel.texts() == ["answer"]
    assert it.clock.monotonic() == before
    assert it.failed == []


async def test_an_answer_ends_typing_before_it_goes(it: Scene) -> None:
    it.channel.slow(Typing, 4)
    await typing(it)
    await it.answer("answer", turn=await it.turn())
    await it.clock.advance(10)
    assert it.channel.of(Typing)[0].done_at is None


async def test_typing_does_not_use_up_what_a_chat_may_send(it: Scene) -> None:
    for _ in range(5):
        await typing(it)
    await it.say_all(["1", "2", "3", "4", "5"])
    assert len(it.channel.texts()) == 5


async def test_typing_in_an_unknown_lane_is_no_fault(it: Scene) -> None:
    await typing(it, "telegram:404")
    assert it.channel.calls == []


# Reactions ----------------------------------------------------------------------------------


async def test_a_receipt_becomes_a_reaction_and_is_taken_back(it: Scene) -> None:
    await react(it, RECEIVED)
    await it.clock.advance(REACTION_AFTER)
    assert it.channel.reactions == {("700000001", "41"): RECEIVED}
    await react(it, NONE)
    await it.clock.advance(REACTION_AFTER)
    assert it.channel.reactions == {("700000001", "41"): NONE}


async def test_what_is_answered_at_once_gets_no_reaction(it: Scene) -> None:
    await react(it, RECEIVED)
    await react(it, NONE)
    await it.clock.advance(10)
    assert it.channel.of(React) == []


async def test_the_newest_receipt_wins(it: Scene) -> None:
    it.channel.slow(React, 5)
    await react(it, RECEIVED)
    await it.clock.advance(REACTION_AFTER)
    await react(it, WAITING)
    await react(it, NONE)
    await it.clock.advance(10)
    assert [call.action.receipt for call in it.channel.of(React)] == [RECEIVED, NONE]


async def test_what_was_never_shown_needs_no_taking_back(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(5))
    await it.say("hello")
    await react(it, RECEIVED)
    await react(it, NONE)
    await it.clock.advance(60)
    assert it.channel.of(React) == []


async def test_but_what_an_earlier_process_left_does(it: Scene) -> None:
    await react(it, RECEIVED)
    await it.clock.advance(REACTION_AFTER)
    await it.restart()
    await react(it, NONE)
    await it.clock.advance(REACTION_AFTER)
    assert it.channel.reactions == {("700000001", "41"): NONE}


async def test_the_same_receipt_is_given_once(it: Scene) -> None:
    await react(it, RECEIVED)
    await react(it, RECEIVED)
    await it.clock.advance(10)
    assert len(it.channel.of(React)) == 1


async def test_reactions_take_only_calls_to_spare(it: Scene) -> None:
    for n in range(40):
        await react(it, RECEIVED, str(n), TOPIC)
    before = it.clock.monotonic()
    await it.say_all(["1", "2", "3", "4"], OTHER_TOPIC)
    assert len(it.channel.of(Send)) == 4
    assert it.clock.monotonic() == before


async def test_a_platform_without_reactions_gets_none(tmp_path: Path) -> None:
    async with scene(tmp_path, receipts={}) as it:
        await react(it, RECEIVED)
        assert it.channel.calls == []


async def test_a_reaction_that_is_refused_is_given_up(it: Scene) -> None:
    it.channel.fail(React, Refused())
    await react(it, RECEIVED)
    await it.clock.advance(600)
    assert len(it.channel.calls) == 1


async def test_a_penalty_for_a_reaction_holds_no_message(it: Scene) -> None:
    it.channel.fail(React, RateLimited(30))
    await react(it, RECEIVED)
    await it.say("hello")
    assert it.channel.texts() == ["hello"]


# Titles -------------------------------------------------------------------------------------


async def test_the_newest_title_wins(it: Scene) -> None:
    it.channel.slow(Retitle, 5)
    for title in ("a", "b", "c"):
        it.outbox.retitle(TOPIC, title)
        await it.clock.settle()
    await it.clock.advance(30)
    assert it.channel.titles == {Address("telegram", "-100", "36"): "c"}
    assert len(it.channel.of(Retitle)) == 2


async def test_a_title_waits_for_its_own_limit_and_holds_nothing_else(it: Scene) -> None:
    it.channel.fail(Retitle, RateLimited(300))
    it.outbox.retitle(TOPIC, "plans")
    await it.clock.settle()
    turn = await it.turn(TOPIC)
    await it.preview(turn, "a", lane=TOPIC)
    await it.say("hello", TOPIC)
    assert it.channel.texts() == ["a", "hello"]
    await it.clock.advance(301)
    assert list(it.channel.titles.values()) == ["plans"]


async def test_a_platform_without_titles_is_not_asked(tmp_path: Path) -> None:
    async with scene(tmp_path, titles=False) as it:
        it.outbox.retitle(TOPIC, "plans")
        await it.clock.advance(1)
        assert it.channel.calls == []


# Presses ------------------------------------------------------------------------------------


async def test_a_press_is_answered_at_once_even_while_its_chat_is_limited(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(60))
    await it.say("hello")
    it.outbox.answer_press("telegram", "cb1", "Allowed")
    await it.clock.settle()
    assert it.channel.presses == [AnswerPress("cb1", "Allowed")]


async def test_an_answer_to_a_press_is_given_once_but_tried_while_it_counts(it: Scene) -> None:
    it.channel.fail(AnswerPress, NotSent(), RateLimited(2))
    it.outbox.answer_press("telegram", "cb1", "Allowed", alert=True)
    await it.clock.advance(5)
    assert it.channel.presses == [AnswerPress("cb1", "Allowed", True)]


async def test_an_answer_to_a_press_that_is_too_old_is_given_up(it: Scene) -> None:
    it.channel.fail(AnswerPress, Refused("query is too old"))
    it.outbox.answer_press("telegram", "cb1", "Allowed")
    it.channel.fail(AnswerPress, RateLimited(300))
    it.outbox.answer_press("telegram", "cb2", "Allowed")
    await it.clock.advance(600)
    assert it.channel.presses == []
    assert len(it.channel.calls) == 2


async def test_a_hanging_answer_to_a_press_ends(it: Scene) -> None:
    it.channel.slow(AnswerPress, 3600)
    it.outbox.answer_press("telegram", "cb1", "Allowed")
    await it.clock.advance(20)
    assert it.clock.sleeping == 0


async def test_a_message_is_still_edited_when_a_press_cannot_be_answered(it: Scene) -> None:
    sent = await it.say("Allow?")
    it.channel.slow(AnswerPress, 3600)
    it.outbox.answer_press("telegram", "cb1", "Allowed")
    await it.say("Allowed", target=(await it.row(sent)).message_id)
    assert len(it.channel.of(Revise)) == 1
