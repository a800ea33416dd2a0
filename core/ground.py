"""What every part of intake stands on: the store, the runner, the people, the settings.

It must not know how messages, commands or presses are treated; that stands above it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from core import folders
from core.budget_words import BudgetsSeen
from core.channel import Channel, ChannelLimits
from core.clock import Clock
from core.engines.base import Abilities, Choices
from core.items import Item
from core.job_asking import JobLimits
from core.lane_ids import channel_of, lane_id
from core.lanes import LaneView
from core.linking import Linking
from core.messages import Address, Message, Part
from core.people import People
from core.prices import Prices
from core.showing import Showing
from core.store import reads, rows
from core.store.errors import Poisoned
from core.store.records import LaneRow
from core.store.rows import Row
from core.store.store import Store
from core.turns import Busy, LaneFacts, Stop
from core.wording import NOT_TAKEN

NAMES_KEPT = 1000


class Spine(Protocol):
    """What intake needs of the runner."""

    async def take(self, *items: Item) -> list[bool]: ...

    def view(self, lane: str) -> LaneView | None: ...

    def since(self, turn: int) -> int | None: ...

    def cancel_now(self, lane: str, stop: Stop, turn: int | None = None) -> None: ...

    def acting(self, engine: str) -> str: ...

    async def choices(self, engine: str, model: str) -> Choices: ...

    def abilities(self, engine: str) -> Abilities: ...


class Says(Protocol):
    """What intake needs of the outbox, for what is not a delivery."""

    def answer_press(
        self,
        channel: str,
        press: str,
        text: str,
        alert: bool = False,
        parts: tuple[Part, ...] = (),
    ) -> None: ...

    def retitle(self, lane: str, title: str) -> None: ...

    def moved(self, channel: str, old_chat: str, new_chat: str) -> None: ...


class Decides(Protocol):
    """Settles a press on an approval's card; returns what the person who pressed is told."""

    async def decide(
        self,
        approval: int,
        choice: str,
        person: str,
        may: bool,
        admin: bool,
        lane: str = "",
        message_id: str = "",
    ) -> str: ...


class Chooses(Protocol):
    """Takes a press on a question of an agent; returns what the person who pressed is told."""

    def choose(self, ident: str, choice: int, person: str, admin: bool) -> str: ...


@dataclass(frozen=True, slots=True)
class House:
    """The settings that intake goes by."""

    home: Path
    engine: str
    engines: tuple[str, ...]
    approvals: str = "ask"
    busy: Busy = Busy.QUEUE
    workspace: str = ""
    zone: str = "UTC"
    starter_approves: bool = False
    bot_turns: int = 5
    bot_seconds: float = 60.0
    hears: bool = False  # voice notes are made text
    jobs: JobLimits = field(default_factory=JobLimits)


@dataclass(slots=True)
class Names:
    """What threads are called in which nobody has spoken to us yet; the newest ones."""

    _names: dict[Address, str] = field(default_factory=dict)

    def keep(self, address: Address, title: str) -> None:
        self._names.pop(address, None)
        self._names[address] = title
        if len(self._names) > NAMES_KEPT:
            del self._names[next(iter(self._names))]

    def of(self, address: Address) -> str:
        return self._names.get(address, "")


@dataclass(slots=True)
class Ground:
    """One for the process. ``house`` is replaced when settings change."""

    store: Store
    spine: Spine
    says: Says
    decides: Decides
    chooses: Chooses
    people: People
    channels: Mapping[str, Channel]
    clock: Clock
    house: House
    new_id: Callable[[], str]
    jobs_changed: Callable[[], None] = lambda: None
    caps: Callable[[str, str, int | None], BudgetsSeen] = lambda *_: BudgetsSeen()
    prices: Callable[[], Prices] = Prices
    asking: set[str] = field(default_factory=set)  # channels that asked where to go on reading
    names: Names = field(default_factory=Names)
    showing: Showing = field(init=False)
    linking: Linking = field(init=False)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.linking = Linking(self.clock)
        self.showing = Showing(
            self.store.ids, lambda lane: self.channels[channel_of(lane)], self.clock, self.new_id
        )

    def lock(self, channel: str) -> asyncio.Lock:
        """Held while something of this channel is decided and stored, so that order is kept."""
        return self._locks.setdefault(channel, asyncio.Lock())

    async def take(self, *items: Item) -> list[bool]:
        """Store items. What can never be stored is set aside; its thread is told once."""
        try:
            return await self.spine.take(*items)
        except Poisoned as fault:
            lanes = {said.lane for place in fault.errors for said in items[place].messages}
            accepted = fault.accepted
        for lane in sorted(lanes):
            await self.not_taken(lane)
        return accepted

    async def not_taken(self, lane: str) -> None:
        """Tell a thread that a message of it could not be taken, if there is such a thread."""
        if await reads.lane(self.store, lane) is not None:
            await self.spine.take(Item(deliveries=self.showing.text(lane, NOT_TAKEN)))

    def may_here(self, address: Address, direct: bool) -> bool:
        """Whether members are answered there."""
        return direct or self.people.listed(address)

    def limits(self, channel: str) -> ChannelLimits:
        return self.channels[channel].limits

    def mark(self, message: Message, lane: LaneRow) -> tuple[Row, ...]:
        """That the lane was read up to here, for a channel that goes on reading from there.

        Commands of a platform's own are not in its history.
        """
        if message.address.channel not in self.asking or message.press or not message.message_id:
            return ()
        return (rows.mark(lane.id, message.message_id, message.at),)

    def engine(self, lane: LaneRow) -> str:
        return lane.engine or self.house.engine

    def facts(self, lane: LaneRow) -> LaneFacts:
        folder = folders.claim(lane.workspace, self.house.workspace)
        return lane.facts(self.engine(lane), folder)

    def abilities(self, lane: LaneRow) -> Abilities:
        return self.spine.abilities(self.engine(lane))

    def new_lane(self, address: Address, direct: bool, title: str, sender: str = "") -> LaneRow:
        """A lane that is not stored yet; a direct chat belongs to who begins it."""
        now, owner = self.clock.now(), sender if direct else ""
        return LaneRow(
            lane_id(address), address, direct=direct, title=title, created_at=now, owner=owner
        )
