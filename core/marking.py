"""How far each channel has come, for platforms that do not send again what was missed.

For channels that ask, the newest accepted message of a lane is stored with the message itself; the
instant up to which everything was accepted is kept here and saved when a channel first listens,
then now and then, so it may lie behind what is stored but never ahead of it. It must not know how
a platform is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from core.addressing import ENGAGED_FOR
from core.channel import Marks
from core.ground import Ground
from core.messages import Incoming, Message
from core.store import reads, rows

SAVE_EVERY = 10.0  # seconds; what is behind by that much is read once more, and known already


@dataclass(slots=True, eq=False)
class _Batch:
    """What a channel handed in and what is not known to be stored. ``first``: ms."""

    channel: str
    first: int


@dataclass(slots=True)
class Marking:
    ground: Ground
    _reached: dict[str, int] = field(default_factory=dict)
    _told: dict[str, int] = field(default_factory=dict)  # what channels said, for when it is stored
    _saved: dict[str, int] = field(default_factory=dict)
    _runs_from: dict[str, int] = field(default_factory=dict)
    _open: list[_Batch] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def resume(self) -> None:
        """Take over how far an earlier process had come."""
        stored = await reads.reached(self.ground.store)
        self._reached = {channel: row.at for channel, row in stored.items()}
        self._saved = dict(self._reached)
        self._runs_from = {channel: row.runs_from for channel, row in stored.items()}

    async def run(self) -> None:
        """Save what changes, with pauses, until cancelled; then what is left, once."""
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                self._save()
                await self.ground.clock.sleep(SAVE_EVERY)
        finally:
            self._save()

    @contextmanager
    def accepting(self, channel: str, incoming: Sequence[Incoming]) -> Iterator[None]:
        """While this lasts, and for good if it fails, nothing of it counts as accepted."""
        times = [one.at for one in incoming if isinstance(one, Message)]
        if not times:
            yield
            return
        batch = _Batch(channel, min(times))
        self._open.append(batch)
        yield
        if batch in self._open:  # else the channel has begun to read anew meanwhile
            self._open.remove(batch)
        self._advance(channel)

    async def marks(self, channel: str) -> Marks:
        """Where to go on reading. What was not accepted lies behind it, so it counts no more."""
        people = self.ground.people
        self.ground.asking.add(channel)
        engaged = self.ground.clock.now() - ENGAGED_FOR
        self._open = [batch for batch in self._open if batch.channel != channel]
        self._told.pop(channel, None)
        threads = {
            thread.address: thread.mark
            for thread in await reads.marks(self.ground.store, channel, engaged)
            if self.ground.may_here(thread.address, thread.direct)
        }
        return Marks(
            self._reached.get(channel, 0), threads, people.places(channel), self.runs_from(channel)
        )

    def runs_from(self, channel: str) -> int:
        """When a backup was restored; what was sent before never runs. 0: none was."""
        return self._runs_from.get(channel, 0)

    def reached(self, channel: str, at: int) -> None:
        """Everything up to ``at`` was handed in; it counts as far as that is stored."""
        self._told[channel] = max(at, self._told.get(channel, 0))
        self._advance(channel)

    def _advance(self, channel: str) -> None:
        held = [batch.first - 1 for batch in self._open if batch.channel == channel]
        upto = min([self._told.get(channel, 0), *held])
        if upto <= self._reached.get(channel, 0):
            return
        self._reached[channel] = upto
        if channel not in self._saved:
            # Stored before anything it hands in: else a crash would forget that it listened at all.
            self._save()
        self._changed.set()

    def _save(self) -> None:
        changed = {
            channel: at for channel, at in self._reached.items() if at > self._saved.get(channel, 0)
        }
        self._saved.update(changed)
        self.ground.store.save_later(*(rows.reached(*one) for one in changed.items()))
