"""One preview a turn, best effort; and once the answer is there, no frame ever undoes it."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from core.channel import (
    ChatMoved,
    Forbidden,
    FormatRefused,
    MessageGone,
    NotSent,
    RateLimited,
    Refused,
    Revise,
    Send,
    SendError,
    ThreadGone,
    Uncertain,
)
from core.messages import Part
from core.store import reads
from core.store.records import DeliveryKind, DeliveryState, LaneRow
from core.store.store import Reader
from tests.delivery.scene import ANA, BEN, OTHER_TOPIC, TOPIC, Scene, scene
from tests.fakes.channel import Fault

SENT = DeliveryState.SENT


async def frames(it: Scene, turn: int, *texts: str, every: float = 1.0, lane: str = ANA) -> None:
    for text in texts:
        await it.preview(turn, text, lane=lane)
        await it.clock.advance(every)


# One message, the newest frame -------------------------------------------------------------


async def test_the_first_frame_is_sent_and_later_ones_edit_it(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a", "ab", "abc")
    [message] = it.channel.shown()
    assert message.history == ["a", "ab", "abc"]


async def test_frames_are_plain_text_with_the_footer_below(it: Scene) -> None:
    await it.preview(await it.turn(), "so **far", "⏳ writing… · 0 s")
    assert it.channel.calls[0].action.part == Part("so **far\n\n⏳ writing… · 0 s")


async def test_while_a_call_is_under_way_the_newest_frame_waits_and_others_are_dropped(
    it: Scene,
) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 3)
    await frames(it, turn, "a", "ab", "abc", "abcd", "abcde", every=0.5)
    assert len(it.channel.calls) == 1
    await it.clock.advance(10)
    assert it.channel.shown()[0].history == ["a", "abcde"]


async def test_a_slow_first_send_makes_no_second_preview(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 30)
    await frames(it, turn, *map(str, range(20)))
    assert len(it.channel.calls) == 1


async def test_a_frame_equal_to_the_one_shown_is_no_call(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a", "a", "a")
    assert len(it.channel.calls) == 1


async def test_what_is_closed_while_it_is_looked_up_where_its_chat_lives_shows_no_frame_more(
    it: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await it.turn()
    await it.preview(turn, "a")
    await it.preview(turn, "ab")
    it.outbox.moved("telegram", "-100", "-100777")
    looked, found, read = asyncio.Event(), asyncio.Event(), reads.lane

    async def slowly(store: Reader, lane: str) -> LaneRow | None:
        looked.set()
        await found.wait()
        return await read(store, lane)

    monkeypatch.setattr(reads, "lane", slowly)
    await it.clock.advance(2)
    assert looked.is_set()
    it.outbox.close_preview(turn)
    found.set()
    await it.clock.settle()
    assert it.channel.of(Revise) == []


@pytest.mark.parametrize(("lane", "every"), [(ANA, 1.0), (TOPIC, 3.0)])
async def test_calls_keep_the_platforms_interval_however_fast_frames_come(
    it: Scene, lane: str, every: float
) -> None:
    turn = await it.turn(lane)
    await frames(it, turn, *map(str, range(80)), every=0.1, lane=lane)
    times = [call.at for call in it.channel.calls]
    assert all(b - a >= every - 1e-6 for a, b in itertools.pairwise(times))


async def test_the_first_send_is_recorded_before_the_call_and_its_id_after(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 1)
    await it.preview(turn, "a", "footer")
    row = await it.preview_row(turn)
    assert row is not None
    assert (row.state, row.message_id) == (DeliveryState.IN_FLIGHT, "")
    await it.clock.advance(1)
    row = await it.preview_row(turn)
    assert row is not None
    assert (row.state, row.message_id) == (SENT, it.channel.shown()[0].message_id)


async def test_the_text_without_its_footer_is_saved_for_a_crash(it: Scene) -> None:
    turn = await it.turn()
    for text in ("a", "ab", "abc"):
        await it.preview(turn, text, "footer")
        await it.clock.advance(1)
    row = await it.preview_row(turn)
    assert row is not None
    assert row.part == Part("abc")


# When a frame fails --------------------------------------------------------------------------


async def test_a_penalty_is_kept_and_then_the_newest_frame_is_shown(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Revise, Fault(), RateLimited(4))
    await frames(it, turn, *[f"frame {n}" for n in range(80)], every=0.1)
    calls = it.channel.calls
    [limited] = [call for call in calls if call.error]
    after = [call for call in calls if call.at > limited.at]
    assert after[0].at - limited.at >= 4
    assert int(after[0].text.removeprefix("frame ")) >= 59


async def test_a_preview_that_may_have_been_sent_is_never_sent_a_second_time(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, Fault(Uncertain(), landed=True))
    await frames(it, turn, "a", "ab", "abc")
    assert it.channel.texts() == ["a"]
    row = await it.preview_row(turn)
    assert row is not None
    assert row.state is DeliveryState.UNCERTAIN


async def test_the_answer_of_such_a_turn_is_a_message_of_its_own(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, Fault(Uncertain(), landed=True))
    await frames(it, turn, "a")
    await it.answer("answer", turn=turn)
    assert it.channel.texts() == ["a", "answer"]


async def test_a_preview_that_certainly_was_not_sent_is_tried_again(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, NotSent())
    await frames(it, turn, "a", "ab", "abc")
    assert it.channel.shown()[0].history[-1] == "abc"


@pytest.mark.parametrize("error", [MessageGone(), Refused(), Forbidden(), FormatRefused()])
async def test_an_edit_that_is_refused_ends_the_previews_of_its_turn(
    it: Scene, error: SendError
) -> None:
    turn = await it.turn()
    it.channel.fail(Revise, error)
    await frames(it, turn, "a", "ab", "abc", "abcd")
    assert len(it.channel.calls) == 2
    await it.answer("answer", turn=turn)
    assert it.channel.texts()[-1] == "answer"


async def test_an_edit_that_timed_out_is_followed_by_the_next(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Revise, Uncertain())
    await frames(it, turn, "a", "ab", "abc", "abcd")
    assert it.channel.shown()[0].history[-1] == "abcd"


async def test_a_deleted_preview_is_not_edited_again_and_the_answer_is_sent_once(
    it: Scene,
) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.drop(it.channel.shown()[0].message_id)
    await frames(it, turn, "ab", "abc")
    await it.answer("answer", turn=turn)
    assert it.channel.texts() == ["answer"]
    assert len(it.channel.of(Revise)) == 1


async def test_a_preview_deleted_just_before_the_answer_is_replaced_by_a_message(
    it: Scene,
) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.drop(it.channel.shown()[0].message_id)
    await it.answer("answer", "more", turn=turn)
    assert it.channel.texts() == ["answer", "more"]
    assert len(it.channel.of(Revise)) == 1


async def test_a_question_that_somebody_deleted_costs_the_turn_nothing_it_shows(it: Scene) -> None:
    turn = await it.turn()
    question = await it.say("may I?", kind=DeliveryKind.CARD, turn=turn)
    await frames(it, turn, "a")
    it.channel.drop((await it.row(question)).message_id)
    target = (await it.row(question)).message_id
    await it.say("allowed", kind=DeliveryKind.CARD, turn=turn, target=target)
    await frames(it, turn, "ab")
    await it.answer("answer", turn=turn)
    assert it.channel.texts() == ["answer", "allowed"]


@pytest.mark.parametrize("error", [Refused("can't be edited"), Refused("a reason of its own")])
async def test_a_preview_that_may_not_be_edited_gives_way_to_the_answer(
    it: Scene, error: SendError
) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.fail(Revise, error)
    await frames(it, turn, "ab", "abc")
    await it.answer("answer", "more", turn=turn)
    assert it.channel.texts() == ["answer", "more"]
    assert len(it.channel.of(Revise)) == 1


@pytest.mark.parametrize(
    "errors", [[Refused("no")], [Forbidden("no")], [FormatRefused(), FormatRefused()]]
)
async def test_an_answer_that_may_not_take_its_previews_place_is_sent_once_anew(
    it: Scene, errors: list[SendError]
) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.fail(Revise, *errors)
    answer = await it.answer("answer", "more", turn=turn, markup="[]")
    assert it.channel.texts() == ["answer", "more"]
    assert await it.state(answer) is SENT
    assert it.failed == []


async def test_what_cannot_be_said_at_all_takes_its_preview_along(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.fail(Revise, Refused("too long"))
    it.channel.fail(Send, Refused("too long"))
    answer = await it.answer("answer", turn=turn)
    assert [delivery.id for delivery, _ in it.failed] == [answer.id]
    assert it.channel.texts() == []


async def test_a_gone_thread_is_the_answers_to_tell(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, ThreadGone())
    await frames(it, turn, "a", "ab")
    assert it.failed == []
    it.channel.fail(Send, ThreadGone("gone"))
    answer = await it.answer("answer", turn=turn)
    assert [delivery.id for delivery, _ in it.failed] == [answer.id]
    assert it.channel.texts() == []


async def test_when_the_chat_moves_the_old_preview_counts_as_gone(it: Scene) -> None:
    turn = await it.turn(TOPIC)
    await frames(it, turn, "a", lane=TOPIC, every=3)
    it.channel.fail(Revise, ChatMoved("-100777"))
    await frames(it, turn, "ab", lane=TOPIC, every=3)
    await it.answer("answer", turn=turn, lane=TOPIC)
    assert it.channel.texts("-100777") == ["answer"]
    assert len(it.moves) == 1


async def test_a_move_told_by_the_platform_has_the_same_effect(it: Scene) -> None:
    turn = await it.turn(TOPIC)
    await frames(it, turn, "a", lane=TOPIC, every=3)
    [address] = {message.address for message in it.channel.shown()}
    await it.follow(address, "-100777")
    it.outbox.moved("telegram", "-100", "-100777")
    await it.answer("answer", turn=turn, lane=TOPIC)
    assert it.channel.texts("-100777") == ["answer"]
    assert it.channel.of(Revise) == []


# The end -------------------------------------------------------------------------------------


async def test_the_answer_edits_the_preview_and_its_further_parts_follow(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    answer = await it.answer("answer", "part two", "part three", turn=turn)
    assert it.channel.texts() == ["answer", "part two", "part three"]
    assert (await it.row(answer)).message_id == it.channel.shown()[0].message_id


async def test_an_answer_without_a_preview_is_a_message(it: Scene) -> None:
    await it.answer("answer", turn=await it.turn())
    assert it.channel.texts() == ["answer"]
    assert len(it.channel.of(Send)) == 1


async def test_no_frame_starts_after_closing(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.outbox.close_preview(turn)
    await frames(it, turn, "ab", "abc")
    assert it.channel.texts() == ["a"]
    assert it.outbox.shows(turn)


async def test_a_frame_that_waits_is_dropped_by_closing(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a", "ab", every=0.1)
    await it.answer("answer", turn=turn)
    await it.clock.advance(30)
    assert it.channel.shown()[0].history == ["a", "answer"]


async def test_the_answer_waits_for_a_first_send_under_way_and_takes_it_over(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 1.5)
    await it.preview(turn, "a")
    await it.answer("answer", turn=turn)
    await it.clock.advance(1.5)
    assert it.channel.texts() == ["answer"]
    assert it.channel.shown()[0].history == ["a", "answer"]


async def test_but_no_longer_than_two_seconds(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 60)
    await it.preview(turn, "a")
    await it.answer("answer", turn=turn)
    await it.clock.advance(1.9)
    assert it.channel.texts() == []
    await it.clock.advance(0.2)
    assert it.channel.texts() == ["answer"]
    row = await it.preview_row(turn)
    assert row is not None
    assert row.state is DeliveryState.UNCERTAIN


async def test_a_frame_that_lands_after_the_answer_does_not_stay(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.slow(Revise, 60, late=True)
    await it.preview(turn, "ab")
    await it.answer("answer", turn=turn)
    await it.clock.advance(2.1)
    assert it.channel.texts() == ["answer"]
    it.channel.land()
    assert it.channel.texts() == ["ab"]
    await it.clock.advance(5)
    assert it.channel.texts() == ["answer"]


async def test_nor_one_of_which_nobody_knows_whether_it_arrived(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.fail(Revise, Uncertain())
    await it.preview(turn, "ab")
    await it.answer("answer", turn=turn)
    [message] = it.channel.shown()
    message.part = Part("ab")
    await it.clock.advance(5)
    assert it.channel.texts() == ["answer"]


async def test_the_answer_is_not_shown_again_over_something_newer(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.slow(Revise, 60)
    await it.preview(turn, "ab")
    answer = await it.answer("answer", turn=turn)
    await it.clock.advance(2.1)
    await it.say("answer, no button", target=(await it.row(answer)).message_id)
    await it.clock.advance(30)
    assert it.channel.texts() == ["answer, no button"]


async def test_a_limited_preview_delays_the_answer_only_by_the_penalty(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.fail(Revise, RateLimited(4))
    await it.preview(turn, "ab")
    await it.answer("answer", turn=turn)
    await it.clock.advance(3.9)
    assert it.channel.texts() == ["a"]
    await it.clock.advance(0.2)
    assert it.channel.texts() == ["answer"]


async def test_previews_never_take_the_calls_an_answer_needs(tmp_path: Path) -> None:
    lanes = [f"telegram:-100:{n}" for n in range(8)]
    async with scene(tmp_path, *lanes) as it:
        turns = [await it.turn(lane) for lane in lanes]
        for second in range(60):
            for turn, lane in zip(turns, lanes, strict=True):
                await it.preview(turn, f"{second}", lane=lane)
            await it.clock.advance(1)
        before = it.clock.monotonic()
        await it.answer("answer", turn=turns[0], lane=lanes[0])
        await it.clock.advance(0.01)
        assert it.channel.calls[-1].text == "answer"
        assert it.channel.calls[-1].at - before <= 0.01


async def test_turns_of_two_lanes_have_a_preview_each(it: Scene) -> None:
    one, two = await it.turn(ANA), await it.turn(BEN)
    await it.preview(one, "a", lane=ANA)
    await it.preview(two, "b", lane=BEN)
    assert (it.channel.texts("700000001"), it.channel.texts("700000002")) == (["a"], ["b"])


async def test_a_hanging_preview_holds_up_no_other_lane(it: Scene) -> None:
    turn = await it.turn(TOPIC)
    it.channel.slow(Send, 60)
    await it.preview(turn, "a", lane=TOPIC)
    await it.say("hello", OTHER_TOPIC)
    assert it.channel.texts() == ["hello"]


async def test_a_preview_that_was_never_sent_leaves_no_open_row(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, RateLimited(30))
    await it.preview(turn, "a")
    it.outbox.close_preview(turn)
    await it.clock.settle()
    row = await it.preview_row(turn)
    assert row is not None
    assert row.state is DeliveryState.WITHDRAWN
    assert not it.outbox.shows(turn)


async def test_nor_one_that_is_closed_while_its_mark_is_stored(it: Scene) -> None:
    turn = await it.turn()
    it.outbox.preview(turn, ANA, "a")
    while not (row := await it.preview_row(turn)):
        await asyncio.sleep(0)
    it.outbox.close_preview(turn)
    await it.clock.settle()
    row = await it.preview_row(turn)
    assert row is not None
    assert (row.state, len(it.channel.calls)) in [
        (DeliveryState.WITHDRAWN, 0),
        (SENT, 1),
    ]


async def test_a_frame_whose_mark_was_stored_during_a_new_penalty_waits(it: Scene) -> None:
    turn = await it.turn(OTHER_TOPIC)
    it.channel.fail(Send, Fault(RateLimited(10), seconds=1))
    await it.say("limited", TOPIC)
    it.slow_disk(2)
    await it.preview(turn, "a", lane=OTHER_TOPIC)
    await it.clock.advance(10.9)
    assert len(it.channel.calls) == 1
    await it.clock.advance(10)
    assert sorted(it.channel.texts()) == ["a", "limited"]


# After a crash -------------------------------------------------------------------------------


async def test_an_answer_that_was_not_delivered_edits_the_preview_after_a_restart(
    it: Scene,
) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.fail(Revise, RateLimited(60))
    await it.answer("answer", turn=turn)
    await it.restart()
    await it.clock.advance(5)
    assert it.channel.texts() == ["answer"]
    assert len(it.channel.of(Send)) == 1


async def test_a_frame_of_the_dead_process_that_lands_late_does_not_stay(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "a")
    it.channel.slow(Revise, 60, late=True)
    await it.preview(turn, "ab")
    await it.answer("answer", turn=turn)
    await it.restart()
    assert it.channel.texts() == ["answer"]
    it.channel.land()
    assert it.channel.texts() == ["ab"]
    await it.clock.advance(5)
    assert it.channel.texts() == ["answer"]


async def test_a_preview_in_flight_at_a_crash_is_uncertain(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 5, late=True)
    await it.preview(turn, "a")
    await it.restart()
    row = await it.preview_row(turn)
    assert row is not None
    assert row.state is DeliveryState.UNCERTAIN


async def test_what_a_crash_left_on_the_screen_can_be_closed(it: Scene) -> None:
    turn = await it.turn()
    await frames(it, turn, "half an ans")
    await it.restart()
    row = await it.preview_row(turn)
    assert row is not None
    await it.answer(f"{row.part.text} (unfinished)", turn=turn, target=row.message_id)
    assert it.channel.texts() == ["half an ans (unfinished)"]


# Behind what was said before ---------------------------------------------------------------


async def test_a_preview_does_not_overtake_the_answer_before_it(it: Scene) -> None:
    earlier, later = await it.turn(), await it.turn()
    it.channel.fail(Send, Uncertain(), NotSent(), NotSent())
    await it.say("a notice")
    it.channel.slow(Send, 5)
    await it.answer("first", turn=earlier)
    await it.preview(later, "second…")
    await it.clock.advance(20)
    assert it.channel.texts() == ["first", "second…"]


async def test_a_preview_that_is_shown_goes_on_while_an_answer_waits(it: Scene) -> None:
    aside, turn = await it.turn(), await it.turn()
    await it.preview(turn, "a")
    it.channel.fail(Send, *[NotSent()] * 3)
    await it.answer("beside", turn=aside)
    await it.preview(turn, "ab")
    await it.clock.advance(2)
    assert it.channel.texts()[0] == "ab"
