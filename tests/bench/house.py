"""The gateway in this process and the Bot API server in another, as far from each other as can be.

The server is a process of its own, so that its work is not counted as the gateway's; both share
one clock (``time.monotonic`` is the machine's).
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from core.clock import SystemClock
from gateway import config
from gateway.app import Gateway
from tests.bench.engine import BenchEngine
from tests.end_to_end.house import ROOT, environment
from tests.fakes.telegram import TOKEN

# Of an environment without the tools of tests: some libraries import more where they find more.
PYTHON = os.environ.get("LANEWAY_BENCH_PYTHON", sys.executable)
SHOWN = "sends and edits"  # an answer takes its preview's place by an edit
Calls = list[dict[str, Any]]  # as the server prints them, oldest first


class Server:
    """The fake Bot API server, driven over its control endpoint; it prints each call as it ends."""

    def __init__(self, http: aiohttp.ClientSession, lines: asyncio.StreamReader) -> None:
        self.url = ""
        self.calls: dict[str, list[dict[str, Any]]] = {}
        self._http = http
        self._lines = lines
        self._heard = asyncio.Event()

    async def read(self) -> None:
        while line := await self._lines.readline():
            call = json.loads(line)
            self.url = call.get("url", self.url)
            method = call.get("method", "")
            self.calls.setdefault(method, []).append(call)
            if method in ("sendMessage", "editMessageText"):
                self.calls.setdefault(SHOWN, []).append(call)
            self._heard.set()

    async def say(self, text: str, **more: Any) -> None:
        body = {"text": text, **more}
        async with self._http.post(f"{self.url}/control/say", json=body) as answer:
            answer.raise_for_status()

    async def until(self, method: str, true: Callable[[Calls], bool]) -> Calls:
        """Wait until the calls of a method satisfy; they are returned."""
        while not true(calls := self.calls.get(method, [])):
            self._heard.clear()
            await self._heard.wait()
        return calls


@asynccontextmanager
async def server() -> AsyncIterator[Server]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.telegram",
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, limit=2**20,
    )  # fmt: skip
    assert child.stdout is not None
    async with aiohttp.ClientSession() as http:
        bot = Server(http, child.stdout)
        reading = asyncio.create_task(bot.read(), name="calls")
        try:
            await bot.until("", bool)
            yield bot
        finally:
            child.terminate()
            await child.wait()
            await reading


@asynccontextmanager
async def gateway(folder: Path, url: str, **settings: str) -> AsyncIterator[BenchEngine]:
    """The whole gateway with an engine in this process."""
    engine = BenchEngine()
    environ = environment(folder, None, **settings) | {
        "LANEWAY_TELEGRAM_TOKEN": TOKEN,
        "LANEWAY_TELEGRAM_API_BASE": url,
        "LANEWAY_ENGINE": "demo",
        "LANEWAY_LOG_LEVEL": "warning",
    }
    running = Gateway(
        config.load(environ, cwd=folder.parent), SystemClock(), lambda *_: {"demo": engine}
    )
    ready = asyncio.Event()
    task = asyncio.create_task(running.run(ready.set), name="gateway")
    await asyncio.wait((task, asyncio.ensure_future(ready.wait())), return_when="FIRST_COMPLETED")
    try:
        yield engine
    finally:
        running.stop()
        await task


def text_of(call: dict[str, Any]) -> str:
    return str(call.get("fields", {}).get("text", ""))


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def show(name: str, figure: str, goal: str, met: bool | None) -> None:
    """One line of the report; ``met`` None where there is no goal."""
    mark = {True: "ok", False: "MISSED", None: ""}[met]
    print(f"{name:<58} {figure:>26}   {goal:<30} {mark}", flush=True)


def machine() -> str:
    """The machine in a few words."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}"
