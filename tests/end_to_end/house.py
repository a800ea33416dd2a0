"""A whole gateway for end-to-end tests: the shipped parts, a fake Telegram, a scripted agent.

    async with House(tmp_path) as house:          # gateway and Bot API server, both running
        house.fake.user_says("/say hello")        # the scripted agent's directives, see acp_agent
        await house.fake.until(lambda: house.fake.texts(ANA) == ["hello"])

``House(tmp_path, LANEWAY_MAX_TURNS="1")`` sets more. Its seconds pass three times as fast as the
agent's and the platform's; ``times=1`` where a test holds them against each other.
``await house.stop_gateway()`` and ``await house.start_gateway()`` are a restart on the same home.
``Process`` runs the same gateway as a child process, for what only a kill shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from core.clock import Clock, SystemClock
from gateway import config
from gateway.app import Gateway
from gateway.cli.client import talk
from tests.end_to_end.starting import PIPE, ROOT, STDOUT, Child, start
from tests.fakes.alarm import ClockAlarm
from tests.fakes.clock import QuickClock
from tests.fakes.ports import free_port
from tests.fakes.telegram import FORUM, GROUP, SUPERGROUP, TOKEN, FakeTelegram

AGENT = ROOT / "tests" / "fakes" / "acp_agent.py"
WITHIN = 30.0  # seconds any one thing may take
BUSY = 10.0  # what a machine with much to do may add to a promised time
TIMES = 3.0  # how fast the clock of a gateway in this process goes


def environment(home: Path, fake: FakeTelegram | None, **more: str) -> dict[str, str]:
    """Settings of a gateway in which Ana is admin and Ben a member."""
    state = home.parent / f"{home.name}-agent"
    settings = {
        "LANEWAY_HOME": str(home),
        "LANEWAY_ENGINE": "acp",
        "LANEWAY_ACP_COMMAND": f"{sys.executable} -I -S {AGENT} --state {state}",
        "LANEWAY_ADMINS": "telegram:700000001",
        "LANEWAY_MEMBERS": "telegram:700000002",
        "LANEWAY_PLACES": ",".join(f"telegram:{chat}" for chat in (FORUM, GROUP, SUPERGROUP)),
        "LANEWAY_WEB_PORT": str(free_port()),
        "LANEWAY_STOP_GRACE": "2s",
        "LANEWAY_DRAIN_TIMEOUT": "5s",
        "LANEWAY_LOG_LEVEL": "debug",
    }
    if fake is not None:
        settings |= {"LANEWAY_TELEGRAM_TOKEN": TOKEN, "LANEWAY_TELEGRAM_API_BASE": fake.url}
    return settings | more


async def until(true: Callable[[], object], within: float = WITHIN) -> None:
    """Wait for a condition about real processes and sockets; it is looked at often."""
    async with asyncio.timeout(within):
        while not true():
            await asyncio.sleep(0.01)


class House:
    """A gateway in this process."""

    def __init__(self, folder: Path, *, times: float = TIMES, **settings: str) -> None:
        self.home = folder / "home"
        self.clock: Clock = QuickClock(times) if times != 1 else SystemClock()
        self.fake = FakeTelegram()
        self.settings = settings
        self._gateway: Gateway | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.fake.start()
        await self.start_gateway()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop_gateway()
        await self.fake.stop()

    @property
    def running(self) -> Gateway:
        assert self._gateway is not None, "the gateway is stopped"
        return self._gateway

    async def start_gateway(self, **more: str) -> None:
        """Start, and return when messages are taken."""
        environ = environment(self.home, self.fake, **(self.settings | more))
        settings = config.load(environ, cwd=self.home.parent)
        self._gateway = Gateway(settings, self.clock, alarm=lambda: ClockAlarm(self.clock))
        ready = asyncio.Event()
        self._task = asyncio.create_task(self._gateway.run(ready.set), name="gateway")
        waiting = asyncio.create_task(ready.wait(), name="ready")
        await asyncio.wait((self._task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            await self._task

    async def stop_gateway(self) -> None:
        """The orderly end, as by SIGTERM."""
        if self._gateway is not None and self._task is not None:
            self._gateway.stop()
            async with asyncio.timeout(30):
                await self._task
        self._gateway = self._task = None

    async def ask(self, name: str, **request: Any) -> Any:
        return await ask(self.home, name, **request)

    async def idle(self, lane: str) -> None:
        """Wait until a lane has nothing to do."""
        async with asyncio.timeout(WITHIN):
            while any(
                row["lane"] == lane and row["state"] != "idle" for row in await self.ask("lanes")
            ):
                await asyncio.sleep(0.02)

    async def answered(self, lane: str, count: int = 1) -> dict[str, Any]:
        """Wait until so many turns of a lane are over and shown; the last of them."""
        async with asyncio.timeout(WITHIN):
            while True:
                rows = [row for row in await self.ask("turns") if row["lane"] == lane]
                over = [row for row in rows if row["ended_at"] and row["delivery"] != "pending"]
                if len(over) >= count:
                    await self.idle(lane)
                    last: dict[str, Any] = over[-1]
                    return last
                await asyncio.sleep(0.05)


async def ask(home: Path, name: str, **request: Any) -> Any:
    """What ``laneway NAME --json`` would show, from the running gateway."""
    async with talk(home) as gateway:
        assert gateway is not None, "the gateway is down"
        gateway.send({"do": name, **request})
        async for answer in gateway.answers():
            return answer["result"]
    raise AssertionError("no answer")


class Process:
    """The same gateway as a child process; ``anew``: by a start of Python, as people start it."""

    def __init__(
        self, home: Path, fake: FakeTelegram | None, *, anew: bool = False, **settings: str
    ) -> None:
        self.home = home
        self.anew = anew
        self.environ = environment(home, fake, LANEWAY_LOG_FORMAT="json", **settings)
        self.lines: list[str] = []
        self._child: Child | asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def child(self) -> Child | asyncio.subprocess.Process:
        assert self._child is not None, "not started"
        return self._child

    async def start(self) -> None:
        """Start, and return at its ready line."""
        inherited = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "LANG", "TMPDIR")
            if name in os.environ
        }
        environ = inherited | self.environ
        if self.anew:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "gateway", "run",
                cwd=ROOT, env=environ, stdout=PIPE, stderr=STDOUT, limit=2**24,
            )  # fmt: skip
        else:
            self._child = await start(("run",), environ, stderr=STDOUT, limit=2**24)
        ready = asyncio.Event()
        self._reading = asyncio.create_task(self._read(ready), name="output of the gateway")
        await asyncio.wait(
            (self._reading, waiting := asyncio.create_task(ready.wait(), name="ready")),
            timeout=WITHIN, return_when=asyncio.FIRST_COMPLETED,
        )  # fmt: skip
        waiting.cancel()
        assert ready.is_set(), "not ready: " + "".join(self.lines[-20:])

    async def _read(self, ready: asyncio.Event) -> None:
        stream = self.child.stdout
        assert stream is not None
        while line := await stream.readline():
            self.lines.append(line.decode())
            with contextlib.suppress(ValueError):
                if json.loads(line).get("event") == "ready":
                    ready.set()

    async def end(self, number: signal.Signals, within: float = 30) -> int:
        """Send a signal and wait for the exit; its status."""
        with contextlib.suppress(ProcessLookupError):
            self.child.send_signal(number)
        async with asyncio.timeout(within):
            status = await self.child.wait()
            if self._reading is not None:
                await self._reading
        return status


@asynccontextmanager
async def process(home: Path, fake: FakeTelegram | None, **settings: str) -> AsyncIterator[Process]:
    """A started child that is surely gone in the end."""
    running = Process(home, fake, **settings)
    await running.start()
    try:
        yield running
    finally:
        if running.child.returncode is None:
            await running.end(signal.SIGKILL)
