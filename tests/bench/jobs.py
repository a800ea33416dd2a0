"""Ten thousand jobs: what a thousand of them cost that are due at once, and a simulated year."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil

from core.messages import Address
from core.store import jobs as stored
from core.store import rows
from gateway.paths import DATABASE
from tests.bench.house import gateway, quantile, server, show
from tests.fakes.clock import FakeClock
from tests.jobs.scene import jobs_in
from tests.jobs.year import live

JOBS, DUE = 10_000, 1_000
WAKE_UPS = 100


async def many_jobs() -> None:
    """A thread each; the longest time in which nothing else ran while they were fired."""
    process = psutil.Process(os.getpid())
    with tempfile.TemporaryDirectory() as folder:
        clock = FakeClock()
        async with jobs_in(Path(folder), clock, runs=False) as house:
            first = await house.made("/every day at 13:00 : look")
            assert first.next_at is not None
            written = []
            for number in range(2, JOBS + 1):
                lane = f"telegram:{number}"
                at = first.next_at if number <= DUE else first.next_at + number * 1000
                written.append(rows.new_lane(lane, Address("telegram", str(number)), True, "", 1))
                written.append(stored.new(replace(first, id=number, lane=lane, next_at=at)))
            await house.store.save(*written)
            before = process.memory_info().rss
            house.jobs.changed()
            await clock.settle()
            rest = process.memory_info().rss - before
            clock.jump((first.next_at - clock.now()) / 1000)
            gaps = [0.0]

            async def watch() -> None:
                last = time.perf_counter()
                while True:
                    await asyncio.sleep(0)
                    gaps.append(time.perf_counter() - last)
                    last += gaps[-1]

            watching = asyncio.create_task(watch(), name="watch")
            began = time.perf_counter()
            house.jobs.changed()
            while not await stored.firings(house.store, DUE, 1):
                await asyncio.sleep(0.001)
            took = time.perf_counter() - began
            watching.cancel()
    show(f"memory for {JOBS:,} jobs that wait", f"{rest / 2**20:.1f} MiB", "1 MiB", rest < 2**20)
    show(f"{DUE:,} jobs due at once, all claimed", f"{took:.2f} s", "2 s", took < 2)
    show("the longest stall meanwhile", f"{max(gaps) * 1000:.0f} ms", "50 ms", max(gaps) < 0.05)


async def job_accuracy() -> None:
    """How late jobs fire, by the clock of the machine: until claimed, and until the prompt leaves.

    They are spread over some seconds; nothing else goes on.
    """
    people = [700_100_000 + number for number in range(WAKE_UPS)]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        members = ",".join(f"telegram:{person}" for person in people)
        async with server() as bot, gateway(home, bot.url, LANEWAY_MEMBERS=members) as engine:
            for number, person in enumerate(people):
                await bot.say(f"/in {5 + number % 7}s : wake up {number}", user=person, chat=person)
                await asyncio.sleep(0.05)
            while len(engine.prompted) < WAKE_UPS:
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
        with closing(sqlite3.connect(home / DATABASE)) as database:
            claimed, prompted = zip(
                *database.execute(
                    "SELECT f.at - f.due, t.started_at - f.due FROM firings f"
                    " JOIN turns t ON t.id = f.turn"
                ).fetchall(),
                strict=True,
            )
    for name, late in (("claimed", claimed), ("at its agent", prompted)):
        p50, p99 = quantile(list(late), 0.5), quantile(list(late), 0.99)
        told = f"{p50:.0f} / {p99:.0f} ms"
        show(f"how late a job is {name}, p50 / p99", told, "50 ms at p99", p99 < 50)


async def year_of_jobs() -> None:
    began = time.perf_counter()
    year = await asyncio.to_thread(live, JOBS, 1)
    took = time.perf_counter() - began
    show(
        f"a year of {JOBS:,} jobs, {year.decided:,} decisions",
        f"{took:.0f} s",
        "nothing twice",
        None,
    )
