"""Updates that Telegram posted stand here until they are stored; only then is a post answered.

They are stored in the order in which they came, all that wait at once: a disk is asked once for
many. It must not know HTTP, nor what a message starts.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from channels.patience import within
from channels.telegram.batches import Batches
from channels.telegram.content import Me
from core.channel import Intake
from core.clock import Clock
from core.messages import Incoming

BATCH = 50
WAITING_MOST = 1000  # more is left to Telegram, which posts it again
PATIENCE = 10.0  # seconds a post waits for the disk before Telegram is asked to come again
DISK_PATIENCE, GLANCE_EVERY = 2.0, 1.0


@dataclass(slots=True, eq=False)
class _Waiting:
    update: object
    stored: asyncio.Future[bool] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    glanced: bool = False


class Inbox:
    """One for a ``listen``; ``run`` is its only consumer."""

    def __init__(self, me: Me, intake: Intake, clock: Clock, patience: float = PATIENCE) -> None:
        self._me = me
        self._intake = intake
        self._clock = clock
        self._patience = patience
        self._batches = Batches(intake, clock)
        self._waiting: dict[str, _Waiting] = {}  # in order, by what was posted
        self._news = asyncio.Event()
        self._slow = False  # the disk has not answered for a while

    async def offer(self, update: object, raw: bytes) -> bool:
        """Whether an update is stored; False: it may be yet, and is to be posted again.

        The same post while the first one waits is the same update, however often it comes.
        """
        key = hashlib.sha256(raw).hexdigest()
        one = self._waiting.get(key)
        if one is None:
            one = _Waiting(update)
            if len(self._waiting) >= WAITING_MOST:
                self._glance([one])
                return False
            self._waiting[key] = one
            self._news.set()
            if self._slow:
                self._glance([one])
        await within(self._clock, one.stored, self._patience)
        return one.stored.done() and one.stored.result()

    async def run(self) -> None:
        """Store what comes until cancelled; what is not stored then is posted again."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._news.wait()
                    self._news.clear()
                    while taken := dict(list(self._waiting.items())[:BATCH]):
                        await self._store(taken, group)
        finally:
            for one in self._waiting.values():
                if not one.stored.done():
                    one.stored.set_result(False)
            self._waiting.clear()

    async def _store(self, taken: dict[str, _Waiting], group: asyncio.TaskGroup) -> None:
        batch, failed = self._batches.read(self._me, [one.update for one in taken.values()])
        for one in taken.values():
            one.glanced = True  # core looks at what it is handed by itself
        if batch:
            await self._accepted(batch)
        for key, one in taken.items():
            del self._waiting[key]
            one.stored.set_result(True)
        if failed:
            group.create_task(
                self._batches.again(self._me, failed), name="telegram unreadable updates"
            )

    async def _accepted(self, batch: Sequence[Incoming]) -> None:
        """Hand a batch to core; while the disk does not answer, stops behind it are seen."""
        async with asyncio.TaskGroup() as group:
            storing = group.create_task(self._intake.accept(batch), name="telegram accept")
            pause = DISK_PATIENCE
            try:
                while not await within(self._clock, storing, pause):
                    self._slow = True
                    self._glance([one for one in self._waiting.values() if not one.glanced])
                    pause = GLANCE_EVERY
            finally:
                self._slow = False

    def _glance(self, some: Sequence[_Waiting]) -> None:
        """Show what waits behind the disk, once each, for stops alone."""
        for one in some:
            one.glanced = True
        if batch := self._batches.read(self._me, [one.update for one in some])[0]:
            self._intake.glance(batch)
