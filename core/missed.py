"""What came while nobody listened and is not run: its thread is told, and nothing else happens.

It must not know why a channel gave up on those messages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from core import wording
from core.ground import Ground
from core.items import Item
from core.messages import Missed, clean
from core.people import Role
from core.store import reads, rows
from core.store.records import LaneRow
from core.store.rows import Row

log = logging.getLogger("laneway.intake")


@dataclass(frozen=True, slots=True)
class Missing:
    """``runs_from``: when a backup was restored, by channel; earlier ones may be answered."""

    ground: Ground
    runs_from: Callable[[str], int]

    async def missed(self, missed: Missed) -> None:
        """Tell the thread, once, if people may talk to us there. The caller holds the lock."""
        ground = self.ground
        missed = replace(missed, address=ground.people.now_at(missed.address))
        lane = await reads.lane_at(ground.store, missed.address)
        if missed.count < 1 or not self._may(missed, lane):
            log.info("%s: nobody there is to be told of what was missed", missed.address)
            return
        log.warning("%s: %d messages were missed and are not run", missed.address, missed.count)
        written: tuple[Row, ...] = ()
        if lane is None:
            lane = ground.new_lane(missed.address, missed.direct, "")
            written = (rows.new_lane(lane.id, lane.address, lane.direct, "", lane.created_at),)
        if missed.message_id:  # so it is not told again when its identity is forgotten
            written = (*written, rows.mark(lane.id, missed.message_id, missed.newest))
        now = ground.clock.now()
        labels = tuple(map(clean, missed.labels))
        restored = missed.oldest < self.runs_from(missed.address.channel)
        text = wording.missed(
            missed.count, now - missed.oldest, now - missed.newest, labels, restored=restored
        )
        notice = ground.showing.text(lane.id, text)
        await ground.take(Item(missed.identity, rows=written, deliveries=notice))

    def _may(self, missed: Missed, lane: LaneRow | None) -> bool:
        """In a direct chat the person must be known; elsewhere the place must be on the list."""
        people = self.ground.people
        if missed.direct:
            return lane is not None and people.role(lane.person) is not Role.NONE
        return people.listed(missed.address)
