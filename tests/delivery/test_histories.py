"""Random histories: whatever the platform does and whenever the process dies, the promises hold.

Order in each line, nothing sent twice, nothing lost, no call inside a penalty, and no frame of a
preview over the answer that replaced it.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from core.channel import Find, NotSent, RateLimited, Revise, Send, Typing, Uncertain
from core.store.records import Delivery, DeliveryKind, DeliveryState, revises
from tests.delivery.scene import ANA, OTHER_TOPIC, TOPIC, Scene, scene
from tests.examples import tried
from tests.fakes.channel import Fault

LANES = (ANA, TOPIC, OTHER_TOPIC)
URGENT = (DeliveryKind.COMMAND, DeliveryKind.CARD)
ENDS = (DeliveryState.SENT, DeliveryState.UNCERTAIN, DeliveryState.WITHDRAWN)

lanes = st.sampled_from(LANES)
some = st.integers(0, 9)
kinds = st.sampled_from([DeliveryKind.NOTICE, DeliveryKind.COMMAND, DeliveryKind.CARD])
actions = st.sampled_from([Send, Revise, Find])
errors = st.one_of(
    st.builds(RateLimited, st.sampled_from([0.5, 3, 20])),
    st.builds(RateLimited, st.just(5), st.just(True)),
    st.builds(NotSent),
)
faults = st.one_of(
    st.builds(Fault, errors),
    st.builds(Fault, st.builds(Uncertain), landed=st.booleans()),
    st.builds(Fault, seconds=st.sampled_from([0.2, 1.5, 5, 40]), late=st.booleans()),
    st.builds(Fault, st.builds(Uncertain), st.booleans(), st.sampled_from([1.0, 6.0])),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), lanes, kinds),
        st.tuples(st.just("edit"), some),
        st.tuples(st.just("turn"), lanes),
        st.tuples(st.just("frame"), some),
        st.tuples(st.just("frame"), some),
        st.tuples(st.just("aside"), some),
        st.tuples(st.just("again"), some),
        st.tuples(st.just("answer"), some, st.integers(1, 3)),
        st.tuples(st.just("typing"), lanes),
        st.tuples(st.just("fault"), actions, faults),
        st.tuples(st.just("fault"), st.just(Typing), st.builds(Fault, errors)),
        st.tuples(st.just("drop"), some),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 2.5, 10.0])),
        st.tuples(st.just("crash")),
    ),
    min_size=3,
    max_size=40,
)


@dataclass
class History:
    it: Scene
    said: list[Delivery] = field(default_factory=list)
    turns: list[tuple[int, str]] = field(default_factory=list)
    answers: list[Delivery] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    crashes: list[tuple[int, float]] = field(default_factory=list)
    frames: dict[int, set[str]] = field(default_factory=dict)
    number: int = 0
    finds: bool = False  # the platform can tell what arrived

    def word(self, kind: str) -> str:
        self.number += 1
        return f"{kind}{self.number}"

    async def wait(self, seconds: float) -> None:
        """Requests that were cut off land within half a second."""
        while seconds > 0:
            await self.it.clock.advance(min(0.5, seconds))
            self.it.channel.land()
            seconds -= 0.5

    async def step(self, step: tuple) -> None:
        it = self.it
        match step:
            case ("say", lane, kind):
                self.said.append(await it.say(self.word("say"), lane, kind=kind))
            case ("edit", n) if plain := [d for d in self.said if not d.target and d.turn is None]:
                of = plain[n % len(plain)]
                word = self.word("edit")
                self.said.append(await it.say(word, of.lane, kind=of.kind, target=revises(of.id)))
            case ("turn", lane):
                self.turns.append((await it.turn(lane), lane))
            case ("frame", n) if self.turns:
                turn, lane = self.turns[n % len(self.turns)]
                frame = self.word("frame")
                self.frames.setdefault(turn, set()).add(frame)
                await it.preview(turn, frame, lane=lane)
            case ("aside", n) if self.turns:
                it.outbox.step_aside(self.turns[n % len(self.turns)][0])
                await it.clock.settle()
            case ("again", n) if self.turns:
                turn, _ = self.turns[n % len(self.turns)]
                it.outbox.close_preview(turn)
                it.outbox.begin_preview(turn)
            case ("answer", n, parts) if self.turns:
                turn, lane = self.turns.pop(n % len(self.turns))
                it.outbox.close_preview(turn)
                words = [self.word("answer") for _ in range(parts)]
                kind = DeliveryKind.ANSWER
                made = await it.say_all(words, lane, kind=kind, turn=turn)
                self.answers.append(made[0])
                self.said += made
            case ("typing", lane):
                it.outbox.typing(lane)
                await it.clock.settle()
            case ("fault", kind, fault):
                it.channel.fail(kind, fault)
            case ("drop", n) if it.channel.messages:
                name = list(it.channel.messages)[n % len(it.channel.messages)]
                self.dropped.add(name)
                it.channel.drop(name)
            case ("wait", seconds):
                await self.wait(seconds)
            case ("crash",):
                self.crashes.append((len(it.channel.calls), it.clock.monotonic()))
                await it.restart()

    # What must hold -----------------------------------------------------------------------

    async def check(self) -> None:
        rows = {delivery.id: await self.it.row(delivery) for delivery in self.said}
        sends = [call for call in self.it.channel.calls if call.kind is Send]
        history = {text for text, _ in self.texts()}
        for delivery in self.said:
            row, text = rows[delivery.id], delivery.part.text
            assert row.state in ENDS, f"{text} is lost: {row.state}"
            known = not self.finds or row.state is not DeliveryState.UNCERTAIN
            assert known, f"{text} is uncertain"
            assert len([c for c in sends if c.landed and c.text == text]) <= 1, f"{text} twice"
            if row.state is DeliveryState.SENT:
                assert text in history, f"{text} is said to be sent"
        self.check_order()
        self.check_penalties()
        self.check_last_words(rows)
        self.check_nothing_left()

    def texts(self) -> list[tuple[str, str]]:
        """Every text that ever was to be seen, with its message."""
        return [(call.text, call.message_id) for call in self.it.channel.calls if call.landed]

    def check_order(self) -> None:
        """Of each line, first attempts are made in the order of the deliveries."""
        attempts: dict[str, int] = {}
        for place, call in enumerate(self.it.channel.calls):
            attempts.setdefault(call.text, place)
        for lane in LANES:
            for urgent in (True, False):
                places = [
                    attempts[delivery.part.text]
                    for delivery in self.said
                    if delivery.lane == lane
                    and (delivery.kind in URGENT) is urgent
                    and delivery.part.text in attempts
                ]
                assert places == sorted(places), f"order of {lane}"

    def check_penalties(self) -> None:
        """Within one process no call starts before the end of a penalty it could know of."""
        calls = self.it.channel.calls
        ends = [number for number, _ in self.crashes] + [len(calls)]
        for begin, end in zip([0, *ends], ends, strict=False):
            for number in range(begin, end):
                limit = calls[number].error
                if not isinstance(limit, RateLimited) or calls[number].done_at is None:
                    continue
                over = calls[number].done_at + limit.retry_after
                for later in calls[number + 1 : end]:
                    same = later.action.address.chat == calls[number].action.address.chat
                    cosmetic = later.kind is Typing or later.text.startswith("frame")
                    earned = calls[number].kind is not Typing or limit.everywhere
                    if (same or limit.everywhere) and (earned or cosmetic):
                        early = calls[number].done_at < later.at < over - 1e-6
                        assert not early, f"{later} inside the penalty of {calls[number]}"

    def check_nothing_left(self) -> None:
        """Unless it was not known what became of a call, an answer leaves no frame beside it."""
        certain = all(
            call.done_at is not None and isinstance(call.error, None | RateLimited | NotSent)
            for call in self.it.channel.calls
        )
        if not self.finds and (self.crashes or self.dropped or not certain):
            return
        shown = {message.text for message in self.it.channel.messages.values()}
        for answer in self.answers:
            assert answer.turn is not None
            assert not shown & self.frames.get(answer.turn, set()), "a frame stands by its answer"

    def check_last_words(self, rows: dict[int, Delivery]) -> None:
        """What an answer, or the last of several edits, says is what stands there in the end."""
        last = {delivery.target: delivery for delivery in self.said if delivery.target}
        for delivery in [*self.answers, *last.values()]:
            row = rows[delivery.id]
            if row.state is DeliveryState.SENT and row.message_id not in self.dropped:
                shown = self.it.channel.messages[row.message_id]
                assert shown.text == delivery.part.text, "something older won"


async def play(steps: list[tuple], path: Path, finds: bool = False) -> None:
    async with scene(path, *LANES, finds_sends=finds) as it:
        history = History(it, finds=finds)
        for step in steps:
            await history.step(step)
        it.channel._faults.clear()
        await history.wait(50)
        for _ in range(30):
            await it.clock.advance(120)
        it.channel.land()
        await history.check()


@tried(
    20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps)
def test_whatever_happens_the_promises_hold(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(steps, Path(folder)))


@tried(
    20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps.map(lambda some: [step for step in some if step[0] != "drop"]))
def test_where_the_platform_can_tell_everything_is_there_exactly_once(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(steps, Path(folder), finds=True))
