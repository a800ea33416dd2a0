"""One preview at work: its first send, its edits in time, and its end.

Best effort throughout: no failure in here fails a turn, and a message whose fate is unknown is
never sent a second time. Once it is closed no frame of it may land after the final answer. It must
not know what other previews there are, nor what a frame is made of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from core.calls import Broke, Calls, Place, Unreachable
from core.channel import (
    Action,
    ChatMoved,
    MessageGone,
    NotSent,
    RateLimited,
    Refused,
    Revise,
    Send,
    SendError,
    Stream,
    Uncertain,
)
from core.finding import FIND_AFTER, found, repeatable
from core.messages import Part
from core.rates import Rank
from core.shown import Fate, Growing, Preview, removal
from core.store import rows
from core.store.records import Delivery, DeliveryKind, DeliveryState
from core.store.rows import Row

log = logging.getLogger("laneway.outbox")

DOUBT_TIME = 120.0  # seconds to find out whether a preview is there, at most
SAVE_EVERY = 1.0  # seconds between savings of the text that stays after a crash
PAUSES = (2.0, 4.0, 8.0, 16.0, 30.0, 60.0)  # seconds after calls that failed


class Drawing:
    """Draws any preview; what it knows of one stands in the preview itself."""

    def __init__(
        self,
        calls: Calls,
        owed: Callable[[str, int], bool],
        stands: Callable[[Preview], None],
    ) -> None:
        """``owed``: whether a lane has an answer to send that is not the named turn's.
        ``stands``: told once the message of a preview is there."""
        self._calls = calls
        self._store = calls.store
        self._clock = calls.clock
        self._owed = owed
        self._stands = stands

    # One frame after the other ------------------------------------------------------------

    def go_on(self, preview: Preview) -> None:
        if preview.task is None and self._due(preview):
            name = f"preview of turn {preview.turn}"
            preview.task = self._calls.spawn(self._write(preview), name, preview.broke)

    async def _write(self, preview: Preview) -> None:
        try:
            while self._due(preview):
                place = await self._calls.place(preview.lane)
                if not self._due(preview) or not await self._may(preview, place):
                    continue
                place = await self._calls.place(preview.lane)  # the chat may have moved meanwhile
                if self._due(preview):
                    await self._show(preview, place)
            if preview.closed:
                await self._store.save(*self.ending(preview))
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
            self._stands(preview)
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
            case Refused() if preview.message_id:
                preview.stuck, preview.ended = True, True
            case _:
                preview.ended = True
        if preview.ended:
            log.info("turn %d: no more previews: %s", preview.turn, error)
            await self._store.save(*self.ending(preview))

    def _pause(self, preview: Preview) -> None:
        pause = PAUSES[min(preview.failures, len(PAUSES) - 1)]
        preview.failures += 1
        preview.not_before = self._clock.monotonic() + pause

    def ending(self, preview: Preview) -> list[Row]:
        """How a preview's row ends when no answer can take its message over."""
        if not preview.row or preview.fate in (Fate.SHOWN, Fate.DOUBT):
            return []
        unknown = preview.fate is Fate.UNKNOWN
        state = DeliveryState.UNCERTAIN if unknown else DeliveryState.WITHDRAWN
        return [rows.delivery_state(preview.row, state, error=str(preview.fate))]

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
            self.seek(preview)
        elif repeatable(limits, age) and not preview.closed:
            self._pause(preview)
        else:
            preview.ended = True

    def seek(self, preview: Preview) -> asyncio.Task[None]:
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
        self.go_on(preview)

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

    # The end ------------------------------------------------------------------------------

    def close(self, preview: Preview) -> None:
        preview.closed = True
        if preview.task is not None and preview.waiting:
            preview.task.cancel()
            if (never := self.ending(preview)) and self._calls.group is not None:
                name = f"end of the preview of turn {preview.turn}"
                self._calls.spawn(self._store.save(*never), name)

    async def last_call(self, preview: Preview, patience: float) -> None:
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
            search = self.seek(preview)
            await self._calls.finished(search, DOUBT_TIME)
            search.cancel()
        if preview.fate is Fate.DOUBT:
            preview.fate = Fate.UNKNOWN
        if preview.fate is Fate.UNKNOWN and before is not Fate.UNKNOWN:
            log.warning("turn %d: it is not known whether its preview was sent", preview.turn)

    async def leave(self, preview: Preview, patience: float) -> tuple[list[Row], list[Delivery]]:
        """Close it for good: the rows that end it, and what takes its message away once stored."""
        self.close(preview)
        await self.last_call(preview, patience)
        if preview.fate is not Fate.SHOWN:
            return self.ending(preview), []
        gone = removal(
            self._store.ids.delivery(), preview.lane, preview.message_id, self._clock.now()
        )
        withdrawn = rows.delivery_state(preview.row, DeliveryState.WITHDRAWN)
        return [withdrawn, rows.delivery(gone)], [gone]


def _pace(place: Place, growing: Growing | None) -> float:
    """Seconds between two frames there."""
    limits = place.channel.limits
    if growing is not None:
        return limits.stream_every
    return limits.preview_every_direct if place.direct else limits.preview_every_group
