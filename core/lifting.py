"""Paused engines go on by themselves when their time is over.

The wall clock is read again and again, so neither a restart nor a step of the clock matters. It
must not know why an engine is paused.
"""

from __future__ import annotations

import logging

from core.clock import Clock
from core.items import Item, Take
from core.lane_events import ResumeAsked
from core.lanes import Lanes
from core.store import rows
from core.store.records import ENGINE_SCOPE

log = logging.getLogger("laneway.runner")

TICK = 15.0  # seconds between two looks at the clock, at most
LEAST = 0.05


async def lift(take: Take, lanes: Lanes, clock: Clock) -> None:
    """Until cancelled."""
    while True:
        now = clock.now()
        ends = {name: why.until for name, why in lanes.engine_pauses.items() if why.until}
        for name, until in ends.items():
            if until <= now:
                log.info("%s goes on", name)
                resume = rows.resume(f"{ENGINE_SCOPE}{name}")
                await take(Item(event=ResumeAsked(engine=name), rows=(resume,)))
        left = [(until - now) / 1000 for until in ends.values() if until > now]
        await clock.sleep(max(LEAST, min(TICK, *left, TICK)))
