"""Copies of files go when they are old, unless somebody still waits for them."""

from __future__ import annotations

import os
from pathlib import Path

from core.clock import SystemClock
from core.messages import Address
from core.store import rows
from core.store.records import Delivery, DeliveryKind, FilePart
from core.store.store import Store
from gateway.housekeeping import KEPT, tidy_files

LANE = "local:main"
DAY = 24 * 3600


async def test_only_old_copies_that_nobody_waits_for_go(tmp_path: Path) -> None:
    now = 1_000 * DAY
    for name in ("outgoing/waits", "outgoing/sent", "outgoing/new", "incoming/half"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        at = now - DAY if name.endswith("new") else now - KEPT - 1
        os.utime(path, (at, at))
    waiting = FilePart(str(tmp_path / "outgoing/waits"), "report.md")
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        await store.save(
            rows.new_lane(LANE, Address("local", "main"), True, "", 1),
            rows.delivery(Delivery(1, LANE, None, DeliveryKind.FILE, waiting, created_at=1)),
        )
        await tidy_files(tmp_path, store, now * 1000)
    left = sorted(path.name for path in tmp_path.glob("*going/*"))
    assert left == ["new", "waits"]
    assert list((tmp_path / "incoming").iterdir()) == []


async def test_a_home_without_files_needs_no_tidying(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        await tidy_files(tmp_path, store, 1)
