"""The data directory is private, belongs to one process, and keeps a reserve for a full disk."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.store import home, reads, rows
from core.store.errors import Locked, StoreError
from core.store.store import LOW, Store, Unit
from tests.contracts.store_contract import lane_row
from tests.fakes.clock import FakeClock
from tests.store.test_sqlite_store import TestSqliteStore as Sqlite


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_home_and_all_in_it_are_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "home"
    old = os.umask(0)
    try:
        async with Store.open(folder / "laneway.db", FakeClock()) as store:
            await store.save(lane_row())
            assert mode(folder) == 0o700
            assert {path.name: mode(path) for path in folder.iterdir()} == dict.fromkeys(
                ["laneway.db", "laneway.db-wal", "laneway.db-shm", "laneway.lock", "ballast"],
                0o600,
            )
    finally:
        os.umask(old)


async def test_a_second_process_is_told_who_uses_the_home(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", FakeClock()):
        with pytest.raises(Locked) as caught:
            async with Store.open(tmp_path / "laneway.db", FakeClock()):
                pass
    assert str(tmp_path) in str(caught.value)
    assert f"process {os.getpid()}" in str(caught.value)
    async with Store.open(tmp_path / "laneway.db", FakeClock()):
        pass


def test_the_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time; from core.store import home\n"
        "with home.locked(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(Locked, match=f"process {child.pid}"), home.locked(tmp_path):
            pass
        child.kill()
    with home.locked(tmp_path):
        pass


def test_a_home_that_cannot_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="LANEWAY_HOME"), home.locked(tmp_path / "file" / "home"):
        pass


async def test_the_reserve_is_given_up_on_a_full_disk_and_made_again(tmp_path: Path) -> None:
    clock, sqlite = FakeClock(), Sqlite()
    async with Store.open(tmp_path / "laneway.db", clock) as store:
        clock.watch(lambda: store.busy)
        await store.save(lane_row())
        assert (tmp_path / "ballast").stat().st_size == home.BALLAST_BYTES
        assert (tmp_path / "ballast").stat().st_blocks * 512 >= home.BALLAST_BYTES
        async with sqlite.failing(store):
            writing = store._writer.queue([Unit("big", lambda: [lane_row("x" * 50_000)])])
            await clock.settle()
            assert not (tmp_path / "ballast").exists()
            assert "full" in store.trouble
        await clock.until(writing.done)
        assert await writing == [True]
        await clock.until(lambda: not store.trouble)
        assert (tmp_path / "ballast").exists()


async def test_without_room_for_the_reserve_the_trouble_is_told_until_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    async with Store.open(tmp_path / "laneway.db", clock) as store:
        assert store.trouble == LOW
        await store.save(lane_row())  # what runs can still be settled
        await clock.advance(20)
        assert store.trouble == LOW
        monkeypatch.undo()
        await clock.advance(20)
        assert store.trouble == ""
        await store.save(*rows.release())
        assert len(await reads.lane_list(store)) == 1
