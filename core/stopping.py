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
from core.guard import fault_of, guarded
from core.lane_ids import lane_id
from core.messages import Address, Incoming, Message, Press
from core.showing import Action
from core.store import reads
from core.store.errors import ReadFailed
from core.store.records import LaneRow
from core.turns import Stop, StopKind, Turn

log = logging.getLogger("laneway.intake")

STOPS = {"stop": StopKind.STOP, "skip": StopKind.SKIP}
REMEMBERED = 4096  # lanes, and stops, that are known without the store


@dataclass(slots=True)
class Stopping:
    ground: Ground
    # By identity, the main turn that the stop found; None where nothing ran.
    _done: OrderedDict[str, Turn | None] = field(default_factory=OrderedDict)
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
            if isinstance(one, Message) and self._may(one):
                await fault_of(self._message(one), f"looking whether {one.identity} is a stop")
            elif isinstance(one, Press):
                await fault_of(self._press(one), f"looking whether {one.identity} is a stop")

    def first_found(self, identity: str) -> Turn | None:
        """The main turn that ran when this stop was carried out; whatever runs by now."""
        return self._done.get(identity)

    def glance(self, incoming: Sequence[Incoming], group: asyncio.TaskGroup | None) -> None:
        """The same by heart; what has to be looked up is looked up in ``group``."""
        for one in incoming:
            if isinstance(one, Message) and self._may(one):
                self._now(one, self._lanes.get(self.ground.people.now_at(one.address)))
            elif isinstance(one, Press) and group is not None:
                guarded(group, self._press(one), "look at a stop button")

    def _may(self, message: Message) -> bool:
        """Whether it is a stop of somebody who may; a stranger's costs no look into the store."""
        ground = self.ground
        return (
            not message.from_bot
            and bool(ground.people.role(message.sender))
            and ground.may_here(message.address, message.direct)
            and _kind(message) is not None
        )

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
        if kind is None or message.identity in self._done:
            return
        ground = self.ground
        spoken = addressing.command(message.text, commands.NAMES, message.direct)
        bare = ground.limits(message.address.channel).bare_commands
        if addressing.addressed(message, lane, spoken, bare, ground.clock.now()):
            ident = lane.id if lane else lane_id(ground.people.now_at(message.address))
            view = ground.spine.view(ident)
            main = view.main if view else None
            self._remember(message.identity, main if main and not main.status.over else None)
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
        if again or button is None or button.action != Action.STOP or button.turn is None:
            return
        self._remember(press.identity, None)
        ground.spine.cancel_now(button.lane, Stop(StopKind.STOP, press.sender), button.turn)

    def _remember(self, identity: str, found: Turn | None) -> None:
        self._done[identity] = found
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)


def _kind(message: Message) -> StopKind | None:
    spoken = addressing.command(message.text, commands.NAMES, message.direct)
    return STOPS.get(spoken.name) if spoken and not message.album else None
