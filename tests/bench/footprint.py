"""What it costs to be there: start, memory, and the processor while nothing happens."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import psutil

from core.clock import SystemClock
from core.messages import Address
from core.store import rows
from core.store.store import Store
from gateway.paths import DATABASE
from tests.bench.house import PYTHON, Server, server, show
from tests.end_to_end.house import ROOT, environment
from tests.fakes.telegram import TOKEN

MIB = 1024 * 1024


@asynccontextmanager
async def _started(home: Path, bot: Server) -> AsyncIterator[tuple[psutil.Process, float]]:
    """The shipped command as a child; seconds from its start to its first poll."""
    environ = environment(home, None) | {
        "LANEWAY_TELEGRAM_TOKEN": TOKEN,
        "LANEWAY_TELEGRAM_API_BASE": bot.url,
        "LANEWAY_ENGINE": "demo",
        "LANEWAY_LOG_LEVEL": "warning",
        "PATH": os.environ["PATH"],
    }
    before = len(bot.calls.get("getUpdates", ()))
    began = time.monotonic()
    child = await asyncio.create_subprocess_exec(
        PYTHON, "-m", "gateway", "run", cwd=ROOT, env=environ,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        polls = await bot.until("getUpdates", lambda calls: len(calls) > before)
        first = polls[before]["at"] - began
        await asyncio.sleep(2)  # what is imported after the first poll is there now
        yield psutil.Process(child.pid), first
    finally:
        child.terminate()
        await child.wait()


async def start_and_memory() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with server() as bot:
            starts, sizes = [], []
            for _ in range(5):
                async with _started(Path(folder) / "home", bot) as (process, first):
                    starts.append(first)
                    sizes.append(process.memory_info().rss / MIB)
            start, size = median(starts), median(sizes)
            show(
                "start to first poll, Telegram configured", f"{start:.2f} s", "0.6 s", start <= 0.6
            )
            show("  memory then", f"{size:.0f} MiB", "70 MiB", size <= 70)


async def idle_cpu() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with server() as bot, _started(Path(folder) / "home", bot) as (process, _):
            await asyncio.sleep(3)
            before, began = process.cpu_times(), time.monotonic()
            await asyncio.sleep(20)
            after, took = process.cpu_times(), time.monotonic() - began
    used = (after.user + after.system) - (before.user + before.system)
    show("processor while idle", f"{used / took * 100:.2f} %", "0.1 %", used / took <= 0.001)


async def _with_lanes(count: int, home: Path) -> None:
    async with Store.open(home / DATABASE, SystemClock()) as store:
        for first in range(0, count, 5000):
            await store.save(
                *(
                    rows.new_lane(f"telegram:{n}", Address("telegram", str(n)), True, "", 1)
                    for n in range(first, min(first + 5000, count))
                )
            )


async def known_lanes() -> None:
    """Memory for lanes that are known and idle, against a home with none."""
    sizes = {}
    async with server() as bot:
        for count in (0, 1_000, 100_000):
            with tempfile.TemporaryDirectory() as folder:
                home = Path(folder) / "home"
                await _with_lanes(count, home)
                async with _started(home, bot) as (process, _):
                    sizes[count] = process.memory_info().rss / MIB
    for count in (1_000, 100_000):
        more = sizes[count] - sizes[0]
        show(f"memory for {count:,} known lanes", f"{more:+.1f} MiB", "at most 5 MiB", more <= 5)
