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
    """Follows one message to its answer. ``attended``: somebody is there who may decide."""

    def __init__(self, store: Store, identity: str, *, attended: bool = False) -> None:
        self._store = store
        self._identity = identity
        self._attended = attended
        self._wanted: dict[str, bool] = {}  # by message; what it shows does not change its turn

    async def wants_question(self, card: Delivery, message_id: str) -> bool:
        """Whether a question that was open before is to be shown, and what becomes of it then."""
        turn = await self._turn()
        if self._attended and turn is not None and (card.turn == turn or await self._waits()):
            self._wanted[message_id] = True
            return True
        return False

    async def wants(self, shown: Shown) -> bool:
        """Whether this is of its turn, or of none, or a question that it waits for."""
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
        if turn is None:
            return delivery.kind is DeliveryKind.NOTICE
        asks = delivery.kind is DeliveryKind.CARD and self._attended
        return delivery.turn == turn or (asks and await self._waits())

    async def _waits(self) -> bool:
        """The lane's notice is about others once its own turn has begun."""
        turn = await self._turn()
        row = None if turn is None else await reads.turn(self._store, turn)
        return row is not None and row.status is Status.WAITING

    async def _turn(self) -> int | None:
        message = await reads.message(self._store, self._identity)
        return message.turn if message else None
