"""What goes through the runner: one indivisible step, and the way in.

Values and a protocol only, so that everything above the rules can hand in steps without knowing
the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.budgets import Change, Spending
from core.lane_events import Event
from core.store import rows
from core.store.records import Delivery, MessageRow
from core.store.rows import Row
from core.turns import Turn


@dataclass(frozen=True, slots=True)
class Said:
    """What shall be shown, with the rows (of buttons) that belong to it."""

    deliveries: Sequence[Delivery] = ()
    rows: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One indivisible step: what came in, what it writes, and what the lane rules shall know.

    Everything of it is in one transaction, or nothing is. ``closing`` is asked inside of it, when
    the event ended a turn, what is shown for that end: only the rules know how it ended.
    """

    identity: str | None = None  # of a message, press or edit; a known one is skipped whole
    event: Event | None = None
    messages: Sequence[MessageRow] = ()  # what was said, written with it
    joined: Sequence[MessageRow] = ()  # stored before, and of a turn from now on
    rows: Sequence[Row] = ()
    deliveries: Sequence[Delivery] = ()  # written as pending with it, sent after the commit
    closing: Callable[[Turn], Said] | None = None
    budget: Change | None = None  # what somebody said about caps on money
    spending: Spending | None = None  # what a turn has cost so far


def content(item: Item) -> list[Row]:
    """What an item writes apart from its event and its deliveries."""
    written = [*map(rows.message, item.messages)]
    for said in item.joined:
        assert said.turn is not None, "it joins a turn"
        written.append(rows.message_turn(said.seq, said.turn))
    return [*written, *item.rows]


class Take(Protocol):
    """The runner's way in."""

    async def __call__(self, *items: Item) -> list[bool]:
        """Commit in order; True where it was new. Durable when it returns."""
