"""A file system that is really full: plain words, nothing acknowledged, and on when there is room.

Needs the right to mount a small file system; elsewhere SQLite's own limit stands in for it.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.store import reads, rows
from core.store.store import Store
from tests.contracts.store_contract import lane_row, message
from tests.fakes.clock import FakeClock

MEGABYTE = 1_000_000


@pytest.fixture
def small_disk() -> Iterator[Path]:
    # Not in pytest's own folder: it tidies the folders of earlier runs, and would meet the mount.
    disk = Path(tempfile.mkdtemp(prefix="laneway-small-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        disk.rmdir()
        pytest.skip("mounting a small file system is not allowed here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)
    disk.rmdir()


def fill(disk: Path) -> Path:
    """Something else takes all the space that is left."""
    other = disk / "other"
    with other.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(100_000))
        except OSError:
            return other


async def test_a_full_disk_is_waited_out(small_disk: Path) -> None:
    clock = FakeClock()
    home = small_disk / "home"
    async with Store.open(home / "laneway.db", clock) as store, asyncio.TaskGroup() as group:
        clock.watch(lambda: store.busy)
        await store.save(lane_row())
        other = fill(small_disk)

        # The reserve is given up, and what runs can still be settled.
        await store.save(rows.message(message(1, None, text="x" * MEGABYTE)))
        assert not (home / "ballast").exists()
        assert "full" in store.trouble

        fill(small_disk)
        waiting = [
            group.create_task(
                store.save(rows.message(message(n, None, text="x" * MEGABYTE))), name=f"save {n}"
            )
            for n in range(2, 6)
        ]
        await clock.advance(60)
        assert "full" in store.trouble
        assert not any(task.done() for task in waiting)
        assert len(await reads.gathered(store)) == 1

        other.unlink()
        await clock.until(lambda: all(task.done() for task in waiting))
        await clock.advance(10)
        assert len(await reads.gathered(store)) == 5
    async with Store.open(home / "laneway.db", clock) as store:
        assert len(await reads.gathered(store)) == 5
