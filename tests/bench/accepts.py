"""Durable accepts a second: identity, message row, turn row and lane, through the lane rules."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from core.clock import SystemClock
from core.items import Item, content
from core.lane_events import Arrived
from core.lanes import Lanes
from core.messages import Address
from core.steps import rows_of
from core.store import rows
from core.store.records import MessageRow
from core.store.store import Store
from core.store.writer import Unit
from core.turns import Kind, Limits, Origin, Turn
from tests.bench.house import show

WRITERS, EACH, LANES = 500, 60, 3000


def _item(store: Store, lane: str, number: int) -> Item:
    now = store.clock.now()
    turn = Turn(store.ids.turn(), lane, "telegram:1", Origin.PERSON, Kind.MAIN, now, "a message")
    said = MessageRow(
        store.ids.message(), f"bench:{number}:{turn.id}", lane, turn.id, "telegram:1", "Ana",
        str(number), "x" * 400, now,
    )  # fmt: skip
    return Item(said.identity, Arrived(turn), messages=[said])


def _unit(lanes: Lanes, item: Item, now: int) -> Unit:
    def decide() -> list[rows.Row]:
        assert item.event is not None
        return [*rows_of(lanes.handle(item.event), now), *content(item)]

    return Unit(item.identity, decide, done=lanes.settle)


async def _run(at_once: bool) -> float:
    """Accepts a second; ``at_once`` False: one commit a message."""
    with tempfile.TemporaryDirectory() as folder:
        clock = SystemClock()
        async with Store.open(Path(folder) / "bench.db", clock) as store:
            names = [f"lane{number}" for number in range(LANES)]
            await store.save(
                *(rows.new_lane(n, Address("bench", n), True, "", clock.now()) for n in names)
            )
            lanes = Lanes(Limits(running=1, queue=10**9))
            count = WRITERS * EACH if at_once else 1500
            items = [_item(store, names[number % LANES], number) for number in range(count)]
            began = time.perf_counter()
            if at_once:

                async def writer(mine: list[Item]) -> None:
                    for item in mine:
                        await store.commit(_unit(lanes, item, clock.now()))

                async with asyncio.TaskGroup() as group:
                    for number in range(WRITERS):
                        group.create_task(writer(items[number::WRITERS]))
            else:
                for item in items:
                    await store.commit(_unit(lanes, item, clock.now()))
            return count / (time.perf_counter() - began)


async def durable_accepts() -> None:
    group = median([await _run(True) for _ in range(3)])
    single = median([await _run(False) for _ in range(3)])
    show("durable accepts a second (message and turn)", f"{group:,.0f}", "30,000", group >= 30_000)
    show("  one commit a message", f"{single:,.0f}", "", None)
    show("  gain of the group commit", f"{group / single:.1f} x", "10 x", group / single >= 10)
