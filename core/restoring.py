"""What an earlier process left in the store, as the lane rules take it at the start.

Reads only. It must not know how turns run; what a restart means for them is decided in the rules.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from core.folders import claim
from core.lane_ids import channel_of
from core.preparing import Defaults
from core.store import reads
from core.store.records import ALL_LANES, ENGINE_SCOPE, Delivery
from core.store.store import Store
from core.turns import EnginePause, LaneFacts, Turn

log = logging.getLogger("laneway.runner")


@dataclass(frozen=True, slots=True)
class StoredState:
    """Unfinished turns in the order of their ids, and what is needed to go on from there."""

    turns: tuple[Turn, ...]
    facts: Mapping[str, LaneFacts]
    paused_all: bool
    paused_engines: Mapping[str, EnginePause]
    previews: Mapping[int, Delivery]  # what a cut-off turn still shows, by turn
    sources: Mapping[int, tuple[str, ...]]  # the platform's ids of each turn's messages
    held: bool = False  # what a restored backup held back, and is let go now
    released: tuple[Delivery, ...] = ()  # of those, what was not sent


async def stored_state(
    store: Store, defaults: Defaults, channels: Collection[str], *, held: bool = False
) -> StoredState:
    """Everything `Lanes.restore` wants, and what is needed to close what a crash left open.

    ``channels``: those that are set up; turns of others stay as they are in the store until theirs
    is there again. ``held``: instead, what a restored backup holds back.
    """
    found = await (reads.held_turns(store) if held else reads.open_turns(store))
    here = [row for row in found if channel_of(row.lane) in channels]
    if len(here) < len(found):
        names = sorted({channel_of(row.lane) for row in found} - set(channels))
        count = len(found) - len(here)
        log.warning("%d turns wait for %s, which is not set up", count, ", ".join(names))
    facts = {}
    for lane in await reads.lanes_open(store, held=held):
        folder = claim(lane.workspace, defaults.workspace)
        facts[lane.id] = lane.facts(lane.engine or defaults.engine, folder)
    sources: dict[int, tuple[str, ...]] = {}
    for said in await reads.messages_open(store, held=held):
        if said.turn is not None and said.message_id:
            sources[said.turn] = (*sources.get(said.turn, ()), said.message_id)
    previews = await reads.previews_open(store, held=held)
    pauses = {row.scope: row for row in await reads.pauses(store)}
    engines = {
        scope.removeprefix(ENGINE_SCOPE): EnginePause(row.reason, row.until)
        for scope, row in pauses.items()
        if scope.startswith(ENGINE_SCOPE)
    }
    return StoredState(
        turns=tuple(row.turn() for row in here),
        facts=facts,
        paused_all=ALL_LANES in pauses,
        paused_engines=engines,
        previews={row.turn: row for row in previews if row.turn is not None},
        sources=sources,
        held=held,
    )
