"""Which of what a lane is shown belongs to one thing that was said in it.

A lane is shared: the turn that a message waits behind is shown there as well, and so is what others
said. It must not know sockets or what a text means.
"""

from __future__ import annotations

from channels.local.channel import Shown
from core.finding import delivery_of
from core.store import reads
from core.store.records import Delivery, DeliveryKind
from core.store.store import Store
from core.turns import Status


class Following:
    """Follows one message to its answer."""

    def __init__(self, store: Store, identity: str) -> None:
        self._store = store
        self._identity = identity
        self._wanted: dict[str, bool] = {}  # by message; what it shows does not change its turn

    async def wants(self, shown: Shown) -> bool:
        """Whether this is of its turn, or of none."""
        wanted = self._wanted.get(shown.message_id)
        if wanted is not None:
            return wanted
        number = delivery_of(shown.nonce)
        if number is None:
            return False  # sent by an earlier process, and so before this was said
        delivery = await reads.delivery(self._store, number)
        if delivery is not None and delivery.kind is DeliveryKind.WAITING:
            return await self._waits()
        wanted = delivery is None or delivery.turn is None or await self._own(delivery)
        self._wanted[shown.message_id] = wanted
        return wanted

    async def _own(self, delivery: Delivery) -> bool:
        turn = await self._turn()
        # A command has no turn; what it did to those of others is told as theirs.
        return delivery.kind is DeliveryKind.NOTICE if turn is None else delivery.turn == turn

    async def _waits(self) -> bool:
        """The lane's notice is about others once its own turn has begun."""
        turn = await self._turn()
        row = None if turn is None else await reads.turn(self._store, turn)
        return row is not None and row.status is Status.WAITING

    async def _turn(self) -> int | None:
        message = await reads.message(self._store, self._identity)
        return message.turn if message else None
