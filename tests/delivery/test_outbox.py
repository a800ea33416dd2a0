"""What the outbox promises for every message that is stored: in order, once, never lost."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from core.channel import (
    ChatMoved,
    Delete,
    Forbidden,
    FormatRefused,
    NotSent,
    RateLimited,
    Refused,
    Send,
    SendFile,
    ThreadGone,
    Uncertain,
)
from core.messages import Address, Part
from core.store.records import DeliveryKind, DeliveryState, revises
from tests.delivery.scene import ANA, BEN, OTHER_TOPIC, TOPIC, Scene, scene
from tests.fakes.channel import Fault

ANSWER, COMMAND, NOTICE = DeliveryKind.ANSWER, DeliveryKind.COMMAND, DeliveryKind.NOTICE
WAITING = DeliveryKind.WAITING
PENDING, SENT, FAILED = DeliveryState.PENDING, DeliveryState.SENT, DeliveryState.FAILED
UNCERTAIN, IN_FLIGHT = DeliveryState.UNCERTAIN, DeliveryState.IN_FLIGHT


# First sends --------------------------------------------------------------------------------


async def test_a_message_is_sent_to_its_lanes_thread_and_its_id_is_stored(it: Scene) -> None:
    delivery = await it.say("hello", TOPIC)
    assert [(m.address, m.text) for m in it.channel.shown()] == [
        (Address("telegram", "-100", "36"), "hello")
    ]
    row = await it.row(delivery)
    assert row.state is SENT
    assert row.message_id == it.channel.shown()[0].message_id
    assert row.sent_at == it.clock.now()


async def test_a_first_send_is_marked_in_flight_before_the_call(it: Scene) -> None:
    it.channel.slow(Send, 5)
    delivery = await it.say("hello")
    assert len(it.channel.calls) == 1
    assert await it.state(delivery) is IN_FLIGHT
    await it.clock.advance(5)
    assert await it.state(delivery) is SENT


async def test_messages_of_a_lane_keep_their_order(it: Scene) -> None:
    it.channel.seconds = 0.3
    await it.say_all(["one", "two", "three"])
    await it.say("four")
    await it.clock.advance(10)
    assert it.channel.texts() == ["one", "two", "three", "four"]


async def test_a_file_is_sent_as_a_file(it: Scene) -> None:
    await it.say("", kind=DeliveryKind.FILE, file="/srv/plot.png")
    [call] = it.channel.of(SendFile)
    assert call.action.path == Path("/srv/plot.png")


async def test_what_is_taken_away_before_it_was_sent_is_never_sent(it: Scene) -> None:
    await it.say_all([str(number) for number in range(30)], TOPIC)  # the group's rate is used up
    notice = await it.say("Waiting", OTHER_TOPIC, kind=WAITING)
    gone = await it.say("", OTHER_TOPIC, kind=WAITING, target=revises(notice.id))
    answer = await it.say("the answer", OTHER_TOPIC)
    await it.clock.advance(180)
    assert "Waiting" not in [call.action.part.text for call in it.channel.of(Send)]
    assert it.channel.of(Delete) == []
    states = [await it.state(one) for one in (notice, gone, answer)]
    assert states == [DeliveryState.WITHDRAWN, DeliveryState.WITHDRAWN, SENT]


async def test_what_was_handed_over_before_it_ran_goes_out_when_it_runs(tmp_path: Path) -> None:
    async with scene(tmp_path, run=False) as it:
        it.make()
        await it.say("early")
        assert it.channel.calls == []
        running = asyncio.create_task(it.outbox.run())
        await it.clock.settle()
        assert it.channel.texts() == ["early"]
        running.cancel()
        await asyncio.wait([running])


async def test_every_try_of_a_delivery_carries_the_same_nonce(it: Scene) -> None:
    it.channel.fail(Send, NotSent(), RateLimited(1), NotSent())
    await it.say("hello")
    await it.clock.advance(60)
    nonces = {call.action.nonce for call in it.channel.of(Send)}
    assert len(it.channel.calls) == 4
    assert len(nonces) == 1
    assert len(nonces.pop()) in range(1, 26)


# What may have arrived ------------------------------------------------------------------------


async def test_a_send_that_may_have_arrived_is_never_sent_again(it: Scene) -> None:
    it.channel.fail(Send, Fault(Uncertain("time-out"), landed=True))
    delivery = await it.say("short answer", kind=ANSWER)
    await it.clock.advance(3600)
    assert it.channel.texts() == ["short answer"]
    row = await it.row(delivery)
    assert (row.state, row.error) == (UNCERTAIN, "time-out")


async def test_the_parts_after_an_uncertain_one_still_go(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, Uncertain())
    await it.answer("first", "second", "third", turn=turn)
    assert it.channel.texts() == ["second", "third"]


async def test_where_repetitions_are_told_apart_it_is_tried_again(tmp_path: Path) -> None:
    async with scene(tmp_path, idempotent_sends=True) as it:
        it.channel.fail(Send, Fault(Uncertain(), landed=True), Uncertain())
        delivery = await it.say("hello")
        await it.clock.advance(30)
        assert it.channel.texts() == ["hello"]
        assert len(it.channel.calls) == 3
        assert await it.state(delivery) is SENT


async def test_but_only_as_long_as_the_platform_knows_the_nonce(tmp_path: Path) -> None:
    async with scene(tmp_path, idempotent_sends=True) as it:
        it.channel.fail(Send, *[Uncertain()] * 50)
        delivery = await it.say("hello")
        await it.clock.advance(600)
        assert await it.state(delivery) is UNCERTAIN
        assert it.channel.calls[-1].at < 240


async def test_a_fault_in_a_channels_code_ends_one_delivery_and_nothing_else(it: Scene) -> None:
    it.channel.fail(Send, Fault(ZeroDivisionError("bug")))  # type: ignore[arg-type] # a bug
    delivery = await it.say("hello")
    await it.say("next")
    assert await it.state(delivery) is UNCERTAIN
    assert it.channel.texts() == ["next"]


# What certainly did not arrive ----------------------------------------------------------------


async def test_what_never_left_is_tried_again_with_growing_pauses_for_ever(it: Scene) -> None:
    it.channel.fail(Send, *[NotSent("refused")] * 30)
    delivery = await it.say("hello")
    await it.clock.advance(3600)
    times = [call.at for call in it.channel.calls]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert pauses[0] == pytest.approx(1, abs=0.1)
    assert pauses == sorted(pauses)
    assert max(pauses) == pytest.approx(60, abs=0.1)
    assert len(times) == 31
    assert await it.state(delivery) is SENT
    assert it.channel.texts() == ["hello"]


async def test_while_it_waits_for_a_retry_it_is_not_marked_in_flight(it: Scene) -> None:
    it.channel.fail(Send, NotSent())
    delivery = await it.say("hello")
    assert await it.state(delivery) is PENDING


async def test_a_rate_limit_is_waited_out_and_never_cut_short(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(7))
    delivery = await it.say("hello", kind=ANSWER)
    await it.clock.advance(6.99)
    assert len(it.channel.calls) == 1
    assert await it.state(delivery) is PENDING
    await it.clock.advance(0.02)
    assert len(it.channel.calls) == 2
    assert it.channel.texts() == ["hello"]


async def test_a_penalty_of_one_chat_holds_all_its_lanes_and_no_other_chat(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(7))
    await it.say("late", TOPIC)
    await it.say("late too", OTHER_TOPIC)
    await it.say("at once", ANA)
    assert it.channel.texts() == ["at once"]
    await it.clock.advance(7.1)
    assert it.channel.texts() == ["at once", "late", "late too"]


async def test_a_penalty_of_the_token_holds_every_chat(it: Scene) -> None:
    it.channel.fail(Send, RateLimited(7, everywhere=True))
    await it.say("one", ANA)
    await it.say("two", BEN)
    await it.clock.advance(6.9)
    assert len(it.channel.calls) == 1
    await it.clock.advance(0.2)
    assert it.channel.texts() == ["one", "two"]


async def test_a_send_whose_mark_was_stored_during_a_new_penalty_waits(it: Scene) -> None:
    it.channel.fail(Send, Fault(RateLimited(10), seconds=1))
    await it.say("limited", TOPIC)
    delivery = await it.say("other", OTHER_TOPIC, slow_disk=2)
    await it.clock.advance(5)
    assert len(it.channel.calls) == 1
    assert await it.state(delivery) is PENDING
    await it.clock.advance(5.9)
    assert len(it.channel.calls) == 1
    await it.clock.advance(5)
    assert it.channel.texts() == ["limited", "other"]


async def test_a_delivery_is_never_dropped_however_often_it_is_limited(it: Scene) -> None:
    it.channel.fail(Send, *[RateLimited(3)] * 50)
    delivery = await it.say("hello")
    await it.clock.advance(151)
    assert await it.state(delivery) is SENT
    assert len(it.channel.calls) == 51


# Refusals -------------------------------------------------------------------------------------


async def test_a_refused_format_goes_once_as_plain_text(it: Scene) -> None:
    it.channel.fail(Send, FormatRefused("can't parse entities"))
    await it.say("*hello*", markup="{}")
    assert [call.action.part for call in it.channel.calls] == [
        Part("*hello*", "{}"),
        Part("*hello*"),
    ]
    assert it.channel.texts() == ["*hello*"]


async def test_plain_text_that_is_refused_too_has_failed(it: Scene) -> None:
    it.channel.fail(Send, FormatRefused(), FormatRefused("still"))
    delivery = await it.say("*hello*", markup="{}")
    assert await it.state(delivery) is FAILED
    assert len(it.channel.calls) == 2


@pytest.mark.parametrize(
    "error", [ThreadGone("thread gone"), Forbidden("blocked"), Refused("empty")]
)
async def test_a_refusal_for_good_is_stored_told_and_sent_nowhere_else(
    it: Scene, error: Exception
) -> None:
    it.channel.fail(Send, error)
    delivery = await it.say("hello", TOPIC)
    await it.clock.advance(3600)
    row = await it.row(delivery)
    assert (row.state, row.error) == (FAILED, str(error))
    assert [(d.id, e) for d, e in it.failed] == [(delivery.id, error)]
    assert len(it.channel.calls) == 1


async def test_after_a_refusal_the_next_message_is_tried(it: Scene) -> None:
    it.channel.fail(Send, Refused())
    await it.say("one")
    await it.say("two")
    assert it.channel.texts() == ["two"]


async def test_a_chat_that_moved_is_followed_and_the_send_repeated_once(it: Scene) -> None:
    it.channel.fail(Send, Fault(ChatMoved("-100777"), chat="-100"))
    await it.say("hello", TOPIC)
    await it.say("more", OTHER_TOPIC)
    assert it.moves == [(Address("telegram", "-100", "36"), "-100777")]
    assert [(m.address, m.text) for m in it.channel.shown()] == [
        (Address("telegram", "-100777", "36"), "hello"),
        (Address("telegram", "-100777", "37"), "more"),
    ]
    assert len([call for call in it.channel.calls if call.action.address.chat == "-100"]) == 1


async def test_lanes_that_learn_of_a_move_together_move_once(it: Scene) -> None:
    it.channel.seconds = 0.1

    def old_chat(action: object) -> Fault | None:
        chat = action.address.chat  # type: ignore[attr-defined] # every action here has one
        return Fault(ChatMoved("-100777"), seconds=0.1) if chat == "-100" else None

    it.channel.decide = old_chat
    await it.say("hello", TOPIC)
    await it.say("more", OTHER_TOPIC)
    await it.clock.advance(1)
    assert len(it.moves) == 1
    assert sorted(it.channel.texts("-100777")) == ["hello", "more"]


async def test_a_chat_that_moves_twice_in_one_delivery_has_failed(it: Scene) -> None:
    it.channel.fail(Send, ChatMoved("-100777"), ChatMoved("-100888"))
    delivery = await it.say("hello", TOPIC)
    assert await it.state(delivery) is FAILED


async def test_a_lane_whose_channel_is_not_set_up_keeps_what_it_has_to_say(it: Scene) -> None:
    await it.lane("slack:C0LAB")
    delivery = await it.say("hello", "slack:C0LAB")
    assert await it.state(delivery) is PENDING
    assert await it.outbox.flushed(1)


# Who goes first -------------------------------------------------------------------------------


async def test_a_command_answer_overtakes_everything_of_its_lane(it: Scene) -> None:
    it.channel.slow(Send, 20)
    await it.say("slow answer", kind=ANSWER)
    await it.say("status", kind=COMMAND)
    assert it.channel.texts() == ["status"]


async def test_after_a_penalty_the_urgent_goes_first_then_finals_then_notices(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, "telegram:-100:1", "telegram:-100:2", "telegram:-100:3") as it:
        it.channel.fail(Send, RateLimited(5))
        await it.say("notice", "telegram:-100:1", kind=NOTICE)
        await it.say("final", "telegram:-100:2", kind=ANSWER)
        await it.say("status", "telegram:-100:3", kind=COMMAND)
        await it.clock.advance(6)
        assert it.channel.texts() == ["status", "final", "notice"]


async def test_a_notice_in_front_of_an_answer_goes_with_the_answers_rank(tmp_path: Path) -> None:
    async with scene(tmp_path, "telegram:-100:1", "telegram:-100:2") as it:
        it.channel.fail(Send, RateLimited(5))
        await it.say("limited", "telegram:-100:1", kind=NOTICE)
        await it.say("notice", "telegram:-100:2", kind=NOTICE)
        await it.say("answer", "telegram:-100:2", kind=ANSWER)
        await it.clock.advance(6)
        assert it.channel.texts() == ["notice", "limited", "answer"]


async def test_lanes_of_a_chat_take_turns(it: Scene) -> None:
    await it.say_all([f"a{n}" for n in range(20)], TOPIC)
    await it.say_all([f"b{n}" for n in range(5)], OTHER_TOPIC)
    await it.clock.advance(300)
    texts = it.channel.texts()
    assert max(texts.index(f"b{n}") for n in range(5)) < texts.index("a16")


async def test_a_flood_into_one_chat_keeps_to_its_rate(it: Scene) -> None:
    await it.say_all([f"{n}" for n in range(60)])
    await it.clock.advance(59)
    times = [call.at for call in it.channel.calls]
    assert len(times) == 60
    assert all(after - before >= 0.999 for before, after in itertools.pairwise(times[5:]))


async def test_a_hundred_chats_at_once_keep_to_the_tokens_rate(tmp_path: Path) -> None:
    lanes = [f"telegram:{n}" for n in range(1, 101)]
    async with scene(tmp_path, *lanes) as it:
        for lane in lanes:
            await it.say("hello", lane)
        await it.clock.advance(4)
        times = [call.at for call in it.channel.calls]
        assert len(times) == 100
        assert max(sum(t <= u < t + 1 for u in times) for t in times) <= 46


async def test_an_idle_outbox_has_no_tasks_and_no_timers(it: Scene) -> None:
    tasks = len(asyncio.all_tasks())
    await it.say("one")
    await it.say("two", TOPIC)
    await it.clock.advance(60)
    assert len(asyncio.all_tasks()) == tasks
    assert it.clock.sleeping == 0


# Leaving --------------------------------------------------------------------------------------


async def test_a_rest_lets_calls_under_way_land_and_begins_none(it: Scene) -> None:
    it.channel.slow(Send, 2)
    under_way = await it.say("one")
    behind = await it.say("two")
    resting = asyncio.create_task(it.outbox.rest(9))
    await it.clock.advance(1)
    assert not resting.done()
    await it.clock.advance(1)
    assert resting.done()
    await it.crash()
    assert await it.state(under_way) is SENT
    assert await it.state(behind) is PENDING
    await it.start(restore=True)
    assert it.channel.texts() == ["one", "two"]


async def test_a_rest_waits_no_longer_than_it_may(it: Scene) -> None:
    it.channel.slow(Send, 60)
    await it.say("one")
    resting = asyncio.create_task(it.outbox.rest(1))
    await it.clock.advance(1)
    assert resting.done()


async def test_flushed_tells_whether_all_is_delivered_in_time(it: Scene) -> None:
    assert await it.outbox.flushed(0.1)
    it.channel.slow(Send, 5)
    await it.say("hello")
    waiting = asyncio.create_task(it.outbox.flushed(3))
    await it.clock.advance(3)
    assert await waiting is False
    waiting = asyncio.create_task(it.outbox.flushed(3))
    await it.clock.advance(3)
    assert await waiting is True
