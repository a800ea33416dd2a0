"""Files of the home that are not for ever: copies on their way, and those of local threads."""

from __future__ import annotations

import asyncio
from pathlib import Path

from core import inside
from core.preparing import INCOMING
from core.store import reads
from core.store.records import FilePart
from core.store.store import Store
from gateway.paths import FILES, OUTGOING

DAY = 24 * 3600.0
KEPT = 7 * DAY  # seconds; an outage of a platform or of the gateway may last days
SHOWN = 90 * DAY  # seconds for which files of local threads can be fetched again


async def tidy_files(home: Path, store: Store, now: int) -> None:
    """Delete old copies, except those that still wait to be sent. ``now`` in ms since 1970."""
    waiting = [
        Path(delivery.part.path)
        for delivery in await reads.deliveries_open(store)
        if isinstance(delivery.part, FilePart)
    ]
    for folder, kept in ((INCOMING, KEPT), (OUTGOING, KEPT), (FILES, SHOWN)):
        await asyncio.to_thread(inside.tidy, home / folder, waiting, now / 1000 - kept)
