"""Threads that nobody named get a name after their first answer, from what was asked there.

Beside everything else: an answer never waits for it, and a name that cannot be set is a line in the
log. It is stored before it is set, so that it is set once, and only where there is none: what a
person or the platform named keeps its name. It must not know platforms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from core.channel import Channel
from core.guard import guarded
from core.store import reads, rows
from core.store.records import LaneRow
from core.store.store import Store
from core.titles import title_of
from core.turns import Kind, Status, Turn

log = logging.getLogger("laneway.turn")


class Sets(Protocol):
    """The side of the outbox that sets titles."""

    async def said(self, lane: str) -> None: ...

    def retitle(self, lane: str, title: str) -> None: ...


@dataclass(slots=True)
class Titling:
    store: Store
    outbox: Sets
    channel_of: Callable[[str], Channel]
    _group: asyncio.TaskGroup | None = None
    _busy: set[str] = field(default_factory=set)  # lanes that are being named

    async def run(self) -> None:
        """Name threads until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await asyncio.Event().wait()
            finally:
                self._group = None

    def over(self, turn: Turn) -> None:
        """A turn has ended; its answer, if it has one, is on its way."""
        answered = turn.status is Status.DONE and turn.kind is Kind.MAIN and not turn.origin.job
        limits = self.channel_of(turn.lane).limits
        if answered and limits.titles and self._group is not None and turn.lane not in self._busy:
            self._busy.add(turn.lane)
            task = guarded(self._group, self._name(turn), f"a name for {turn.lane}")
            task.add_done_callback(lambda _: self._busy.discard(turn.lane))

    async def _name(self, turn: Turn) -> None:
        lane = await reads.lane(self.store, turn.lane)
        if lane is None or not self._wants(lane):
            return
        said = await reads.messages_of(self.store, [turn.id])
        title = next(filter(None, (title_of(message.text) for message in said)), "")
        if not title:
            return
        await self.outbox.said(lane.id)
        await self.store.save(rows.lane_titled(lane.id, title))
        named = await reads.lane(self.store, lane.id)
        if named is not None and named.title == title:  # else somebody was quicker
            log.info("%s is called after what was asked there first", lane.id)
            self.outbox.retitle(lane.id, title)

    def _wants(self, lane: LaneRow) -> bool:
        """Whether it is a thread without a name."""
        limits = self.channel_of(lane.id).limits
        own = limits.named_threads and not lane.direct
        thread = bool(lane.address.thread) or limits.history
        return thread and not lane.title and not own
