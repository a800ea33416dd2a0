"""What one call of ``accept`` works on: what is to be stored, and the lanes as they are after it.

A later message of a batch sees its lane as an earlier one leaves it, before that is stored. It must
not know what a message means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.ground import Ground
from core.items import Item
from core.messages import Address, Message, clean
from core.store import reads
from core.store.records import LaneRow


class Batch:
    """``noted`` is told of every lane that is looked at."""

    def __init__(
        self, channel: str, ground: Ground, noted: Callable[[Address, LaneRow], None]
    ) -> None:
        self.channel = channel
        self._ground = ground
        self._noted = noted
        self._lanes: dict[Address, LaneRow] = {}
        self._new: set[str] = set()  # ids of lanes that the items make
        self._items: list[Item] = []  # not stored yet

    async def lane(self, address: Address) -> LaneRow | None:
        """The lane there, if one is stored or about to be."""
        known = self._lanes.get(address)
        if known is None:
            known = await reads.lane_at(self._ground.store, address)
            if known is not None:
                self.keep(address, known)
        return known

    def makes(self, lane: str) -> bool:
        """Whether the lane is one that only what is still to be stored makes."""
        return lane in self._new

    def keep(self, address: Address, lane: LaneRow) -> None:
        """The lane there as it is once what was added is stored."""
        self._lanes[address] = lane
        self._noted(address, lane)

    def becomes(self, message: Message, lane: LaneRow, *, new: bool) -> None:
        """Keep the lane as it is once this message is stored."""
        if new:
            self._new.add(lane.id)
        engaged = self._ground.clock.now() if message.engages else lane.engaged_at
        title = lane.title or clean(message.title)
        after = replace(lane, engaged_at=engaged, person=message.sender, title=title)
        self.keep(message.address, after)

    def forget(self, address: Address) -> None:
        """The lane there may have changed."""
        self._lanes.pop(address, None)

    def forget_all(self) -> None:
        self._lanes.clear()

    def add(self, item: Item) -> None:
        self._items.append(item)

    async def flush(self) -> None:
        """Store what was added so far."""
        items, self._items = self._items, []
        self._new.clear()
        if items:
            await self._ground.take(*items)
