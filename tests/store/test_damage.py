"""A damaged database is told, with the way back, and left exactly as it is."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from core.store import integrity, reads, rows
from core.store.errors import Damaged, Newer, StoreError
from core.store.migrate import migrations
from core.store.store import Store
from tests.contracts.store_contract import LANE, lane_row, message, turn
from tests.fakes.clock import FakeClock


async def filled(path: Path) -> Path:
    """A database with something in every page, closed in order."""
    async with Store.open(path, FakeClock()) as store:
        await store.save(lane_row())
        for n in range(1, 60):
            await store.save(rows.turn(turn(n)), rows.message(message(n, n, text="x" * 900)))
    return path


def zeros_in_the_third_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(bytes(4096))


def cut_to_half(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def a_byte_short(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def not_a_database(path: Path) -> None:
    path.write_text("dear diary\n" * 5000)


def header_overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def snapshot(folder: Path) -> dict[str, str]:
    """Name and content of all that belongs to the database."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.glob("laneway.db*")
    }


@pytest.mark.parametrize(
    "harm",
    [
        zeros_in_the_third_page,
        cut_to_half,
        a_byte_short,
        emptied,
        not_a_database,
        header_overwritten,
    ],
)
async def test_a_damaged_file_is_named_with_the_way_back_and_stays_byte_identical(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = await filled(tmp_path / "laneway.db")
    harm(path)
    before = snapshot(tmp_path)
    for _ in range(2):
        with pytest.raises(Damaged) as caught:
            async with Store.open(path, FakeClock()):
                pass
        assert str(path) in str(caught.value)
        assert "laneway restore" in str(caught.value)
    assert snapshot(tmp_path) == before


async def test_a_damaged_file_with_a_log_beside_it_stays_as_it_is_with_its_log(
    tmp_path: Path,
) -> None:
    live = tmp_path / "live"
    async with Store.open(live / "laneway.db", FakeClock()) as store:
        await store.save(lane_row())
        copy = as_a_kill_leaves_it(live, tmp_path / "copy")
    cut_to_half(copy)
    before = snapshot(copy.parent)
    assert set(before) == {"laneway.db", "laneway.db-wal"}
    with pytest.raises(Damaged):
        async with Store.open(copy, FakeClock()):
            pass
    assert snapshot(copy.parent) == before


async def test_what_a_kill_left_in_the_log_is_kept(tmp_path: Path) -> None:
    live = tmp_path / "live"
    async with Store.open(live / "laneway.db", FakeClock()) as store:
        await store.save(lane_row(), rows.turn(turn(1)))
        copy = as_a_kill_leaves_it(live, tmp_path / "copy")
    async with Store.open(copy, FakeClock()) as store:
        assert [row.id for row in await reads.open_turns(store)] == [1]


async def test_a_log_without_its_database_is_not_taken_for_an_empty_start(tmp_path: Path) -> None:
    live = tmp_path / "live"
    async with Store.open(live / "laneway.db", FakeClock()) as store:
        await store.save(lane_row())
        copy = as_a_kill_leaves_it(live, tmp_path / "copy")
    copy.unlink()
    with pytest.raises(StoreError, match=r"laneway\.db-wal"):
        async with Store.open(copy, FakeClock()):
            pass
    assert not copy.exists()


async def test_a_link_to_what_is_not_there_is_not_taken_for_an_empty_start(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    path.symlink_to(tmp_path / "disk" / "laneway.db")
    with pytest.raises(StoreError, match="which is not there"):
        async with Store.open(path, FakeClock()):
            pass
    assert path.is_symlink()
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="is no file"):
        async with Store.open(path, FakeClock()):
            pass


def as_a_kill_leaves_it(home: Path, copy: Path) -> Path:
    """The files as they are on the disk while the database is open."""
    copy.mkdir()
    for name in ("laneway.db", "laneway.db-wal"):
        shutil.copyfile(home / name, copy / name)
    return copy / "laneway.db"


async def test_a_half_made_database_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "laneway.db.new").write_text("half")
    (tmp_path / "laneway.db.new-wal").write_text("half of a log")
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane_row())
    assert not list(tmp_path.glob("*.new*"))


async def test_a_database_of_a_newer_version_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = await filled(tmp_path / "laneway.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        newer = migrations()[-1][0] + 1
        connection.execute("INSERT INTO migrations VALUES (?, 'later', 0)", (newer,))
    before = snapshot(tmp_path)
    with pytest.raises(Newer, match="newer"):
        async with Store.open(path, FakeClock()):
            pass
    assert snapshot(tmp_path) == before


async def test_somebody_elses_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    before = snapshot(tmp_path)
    with pytest.raises(Damaged, match="not a database of Laneway"):
        async with Store.open(path, FakeClock()):
            pass
    assert snapshot(tmp_path) == before


async def test_a_large_file_is_checked_beside_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await filled(tmp_path / "laneway.db")
    zeros_in_a_middle_leaf_of_messages(path)
    monkeypatch.setattr(integrity.check, "__defaults__", (path.stat().st_size - 1,))
    clock = FakeClock()
    async with Store.open(path, clock) as store:
        clock.watch(lambda: not store.trouble)
        await clock.settle()
        assert str(path) in store.trouble
        assert await reads.lane(store, LANE) is not None


async def test_damage_that_is_met_while_opening_a_large_file_is_told_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await filled(tmp_path / "laneway.db")
    with path.open("r+b") as file:  # the newest leaf of the messages
        file.seek(path.stat().st_size - 4096)
        file.write(bytes(4096))
    monkeypatch.setattr(integrity.check, "__defaults__", (path.stat().st_size - 1,))
    with pytest.raises(Damaged):
        async with Store.open(path, FakeClock()):
            pass


def zeros_in_a_middle_leaf_of_messages(path: Path) -> None:
    marker = b"x" * 900
    content = path.read_bytes()
    pages = [at for at in range(0, len(content), 4096) if marker in content[at : at + 4096]]
    with path.open("r+b") as file:
        file.seek(pages[len(pages) // 2])
        file.write(bytes(4096))


def test_an_old_sqlite_is_refused_in_plain_words() -> None:
    with pytest.raises(StoreError, match=r"SQLite 3\.36\.0; Laneway needs 3\.37"):
        integrity.refuse_old_sqlite((3, 36, 0))
    integrity.refuse_old_sqlite((3, 37, 0))
