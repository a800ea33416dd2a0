"""One life of a process that has jobs, by a simulated clock, over a real database: until SIGKILL.

It runs in a process of its own, made by a fork server that has imported this. After every step it
says what its clock shows; where it is to die at a certain commit it says so and kills itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from core.items import Item
from core.job_rules import IfBusy, Job, JobKind
from core.lane_events import LimitsChanged
from core.messages import Address
from core.store import jobs as stored
from core.store import rows
from core.turns import Limits
from core.when import following
from tests.drills.year_reckoning import HOUR, Due
from tests.fakes.clock import FakeClock
from tests.jobs.scene import ANA, JobScene, jobs_in

TICK = 3600.0  # seconds between two looks at the wall clock
LANES = 40
CATCH_UPS = (None, None, 0, HOUR, 48 * HOUR)
TAKES = (0.5, 5.0, 60.0, 60.0, 600.0, 7200.0)  # seconds that the runs of one step take


@dataclass(frozen=True, slots=True)
class Life:
    """``steps``: seconds to advance, or to jump the wall clock by. ``dies``: at which commit."""

    home: Path
    begins: int  # ms, wall clock
    steps: Sequence[tuple[str, float]]
    seed: int
    dies: int | None = None
    before: bool = True  # else when that commit is on the disk and nobody knows of it
    makes: Sequence[Due] = ()  # jobs, in the first life


def made(number: int, due: Due, seed: int) -> Job:
    """The same job for the same number, for whoever checks it."""
    dice = random.Random(f"{seed} {number}")
    job = Job(
        number, f"telegram:{800_000_000 + number % LANES}", ANA,
        JobKind.WAKEUP if due.once else JobKind.SCHEDULE, due.said, due.zone, due.anchor, "look",
        due.anchor, catch_up=dice.choice(CATCH_UPS), if_busy=dice.choice(list(IfBusy)),
        settled_at=due.anchor,
    )  # fmt: skip
    return replace(job, next_at=following(job.plan, due.anchor))


def live(life: Life, tell: Connection) -> None:
    logging.disable(logging.CRITICAL)
    asyncio.run(_live(life, tell))
    tell.send(("over", 0))


async def _live(life: Life, tell: Connection) -> None:
    clock = FakeClock(life.begins)
    dice = random.Random(life.seed)
    async with jobs_in(life.home, clock, tick=TICK) as house:
        await house.scene.rules.take(Item(event=LimitsChanged(Limits(running=80))))
        if life.makes:
            await _make(house, life)
        if life.dies is not None:
            _die_at(house, life, tell)
        tell.send(("begun", clock.now()))
        for kind, seconds in life.steps:
            house.takes = dice.choice(TAKES)
            if kind == "jump":
                clock.jump(seconds)
            else:
                await clock.advance(seconds)
            house.scene.rules.commands.clear()
            house.scene.rules.deliveries.clear()
            tell.send((kind, clock.now()))


async def _make(house: JobScene, life: Life) -> None:
    for number in range(LANES):
        chat = str(800_000_000 + number)
        lane = rows.new_lane(f"telegram:{chat}", Address("telegram", chat), True, "", life.begins)
        await house.store.save(lane)
    jobs = [stored.new(made(number, due, 1)) for number, due in enumerate(life.makes, 1)]
    for at in range(0, len(jobs), 500):
        await house.store.save(*jobs[at : at + 500])
    house.jobs.changed()


def _die_at(house: JobScene, life: Life, tell: Connection) -> None:
    """SIGKILL at a certain commit: just before it, or just after it."""
    writer = house.store._writer
    persist, left = writer._persist, life.dies or 1

    async def dying(units: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and life.before:
            _die(house, tell)
        done = await persist(units)
        if left == 0:
            _die(house, tell)
        return done

    writer._persist = dying


def _die(house: JobScene, tell: Connection) -> None:
    tell.send(("died", house.clock.now()))
    os.kill(os.getpid(), signal.SIGKILL)
