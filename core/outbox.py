"""The outbox: everything the gateway says leaves through here, in order, each thing once.

Each lane has at most two lines of deliveries: what is urgent (command answers, cards), and the
rest. A line is worked off by one task that exists only while there is something to send, so idle
lanes cost nothing. Lanes of a chat share its rate, chats that of their token; see rates.py.
It must not know lane rules, engines or what a text means.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from core.attempt import Outcome, takes_away
from core.calls import Calls, Moved, Unreachable
from core.channel import Channel, Refused, SendError
from core.clock import Clock
from core.delivering import Delivering, Holding
from core.frames import Previews
from core.guard import fault_of
from core.lane_ids import channel_of
from core.leftovers import Leftovers
from core.messages import Address, Keyboard, Part, Receipt, clean
from core.rates import Rank, Ticket
from core.shown import Growing
from core.signs import Signs
from core.store import rows
from core.store.records import Delivery, DeliveryKind, DeliveryState, revised
from core.store.store import Store

log = logging.getLogger("laneway.outbox")

OnFailed = Callable[[Delivery, SendError], None]

ERROR_LENGTH = 500
_URGENT = frozenset({DeliveryKind.COMMAND, DeliveryKind.CARD})
_FINAL = frozenset({DeliveryKind.ANSWER, DeliveryKind.FILE})


@dataclass(slots=True, eq=False)
class _Line:
    """What one lane has to say, in order."""

    lane: str
    urgent: bool
    queue: deque[Delivery] = field(default_factory=deque)
    ticket: Ticket | None = None
    busy: bool = False  # the first of the queue is being carried out

    def rank(self) -> Rank:
        """A notice in front of an answer is as important as the answer."""
        if self.urgent:
            return Rank.URGENT
        final = any(delivery.kind in _FINAL for delivery in self.queue)
        return Rank.FINAL if final else Rank.NOTICE


def _nothing_told(delivery: Delivery, error: SendError) -> None:
    """For those who need not hear of what failed."""


class Outbox:
    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        clock: Clock,
        *,
        moved: Moved,
        on_failed: OnFailed = _nothing_told,
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_failed = on_failed
        self._follow = moved
        self._calls = Calls(store, channels, clock, self._chat_moved)
        self._previews = Previews(self._calls, self.deliver, self._owes)
        self._signs = Signs(self._calls)
        self._delivering = Delivering(self._calls, self._previews, self._signs)
        self._leftovers = Leftovers(self._calls, self._previews)
        self._lines: dict[tuple[str, bool], _Line] = {}
        self._empty = asyncio.Event()
        self._empty.set()
        self._ended = asyncio.Event()  # a line was worked off
        self.settled: Counter[tuple[str, DeliveryState]] = Counter()  # by channel and end

    async def run(self) -> None:
        """Send until cancelled. What is handed over before goes out when this begins."""
        async with asyncio.TaskGroup() as group:
            self._calls.group = group
            try:
                for line in self._lines.values():
                    self._start(line)
                await asyncio.Event().wait()
            finally:
                self._calls.group = None

    def deliver(self, deliveries: Iterable[Delivery]) -> None:
        """Send what is committed as pending; in this order within each lane."""
        for delivery in deliveries:
            key = (delivery.lane, delivery.kind in _URGENT)
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = _Line(*key)
                self._start(line)
            self._supersede(line, delivery)
            line.queue.append(delivery)
            self._empty.clear()
            if line.ticket is not None:
                self._hurry(line, line.ticket)

    def preview(
        self,
        turn: int,
        lane: str,
        text: str,
        footer: str = "",
        keyboard: Keyboard = (),
        growing: Growing | None = None,
    ) -> None:
        """Show how far a turn is. ``text`` is what stays of it if the gateway dies."""
        self._previews.show(turn, lane, text, footer, keyboard, growing)

    def close_preview(self, turn: int) -> None:
        """No frame of this turn starts from now on."""
        self._previews.close(turn)

    def begin_preview(self, turn: int) -> None:
        """The turn is tried once more: what a try before left in its thread is edited on."""
        self._previews.begin(turn)

    def step_aside(self, turn: int) -> None:
        """A question comes: what the turn shows from now on stands below it."""
        self._previews.step_aside(turn)

    def over(self, turn: int) -> None:
        """The turn has ended. Without an answer on its way, nothing of its preview may stay."""
        waiting = (delivery for line in self._lines.values() for delivery in line.queue)
        if not any(one.turn == turn and one.kind is DeliveryKind.ANSWER for one in waiting):
            self._previews.over(turn)

    def shows(self, turn: int) -> bool:
        """Whether a preview of this turn is, or may be, in its thread."""
        return self._previews.shows(turn)

    def typing(self, lane: str) -> None:
        """One typing sign, if the platform has a call to spare."""
        self._signs.typing(lane)

    def hush(self, lane: str) -> None:
        """End a typing call that is under way."""
        self._signs.hush(lane)

    def react(self, lane: str, message_id: str, receipt: Receipt) -> None:
        self._signs.react(lane, message_id, receipt)

    def answer_press(
        self,
        channel: str,
        press: str,
        text: str,
        alert: bool = False,
        parts: tuple[Part, ...] = (),
    ) -> None:
        self._signs.answer_press(channel, press, text, alert, parts)

    def retitle(self, lane: str, title: str) -> None:
        self._signs.retitle(lane, title)

    def moved(self, channel: str, old_chat: str, new_chat: str) -> None:
        """The rows of a chat were moved (or lanes merged): addresses are read anew."""
        self._calls.moved(channel, old_chat, new_chat)
        self._previews.moved(f"{channel}:{old_chat}")

    async def _chat_moved(self, old: Address, new_chat: str) -> None:
        await self._follow(old, new_chat)
        self._previews.moved(old.place)

    async def restore(self, channel: str = "") -> None:
        """Go on with what an earlier process left; with ``channel``, only with what is of it."""
        self.deliver(await self._leftovers.take_up(channel))

    def adopt(self, previews: Iterable[Delivery]) -> None:
        """What turns showed before they were held back is theirs to go on with."""
        for row in previews:
            self._previews.adopt(row, late=False)

    async def said(self, lane: str) -> None:
        """Wait until everything that was handed over for ``lane`` is sent or given up."""
        while any((lane, urgent) in self._lines for urgent in (True, False)):
            self._ended.clear()
            await self._ended.wait()

    async def flushed(self, timeout: float) -> bool:
        """Wait until all is delivered; False if something is left after ``timeout`` seconds."""
        if self._empty.is_set() or self._calls.group is None:
            return self._empty.is_set()

        async def emptied() -> None:
            await self._empty.wait()

        waiting = self._calls.spawn(emptied(), "wait for an empty outbox")
        try:
            return await self._calls.finished(waiting, timeout)
        finally:
            waiting.cancel()

    async def rest(self, timeout: float) -> None:
        """Send nothing more, and wait a moment for the calls under way: what is cut off in the
        middle would be uncertain for ever, what was not begun goes out after the restart."""
        if self._calls.group is not None:
            landing = self._calls.spawn(self._delivering.rest(), "wait for calls under way")
            await self._calls.finished(landing, timeout)
            landing.cancel()

    # Looking ------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Deliveries that are still to be carried out."""
        return sum(len(line.queue) for line in self._lines.values())

    @property
    def calls_made(self) -> Mapping[tuple[str, str], int]:
        """Calls of each channel by the name of their action, since the start."""
        return self._calls.made

    def penalties(self) -> Mapping[str, int]:
        """How often each platform told us to wait, since the start."""
        return self._calls.penalties()

    # Lines --------------------------------------------------------------------------------

    def _start(self, line: _Line) -> None:
        if self._calls.group is not None:
            urgent = " (urgent)" if line.urgent else ""
            self._calls.spawn(self._write(line), f"writer of {line.lane}{urgent}")

    def _owes(self, lane: str, turn: int) -> bool:
        """Whether the answer of another turn is still to be sent there."""
        line = self._lines.get((lane, False))
        queue = line.queue if line is not None else ()
        return any(one.kind in _FINAL and one.turn != turn for one in queue)

    def _hurry(self, line: _Line, ticket: Ticket) -> None:
        if (gate := self._calls.gate_of(ticket.chat)) is not None:
            gate.hurry(ticket, line.rank())

    async def _write(self, line: _Line) -> None:
        def holding(ticket: Ticket | None) -> None:
            line.ticket = ticket

        while line.queue:
            delivery = line.queue[0]
            line.busy = True
            work = self._to_its_end(delivery, line.rank, holding)
            if await fault_of(work, f"delivery {delivery.id} in {line.lane}"):
                await self._set_aside(delivery)
            line.busy = False
            line.queue.popleft()
            if delivery.kind in _FINAL:
                self._previews.go_on(line.lane)
        del self._lines[(line.lane, line.urgent)]
        self._ended.set()
        if not self._lines:
            self._empty.set()

    async def _to_its_end(
        self, delivery: Delivery, rank: Callable[[], Rank], holding: Holding
    ) -> None:
        try:
            outcome = await self._delivering.carry_out(delivery, rank, holding)
        except Unreachable as reason:
            # It stays pending in the store: the channel may be set up again.
            log.error("delivery %d waits: %s", delivery.id, reason)
        else:
            await self._settle(delivery, outcome)

    async def _set_aside(self, delivery: Delivery) -> None:
        """A delivery that broke costs none behind it; whoever counts on it hears that it failed."""
        outcome = self._delivering.broken(delivery)
        settling = self._settle(delivery, outcome)
        await fault_of(settling, f"the end of delivery {delivery.id} in {delivery.lane}")
        self._delivering.landed(delivery.id)

    async def _settle(self, delivery: Delivery, outcome: Outcome) -> None:
        sent = outcome.state is DeliveryState.SENT
        await self._store.save(
            rows.delivery_state(
                delivery.id,
                outcome.state,
                message_id=outcome.message_id,
                error=clean(str(outcome.error or ""))[:ERROR_LENGTH],
                sent_at=self._clock.now() if sent else None,
            )
        )
        self._delivering.landed(delivery.id)
        self.settled[channel_of(delivery.lane), outcome.state] += 1
        if outcome.error is not None:
            words = (delivery.id, delivery.lane, outcome.state, outcome.error)
            log.warning("delivery %d in %s is %s: %s", *words)
            if outcome.state is DeliveryState.FAILED or isinstance(outcome.error, Refused):
                self._on_failed(delivery, outcome.error)

    def _supersede(self, line: _Line, newer: Delivery) -> None:
        """Of edits of one message that still wait, only the newest is worth making.

        A message that is to be taken away before it was sent is not sent at all.
        """
        if not newer.target or newer.kind is DeliveryKind.ANSWER or self._calls.group is None:
            return
        first = revised(newer.target)
        waits = first is not None and any(one.id == first for one in line.queue)
        if first is not None and waits and takes_away(newer.part, newer.keyboard):
            self._delivering.withdraw(first)
        for delivery in tuple(line.queue)[1 if line.busy else 0 :]:
            if delivery.target == newer.target:
                line.queue.remove(delivery)
                row = rows.delivery_state(delivery.id, DeliveryState.WITHDRAWN, error="newer text")
                self._calls.spawn(self._store.save(row), f"withdrawal of delivery {delivery.id}")
