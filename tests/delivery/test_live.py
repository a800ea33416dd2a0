"""What a thread sees of a running turn, and when."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from core.channel import ChannelLimits, Revise, Send, Typing
from core.engines.base import Text, Thought, ToolEnded, ToolStarted
from core.live import AT_ONCE, Live
from core.messages import Keyboard
from core.shown import Growing
from tests.delivery.scene import ANA, TOPIC, Scene
from tests.fakes.clock import FakeClock


class Screen:
    """The outbox as a running turn sees it: notes what it is asked for and when."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.frames: list[tuple[float, str, str]] = []
        self.growing: list[Growing | None] = []
        self.typed: list[float] = []
        self.hushed = 0
        self.closed: list[int] = []
        self.begun: list[int] = []
        self.aside: list[float] = []

    def preview(
        self,
        turn: int,
        lane: str,
        text: str,
        footer: str = "",
        keyboard: Keyboard = (),
        growing: Growing | None = None,
    ) -> None:
        self.frames.append((self.clock.monotonic(), text, footer))
        self.growing.append(growing)

    def begin_preview(self, turn: int) -> None:
        self.begun.append(turn)

    def step_aside(self, turn: int) -> None:
        self.aside.append(self.clock.monotonic())

    def close_preview(self, turn: int) -> None:
        self.closed.append(turn)

    def typing(self, lane: str) -> None:
        self.typed.append(self.clock.monotonic())

    def hush(self, lane: str) -> None:
        self.hushed += 1


class Turn:
    def __init__(self, direct: bool, previews: bool, limits: ChannelLimits) -> None:
        self.clock = FakeClock()
        self.screen = Screen(self.clock)
        self.live = Live(7, ANA, direct, limits, self.screen, self.clock, previews)

    async def stream(self, seconds: float, every: float = 0.05) -> None:
        for n in range(round(seconds / every)):
            self.live.feed(Text(f"word{n} "))
            await self.clock.advance(every)


@asynccontextmanager
async def turn(direct: bool = True, previews: bool = True, **limits: Any) -> AsyncIterator[Turn]:
    it = Turn(direct, previews, replace(ChannelLimits(), **limits))
    async with asyncio.TaskGroup() as group:
        group.create_task(it.live.run())
        await it.clock.settle()
        yield it
        it.live.close()


async def test_it_types_at_once_and_then_every_few_seconds() -> None:
    async with turn() as it:
        await it.clock.advance(21)
        assert it.screen.typed == [AT_ONCE + seconds for seconds in (0, 4, 8, 12, 16, 20)]


async def test_an_answer_that_is_there_at_once_needs_no_typing() -> None:
    async with turn() as it:
        it.live.feed(Text("Yep."))
        it.live.close()
        await it.clock.advance(10)
        assert it.screen.typed == []


async def test_it_types_on_after_the_first_text_was_shown() -> None:
    async with turn() as it:
        await it.stream(2)
        await it.clock.advance(19)
        gaps = [b - a for a, b in zip(it.screen.typed, it.screen.typed[1:], strict=False)]
        assert max(gaps) <= 5


async def test_nobody_types_while_a_person_decides() -> None:
    async with turn() as it:
        await it.clock.advance(1)
        it.live.hold()
        await it.clock.advance(59)
        assert it.screen.typed == [AT_ONCE]
        it.live.release()
        assert it.screen.typed == [AT_ONCE, 60]


async def test_a_turn_without_a_word_shows_no_preview_below_its_question() -> None:
    async with turn() as it:
        it.live.feed(ToolStarted("t1", "Make week.csv"))
        await it.clock.advance(1)
        it.live.hold()
        await it.clock.advance(60)
        assert it.screen.frames == []
        it.live.release()
        await it.clock.advance(1)
        assert [footer for _, _, footer in it.screen.frames] == ["🔧 Make week.csv · 1 min 00 s"]


async def test_what_is_shown_steps_aside_for_a_question_and_goes_on_below_it() -> None:
    async with turn() as it:
        it.live.feed(Text("Let me look. "))
        await it.clock.advance(2)
        it.live.hold()
        assert it.screen.aside == [2]
        assert it.screen.frames[-1][1:] == ("Let me look.", "✋ waiting for a decision")
        await it.clock.advance(60)
        assert it.screen.frames[-1][0] == 2, "a question says all there is to say"
        it.live.release()
        await it.clock.advance(0.9)
        assert it.screen.frames[-1][0] == 2, "an answer that comes now needs no frame"
        await it.clock.advance(0.2)
        assert it.screen.frames[-1] == (63, "Let me look.", "⏳ writing… · 1 min 00 s")
        assert it.screen.aside == [2]


async def test_words_that_were_not_shown_before_the_question_are_shown_below_it() -> None:
    async with turn() as it:
        await it.clock.advance(1.9)
        it.live.feed(Text("Let me look."))
        it.live.hold()
        await it.clock.advance(0.9)
        assert it.screen.frames == [], "the question may still be on its way"
        await it.clock.advance(0.2)
        assert it.screen.aside == []
        assert [text for _, text, _ in it.screen.frames] == ["Let me look."]


async def test_words_that_come_while_a_person_decides_are_shown() -> None:
    async with turn() as it:
        it.live.feed(Text("One. "))
        await it.clock.advance(2)
        it.live.hold()
        await it.clock.advance(10)
        it.live.feed(Text("Two."))
        await it.clock.advance(10)
        assert [text for _, text, _ in it.screen.frames][-1] == "One. Two."


async def test_each_try_of_a_turn_takes_up_what_the_one_before_left() -> None:
    async with turn() as it:
        assert it.screen.begun == [7]


async def test_a_platform_without_a_typing_sign_gets_none() -> None:
    async with turn(typing_every=0) as it:
        await it.clock.advance(60)
        assert it.screen.typed == []


async def test_a_short_answer_is_not_shown_before_it_is_there() -> None:
    async with turn() as it:
        it.live.feed(Text("Yep."))
        await it.clock.advance(0.9)
        assert it.live.close() == "Yep."
        await it.clock.advance(60)
        assert it.screen.frames == []


async def test_an_answer_in_one_piece_after_long_thinking_needs_no_frame() -> None:
    async with turn() as it:
        await it.clock.advance(2.5)
        it.live.feed(Text("Yep."))
        await it.clock.advance(0.1)
        it.live.close()
        assert it.screen.frames == []


@pytest.mark.parametrize(("direct", "every"), [(True, 1.0), (False, 3.0)])
async def test_frames_come_at_the_platforms_pace(direct: bool, every: float) -> None:
    async with turn(direct) as it:
        await it.stream(30)
        times = [at for at, _, _ in it.screen.frames]
        gaps = [b - a for a, b in itertools.pairwise(times)]
        assert times[0] == pytest.approx(1.0)
        assert gaps == pytest.approx([every] * len(gaps))


async def test_where_frames_cost_nothing_the_first_comes_soon() -> None:
    async with turn(preview_every_direct=0.1) as it:
        await it.stream(0.5)
        assert it.screen.frames[0][0] <= 0.2


async def test_a_frame_shows_all_text_so_far() -> None:
    async with turn() as it:
        it.live.feed(Text("Hel"))
        it.live.feed(Text("lo"))
        await it.clock.advance(1)
        it.live.feed(Text(" world"))
        await it.clock.advance(1)
        assert [text for _, text, _ in it.screen.frames] == ["Hello", "Hello world"]


async def test_long_work_without_a_word_is_shown_as_such() -> None:
    async with turn() as it:
        await it.clock.advance(1.5)
        it.live.feed(ToolStarted("1", "Run the tests"))
        assert it.screen.frames == []
        await it.clock.advance(3)
        assert [(text, footer) for _, text, footer in it.screen.frames] == [
            ("", "🔧 Run the tests")
        ]


async def test_a_change_of_phase_is_a_new_frame_and_nothing_new_is_none() -> None:
    async with turn() as it:
        it.live.feed(Text("Let me look."))
        await it.clock.advance(1)
        it.live.feed(ToolStarted("1", "Read"))
        await it.clock.advance(1)
        it.live.feed(ToolEnded("1"))
        it.live.feed(Thought())
        await it.clock.advance(1)
        footers = [footer for _, _, footer in it.screen.frames]
        assert [footer.split(" · ")[0] for footer in footers] == [
            "⏳ writing…",
            "🔧 Read",
            "⏳ thinking…",
        ]


async def test_waiting_alone_costs_few_frames() -> None:
    async with turn() as it:
        it.live.feed(ToolStarted("1", "Build"))
        await it.clock.advance(3600)
        assert len(it.screen.frames) < 120


async def test_without_previews_it_only_types() -> None:
    async with turn(previews=False) as it:
        await it.stream(10)
        assert it.screen.frames == []
        assert it.screen.typed
        assert it.live.close().startswith("word0 word1")


async def test_a_platform_that_cannot_edit_gets_no_preview() -> None:
    async with turn(edits=False) as it:
        await it.stream(10)
        assert it.screen.frames == []


async def test_after_closing_nothing_starts() -> None:
    async with turn() as it:
        await it.stream(5)
        frames, typed = len(it.screen.frames), len(it.screen.typed)
        it.live.feed(Text("more"))
        it.live.close()
        it.live.feed(Text("too late"))
        it.live.release()
        await it.clock.advance(60)
        assert (len(it.screen.frames), len(it.screen.typed)) == (frames, typed)
        assert it.screen.closed == [7]
        assert it.screen.hushed == 1
        assert it.live.close().endswith("more")


async def test_one_that_is_closed_before_it_runs_does_nothing() -> None:
    clock = FakeClock()
    screen = Screen(clock)
    live = Live(7, ANA, True, ChannelLimits(), screen, clock, True)
    live.close()
    await live.run()
    assert screen.typed == []


# With the real outbox ---------------------------------------------------------------------


async def answered(it: Scene, pieces: list[tuple[float, str]], lane: str = ANA) -> float:
    """One turn: pieces at their times, then the answer; returns when the last piece came."""
    turn = await it.turn(lane)
    limits = it.channel.limits
    live = Live(turn, lane, lane != TOPIC, limits, it.outbox, it.clock, True)
    running = asyncio.create_task(live.run())
    began = it.clock.monotonic()
    for at, piece in pieces:
        await it.clock.advance(began + at - it.clock.monotonic())
        live.feed(Text(piece))
    last = it.clock.monotonic()
    text = live.close()
    await it.answer(*(part.text for part in it.channel.render(text)), turn=turn, lane=lane)
    await running
    return last


async def test_a_minute_of_streaming_is_smooth_bounded_and_ends_at_once(it: Scene) -> None:
    it.channel.seconds = 0.04
    pieces = [(n * 0.02, "abcd "[n % 5]) for n in range(3000)]
    last = await answered(it, pieces)
    await it.clock.advance(10)
    edits = it.channel.of(Revise)
    times = [call.at for call in [*it.channel.of(Send), *edits]]
    assert len(edits) <= 60
    assert max(b - a for a, b in itertools.pairwise(times)) <= 1.3
    assert edits[-1].text == it.channel.texts()[0]
    assert edits[-1].at - last <= 0.05
    assert "".join(it.channel.texts()) == "".join(piece for _, piece in pieces)


async def test_a_short_answer_is_exactly_one_message(it: Scene) -> None:
    await answered(it, [(0.2, "Yep.")])
    await answered(it, [(0.2, "No"), (0.3, " problem")])
    await it.clock.advance(10)
    assert it.channel.texts() == ["Yep.", "No problem"]
    assert it.channel.of(Revise) == []


async def test_the_answer_takes_the_previews_place(it: Scene) -> None:
    await answered(it, [(n, f"{n:<50}") for n in range(12)])
    await it.clock.advance(10)
    assert it.channel.texts() == ["".join(f"{n:<50}" for n in range(12))]
    assert len(it.channel.of(Send)) == 1


async def test_a_long_answer_is_shown_exactly_once(it: Scene) -> None:
    lines = [f"{n:04} a line of the answer\n" for n in range(250)]
    await answered(it, [(n * 0.05, line) for n, line in enumerate(lines)])
    await it.clock.advance(10)
    assert "".join(it.channel.texts()) == "".join(lines)
    assert len(it.channel.texts()) == 2


async def test_typing_never_ends_later_than_the_answer(it: Scene) -> None:
    await answered(it, [(n, "word ") for n in range(9)])
    ended = it.clock.monotonic()
    await it.clock.advance(30)
    assert it.channel.of(Typing)
    assert max(call.at for call in it.channel.of(Typing)) <= ended


async def test_where_texts_can_grow_all_of_it_is_handed_over_up_to_its_limit() -> None:
    async with turn(stream_text=40, preview_text=20) as it:
        it.live.feed(Text("\n\n" + "x" * 30))
        await it.clock.advance(2)
        it.live.feed(Text("y" * 30))
        await it.clock.advance(2)
        assert it.screen.growing[0] == Growing("x" * 30)
        assert it.screen.growing[-1] is None


async def test_half_a_character_is_not_shown_before_its_other_half() -> None:
    async with turn(stream_text=100) as it:
        it.live.feed(Text("a\ud83d"))
        await it.clock.advance(2)
        it.live.feed(Text("\udc4b"))
        await it.clock.advance(2)
        texts = [one.text for one in it.screen.growing if one]
        assert (texts[0], texts[-1]) == ("a", "a👋")


async def test_while_a_person_decides_the_text_stands_still() -> None:
    async with turn(stream_text=100) as it:
        await it.stream(3)
        it.live.hold()
        assert it.screen.growing[-1] is None


async def test_where_texts_cannot_grow_none_is_handed_over() -> None:
    async with turn() as it:
        await it.stream(3)
        assert not any(it.screen.growing)
