"""Texts that grow at the platform: the same promises as for edited previews."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.channel import Find, RateLimited, Revise, Send, Stream, Uncertain
from core.shown import Growing
from core.store.records import DeliveryState
from tests.delivery.scene import ANA, Scene, scene
from tests.fakes.channel import Fault


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path, stream_text=100, stream_every=0.5, finds_sends=True) as one:
        one.channel.streams_words_only = True
        yield one


async def grow(it: Scene, turn: int, *texts: str, every: float = 0.5) -> None:
    for text in texts:
        footer = f"after {it.clock.monotonic()} s"
        it.outbox.preview(turn, ANA, text, footer, (), Growing(text, "slack:U0ANA"))
        await it.clock.settle()
        await it.clock.advance(every)


def streamed(it: Scene) -> list[str]:
    return [call.action.text for call in it.channel.calls if isinstance(call.action, Stream)]


async def test_all_of_the_text_goes_to_one_message_at_the_streams_own_pace(it: Scene) -> None:
    turn = await it.turn()
    await grow(it, turn, "a", "ab", "abc")
    assert streamed(it) == ["a", "ab", "abc"]
    names = [call.action.message_id for call in it.channel.calls]  # type: ignore[union-attr]
    assert names == ["", *[it.channel.shown()[0].message_id] * 2]
    assert it.channel.calls[0].action.person == "slack:U0ANA"  # type: ignore[union-attr]
    times = [call.at for call in it.channel.calls]
    assert all(b - a == pytest.approx(0.5) for a, b in itertools.pairwise(times))


async def test_what_the_platform_shows_by_edits_comes_at_the_pace_of_edits(it: Scene) -> None:
    it.channel.grows = False
    turn = await it.turn()
    await grow(it, turn, *(f"a{n}" for n in range(20)), every=0.25)
    times = [call.at for call in it.channel.calls]
    assert all(b - a >= 1.0 - 1e-6 for a, b in itertools.pairwise(times))


async def test_the_answer_takes_its_place_and_nothing_is_added_after_it(it: Scene) -> None:
    turn = await it.turn()
    await grow(it, turn, "a", "ab")
    it.outbox.close_preview(turn)
    await grow(it, turn, "abcd")
    await it.answer("abc", turn=turn)
    assert [message.text for message in it.channel.shown()] == ["abc"]
    assert isinstance(it.channel.calls[-1].action, Revise)


async def test_an_addition_that_lands_late_does_not_undo_the_answer(it: Scene) -> None:
    turn = await it.turn()
    await grow(it, turn, "a")
    it.channel.slow(Stream, 30, late=True)
    await grow(it, turn, "ab")
    await it.answer("abc", turn=turn)
    await it.clock.advance(2.1)
    it.channel.land()
    await it.clock.advance(5)
    assert [message.text for message in it.channel.shown()] == ["abc"]


async def test_words_that_are_still_to_come_leave_no_message(it: Scene) -> None:
    turn = await it.turn()
    await grow(it, turn, "")
    assert streamed(it) == [""]
    assert not it.channel.shown()
    await it.answer("quick", turn=turn)
    assert [message.text for message in it.channel.shown()] == ["quick"]
    row = await it.preview_row(turn)
    assert row is not None
    assert row.state is DeliveryState.WITHDRAWN


async def test_a_text_that_is_too_long_to_grow_is_edited_in_the_same_message(it: Scene) -> None:
    turn = await it.turn()
    await grow(it, turn, "a")
    await it.preview(turn, "…the end of a long text", "⏳ writing…")
    await it.clock.advance(2)
    assert len(it.channel.shown()) == 1
    assert isinstance(it.channel.calls[-1].action, Revise)


async def test_inside_a_penalty_nothing_is_added(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Stream, Fault(), RateLimited(4))
    await grow(it, turn, *map(str, range(30)), every=0.1)
    [limited] = [call for call in it.channel.calls if call.error]
    await it.clock.advance(5)
    after = [call for call in it.channel.calls if call.at > limited.at]
    assert after
    assert all(call.at >= limited.at + 4 for call in after)
    assert streamed(it)[-1] == "29"


async def test_a_start_of_unknown_fate_is_looked_for_and_gone_on_with(it: Scene) -> None:
    turn = await it.turn()
    it.channel.fail(Stream, Fault(Uncertain("time-out"), landed=True))
    await grow(it, turn, "a", every=5)
    [find] = [call.action for call in it.channel.calls if isinstance(call.action, Find)]
    assert find.streamed
    await grow(it, turn, "ab")
    await it.answer("abc", turn=turn)
    assert [message.text for message in it.channel.shown()] == ["abc"]


async def test_an_addition_of_unknown_fate_is_tried_again_and_the_answer_shown_last(
    it: Scene,
) -> None:
    turn = await it.turn()
    await grow(it, turn, "a")
    it.channel.fail(Stream, Fault(Uncertain("time-out"), landed=True))
    await grow(it, turn, "ab", every=3)
    await it.answer("abc", turn=turn)
    await it.clock.advance(10)
    assert [message.text for message in it.channel.shown()] == ["abc"]


async def test_after_a_kill_the_message_is_finished_by_an_edit(it: Scene) -> None:
    turn = await it.turn()
    await grow(it, turn, "a", "ab")
    await it.restart()
    await it.answer("abc", turn=turn)
    assert [message.text for message in it.channel.shown()] == ["abc"]
    assert isinstance(it.channel.calls[-1].action, Revise)


async def test_a_kill_in_the_middle_of_the_start_leaves_one_message(it: Scene) -> None:
    turn = await it.turn()
    it.channel.slow(Stream, 30, late=True)
    await grow(it, turn, "a")
    await it.crash()
    it.channel.land()
    await it.start(restore=True)
    await it.answer("abc", turn=turn)
    await it.clock.advance(10)
    assert [message.text for message in it.channel.shown()] == ["abc"]


async def test_platforms_without_growing_texts_are_sent_frames(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        turn = await it.turn()
        await it.preview(turn, "a", "⏳")
        await it.clock.advance(2)
        await it.preview(turn, "ab", "⏳")
        assert [call.kind for call in it.channel.calls] == [Send, Revise]
