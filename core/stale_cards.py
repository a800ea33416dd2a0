"""Cards whose question nobody can decide any more: they are closed, and who presses one is told.

An engine that is gone hears no decision, and a question that is settled is not settled again. What
is to be stored is handed back; the open questions are the business of approvals.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.asking import Asking
from core.clock import Clock
from core.items import Item
from core.store import reads, rows
from core.store.records import ApprovalRow, ApprovalState
from core.store.store import Store


class StaleCards:
    def __init__(
        self, store: Store, asking: Asking, names: Callable[[str], str], clock: Clock
    ) -> None:
        self._store = store
        self._asking = asking
        self._names = names
        self._clock = clock

    async def expired(self, left: ApprovalRow) -> Item:
        """The engine that asked is gone; its question can only expire."""
        expired = self._asking.result(ApprovalState.EXPIRED, "")
        left_open = await self._asking.stored(left)
        closed = [one for card in left_open for one in self._asking.closed(card, expired)]
        row = rows.approval_state(left.id, ApprovalState.EXPIRED, self._clock.now())
        return Item(rows=[row], deliveries=closed)

    async def pressed(self, approval: int, lane: str, message_id: str) -> tuple[str, list[Item]]:
        """What is said to who pressed too late, and what closes the card that was pressed."""
        row = await reads.approval(self._store, approval)
        closing: list[Item] = []
        if row is not None and row.state is not ApprovalState.ASKED:
            closing = await self._close_again(row, lane, message_id)
        return self._too_late(row), closing

    async def _close_again(self, row: ApprovalRow, lane: str, message_id: str) -> list[Item]:
        """For a card that still has buttons because we did not know its message."""
        closing = []
        for card in await self._asking.stored(row):
            if message_id and card.lane == lane and not card.message_id:
                here = replace(card, message_id=message_id)
                closed = self._asking.closed(here, self._asking.result(row.state, row.decided_by))
                closing.append(Item(f"card:{row.id}:{card.id}", deliveries=closed))
        return closing

    def _too_late(self, row: ApprovalRow | None) -> str:
        if row is None or row.state is ApprovalState.EXPIRED:
            return "Expired: nothing can be decided here any more, and nothing was run."
        if row.state is ApprovalState.CANCELLED:
            return "Cancelled: the turn that asked is over."
        if row.state is ApprovalState.ASKED:  # its decision is being stored
            return "Already decided."
        by = f" by {self._names(row.decided_by)}" if row.decided_by else ""
        return f"Already decided: {row.state.value}{by}."
