"""What an earlier life of this home left running: ended before any lane runs.

What will not end stays on record, so that the next start tries again, and the sessions of its lane
are not used any more: somebody else may still be writing in them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from core.engines.trees import Record, sweep
from core.store import reads, rows
from core.store.records import ProcessRow
from core.store.rows import Row
from core.store.store import Store

log = logging.getLogger("laneway")


async def remove_left(home: Path, store: Store, grace: float = 2.0) -> None:
    """End the engine processes of an earlier life."""
    left = await reads.processes(store)
    records = [Record(row.pid, row.created, row.lane, row.marker) for row in left]
    swept = await sweep(home, records, grace)
    if swept.ended:
        log.warning("ended %d engine processes that an earlier run left", swept.ended)
    gone = set(records).difference(swept.survivors)
    written = [rows.remove_process(record.pid, record.created) for record in gone]
    if swept.survivors:
        pids = [record.pid for record in swept.survivors]
        log.error("engine processes %s would not end; their sessions are set aside", pids)
        written += [rows.process(_row(record)) for record in swept.survivors]
        lanes = dict.fromkeys(record.lane for record in swept.survivors)
        written += await _set_aside(store, lanes)
    await store.save(*written)


async def _set_aside(store: Store, lanes: Iterable[str]) -> list[Row]:
    """Which engine a process is of is not on record, so all sessions of its lane are meant."""
    reason = "a process of its agent would not end"
    return [
        rows.quarantine(lane, engine, found.session, reason)
        for lane in lanes
        for engine, found in (await reads.sessions(store, lane)).items()
    ]


def _row(record: Record) -> ProcessRow:
    return ProcessRow(record.pid, record.created, record.lane, record.marker)
