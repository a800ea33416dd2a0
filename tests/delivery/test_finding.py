"""Sends that may have arrived, on a platform that can be asked: found, or sent once more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_asyncio

from core.channel import Find, Forbidden, NotSent, RateLimited, Revise, Send, SendFile, Uncertain
from core.finding import FIND_AFTER, NONCE_TIME, delivery_of, nonce_of
from core.store.records import DeliveryKind, DeliveryState, revises
from tests.delivery.scene import Scene, scene
from tests.fakes.channel import Fault

ANSWER, CARD = DeliveryKind.ANSWER, DeliveryKind.CARD
IN_FLIGHT = DeliveryState.IN_FLIGHT
SENT, UNCERTAIN = DeliveryState.SENT, DeliveryState.UNCERTAIN


@pytest_asyncio.fixture
async def it(tmp_path: Path) -> AsyncIterator[Scene]:
    """A running outbox on a platform that can be asked, and tells no repetitions apart."""
    async with scene(tmp_path, finds_sends=True) as running:
        yield running


def nonces(it: Scene) -> set[str]:
    return {call.action.nonce for call in it.channel.calls if hasattr(call.action, "nonce")}


async def test_a_send_that_arrived_is_found_and_not_sent_again(it: Scene) -> None:
    it.channel.fail(Send, Fault(Uncertain("time-out"), landed=True))
    delivery = await it.say("hello")
    await it.clock.advance(30)
    row = await it.row(delivery)
    assert it.channel.texts() == ["hello"]
    assert (row.state, row.message_id) == (SENT, it.channel.shown()[0].message_id)
    assert len(it.channel.of(Send)) == 1


async def test_a_send_that_did_not_arrive_is_sent_again_with_its_nonce(it: Scene) -> None:
    it.channel.fail(Send, Uncertain())
    delivery = await it.say("hello")
    await it.clock.advance(30)
    assert it.channel.texts() == ["hello"]
    assert await it.state(delivery) is SENT
    assert [call.kind for call in it.channel.calls] == [Send, Find, Send]
    assert len(nonces(it)) == 1


async def test_the_platform_is_asked_once_the_request_had_time_to_arrive(it: Scene) -> None:
    it.channel.fail(Send, Uncertain())
    await it.say("hello")
    await it.clock.advance(30)
    (find,) = it.channel.of(Find)
    assert find.at == FIND_AFTER
    assert find.action.since < it.clock.now() - 30_000


async def test_every_second_try_is_in_doubt_again(it: Scene) -> None:
    it.channel.fail(Send, Uncertain(), Fault(Uncertain(), landed=True))
    await it.say("hello")
    await it.clock.advance(30)
    assert it.channel.texts() == ["hello"]
    assert [call.kind for call in it.channel.calls] == [Send, Find, Send, Find]


async def test_it_is_asked_until_there_is_an_answer_with_pauses(it: Scene) -> None:
    it.channel.fail(Send, Fault(Uncertain(), landed=True))
    it.channel.fail(Find, NotSent(), Uncertain(), RateLimited(7), Uncertain())
    delivery = await it.say("hello")
    await it.clock.advance(20)
    assert await it.state(delivery) is SENT
    finds = [call.at for call in it.channel.of(Find)]
    assert len(finds) == 5
    assert all(later - earlier >= 1 for earlier, later in pairwise(finds))
    assert it.channel.texts() == ["hello"]


async def test_where_we_may_not_look_it_stays_uncertain(it: Scene) -> None:
    it.channel.fail(Send, Uncertain())
    it.channel.fail(Find, Forbidden("no right to read"))
    delivery = await it.say("hello")
    await it.say("next")
    await it.clock.advance(30)
    assert await it.state(delivery) is UNCERTAIN
    assert it.channel.texts() == ["next"]


async def test_a_channel_that_breaks_when_asked_ends_one_delivery_alone(it: Scene) -> None:
    it.channel.fail(Send, Uncertain())
    it.channel.fail(Find, Fault(ZeroDivisionError("bug")))  # type: ignore[arg-type] # a bug
    delivery = await it.say("hello")
    await it.say("next")
    await it.clock.advance(30)
    assert await it.state(delivery) is UNCERTAIN
    assert it.channel.texts() == ["next"]


async def test_what_follows_waits_so_that_the_order_is_kept(it: Scene) -> None:
    it.channel.fail(Send, Uncertain())
    await it.say_all(["one", "two"])
    await it.clock.advance(30)
    assert it.channel.texts() == ["one", "two"]


async def test_an_edit_finds_the_message_that_was_found(it: Scene) -> None:
    it.channel.fail(Send, Fault(Uncertain(), landed=True))
    card = await it.say("Allow?", kind=CARD)
    await it.say("Expired", kind=CARD, target=revises(card.id))
    await it.clock.advance(30)
    assert it.channel.texts() == ["Expired"]


async def test_what_is_taken_away_while_in_doubt_is_found_first(it: Scene) -> None:
    it.channel.fail(Send, Fault(Uncertain(), landed=True))
    card = await it.say("Allow?", kind=CARD)
    await it.say("", kind=CARD, target=revises(card.id))
    await it.clock.advance(30)
    assert it.channel.texts() == []
    assert await it.state(card) is SENT


@pytest.mark.parametrize("landed", [True, False])
async def test_a_file_that_may_have_arrived_is_looked_for(it: Scene, landed: bool) -> None:
    it.channel.fail(SendFile, Fault(Uncertain(), landed=landed))
    delivery = await it.say("", kind=DeliveryKind.FILE, file="report.pdf")
    await it.clock.advance(30)
    assert [shown.path.name for shown in it.channel.shown() if shown.path] == ["report.pdf"]
    assert await it.state(delivery) is SENT


# Where repetitions are told apart for a while ---------------------------------------------------


async def test_within_two_minutes_it_is_repeated_without_asking(tmp_path: Path) -> None:
    async with scene(tmp_path, idempotent_sends=True, finds_sends=True) as it:
        it.channel.fail(Send, Fault(Uncertain(), landed=True), Uncertain())
        await it.say("hello")
        await it.clock.advance(30)
        assert it.channel.texts() == ["hello"]
        assert [call.kind for call in it.channel.calls] == [Send] * 3


@pytest.mark.parametrize("landed", [True, False])
async def test_and_after_that_the_platform_is_asked(tmp_path: Path, landed: bool) -> None:
    async with scene(tmp_path, idempotent_sends=True, finds_sends=True) as it:
        it.channel.fail(Send, Fault(Uncertain(), landed=landed), *[Uncertain()] * 20)
        delivery = await it.say("hello")
        await it.clock.advance(1200)
        assert it.channel.texts() == ["hello"]
        assert await it.state(delivery) is SENT
        assert it.channel.of(Find)[0].at >= NONCE_TIME


async def test_a_repetition_that_is_refused_a_call_keeps_the_doubt(tmp_path: Path) -> None:
    async with scene(tmp_path, idempotent_sends=True, finds_sends=True) as it:
        it.channel.fail(Send, Fault(Uncertain(), landed=True), RateLimited(60), NotSent())
        delivery = await it.say("hello")
        await it.clock.advance(20)
        assert await it.state(delivery) is IN_FLIGHT
        await it.crash()
        await it.clock.advance(3600)
        await it.start(restore=True)
        await it.clock.advance(30)
        assert it.channel.texts() == ["hello"]
        assert await it.state(delivery) is SENT


# After a crash ---------------------------------------------------------------------------------


@pytest.mark.parametrize("landed", [True, False])
async def test_a_send_in_flight_at_a_crash_is_looked_for(it: Scene, landed: bool) -> None:
    it.channel.slow(Send, 5, late=landed)
    deliveries = await it.say_all(["one", "two"])
    await it.crash()
    it.channel.land()
    await it.start(restore=True)
    await it.clock.advance(30)
    assert it.channel.texts() == ["one", "two"]
    assert [await it.state(one) for one in deliveries] == [SENT, SENT]
    assert len(nonces(it)) == 2


async def test_it_may_be_killed_as_often_as_it_likes(it: Scene) -> None:
    it.channel.slow(Send, 5, late=True)
    delivery = await it.say("hello")
    await it.crash()
    it.channel.land()
    for seconds in (0, 1, FIND_AFTER + 0.5):
        it.channel.fail(Find, Uncertain())
        await it.start(restore=True)
        await it.clock.advance(seconds)
        await it.crash()
        assert await it.state(delivery) is IN_FLIGHT
    await it.start(restore=True)
    await it.clock.advance(30)
    assert it.channel.texts() == ["hello"]
    assert len(it.channel.of(Send)) == 1


async def test_an_old_send_in_flight_is_asked_for_where_young_ones_are_repeated(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, idempotent_sends=True, finds_sends=True) as it:
        it.channel.slow(Send, 5, late=True)
        await it.say("hello")
        await it.crash()
        it.channel.land()
        await it.clock.advance(600)
        await it.start(restore=True)
        await it.clock.advance(30)
        assert it.channel.texts() == ["hello"]
        assert [call.kind for call in it.channel.calls] == [Send, Find]


async def test_an_answer_in_flight_at_a_crash_is_there_once(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 5, late=True)
    await it.answer("answer", "and more", turn=turn)
    await it.crash()
    it.channel.land()
    await it.start(restore=True)
    await it.clock.advance(30)
    assert it.channel.texts() == ["answer", "and more"]


async def test_what_is_in_doubt_holds_up_no_shutdown_for_long(it: Scene) -> None:
    it.channel.fail(Send, Uncertain())
    delivery = await it.say("hello")
    await it.clock.advance(1)
    await it.outbox.rest(0.0)
    await it.clock.advance(60)
    assert it.channel.of(Find) == []
    await it.restart()
    await it.clock.advance(30)
    assert await it.state(delivery) is SENT


# Previews --------------------------------------------------------------------------------------


@pytest.mark.parametrize("landed", [True, False])
async def test_a_preview_in_doubt_goes_on_in_its_message(it: Scene, landed: bool) -> None:
    turn = await it.turn()
    it.channel.fail(Send, Fault(Uncertain(), landed=landed))
    await it.preview(turn, "a")
    await it.preview(turn, "ab")
    assert it.outbox.shows(turn)
    await it.clock.advance(30)
    assert it.channel.texts() == ["ab"]
    row = await it.preview_row(turn)
    assert row is not None
    assert (row.state, row.message_id) == (SENT, it.channel.shown()[0].message_id)


@pytest.mark.parametrize("landed", [True, False])
async def test_an_answer_waits_until_it_is_known_what_it_replaces(it: Scene, landed: bool) -> None:
    turn = await it.turn()
    it.channel.fail(Send, Fault(Uncertain(), landed=landed))
    it.channel.fail(Find, Uncertain())
    await it.preview(turn, "a")
    answer = await it.answer("answer", turn=turn)
    await it.clock.advance(30)
    assert it.channel.texts() == ["answer"]
    assert await it.state(answer) is SENT
    assert len(it.channel.of(Revise)) == (1 if landed else 0)


async def test_a_preview_that_is_slow_to_send_is_looked_for_before_the_answer(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 60, late=True)
    await it.preview(turn, "a")
    await it.answer("answer", turn=turn)
    await it.clock.advance(2.5)
    it.channel.land()
    await it.clock.advance(30)
    assert it.channel.texts() == ["answer"]


async def test_a_preview_in_doubt_that_nothing_replaces_goes_away(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, Fault(Uncertain(), landed=True))
    await it.preview(turn, "a")
    it.outbox.close_preview(turn)
    it.outbox.over(turn)
    await it.clock.advance(30)
    assert it.channel.texts() == []


async def test_a_preview_nobody_can_tell_of_does_not_hold_up_the_answer(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, Uncertain())
    it.channel.fail(Find, *[Uncertain()] * 50)
    await it.preview(turn, "a")
    answer = await it.answer("answer", turn=turn)
    await it.clock.advance(200)
    assert await it.state(answer) is SENT
    row = await it.preview_row(turn)
    assert row is not None
    assert row.state is UNCERTAIN


async def test_a_preview_that_tells_repetitions_apart_is_repeated(tmp_path: Path) -> None:
    async with scene(tmp_path, idempotent_sends=True) as it:
        turn = await it.turn()
        it.channel.fail(Send, Fault(Uncertain(), landed=True))
        await it.preview(turn, "a")
        await it.preview(turn, "ab")
        await it.clock.advance(30)
        assert it.channel.texts() == ["ab"]
        assert len(nonces(it)) == 1


async def crashed_with_a_preview_in_flight(it: Scene, landed: bool) -> int:
    turn = await it.turn()
    it.channel.slow(Send, 5, late=landed)
    await it.preview(turn, "a")
    await it.crash()
    it.channel.land()
    return turn


@pytest.mark.parametrize("landed", [True, False])
async def test_after_a_crash_the_answer_finds_the_preview(it: Scene, landed: bool) -> None:
    turn = await crashed_with_a_preview_in_flight(it, landed)
    await it.start(restore=True)
    await it.answer("answer", turn=turn)
    await it.clock.advance(30)
    assert it.channel.texts() == ["answer"]
    row = await it.preview_row(turn)
    assert row is not None
    assert row.state is (SENT if landed else DeliveryState.WITHDRAWN)


async def test_also_an_answer_that_was_stored_before_the_crash(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 60, late=True)
    await it.preview(turn, "a")
    await it.answer("answer", turn=turn)
    await it.crash()
    it.channel.land()
    await it.start(restore=True)
    await it.clock.advance(30)
    assert it.channel.texts() == ["answer"]


async def test_after_a_crash_the_turns_next_try_goes_on_in_the_preview(it: Scene) -> None:
    turn = await crashed_with_a_preview_in_flight(it, landed=True)
    await it.start(restore=True)
    it.outbox.begin_preview(turn)
    await it.preview(turn, "again")
    await it.clock.advance(30)
    assert it.channel.texts() == ["again"]
    assert len(it.channel.of(Send)) == 1


async def test_after_a_crash_a_preview_whose_turn_was_cut_off_goes_away(it: Scene) -> None:
    turn = await crashed_with_a_preview_in_flight(it, landed=True)
    await it.start(restore=True)
    it.outbox.over(turn)
    await it.clock.advance(30)
    assert it.channel.texts() == []


async def test_of_two_previews_of_a_turn_the_newer_is_found_and_the_older_goes(
    it: Scene,
) -> None:
    turn = await it.turn()
    await it.preview(turn, "above")
    await it.clock.advance(2)
    it.outbox.step_aside(turn)
    it.channel.slow(Send, 5, late=True)
    await it.preview(turn, "below")
    await it.crash()
    it.channel.land()
    await it.start(restore=True)
    await it.answer("answer", turn=turn)
    await it.clock.advance(30)
    assert it.channel.texts() == ["answer"]


# Nonces ----------------------------------------------------------------------------------------


def test_a_nonce_names_its_delivery_and_is_short() -> None:
    for preview in (False, True):
        nonce = nonce_of(123_456_789, 1_798_000_000_000, preview)
        assert delivery_of(nonce) == 123_456_789
        assert len(nonce) <= 25


def test_a_delivery_and_the_record_of_a_preview_have_different_nonces() -> None:
    assert nonce_of(7, 5) != nonce_of(7, 5, preview=True)
    assert nonce_of(7, 5) != nonce_of(7, 6)


async def test_a_platform_that_takes_nothing_is_tried_with_growing_pauses(it: Scene) -> None:
    it.channel.decide = lambda action: Fault(Uncertain()) if isinstance(action, Send) else None
    delivery = await it.say("hello")
    await it.clock.advance(600)
    assert len(it.channel.of(Send)) < 20
    it.channel.decide = lambda action: None
    await it.clock.advance(70)
    assert await it.state(delivery) is SENT
    assert it.channel.texts() == ["hello"]


async def test_code_that_breaks_at_a_send_holds_nothing_up(it: Scene) -> None:
    def bug(action: object) -> None:
        if isinstance(action, Send) and action.part.text == "bad":
            raise KeyError("a bug")

    it.channel.decide = bug
    bad, good = await it.say("bad"), await it.say("good")
    await it.clock.advance(5)
    assert await it.state(bad) is UNCERTAIN
    assert await it.state(good) is SENT
    assert [delivery for delivery, _ in it.failed] == [bad]
