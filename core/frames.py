"""The one message that shows a running turn: sent once, then edited, the newest frame wins.

Best effort throughout: no failure in here fails a turn, and a message whose fate is unknown is
never sent a second time. What it must get right is the end: once a preview is closed no frame of
it may land after the final answer, and a preview that no answer replaces goes away. When a question
comes below a preview, what follows is a new message below the question, and the old one goes.
It does not know what a frame is made of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from core.calls import Broke, Calls, Place, Unreachable
from core.channel import (
    Action,
    ChatMoved,
    MessageGone,
    NotSent,
    RateLimited,
    Revise,
    Send,
    SendError,
    Stream,
    Uncertain,
)
from core.finding import FIND_AFTER, found, repeatable
from core.messages import Keyboard, Part
from core.rates import Rank
from core.shown import Fate, Growing, Preview, Remains, removal
from core.store import rows
from core.store.records import Delivery, DeliveryKind, DeliveryState
from core.store.rows import Row

log = logging.getLogger("laneway.outbox")

CLOSING_TIME = 2.0  # seconds the last call has to come back before an answer
CALL_TIME = 120.0  # the same where nothing waits for it
DOUBT_TIME = 120.0  # seconds to find out whether a preview is there, at most
SAVE_EVERY = 1.0  # seconds between savings of the text that stays after a crash
PAUSES = (2.0, 4.0, 8.0, 16.0, 30.0, 60.0)  # seconds after calls that failed
CLOSED_KEPT = 256  # closed previews whose answer has not come


class Previews:
    def __init__(
        self,
        calls: Calls,
        deliver: Callable[[list[Delivery]], None],
        owed: Callable[[str, int], bool],
    ) -> None:
        """``owed``: whether a lane has an answer to send that is not the named turn's."""
        self._calls = calls
        self._store = calls.store
        self._clock = calls.clock
        self._deliver = deliver
        self._owed = owed
        self._by_turn: dict[int, Preview] = {}
        self._above: dict[int, Preview] = {}  # with words, above a question; go with the next one
        self._leaving: dict[int, list[Delivery]] = {}  # stored; to be made after the answer

    def begin(self, turn: int) -> None:
        """The turn is tried once more: it goes on in the message of the try before."""
        preview = self._by_turn.get(turn)
        if preview is None or not preview.closed or preview.fate is Fate.UNKNOWN:
            return
        if preview.fate in (Fate.SHOWN, Fate.DOUBT) or preview.calling:
            preview.closed = False
            if preview.fate is Fate.DOUBT and self._calls.group is not None:
                self._seek(preview)
        else:
            del self._by_turn[turn]

    def step_aside(self, turn: int) -> None:
        """A question comes below it: what is shown from now on stands below the question."""
        preview = self._by_turn.get(turn)
        if preview is None or preview.closed or preview.fate in (Fate.UNKNOWN, Fate.GONE):
            return
        del self._by_turn[turn]
        if preview.text and (preview.fate in (Fate.SHOWN, Fate.DOUBT) or preview.calling):
            if before := self._above.pop(turn, None):
                self._take_away(before)
            self._above[turn] = preview  # its words help to decide
        else:
            self._take_away(preview)

    def over(self, turn: int) -> None:
        """The turn has ended and no answer comes: nothing of it stays."""
        for previews in (self._by_turn, self._above):
            if preview := previews.pop(turn, None):
                self._take_away(preview)

    def show(
        self,
        turn: int,
        lane: str,
        text: str,
        footer: str,
        keyboard: Keyboard = (),
        growing: Growing | None = None,
    ) -> None:
        """The newest frame; earlier ones that were not shown yet are dropped."""
        preview = self._by_turn.get(turn)
        if preview is None:
            preview = self._by_turn[turn] = Preview(turn, lane)
        if preview.closed or preview.ended or self._calls.group is None:
            return
        preview.text, preview.footer, preview.keyboard = text, footer, keyboard
        preview.growing = growing
        self._go_on(preview)

    def go_on(self, lane: str) -> None:
        """An answer that previews of this lane waited for is sent, or given up."""
        for preview in tuple(self._by_turn.values()):
            if preview.lane == lane:
                self._go_on(preview)

    def shows(self, turn: int) -> bool:
        """Whether a message of it is there or may be there."""
        preview = self._by_turn.get(turn)
        if turn in self._above:
            return True
        if preview is None:
            return False
        return preview.fate in (Fate.SHOWN, Fate.DOUBT, Fate.UNKNOWN) or preview.calling

    def adopt(self, row: Delivery, *, late: bool) -> None:
        """A preview of an earlier process, for the turn's next try or its answer."""
        if row.turn is not None and row.message_id and row.state is DeliveryState.SENT:
            newer = self._by_turn.get(row.turn)
            below = newer is not None and newer.fate is Fate.DOUBT
            (self._above if below else self._by_turn)[row.turn] = Preview(
                row.turn, row.lane, fate=Fate.SHOWN, message_id=row.message_id, row=row.id,
                closed=True, late=late,
            )  # fmt: skip

    def doubt(self, row: Delivery) -> None:
        """A preview that was being sent when an earlier process ended; the platform can tell."""
        if row.turn is not None:
            doubted = Preview(
                row.turn, row.lane, fate=Fate.DOUBT, row=row.id, created_at=row.created_at,
                closed=True, not_before=self._clock.monotonic() + FIND_AFTER, streamed=True,
            )  # fmt: skip
            other = self._by_turn.get(row.turn, doubted)
            self._by_turn[row.turn] = max(doubted, other, key=lambda one: one.row)
            if other is not doubted:
                self._above[row.turn] = min(doubted, other, key=lambda one: one.row)

    def close(self, turn: int) -> None:
        """No frame starts from now on; a call that is under way goes on."""
        preview = self._by_turn.get(turn)
        if preview is None or preview.closed:
            return
        self._close(preview)
        if preview.task is None and preview.fate is Fate.NONE and not preview.row:
            del self._by_turn[turn]
        self._forget_oldest()

    async def settle(self, turn: int) -> Remains:
        """Close it and wait for its last call, at most two seconds."""
        self.close(turn)
        left: list[Row] = []
        if above := self._above.pop(turn, None):
            left, self._leaving[turn] = await self._leave(above, CLOSING_TIME)
        preview = self._by_turn.get(turn)
        if preview is None:
            return Remains(rows=tuple(left))
        await self._last_call(preview, CLOSING_TIME)
        if preview.fate is Fate.SHOWN:
            return Remains(preview.message_id, preview.late, tuple(left))
        return Remains(rows=(*left, *self._ending(preview)))

    def forget(self, turn: int) -> None:
        """The answer is there."""
        self._by_turn.pop(turn, None)
        self._deliver(self._leaving.pop(turn, []))

    def lost(self, turn: int) -> Iterable[Row]:
        """Its message turned out to be gone."""
        preview = self._by_turn.get(turn)
        if preview is None:
            return ()
        preview.fate = Fate.GONE
        return self._ending(preview)

    def moved(self, place: str) -> None:
        """What was sent to a chat's old id counts as gone."""
        for preview in (*self._by_turn.values(), *self._above.values()):
            if preview.place == place:
                preview.fate, preview.ended = Fate.GONE, True

    # Ends ---------------------------------------------------------------------------------

    def _close(self, preview: Preview) -> None:
        preview.closed = True
        if preview.task is not None and preview.waiting:
            preview.task.cancel()
            if (never := self._ending(preview)) and self._calls.group is not None:
                name = f"end of the preview of turn {preview.turn}"
                self._calls.spawn(self._store.save(*never), name)

    async def _last_call(self, preview: Preview, patience: float) -> None:
        """Wait for a call that is under way; what it may still do is noted when it takes longer.

        Where the platform can tell whether a message is there, that is waited for as well.
        """
        task, before = preview.task, preview.fate
        if task is not None and not await self._calls.finished(task, patience):
            called = preview.calling
            task.cancel()
            if preview.message_id:
                preview.late = preview.late or called
            elif called:
                await self._doubted(preview)
        if preview.fate is Fate.DOUBT:
            search = self._seek(preview)
            await self._calls.finished(search, DOUBT_TIME)
            search.cancel()
        if preview.fate is Fate.DOUBT:
            preview.fate = Fate.UNKNOWN
        if preview.fate is Fate.UNKNOWN and before is not Fate.UNKNOWN:
            log.warning("turn %d: it is not known whether its preview was sent", preview.turn)

    def _take_away(self, preview: Preview) -> None:
        """Close it and remove its message, in a task of its own."""
        if self._calls.group is not None:
            name = f"removal of the preview of turn {preview.turn}"
            self._calls.spawn(self._removed(preview), name)

    async def _removed(self, preview: Preview) -> None:
        written, removal = await self._leave(preview, CALL_TIME)
        await self._store.save(*written)
        self._deliver(removal)

    async def _leave(self, preview: Preview, patience: float) -> tuple[list[Row], list[Delivery]]:
        """Close it for good: the rows that end it, and what takes its message away once stored."""
        self._close(preview)
        await self._last_call(preview, patience)
        if preview.fate is not Fate.SHOWN:
            return self._ending(preview), []
        gone = removal(
            self._store.ids.delivery(), preview.lane, preview.message_id, self._clock.now()
        )
        withdrawn = rows.delivery_state(preview.row, DeliveryState.WITHDRAWN)
        return [withdrawn, rows.delivery(gone)], [gone]

    # Whether the message is there ---------------------------------------------------------

    async def _doubted(self, preview: Preview) -> None:
        """Nobody waits for its first send any more, which may still have arrived."""
        try:
            place = await self._calls.place(preview.lane)
        except Unreachable:
            preview.fate = Fate.UNKNOWN
        else:
            self._uncertain(preview, place)

    def _uncertain(self, preview: Preview, place: Place) -> None:
        """Its first send may have arrived: the platform is asked, or knows a repetition."""
        limits = place.channel.limits
        age = self._clock.monotonic() - preview.began
        preview.fate = Fate.DOUBT if limits.finds_sends else Fate.UNKNOWN
        if limits.finds_sends:
            preview.not_before = self._clock.monotonic() + FIND_AFTER
            preview.search = None
            self._seek(preview)
        elif repeatable(limits, age) and not preview.closed:
            self._pause(preview)
        else:
            preview.ended = True

    def _seek(self, preview: Preview) -> asyncio.Task[None]:
        if preview.search is None:
            name = f"search for the preview of turn {preview.turn}"
            preview.search = self._calls.spawn(self._search(preview), name, preview.broke)
        return preview.search

    async def _search(self, preview: Preview) -> None:
        """Ask until there is an answer, then go on from there."""
        while preview.fate is Fate.DOUBT:
            await self._clock.sleep(preview.not_before - self._clock.monotonic())
            try:
                place = await self._calls.place(preview.lane)
            except Unreachable:
                preview.fate = Fate.UNKNOWN
                return
            await place.gate.granted(place.ask(Rank.NOTICE))
            await self._ask(preview, place)
        self._go_on(preview)

    async def _ask(self, preview: Preview, place: Place) -> None:
        try:
            message_id = await found(
                self._calls, place, preview.nonce, preview.created_at, preview.streamed
            )
        except RateLimited as limited:
            place.hold(limited)
        except SendError as error:
            if isinstance(error, NotSent | Uncertain) and not isinstance(error, Broke):
                self._pause(preview)
            else:
                log.info("turn %d: whether its preview is there: %s", preview.turn, error)
                preview.fate, preview.ended = Fate.UNKNOWN, True
        else:
            if preview.fate is not Fate.DOUBT:
                return  # the chat has moved meanwhile
            preview.fate, preview.failures = Fate.NONE, 0
            if message_id:
                preview.fate, preview.message_id = Fate.SHOWN, message_id
                preview.place = place.address.place
                await self._record(preview)

    # One frame after the other ------------------------------------------------------------

    def _go_on(self, preview: Preview) -> None:
        if preview.task is None and self._due(preview):
            name = f"preview of turn {preview.turn}"
            preview.task = self._calls.spawn(self._write(preview), name, preview.broke)

    async def _write(self, preview: Preview) -> None:
        try:
            while self._due(preview):
                place = await self._calls.place(preview.lane)
                if self._due(preview) and await self._may(preview, place):
                    await self._show(preview, place)
            if preview.closed:
                await self._store.save(*self._ending(preview))
        except Unreachable as reason:
            preview.ended = True
            log.info("turn %d has no preview: %s", preview.turn, reason)
        finally:
            preview.task = None

    def _due(self, preview: Preview) -> bool:
        over = preview.closed or preview.ended or preview.fate is Fate.DOUBT
        if over or preview.frame == preview.shown:
            return False
        # Where it is first sent the answer will stand: never above an answer before it.
        return bool(preview.message_id) or not self._owed(preview.lane, preview.turn)

    async def _may(self, preview: Preview, place: Place) -> bool:
        """Wait for the interval and for the gate; closing the preview ends the wait."""
        preview.waiting = True
        try:
            await self._clock.sleep(preview.not_before - self._clock.monotonic())
            await place.gate.granted(place.ask(Rank.PREVIEW))
        finally:
            preview.waiting = False
        return self._due(preview)

    async def _show(self, preview: Preview, place: Place) -> None:
        frame = preview.frame
        if not preview.message_id and not await self._announce(preview, place):
            return
        preview.not_before = self._clock.monotonic() + _pace(place, preview.growing)
        preview.calling = True
        try:
            done = await self._calls.do(place.channel, self._call(preview, place, Part(frame)))
            if preview.fate is Fate.UNKNOWN:
                frame = ""  # the message of an earlier try may be older
            if done.message_id and not preview.message_id:
                preview.message_id, preview.place = done.message_id, place.address.place
                preview.fate = Fate.SHOWN
            if preview.growing and done.message_id and not done.growing:
                slower = self._clock.monotonic() + _pace(place, None)
                preview.not_before = max(preview.not_before, slower)
        except SendError as error:
            preview.calling = False
            await self._failed(preview, place, error)
        else:
            preview.calling = False
            preview.shown, preview.failures, preview.late = frame, 0, False
            if preview.message_id:
                await self._record(preview)
        finally:
            preview.calling = False

    def _call(self, preview: Preview, place: Place, part: Part) -> Action:
        """The first makes the message, all others change it."""
        address, keyboard, growing = place.address, preview.keyboard, preview.growing
        if not preview.message_id:
            preview.began = preview.began or self._clock.monotonic()
            preview.streamed = preview.streamed or growing is not None
        if growing is not None:
            return Stream(
                address, preview.message_id, growing.text, part, keyboard, growing.person,
                preview.nonce,
            )  # fmt: skip
        if preview.message_id:
            return Revise(address, preview.message_id, part, keyboard)
        return Send(address, part, keyboard, nonce=preview.nonce)

    async def _announce(self, preview: Preview, place: Place) -> bool:
        """Mark the first send before it is made. False: not now, after all."""
        if not preview.row:
            preview.row, preview.created_at = self._store.ids.delivery(), self._clock.now()
            preview.saved = preview.text
            row = Delivery(
                preview.row, preview.lane, preview.turn, DeliveryKind.PREVIEW, Part(preview.text),
                state=DeliveryState.IN_FLIGHT, created_at=preview.created_at,
            )  # fmt: skip
            await self._store.save(rows.delivery(row))
        return not preview.closed and not place.held(Rank.PREVIEW)

    async def _record(self, preview: Preview) -> None:
        """Save the message's id at once, and its text from time to time."""
        now = self._clock.monotonic()
        if preview.saved_at == 0.0:
            preview.saved_at = now
            state = rows.delivery_state(
                preview.row, DeliveryState.SENT,
                message_id=preview.message_id, sent_at=self._clock.now(),
            )  # fmt: skip
            await self._store.save(state)
            stands_below = self._by_turn.get(preview.turn) is preview
            if stands_below and (above := self._above.pop(preview.turn, None)):
                self._take_away(above)
        elif now - preview.saved_at >= SAVE_EVERY * 0.95 and preview.text != preview.saved:
            preview.saved_at, preview.saved = now, preview.text
            await self._store.save(rows.delivery_part(preview.row, Part(preview.text)))

    async def _failed(self, preview: Preview, place: Place, error: SendError) -> None:
        match error:
            case RateLimited():
                place.hold(error)
            case NotSent():
                self._pause(preview)
            case Uncertain() if preview.message_id:
                preview.shown, preview.late = None, True
                self._pause(preview)
            case Uncertain():
                self._uncertain(preview, place)
            case MessageGone():
                preview.fate, preview.ended = Fate.GONE, True
            case ChatMoved(new_chat=new_chat):
                preview.fate, preview.ended = Fate.GONE, True
                await self._calls.follow(place.address, new_chat)
            case _:
                preview.ended = True
        if preview.ended:
            log.info("turn %d: no more previews: %s", preview.turn, error)
            await self._store.save(*self._ending(preview))

    def _pause(self, preview: Preview) -> None:
        pause = PAUSES[min(preview.failures, len(PAUSES) - 1)]
        preview.failures += 1
        preview.not_before = self._clock.monotonic() + pause

    def _ending(self, preview: Preview) -> list[Row]:
        """How a preview's row ends when no answer can take its message over."""
        if not preview.row or preview.fate in (Fate.SHOWN, Fate.DOUBT):
            return []
        unknown = preview.fate is Fate.UNKNOWN
        state = DeliveryState.UNCERTAIN if unknown else DeliveryState.WITHDRAWN
        return [rows.delivery_state(preview.row, state, error=str(preview.fate))]

    def _forget_oldest(self) -> None:
        closed = [turn for turn, preview in self._by_turn.items() if preview.closed]
        for turn in closed[: max(0, len(closed) - CLOSED_KEPT)]:
            del self._by_turn[turn]


def _pace(place: Place, growing: Growing | None) -> float:
    """Seconds between two frames there."""
    limits = place.channel.limits
    if growing is not None:
        return limits.stream_every
    return limits.preview_every_direct if place.direct else limits.preview_every_group
