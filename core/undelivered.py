"""What becomes of an answer that the platform refused for good: the person is told.

In the same thread if that is still there, else in the person's direct chat; the answer itself is
never sent elsewhere. Only answers and files are told of, so a notice that fails tells nobody.
It must not know platforms, nor how often something was tried before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from core import wording
from core.channel import Channel, Forbidden, SendError, ThreadGone
from core.clock import Clock
from core.guard import fault_of
from core.items import Item, Take
from core.lane_ids import channel_of
from core.showing import Showing
from core.store import reads
from core.store.records import Delivery, DeliveryKind, FilePart
from core.store.store import Store

REMEMBERED = 256  # of what people were told
NOWHERE = (ThreadGone, Forbidden)  # nothing at all can be said in the thread


class Undelivered:
    def __init__(self, store: Store, channel_of: Callable[[str], Channel], clock: Clock) -> None:
        self._store = store
        self._showing = Showing(store.ids, channel_of, clock)
        self._failed: asyncio.Queue[tuple[Delivery, SendError]] = asyncio.Queue()
        self._told: deque[tuple[int, str]] = deque(maxlen=REMEMBERED)  # with the name of a file

    def failed(self, delivery: Delivery, error: SendError) -> None:
        """The outbox gave a delivery up."""
        if delivery.kind in (DeliveryKind.ANSWER, DeliveryKind.FILE):
            self._failed.put_nowait((delivery, error))

    async def run(self, take: Take) -> None:
        """Tell of each turn's answer or thread once, and of each refused file, until cancelled."""
        while True:
            delivery, error = await self._failed.get()
            file = ""
            if isinstance(delivery.part, FilePart) and not isinstance(error, NOWHERE):
                file = delivery.part.name
            if delivery.turn is not None and (delivery.turn, file) not in self._told:
                self._told.append((delivery.turn, file))
                telling = self._tell(take, delivery, delivery.turn, error)
                await fault_of(telling, f"telling that turn {delivery.turn} was not delivered")

    async def _tell(self, take: Take, delivery: Delivery, turn: int, error: SendError) -> None:
        told = await self._words(delivery, turn, error)
        if told:
            await take(Item(deliveries=told))

    async def _words(self, delivery: Delivery, turn: int, error: SendError) -> list[Delivery]:
        asked = await reads.turn(self._store, turn)
        lane = await reads.lane(self._store, delivery.lane)
        if asked is None or lane is None:
            return []
        if not isinstance(error, NOWHERE):
            said = wording.not_shown(asked.label, str(error))
            if isinstance(delivery.part, FilePart):
                said = wording.file_not_shown(delivery.part.name, str(error))
            return self._showing.text(lane.id, said)
        direct = await reads.lane_direct(self._store, channel_of(lane.id), asked.person)
        if direct is None or lane.direct:
            return []
        return self._showing.text(direct.id, wording.thread_gone(lane.title, asked.label))
