"""Stops need no disk: they are carried out from memory before anything is stored.

Each stop cancels once, however often it comes; it is stored like any other command after that. It
must not know what else a message or a button can mean.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from core import addressing, commands
from core.ground import Ground
from core.lane_ids import lane_id
from core.messages import Address, Incoming, Message, Press
from core.store import reads
from core.store.errors import ReadFailed
from core.store.records import LaneRow
from core.turns import Stop, StopKind

log = logging.getLogger("laneway.intake")

STOPS = {"stop": StopKind.STOP, "skip": StopKind.SKIP}
BUTTON = "stop"  # action of a button that stops its turn
REMEMBERED = 4096  # lanes, and stops, that are known without the store


@dataclass(slots=True)
class Stopping:
    ground: Ground
    _done: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _lanes: OrderedDict[Address, LaneRow] = field(default_factory=OrderedDict)

    def note_lane(self, address: Address, lane: LaneRow) -> None:
        """A lane as intake just saw it: whether its thread is engaged must be known by heart."""
        self._lanes[address] = lane
        self._lanes.move_to_end(address)
        while len(self._lanes) > REMEMBERED:
            self._lanes.popitem(last=False)

    def forget_lanes(self) -> None:
        """Addresses have changed."""
        self._lanes.clear()

    async def first(self, incoming: Sequence[Incoming]) -> None:
        """Carry out the stops of a batch, before the rest of it is looked at."""
        for one in incoming:
            if isinstance(one, Message) and _kind(one) is not None:
                await self._message(one)
            elif isinstance(one, Press):
                await self._press(one)

    def glance(self, incoming: Sequence[Incoming], group: asyncio.TaskGroup | None) -> None:
        """The same by heart; what has to be looked up is looked up in ``group``."""
        for one in incoming:
            if isinstance(one, Message):
                self._now(one, self._lanes.get(self.ground.people.now_at(one.address)))
            elif isinstance(one, Press) and group is not None:
                group.create_task(self._press(one), name="look at a stop button")

    async def _message(self, message: Message) -> None:
        address = self.ground.people.now_at(message.address)
        lane = self._lanes.get(address)
        try:
            if await reads.seen(self.ground.store.at_once, message.identity):
                return  # delivered again; by now something else may run
            lane = await reads.lane_at(self.ground.store.at_once, address)
        except ReadFailed:
            log.warning("a stop is carried out though the disk cannot be read")
        self._now(message, lane)

    def _now(self, message: Message, lane: LaneRow | None) -> None:
        kind = _kind(message)
        if kind is None or message.from_bot or message.identity in self._done:
            return
        ground = self.ground
        if not ground.people.role(message.sender):
            return
        if not ground.may_here(message.address, message.direct):
            return
        spoken = addressing.command(message.text, commands.NAMES, message.direct)
        bare = ground.limits(message.address.channel).bare_commands
        if addressing.addressed(message, lane, spoken, bare, ground.clock.now()):
            self._remember(message.identity)
            ident = lane.id if lane else lane_id(ground.people.now_at(message.address))
            ground.spine.cancel_now(ident, Stop(kind, message.sender))

    async def _press(self, press: Press) -> None:
        ground = self.ground
        if press.identity in self._done or not ground.people.role(press.sender):
            return
        if not ground.may_here(press.address, press.direct):
            return
        try:
            button = await reads.button(ground.store.at_once, press.button)
            again = await reads.seen(ground.store.at_once, press.identity)
        except ReadFailed:
            return  # the press is looked at again when it is accepted
        if again or button is None or button.action != BUTTON or button.turn is None:
            return
        self._remember(press.identity)
        ground.spine.cancel_now(button.lane, Stop(StopKind.STOP, press.sender), button.turn)

    def _remember(self, identity: str) -> None:
        self._done[identity] = None
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)


def _kind(message: Message) -> StopKind | None:
    spoken = addressing.command(message.text, commands.NAMES, message.direct)
    return STOPS.get(spoken.name) if spoken and not message.album else None
