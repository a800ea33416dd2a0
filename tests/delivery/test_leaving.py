"""Previews that no answer replaces go away, and what follows a question stands below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.channel import Delete, RateLimited, Send
from core.store import rows
from core.store.records import DeliveryKind, DeliveryState
from core.turns import Kind, Origin, Status, Turn
from tests.delivery.scene import ANA, Scene, scene

CHAT = "700000001"
THINKING = "⏳ thinking…"


async def frame(it: Scene, turn: int, text: str = "", footer: str = "") -> None:
    await it.preview(turn, text, footer)
    await it.clock.advance(1)


async def question(it: Scene, turn: int) -> None:
    it.outbox.step_aside(turn)
    await it.say("may I?", kind=DeliveryKind.CARD, turn=turn)
    await it.clock.advance(1)


async def answer(it: Scene, turn: int) -> None:
    await it.answer("done", turn=turn)
    await it.clock.advance(3)


async def starting(it: Scene) -> int:
    """A turn that is stored as starting: after a crash it runs again."""
    turn = it.store.ids.turn()
    row = Turn(turn, ANA, ANA, Origin.PERSON, Kind.MAIN, it.clock.now(), status=Status.STARTING)
    await it.store.save(rows.turn(row))
    return turn


# Questions ----------------------------------------------------------------------------------


async def test_a_preview_without_words_goes_when_a_question_comes(it: Scene) -> None:
    turn = await it.turn()
    await frame(it, turn, footer=THINKING)
    await question(it, turn)
    assert it.channel.texts(CHAT) == ["may I?"]
    assert not it.outbox.shows(turn)
    await answer(it, turn)
    assert it.channel.texts(CHAT) == ["may I?", "done"]


async def test_words_above_a_question_stay_until_they_stand_below_it(it: Scene) -> None:
    turn = await it.turn()
    await frame(it, turn, "let me look")
    await question(it, turn)
    assert it.channel.texts(CHAT) == ["let me look", "may I?"]
    assert it.outbox.shows(turn)
    await frame(it, turn, "let me look. Good")
    assert it.channel.texts(CHAT) == ["may I?", "let me look. Good"]
    await answer(it, turn)
    assert it.channel.texts(CHAT) == ["may I?", "done"]


async def test_an_answer_stands_below_the_question_it_needed(it: Scene) -> None:
    turn = await it.turn()
    await frame(it, turn, "let me look")
    await question(it, turn)
    await answer(it, turn)
    assert it.channel.texts(CHAT) == ["may I?", "done"]
    shown = [row for row in (await it.preview_row(turn),) if row is not None]
    assert [row.state for row in shown] == [DeliveryState.WITHDRAWN]


async def test_the_last_frame_before_a_question_is_still_shown(it: Scene) -> None:
    turn = await it.turn()
    await frame(it, turn, "let me")
    await it.preview(turn, "let me look", "✋ waiting")
    await question(it, turn)
    assert it.channel.texts(CHAT) == ["let me look\n\n✋ waiting", "may I?"]


async def test_after_each_question_only_the_newest_preview_stays(it: Scene) -> None:
    turn = await it.turn()
    for number in range(3):
        await frame(it, turn, f"words {number}")
        await question(it, turn)
    await frame(it, turn, "last words")
    assert it.channel.texts(CHAT) == ["may I?"] * 3 + ["last words"]
    await answer(it, turn)
    assert it.channel.texts(CHAT) == ["may I?"] * 3 + ["done"]


@pytest.mark.parametrize("text", ["", "let me look"])
async def test_a_first_send_that_is_under_way_goes_as_well(it: Scene, text: str) -> None:
    turn = await it.turn()
    it.channel.slow(Send, 5)
    await it.preview(turn, text, THINKING)
    it.outbox.step_aside(turn)
    await it.clock.advance(7)
    await answer(it, turn)
    assert it.channel.texts(CHAT) == ["done"]


async def test_a_frame_that_never_left_makes_no_message_after_the_question(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, RateLimited(10))
    await it.say("held up")
    await it.preview(turn, "", THINKING)
    it.outbox.step_aside(turn)
    await it.clock.advance(20)
    assert it.channel.texts(CHAT) == ["held up"]


async def test_a_removal_that_is_refused_for_now_is_tried_again(it: Scene) -> None:
    turn = await it.turn()
    await frame(it, turn, footer=THINKING)
    it.channel.fail(Delete, RateLimited(10))
    await question(it, turn)
    assert it.channel.texts(CHAT) == [THINKING]
    await it.clock.advance(10)
    assert it.channel.texts(CHAT) == ["may I?"]


async def test_a_crash_between_the_answer_and_the_removal_leaves_nothing_behind(
    it: Scene,
) -> None:
    turn = await it.turn()
    await frame(it, turn, "let me look")
    await question(it, turn)
    it.channel.slow(Delete, 30)
    await it.answer("done", turn=turn)
    assert it.channel.texts(CHAT) == ["let me look", "may I?", "done"]
    await it.restart()
    await it.clock.advance(5)
    assert it.channel.texts(CHAT) == ["may I?", "done"]


# Tries --------------------------------------------------------------------------------------


async def test_the_next_try_goes_on_in_the_same_message(it: Scene) -> None:
    turn = await it.turn()
    await frame(it, turn, footer=THINKING)
    it.outbox.close_preview(turn)
    await frame(it, turn, "late")
    assert it.channel.texts(CHAT) == [THINKING]
    it.outbox.begin_preview(turn)
    await frame(it, turn, "so far")
    assert it.channel.texts(CHAT) == ["so far"]
    await answer(it, turn)
    assert it.channel.texts(CHAT) == ["done"]


async def test_the_next_try_after_a_restart_goes_on_in_the_same_message(tmp_path: Path) -> None:
    async with scene(tmp_path, ANA) as it:
        turn = await starting(it)
        await frame(it, turn, footer=THINKING)
        await it.restart()
        it.outbox.begin_preview(turn)
        await frame(it, turn, "so far")
        await answer(it, turn)
        assert it.channel.texts(CHAT) == ["done"]
        assert len(it.channel.of(Send)) == 1


async def test_an_answer_after_a_restart_takes_the_place_of_what_the_first_try_showed(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, ANA) as it:
        turn = await starting(it)
        await frame(it, turn, footer=THINKING)
        await it.restart()
        await answer(it, turn)
        assert it.channel.texts(CHAT) == ["done"]


async def test_of_two_previews_that_a_crash_left_the_newer_one_stays(tmp_path: Path) -> None:
    async with scene(tmp_path, ANA) as it:
        turn = await starting(it)
        await frame(it, turn, "let me look")
        it.outbox.step_aside(turn)
        it.channel.slow(Delete, 30)
        await it.preview(turn, "let me look. Good")
        await it.crash()
        rows_left = await it.preview_row(turn)
        assert rows_left is not None
        await it.store.save(rows.delivery_state(rows_left.id, DeliveryState.SENT))
        await it.start(restore=True)
        await it.clock.advance(5)
        assert it.channel.texts(CHAT) == ["let me look. Good"]


async def test_a_try_that_never_showed_anything_leaves_the_next_one_free(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Send, RateLimited(30))
    await it.preview(turn, "", THINKING)
    it.outbox.close_preview(turn)
    await it.clock.advance(60)
    it.outbox.begin_preview(turn)
    await frame(it, turn, "so far")
    await answer(it, turn)
    assert it.channel.texts(CHAT) == ["done"]


# Ends without an answer ---------------------------------------------------------------------


async def test_a_turn_that_ends_without_an_answer_leaves_no_preview(it: Scene) -> None:
    turn = await it.turn()
    await frame(it, turn, footer=THINKING)
    it.outbox.close_preview(turn)
    it.outbox.over(turn)
    await it.clock.advance(1)
    assert it.channel.texts(CHAT) == []


async def test_the_end_of_a_turn_takes_nothing_from_its_answer(it: Scene) -> None:
    turn = await it.turn()
    await frame(it, turn, "so far")
    it.channel.fail(Send, RateLimited(5))
    await it.answer("done", turn=turn)
    it.outbox.over(turn)
    await it.clock.advance(10)
    it.outbox.over(turn)
    await it.clock.advance(10)
    assert it.channel.texts(CHAT) == ["done"]
    assert it.channel.of(Delete) == []
