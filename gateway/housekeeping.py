"""Files of the home that are not needed for ever: copies on their way into or out of threads."""

from __future__ import annotations

import asyncio
from pathlib import Path

from core import inside
from core.preparing import INCOMING
from core.store import reads
from core.store.records import FilePart
from core.store.store import Store
from gateway.paths import OUTGOING

KEPT = 7 * 24 * 3600.0  # seconds; an outage of a platform or of the gateway may last days


async def tidy_files(home: Path, store: Store, now: int) -> None:
    """Delete old copies, except those that still wait to be sent. ``now`` in ms since 1970."""
    waiting = [
        Path(delivery.part.path)
        for delivery in await reads.deliveries_open(store)
        if isinstance(delivery.part, FilePart)
    ]
    for folder in (INCOMING, OUTGOING):
        await asyncio.to_thread(inside.tidy, home / folder, waiting, now / 1000 - KEPT)
