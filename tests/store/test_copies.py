"""Backups are whole and private, and a restored one lets nothing go out by itself."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from core.messages import Part
from core.store import copies, home, reads, rows
from core.store.errors import Locked, StoreError
from core.store.records import Delivery, DeliveryKind, DeliveryState
from core.store.store import Store
from core.turns import Status
from tests.contracts.store_contract import LANE, lane_row, message, turn
from tests.fakes.clock import FakeClock


def delivery(
    id: int, state: DeliveryState, target: str = "", kind: DeliveryKind = DeliveryKind.ANSWER
) -> Delivery:
    return Delivery(id, LANE, 1, kind, Part("answer"), target=target, state=state, created_at=1)


async def fill(store: Store) -> None:
    await store.save(
        lane_row(),
        rows.turn(turn(1, status=Status.DONE)),
        rows.turn(turn(2, status=Status.RUNNING)),
        rows.turn(turn(3)),
        rows.message(message(1, 3)),
        rows.message(message(2, None)),
        rows.delivery(delivery(1, DeliveryState.PENDING)),
        rows.delivery(delivery(2, DeliveryState.IN_FLIGHT)),
        rows.delivery(delivery(3, DeliveryState.IN_FLIGHT, target="77")),
        rows.delivery(delivery(4, DeliveryState.SENT)),
    )


async def backed_up(folder: Path) -> Path:
    async with Store.open(folder / "old" / "laneway.db", FakeClock()) as store:
        await fill(store)
        await store.backup(folder / "backup")
    return folder / "backup"


async def test_a_backup_of_a_running_store_is_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "home" / "laneway.db"
    async with Store.open(path, FakeClock()) as store:
        await fill(store)
        await store.backup(tmp_path / "backup")
        await store.save(lane_row("later"))
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o600
    assert sorted(found.name for found in tmp_path.iterdir()) == ["backup", "home"]
    copies.restore(tmp_path / "backup", tmp_path / "new" / "laneway.db", 1)
    async with Store.open(tmp_path / "new" / "laneway.db", FakeClock()) as store:
        assert [lane.id for lane in await reads.lane_list(store)] == [LANE]


async def test_a_backup_can_be_made_while_nothing_runs(tmp_path: Path) -> None:
    path = tmp_path / "home" / "laneway.db"
    async with Store.open(path, FakeClock()) as store:
        await fill(store)
    copies.backup(path, tmp_path / "backup")
    copies.backup(path, tmp_path / "backup")  # an older one of that name is replaced
    assert copies.restore(tmp_path / "backup", tmp_path / "x" / "laneway.db", 1).turns == 2


def test_without_a_database_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no database"):
        copies.backup(tmp_path / "laneway.db", tmp_path / "backup")


async def test_a_backup_never_replaces_the_database_itself(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    async with Store.open(path, FakeClock()) as store:
        with pytest.raises(StoreError, match="another file"):
            await store.backup(path)


async def test_what_was_open_in_a_backup_is_held_until_it_is_released(tmp_path: Path) -> None:
    backup = await backed_up(tmp_path)
    path = tmp_path / "new" / "laneway.db"
    restored = copies.restore(backup, path, 1)
    assert (restored.turns, restored.messages, restored.deliveries) == (2, 1, 3)
    async with Store.open(path, FakeClock()) as store:
        assert await reads.open_turns(store) == []
        assert await reads.gathered(store) == []
        assert await reads.deliveries_open(store) == []
        assert [row.id for row in await reads.held_turns(store)] == [2, 3]
        assert [row.id for row in await reads.deliveries_held(store)] == [1, 3]
        uncertain = await reads.delivery(store, 2)
        assert uncertain is not None
        assert uncertain.state is DeliveryState.UNCERTAIN

        await store.save(rows.turn(turn(4)))
        assert [row.id for row in await reads.open_turns(store)] == [4]

        await store.save(*rows.release())
        assert [row.id for row in await reads.open_turns(store)] == [2, 3, 4]
        assert [row.seq for row in await reads.gathered(store)] == [2]
        assert [row.id for row in await reads.deliveries_open(store)] == [1, 3]


async def test_a_restore_is_refused_over_a_database_unless_forced(tmp_path: Path) -> None:
    backup = await backed_up(tmp_path)
    path = tmp_path / "home" / "laneway.db"
    async with Store.open(path, FakeClock()) as store:
        await store.save(lane_row("mine"))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="--force"):
        copies.restore(backup, path, 1)
    assert path.read_bytes() == before
    restored = copies.restore(backup, path, 1, force=True)
    assert restored.replaced is not None
    assert restored.replaced.read_bytes() == before
    async with Store.open(path, FakeClock()) as store:
        assert [lane.id for lane in await reads.lane_list(store)] == [LANE]


async def test_a_restore_is_refused_while_a_gateway_runs(tmp_path: Path) -> None:
    backup = await backed_up(tmp_path)
    path = tmp_path / "home" / "laneway.db"
    async with Store.open(path, FakeClock()):
        with pytest.raises(Locked):
            copies.restore(backup, path, 1, force=True)


async def test_a_log_of_the_replaced_database_never_reaches_the_restored_one(
    tmp_path: Path,
) -> None:
    backup = await backed_up(tmp_path)
    path = tmp_path / "home" / "laneway.db"
    async with Store.open(path, FakeClock()) as store:
        await store.save(lane_row("mine"))
        log = (tmp_path / "home" / "laneway.db-wal").read_bytes()
    (tmp_path / "home" / "laneway.db-wal").write_bytes(log)
    copies.restore(backup, path, 1, force=True)
    async with Store.open(path, FakeClock()) as store:
        assert [lane.id for lane in await reads.lane_list(store)] == [LANE]


async def test_a_damaged_backup_changes_nothing(tmp_path: Path) -> None:
    backup = await backed_up(tmp_path)
    with backup.open("r+b") as file:
        file.truncate(backup.stat().st_size // 2)
    path = tmp_path / "home" / "laneway.db"
    async with Store.open(path, FakeClock()) as store:
        await store.save(lane_row("mine"))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="choose another backup"):
        copies.restore(backup, path, 1, force=True)
    with pytest.raises(StoreError, match="no file"):
        copies.restore(tmp_path / "missing", path, 1, force=True)
    assert path.read_bytes() == before
    assert sorted(found.name for found in path.parent.iterdir()) == [
        home.BALLAST, "laneway.db", home.LOCK,
    ]  # fmt: skip


async def test_a_damaged_database_can_be_replaced_by_a_backup(tmp_path: Path) -> None:
    backup = await backed_up(tmp_path)
    path = tmp_path / "home" / "laneway.db"
    path.parent.mkdir()
    path.write_text("damaged")
    restored = copies.restore(backup, path, 1, force=True)
    assert restored.replaced is not None
    assert restored.replaced.read_text() == "damaged"
    async with Store.open(path, FakeClock()) as store:
        assert len(await reads.held_turns(store)) == 2


async def test_of_the_notices_that_stood_in_the_chats_a_restored_backup_knows_nothing(
    tmp_path: Path,
) -> None:
    waiting, sent = DeliveryKind.WAITING, DeliveryState.SENT
    async with Store.open(tmp_path / "old" / "laneway.db", FakeClock()) as store:
        await fill(store)
        await store.save(
            rows.delivery(delivery(11, sent, kind=waiting)),
            rows.delivery(delivery(12, sent, target="of 11", kind=waiting)),
            rows.delivery(delivery(13, DeliveryState.PENDING, target="of 11", kind=waiting)),
            rows.delivery(delivery(14, DeliveryState.PENDING, kind=waiting)),
        )
        await store.backup(tmp_path / "backup")
    new = tmp_path / "new" / "laneway.db"
    copies.restore(tmp_path / "backup", new, 1)
    async with Store.open(new, FakeClock()) as store:
        assert await reads.waiting_notices(store) == []
        await store.save(*rows.release())
        open_ones = [one.id for one in await reads.deliveries_open(store)]
        assert not {11, 12, 13, 14} & set(open_ones)
        assert {1, 3} <= set(open_ones)
