"""What an earlier process had still to say, or had just said: what goes out, what is in doubt.

Run once at a start, and once for each channel that is set up later. It decides by what the store
and the platform's limits say; it sends nothing itself, and must not know what a text means.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from core.calls import Calls
from core.channel import ChannelLimits
from core.finding import repeatable
from core.frames import Previews
from core.lane_ids import channel_of
from core.shown import removal
from core.store import reads, rows
from core.store.records import Delivery, DeliveryKind, DeliveryState, FilePart
from core.store.rows import Row
from core.store.store import Store

log = logging.getLogger("laneway.outbox")


class Leftovers:
    def __init__(self, calls: Calls, previews: Previews) -> None:
        self._calls = calls
        self._store = calls.store
        self._clock = calls.clock
        self._previews = previews

    async def take_up(self, channel: str = "") -> list[Delivery]:
        """What is to be sent now, in order: what was pending, and what may be tried again.

        Of what was in flight the rest is looked for or stored as uncertain, and previews are handed
        to their turns. With ``channel``, only of one that was not set up until now.
        """
        again: list[Delivery] = []
        doubted: list[Delivery] = []
        written: list[Row] = []
        for delivery in await reads.deliveries_open(self._store):
            if channel and channel_of(delivery.lane) != channel:
                continue
            if await self._again(delivery):
                again.append(delivery)
            elif delivery.kind is DeliveryKind.PREVIEW and await self._finds(delivery.lane):
                doubted.append(delivery)
            else:
                log.warning("delivery %d in %s is uncertain", delivery.id, delivery.lane)
                state = DeliveryState.UNCERTAIN
                written.append(rows.delivery_state(delivery.id, state, error="restart"))
        again += await self._take_up_previews(written, channel)
        answered = {one.turn for one in again if one.kind is DeliveryKind.ANSWER}
        for row in doubted:
            await self._doubt(row, row.turn in answered, written)
        await self._store.save(*written)
        for row in await shown_for(self._store, again):
            self._previews.adopt(row, late=True)
        return again

    async def _doubt(self, row: Delivery, answered: bool, written: list[Row]) -> None:
        """A preview that was being sent; it matters while its turn or an answer is open."""
        turn = await reads.turn(self._store, row.turn or 0)
        if turn is not None and (answered or not turn.status.over):
            self._previews.doubt(row)
        else:
            written.append(rows.delivery_state(row.id, DeliveryState.UNCERTAIN, error="restart"))

    async def _take_up_previews(self, written: list[Row], channel: str) -> list[Delivery]:
        """What unfinished turns show is theirs to go on with; of two of a turn only the newer."""
        removals: list[Delivery] = []
        newest: dict[int | None, Delivery] = {}
        for row in await reads.previews_open(self._store):
            if channel and channel_of(row.lane) != channel:
                continue
            if older := newest.get(row.turn):
                now = self._clock.now()
                gone = removal(self._store.ids.delivery(), older.lane, older.message_id, now)
                withdrawn = rows.delivery_state(older.id, DeliveryState.WITHDRAWN)
                written += [withdrawn, rows.delivery(gone)]
                removals.append(gone)
            newest[row.turn] = row
            self._previews.adopt(row, late=False)
        return removals

    async def _again(self, delivery: Delivery) -> bool:
        """Whether an open delivery of an earlier process may simply be tried (again)."""
        if delivery.kind is DeliveryKind.PREVIEW:
            return False
        if delivery.state is DeliveryState.PENDING:
            return True
        if delivery.target and not isinstance(delivery.part, FilePart):
            return True
        limits = await self._limits(delivery.lane)
        if limits is None:
            return False
        age = (self._clock.now() - delivery.created_at) / 1000
        return limits.finds_sends or repeatable(limits, age)

    async def _finds(self, lane: str) -> bool:
        limits = await self._limits(lane)
        return limits is not None and limits.finds_sends

    async def _limits(self, lane: str) -> ChannelLimits | None:
        """What the lane's platform can do; None where it is not set up."""
        row = await reads.lane(self._store, lane)
        found = self._calls.channel(row.address.channel) if row else None
        return found[0].limits if found else None


async def shown_for(store: Store, deliveries: Iterable[Delivery]) -> list[Delivery]:
    """The previews whose place the answers among these take."""
    shown: list[Delivery] = []
    for one in deliveries:
        first = one.kind is DeliveryKind.ANSWER and one.seq == 0 and not one.target
        if first and one.turn is not None and one.state is DeliveryState.PENDING:
            of_turn = await reads.deliveries_of(store, one.turn)
            shown += [row for row in of_turn if row.kind is DeliveryKind.PREVIEW]
    return shown
