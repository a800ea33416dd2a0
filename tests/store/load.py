"""A process that stores as fast as it can and prints what was acknowledged, until it is killed.

python -m tests.store.load DATABASE FIRST
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from core.clock import SystemClock
from core.store import rows
from core.store.store import Store, Unit
from tests.contracts.store_contract import LANE, lane_row, message, turn

WRITERS = 20


async def main(database: Path, first: int) -> None:
    async with Store.open(database, SystemClock()) as store, asyncio.TaskGroup() as group:
        await store.save(lane_row())
        print("ready", flush=True)

        async def write(number: int) -> None:
            for count in range(1_000_000):
                name = f"{first}-{number}-{count}"
                ids = store.ids.turn(), store.ids.message()

                def decide(ids: tuple[int, int] = ids, name: str = name) -> list[rows.Row]:
                    said = message(ids[1], ids[0], LANE, name)
                    return [rows.turn(turn(ids[0])), rows.message(said)]

                await store.commit(Unit(name, decide))
                print(name, flush=True)

        for number in range(WRITERS):
            group.create_task(write(number), name=f"writer {number}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
