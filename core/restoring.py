"""What an earlier process left in the store, as the lane rules take it at the start.

Reads only. It must not know how turns run; what a restart means for them is decided in the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.folders import claim
from core.preparing import Defaults
from core.store import reads
from core.store.records import Delivery, DeliveryKind
from core.store.store import Store
from core.turns import LaneFacts, Status, Turn

ALL = "all"
ENGINE = "engine:"


@dataclass(frozen=True, slots=True)
class StoredState:
    """Unfinished turns in the order of their ids, and what is needed to go on from there."""

    turns: tuple[Turn, ...]
    facts: Mapping[str, LaneFacts]
    paused_all: bool
    paused_engines: frozenset[str]
    previews: Mapping[int, Delivery]  # what a cut-off turn still shows, by turn
    sources: Mapping[int, tuple[str, ...]]  # the platform's ids of each turn's messages
    held: bool = False  # what a restored backup held back, and is let go now
    released: tuple[Delivery, ...] = ()  # of those, what was not sent


async def stored_state(store: Store, defaults: Defaults, *, held: bool = False) -> StoredState:
    """Everything `Lanes.restore` wants, and what is needed to close what a crash left open.

    ``held``: instead, what a restored backup holds back.
    """
    open_turns = await (reads.held_turns(store) if held else reads.open_turns(store))
    facts: dict[str, LaneFacts] = {}
    for lane in {row.lane for row in open_turns}:
        stored = await reads.lane(store, lane)
        if stored is not None:
            folder = claim(stored.workspace, defaults.workspace)
            facts[lane] = stored.facts(stored.engine or defaults.engine, folder)
    pauses = {row.scope for row in await reads.pauses(store)}
    previews: dict[int, Delivery] = {}
    sources: dict[int, tuple[str, ...]] = {}
    for row in open_turns:
        if row.status is not Status.WAITING:
            for delivery in await reads.deliveries_of(store, row.id):
                if delivery.kind is DeliveryKind.PREVIEW and delivery.message_id:
                    previews[row.id] = delivery
        said = await reads.messages_of(store, [row.id])
        sources[row.id] = tuple(message.message_id for message in said if message.message_id)
    return StoredState(
        turns=tuple(row.turn() for row in open_turns),
        facts=facts,
        paused_all=ALL in pauses,
        paused_engines=frozenset(
            scope.removeprefix(ENGINE) for scope in pauses if scope.startswith(ENGINE)
        ),
        previews=previews,
        sources=sources,
        held=held,
    )
