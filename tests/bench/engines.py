"""What an engine's program costs: from its start to the first words, and memory while it is idle.

The demo agent always; Claude Code and Codex where LANEWAY_TEST_CLAUDE and LANEWAY_TEST_CODEX name
their programs. The model behind those answers at once on loopback, so that only the program counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median

import psutil

from core.clock import SystemClock
from core.engines.base import Engine, Request, Started, Text
from core.engines.claude import ClaudeEngine
from core.engines.codex import CodexEngine
from core.engines.demo import demo_engine
from tests.bench.house import show
from tests.contracts.engine_contract import processes_of
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.responses_server import ResponsesServer

MIB = 1024 * 1024
STARTS, TURNS = 7, 10
REST = 2.0  # seconds after which a program has done what it does after an answer
CODEX = """
model = "gpt-5.5"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
env_key = "A_KEY_OF_NOBODY"
"""
_numbers = count(1)


async def engine_programs() -> None:
    with tempfile.TemporaryDirectory() as folder:
        await _demo(Path(folder))
    if program := os.environ.get("LANEWAY_TEST_CLAUDE"):
        with tempfile.TemporaryDirectory() as folder:
            await _claude(Path(folder), program)
    if program := os.environ.get("LANEWAY_TEST_CODEX"):
        # Not in the usual temporary folder: there Codex puts no programs of its own.
        with tempfile.TemporaryDirectory(prefix=".laneway-bench-", dir=Path.home()) as folder:
            await _codex(Path(folder), program)


async def _demo(folder: Path) -> None:
    async with _place(folder) as (home, workspace):
        await _measure("demo agent", demo_engine(home, SystemClock(), speed=0), home, workspace)


async def _claude(folder: Path, program: str) -> None:
    async with _place(folder) as (home, workspace), AnthropicServer() as service:
        switches = {"ANTHROPIC_BASE_URL": service.url, "ANTHROPIC_API_KEY": "a-key-of-nobody"}
        clock = SystemClock()
        engine = ClaudeEngine((program,), home=home, clock=clock, switches=switches)
        await _measure("Claude Code", engine, home, workspace)


async def _codex(folder: Path, program: str) -> None:
    async with _place(folder) as (home, workspace), ResponsesServer() as service:
        settings = folder / ".codex" / "config.toml"
        settings.parent.mkdir()
        settings.write_text(CODEX.format(url=service.url))
        os.environ["A_KEY_OF_NOBODY"] = "sk-a-key-of-nobody"
        env = ("A_KEY_OF_NOBODY",)
        engine = CodexEngine((program,), home=home, clock=SystemClock(), env=env)
        await _measure("Codex", engine, home, workspace)


@asynccontextmanager
async def _place(folder: Path) -> AsyncIterator[tuple[Path, Path]]:
    """A home and a workspace, with the home directory of nobody meanwhile."""
    home, workspace = folder / "home", folder / "workspace"
    home.mkdir()
    workspace.mkdir()
    before = {name: os.environ.get(name) for name in ("HOME", "CODEX_HOME")}
    os.environ["HOME"] = str(folder)
    os.environ.pop("CODEX_HOME", None)
    try:
        yield home, workspace
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value


async def _measure(name: str, engine: Engine, home: Path, workspace: Path) -> None:
    try:
        took, session = await _turn(engine, workspace, "lane 0")
        rss, pss, processes = await _memory(home)
        starts = [took]
        for number in range(1, STARTS):
            starts.append((await _turn(engine, workspace, f"lane {number}"))[0])
        together = (await _memory(home))[1] / STARTS
        warm = [(await _turn(engine, workspace, "lane 0", session))[0] for _ in range(TURNS)]
    finally:
        await engine.close()
    spread = f"{median(starts):.2f} / {max(starts):.2f} s"
    show(f"{name}: start → first words, median / longest", spread, "", None)
    show("  warm: prompt → first words, median", f"{median(warm) * 1000:.0f} ms", "", None)
    show(f"  idle, processes: {processes}, RSS / PSS", f"{rss:.0f} / {pss:.0f} MiB", "", None)
    show(f"  each of {STARTS} idle lanes: PSS", f"{together:.0f} MiB", "", None)


async def _memory(home: Path) -> tuple[float, float, int]:
    """RSS and PSS of everything that engines have started, in MiB, and how many processes."""
    await asyncio.sleep(REST)
    sizes = []
    for process in processes_of(home):
        with contextlib.suppress(psutil.Error):  # some live only for a moment
            sizes.append(process.memory_full_info())
    rss, pss = sum(size.rss for size in sizes), sum(size.pss for size in sizes)
    return rss / MIB, pss / MIB, len(sizes)


async def _turn(engine: Engine, folder: Path, lane: str, session: str = "") -> tuple[float, str]:
    """Seconds to the first words, and the session."""
    request = Request(lane, next(_numbers), folder, "hello", session=session)
    began, first = time.monotonic(), 0.0
    async for event in engine.run(request).events():
        if isinstance(event, Started):
            session = event.session
        elif isinstance(event, Text) and not first:
            first = time.monotonic() - began
    assert first, "it said nothing"
    return first, session
