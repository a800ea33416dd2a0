"""What an earlier life left running: ended, or kept on record with its sessions set aside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from core.clock import SystemClock
from core.engines.trees import MARK, Record, lane_mark
from core.messages import Address
from core.store import reads, rows
from core.store.store import Store
from gateway.engine_parts import StoreLedger
from gateway.left import remove_left

LANE = "local:main"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        await store.save(
            rows.new_lane(LANE, Address("local", "main"), True, "", 1),
            rows.session(LANE, "demo", 1, "demo-0001", 1),
        )
        yield store


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Record]:
    """A process of an earlier life; its start time tells it from a later one."""
    marker = lane_mark(tmp_path, LANE)
    command = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command, env={MARK: marker}) as process:
        yield Record(process.pid, psutil.Process(process.pid).create_time(), LANE, marker)
        process.kill()


async def remembered(store: Store) -> list[int]:
    return [row.pid for row in await reads.processes(store)]


async def test_what_was_left_is_ended_and_forgotten(
    tmp_path: Path, store: Store, left: Record
) -> None:
    await StoreLedger(store).add(left)
    await StoreLedger(store).add(Record(1_999_999, 1.0, LANE, "gone long ago"))
    await remove_left(tmp_path, store, grace=0.4)
    assert psutil.Process(left.pid).status() == psutil.STATUS_ZOMBIE  # its parent is this test
    assert await remembered(store) == []
    assert not (await reads.sessions(store, LANE))["demo"].quarantined


@pytest.mark.parametrize("on_record", [True, False])
async def test_what_will_not_end_stays_on_record_and_its_sessions_are_set_aside(
    tmp_path: Path, store: Store, left: Record, on_record: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if on_record:
        await StoreLedger(store).add(left)
    monkeypatch.setattr(psutil.Process, "send_signal", lambda process, number: None)
    monkeypatch.setattr("core.engines.trees.SWEEP", 0.1)
    await remove_left(tmp_path, store, grace=0.1)
    assert await remembered(store) == [left.pid]
    assert (await reads.sessions(store, LANE))["demo"].quarantined
    await StoreLedger(store).add(left)  # a second time changes nothing
    assert await remembered(store) == [left.pid]


async def test_forgetting_a_process_waits_for_no_disk(
    tmp_path: Path, store: Store, left: Record
) -> None:
    ledger = StoreLedger(store)
    await ledger.add(left)
    ledger.remove(left)  # returns at once, whatever the disk does
    await store.save(rows.session(LANE, "demo", 1, "demo-0002", 2))
    assert await remembered(store) == []


async def test_forgetting_after_the_end_of_the_store_fails_not(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        ledger = StoreLedger(store)
    ledger.remove(Record(1, 1.0, LANE, "mark"))
