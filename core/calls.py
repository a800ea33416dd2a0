"""How the parts of the outbox reach a platform: where a lane lives, its gate, one guarded call.

It owns the tasks' group, the gates and a small cache of addresses; it knows no delivery.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.channel import (
    Action,
    Channel,
    Delete,
    Done,
    MessageGone,
    RateLimited,
    Revise,
    Send,
    SendError,
    SendFile,
    Stream,
    Uncertain,
)
from core.clock import Clock
from core.gate import Gate
from core.guard import OnFault, fault_of, guarded
from core.messages import Address
from core.rates import Rank, Ticket
from core.store import reads
from core.store.records import left_behind
from core.store.store import Store

log = logging.getLogger("laneway.outbox")

LANES_KEPT = 1024
NOTED = 4096  # messages of a moved chat; an older one counts as gone, and is sent anew
Moved = Callable[[Address, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a lane's calls go right now."""

    lane: str
    address: Address
    direct: bool
    channel: Channel
    gate: Gate

    def held(self, rank: Rank) -> bool:
        return self.gate.held(self.address, self.direct, rank)

    def hold(self, limited: RateLimited, *, cosmetic: bool = False) -> None:
        self.gate.hold(self.address, self.direct, limited, cosmetic=cosmetic)
        log.info("%s: %s", "the token" if limited.everywhere else self.address.place, limited)

    def ask(self, rank: Rank) -> Ticket:
        return self.gate.ask(self.address, self.direct, rank)


class Broke(Uncertain):
    """A fault in a channel's code; asking again would only break again."""


class Unreachable(Exception):
    """A lane without a row, or whose channel is not set up."""


class Calls:
    def __init__(
        self, store: Store, channels: Mapping[str, Channel], clock: Clock, moved: Moved
    ) -> None:
        self.store = store
        self.clock = clock
        self.group: asyncio.TaskGroup | None = None
        self._channels = channels
        self._moved = moved
        self._moving = asyncio.Lock()
        self._moves: dict[tuple[str, str], str] = {}
        self._since: dict[str, dict[str, None]] = {}  # our newest where a chat lives since it moved
        self._gates: dict[str, Gate] = {}
        self._lanes: OrderedDict[str, tuple[Address, bool]] = OrderedDict()
        self.made: Counter[tuple[str, str]] = Counter()  # calls of each channel, by action

    def spawn(
        self, work: Coroutine[Any, Any, object], name: str, on_fault: OnFault | None = None
    ) -> asyncio.Task[None]:
        """A task of the outbox. Whatever breaks it ends it alone, and is logged."""
        assert self.group is not None, "calls are made only while the outbox runs"
        return guarded(self.group, work, name, on_fault)

    async def finished(self, task: asyncio.Task[None], seconds: float) -> bool:
        """Wait for a task of this group, at most so long; it is left running."""
        if task.done():
            return True
        timer = self.spawn(self.clock.sleep(seconds), f"time limit of {task.get_name()}")
        try:
            await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        return task.done()

    async def place(self, lane: str) -> Place:
        """Read at each call, so that a chat that moved is never written to at its old address."""
        known = self._lanes.get(lane)
        if known is None:
            row = await reads.lane(self.store, lane)
            if row is None:
                raise Unreachable(f"the lane {lane} is not known")
            known = self._lanes[lane] = (row.address, row.direct)
            if len(self._lanes) > LANES_KEPT:
                self._lanes.popitem(last=False)
        address, direct = known
        while new_chat := self._moves.get((address.channel, address.chat)):
            address = replace(address, chat=new_chat)
        channel = self._channels.get(address.channel)
        if channel is None:
            raise Unreachable(f"the channel {address.channel} is not set up")
        return Place(lane, address, direct, channel, self._gate(channel))

    def channel(self, name: str) -> tuple[Channel, Gate] | None:
        channel = self._channels.get(name)
        return (channel, self._gate(channel)) if channel else None

    def penalties(self) -> dict[str, int]:
        """How often each platform told us to wait."""
        return {name: gate.penalties for name, gate in self._gates.items()}

    def gate_of(self, place: str) -> Gate | None:
        """The gate that stands before a place (``channel:chat``)."""
        return self._gates.get(place.partition(":")[0])

    async def do(self, channel: Channel, action: Action) -> Done:
        """One call. A fault in a channel's code ends this call and nothing else."""
        if isinstance(action, Revise | Delete):
            self._see_that_it_is_there(action.address, action.message_id)
        self.made[channel.name, type(action).__name__] += 1
        try:
            done = await channel.do(action)
        except SendError:
            raise
        except Exception as fault:  # the border to channels: one bug must not end everybody
            log.exception("%s broke at %s", channel.name, type(action).__name__)
            raise Broke(f"{type(fault).__name__}: {fault}") from fault
        if isinstance(action, Send | SendFile | Stream):
            self._note(action.address, done.message_id)
        return done

    def _note(self, address: Address, message_id: str) -> None:
        known = self._since.get(address.place)
        if known is not None:
            known[message_id] = None
            if len(known) > NOTED:
                del known[next(iter(known))]

    def _see_that_it_is_there(self, address: Address, message_id: str) -> None:
        """A chat that moved numbers its messages anew: an older id may be another message."""
        known = self._since.get(address.place)
        if left_behind(message_id) or (known is not None and message_id not in known):
            raise MessageGone("the message was left behind where the chat has moved from")

    async def follow(self, old: Address, new_chat: str) -> None:
        """The platform says that this chat lives on elsewhere: everything of it moves, once."""
        async with self._moving:
            if self._moves.get((old.channel, old.chat)) == new_chat:
                return
            log.info("%s moved to %s", old.place, new_chat)
            # The platform has moved it whatever we can store: calls go there from now on.
            await fault_of(self._moved(old, new_chat), f"the move of {old.place}")
            self.moved(old.channel, old.chat, new_chat)

    def moved(self, channel: str, old_chat: str, new_chat: str) -> None:
        if old_chat != new_chat:
            self._moves[(channel, old_chat)] = new_chat
            self._since.setdefault(f"{channel}:{new_chat}", {})
            self._moves.pop((channel, new_chat), None)
        self._lanes.clear()

    def _gate(self, channel: Channel) -> Gate:
        gate = self._gates.get(channel.name)
        if gate is None:
            gate = self._gates[channel.name] = Gate(channel.limits, self.clock, self.spawn)
        return gate
