"""Holds open groups, and what waits behind them, until their time is over.

The one owner of groups in memory; every piece of them is in the store as well, without a turn. All
of it happens under the channel's lock, so what is decided together is stored together. The rules of
groups stand in gathering.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.arriving import Arriving
from core.channel import ChannelLimits
from core.gathering import Entry, LaneGroups, Unclaimed
from core.ground import Ground
from core.guard import guarded
from core.items import Item
from core.lane_events import Edited
from core.lane_ids import channel_of
from core.messages import Message
from core.prompt import PASTE
from core.store import reads, rows
from core.store.records import LaneRow, MessageRow
from core.store.rows import Row
from core.wording import own_turn_of_piece

log = logging.getLogger("laneway.intake")

LOOK_BACK = 60  # messages of a lane among which a late piece finds its album


@dataclass(slots=True)
class Holding:
    ground: Ground
    arriving: Arriving
    _lanes: dict[str, LaneGroups] = field(default_factory=dict)
    _unclaimed: Unclaimed = field(default_factory=Unclaimed)
    _begun: set[str] = field(default_factory=set)  # channels that have polled
    _timers: set[str] = field(default_factory=set)
    _group: asyncio.TaskGroup | None = None

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Timers live in ``group``; returns only when cancelled."""
        self._group = group
        for lane in list(self._lanes):
            if channel_of(lane) in self._begun:
                self._watch(lane)
        await asyncio.Event().wait()

    async def resume(self, only: str = "") -> None:
        """Groups that were open when an earlier process ended, in stored order.

        ``only``: of this channel, which was not set up until now.
        """
        for row in await reads.gathered(self.ground.store):
            channel = channel_of(row.lane)
            if channel in self.ground.channels and only in ("", channel):
                self._groups(row.lane).add(row, None, self.ground.limits(channel))

    async def released(self) -> None:
        """What a restored backup held back, and does no more: older than what came since."""
        for channel in self.ground.channels:
            async with self.ground.lock(channel):
                found: dict[str, LaneGroups] = {}
                for row in await reads.gathered(self.ground.store):
                    if channel_of(row.lane) == channel and not self.of(row.lane).has(row):
                        older = found.setdefault(row.lane, LaneGroups())
                        older.add(row, self.ground.clock.monotonic(), self.ground.limits(channel))
                for lane, older in found.items():
                    self._groups(lane).entries[:0] = older.entries
                    self._watch(lane)

    def begin(self, channel: str) -> None:
        """The channel received for the first time: what was sent before it is all there now."""
        if channel in self._begun:
            return
        self._begun.add(channel)
        for lane, groups in self._lanes.items():
            if channel_of(lane) == channel:
                groups.start(self.ground.clock.monotonic(), self.ground.limits(channel))
                self._watch(lane)

    def of(self, lane: str) -> LaneGroups:
        """The groups of a lane; empty ones for a lane that holds nothing."""
        return self._lanes.get(lane) or LaneGroups()

    def edit(self, lane: str, identity: str, text: str) -> None:
        self.of(lane).edit(identity, text)

    async def hold(self, lane: LaneRow, row: MessageRow, written: Sequence[Row]) -> None:
        """Store a piece, or a message behind an open group. The caller holds the lock."""
        if row.album and not row.album.startswith(PASTE) and not self.of(lane.id).opens(row):
            turn = await self._turn_of(lane.id, row.album, row.person)
            if turn is not None:
                await self._late(lane, row, turn, written)
                return
        groups = self._groups(lane.id)
        groups.add(row, self.ground.clock.monotonic(), self._limits(lane.id))
        stored = False
        try:
            (stored,) = await self.ground.take(
                Item(row.identity, messages=(row,), rows=tuple(written))
            )
        finally:
            if not stored:
                groups.remove(row)
        await self._release(lane.id)
        self._watch(lane.id)

    # Pieces without a mention -------------------------------------------------------------

    async def goes_on(self, lane: LaneRow, message: Message) -> bool:
        """Whether it belongs to what its sender sent to us before; then it needs no mention."""
        if self.of(lane.id).continues(message):
            return True
        album, person = message.album, message.sender
        return bool(album) and await self._turn_of(lane.id, album, person) is not None

    def keep(self, message: Message) -> None:
        """Remember a piece that is not for us, in case a later one that belongs to it is."""
        limits = self.ground.limits(message.address.channel)
        self._unclaimed.keep(message, self.ground.clock.monotonic(), limits)

    def claim(self, message: Message) -> list[Message]:
        """The pieces that came before it, without being for us: of its album, or of its text."""
        return self._unclaimed.claim(message)

    def forget(self) -> None:
        self._unclaimed.forget(self.ground.clock.monotonic())

    async def close_of(self, lane: str, person: str) -> None:
        """A person's command closes what that person was sending. The caller holds the lock."""
        if lane in self._lanes:
            self._lanes[lane].close(self.ground.clock.monotonic(), person)
            await self._release(lane)

    # Late pieces --------------------------------------------------------------------------

    async def _turn_of(self, lane: str, album: str, person: str) -> int | None:
        """The turn that the rest of this album became."""
        for said in await reads.messages_of_lane(self.ground.store, lane, LOOK_BACK):
            if (said.album, said.person) == (album, person) and said.turn is not None:
                return said.turn
        return None

    async def _late(
        self, lane: LaneRow, row: MessageRow, turn: int, written: Sequence[Row]
    ) -> None:
        """It joins its turn while that waits; otherwise it is one of its own that says so."""
        late = rows.message_late(replace(row, turn=turn))
        item = Item(row.identity, Edited(turn, lane.id), rows=(*written, late))
        if not (await self.ground.take(item))[0]:
            return
        stored = await reads.waiting_message(self.ground.store, row.identity)
        if stored is None or stored.turn is not None:
            return
        whole = await reads.turn(self.ground.store, turn)
        remark = own_turn_of_piece(whole.label if whole else "")
        text = f"{row.text}\n\n{remark}" if row.text.strip() else remark
        await self.ground.take(Item(rows=(rows.message_edit(row.identity, text),)))
        alone = replace(stored, album="", text=text)
        self._groups(lane.id).add(alone, self.ground.clock.monotonic(), self._limits(lane.id))
        await self._release(lane.id)

    # Closing ------------------------------------------------------------------------------

    async def _release(self, lane: str) -> None:
        """Make turns of what nothing holds back, in stored order and in one step."""
        groups = self._lanes.get(lane)
        if groups is None:
            return
        row = await reads.lane(self.ground.store, lane)  # may wait; only then is anything taken out
        ready = groups.ready()
        if not groups.entries:
            del self._lanes[lane]
        if row is None:
            log.error("messages of the unknown lane %s are left", lane)
        elif ready:
            await self.ground.take(*(self._turn(row, entry) for entry in ready))

    def _turn(self, lane: LaneRow, entry: Entry) -> Item:
        return self.arriving.arrived(lane, entry.pieces, stored=True)

    def _watch(self, lane: str) -> None:
        """Have a timer for a lane that holds something."""
        if self._group is None or lane in self._timers or lane not in self._lanes:
            return
        self._timers.add(lane)
        guarded(self._group, self._time(lane), f"open group in {lane}")

    async def _time(self, lane: str) -> None:
        clock = self.ground.clock
        try:
            while (groups := self._lanes.get(lane)) is not None:
                async with self.ground.lock(channel_of(lane)):
                    groups.close(clock.monotonic())
                    await self._release(lane)
                until = groups.next()
                if until is not None and lane in self._lanes:
                    await clock.sleep(max(0.0, until - clock.monotonic()))
        finally:
            self._timers.discard(lane)

    def _groups(self, lane: str) -> LaneGroups:
        return self._lanes.setdefault(lane, LaneGroups())

    def _limits(self, lane: str) -> ChannelLimits:
        return self.ground.limits(channel_of(lane))
