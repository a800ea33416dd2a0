"""How many messages a second the store accepts, beside a commit for each.

    python -m tests.store.speed [CHATS]

Every unit is an identity, a message of 400 characters and a turn; 200 tasks wait for theirs. The
fewer chats, the closer together the identities lie in their index. A commit for each is measured
through the same store with one task, so that the disk and the rows are the same.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from core.clock import SystemClock
from core.store import rows
from core.store.store import Store, Unit
from core.turns import Kind, Origin, Turn
from tests.contracts.store_contract import ANA, MessageRow, lane_row

LANES = 200
TEXT = "x" * 400


def units(store: Store, count: int, chats: int) -> list[Unit]:
    """Made beforehand: what is measured is the store."""
    made = []
    for number in range(count):
        turn, message, lane = store.ids.turn(), store.ids.message(), f"l{number % LANES}"
        identity = f"telegram:800000001:-100{1_000_000 + number % chats}:{turn}"
        written = [
            rows.turn(Turn(turn, lane, ANA, Origin.PERSON, Kind.MAIN, 1, "the first words")),
            rows.message(MessageRow(message, identity, lane, turn, ANA, "Ana", "1", TEXT, 1)),
        ]
        made.append(Unit(identity, lambda written=written: written))  # type: ignore[misc] # bound
    return made


async def rate(store: Store, work: list[Unit], tasks: int) -> float:
    async def write(own: list[Unit]) -> None:
        for unit in own:
            await store.commit(unit)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(tasks):
            group.create_task(write(work[number::tasks]), name=f"writer {number}")
    return len(work) / (time.perf_counter() - began)


async def main(chats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Store.open(Path(folder) / "home" / "laneway.db", SystemClock()) as store:
            await store.save(*(lane_row(f"l{number}") for number in range(LANES)))
            for _ in range(3):
                together = await rate(store, units(store, 30_000, chats), 200)
                single = await rate(store, units(store, 1_000, chats), 1)
                print(f"{together:,.0f} a second; a commit for each: {single:,.0f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else LANES))
