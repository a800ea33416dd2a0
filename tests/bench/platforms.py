"""What each platform costs: from the start to its first connection, and the memory then."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import psutil

from tests.bench.house import PYTHON, show
from tests.drills.platforms import Discord, Platform, Slack, Telegram, serving, settings
from tests.end_to_end.house import environment
from tests.end_to_end.starting import ROOT

MIB = 1024 * 1024
RUNS = 5
SETTLED = 2.0  # seconds after which everything is imported that a start imports


async def start_on_each_platform() -> None:
    """One line of time and one of memory for each platform alone, and for all of them."""
    for name, wanted in (
        ("Telegram", (Telegram,)),
        ("Slack", (Slack,)),
        ("Discord", (Discord,)),
        ("all three", (Telegram, Slack, Discord)),
    ):
        starts, sizes = [], []
        for _ in range(RUNS):
            start, size = await _started([kind(1, 0) for kind in wanted])
            starts.append(start)
            sizes.append(size)
        show(f"start to first connection, {name} configured", f"{median(starts):.2f} s", "", None)
        show("  memory then", f"{median(sizes):.0f} MiB", "", None)


async def _started(wanted: Sequence[Platform]) -> tuple[float, float]:
    """Seconds until the last of them is connected, and MiB of the gateway a little later."""
    with tempfile.TemporaryDirectory() as folder:
        async with serving(wanted):
            environ = environment(Path(folder) / "home", None, **settings(wanted)) | {
                "LANEWAY_ENGINE": "demo",
                "LANEWAY_LOG_LEVEL": "warning",
                "PATH": os.environ["PATH"],
            }
            began = time.monotonic()
            child = await asyncio.create_subprocess_exec(
                PYTHON, "-m", "gateway", "run", cwd=ROOT, env=environ,
                stdout=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                while not all(platform.connected for platform in wanted):
                    await asyncio.sleep(0.002)
                took = time.monotonic() - began
                await asyncio.sleep(SETTLED)
                return took, psutil.Process(child.pid).memory_info().rss / MIB
            finally:
                child.terminate()
                await child.wait()
