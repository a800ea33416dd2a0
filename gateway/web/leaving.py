"""Somebody is removed: what of them runs is stopped, and what waits is dropped, as by an admin.

Their jobs stay, and say by themselves that their person may not use the gateway any more. It must
not know HTTP.
"""

from __future__ import annotations

from core.items import Item
from core.lane_events import DropAsked, Event, SkipAsked
from core.runner import Runner
from core.store import reads
from core.store.store import Store
from core.turns import Status, StopKind
from core.wording import count


async def ended(store: Store, runner: Runner, person: str, by: str) -> str:
    """End their turns; says how many there were, for whoever did it."""
    mine = [row for row in await reads.open_turns(store) if row.person == person]
    waiting = [row for row in mine if row.status is Status.WAITING]
    running = [row for row in mine if row.status is not Status.WAITING]
    events: list[Event] = [
        *(DropAsked(row.id, row.lane, by, admin=True) for row in waiting),
        *(SkipAsked(row.lane, by, StopKind.STOP, row.id) for row in running),
    ]
    if events:
        await runner.take(*(Item(event=event) for event in events))
    parts = []
    if running:
        parts.append(f"{count(len(running), 'turn')} that ran ended")
    if waiting:
        parts.append(f"{count(len(waiting), 'message')} that waited will not run")
    return f"{' and '.join(parts)}." if parts else ""
