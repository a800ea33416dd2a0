"""A clock that stands still until a test moves it; sleepers wake in order, one instant at a time.

Between two instants everything that can run does run, so a test sees the same order every time.
Work in other threads (a database) is waited for as well, when a test names it with ``watch``.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable

START = 1_798_000_000_000  # ms


class FakeClock:
    def __init__(self, now: int = START) -> None:
        self._wall = now
        self._passed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._busy: list[Callable[[], bool]] = []

    def now(self) -> int:
        return self._wall + round(self._passed * 1000)

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + seconds, next(self._order), future))
        await future

    def watch(self, busy: Callable[[], bool]) -> None:
        """Time does not move on while ``busy()``; for work that another thread does."""
        self._busy.append(busy)

    def jump(self, seconds: float) -> None:
        """Step the wall clock alone, as an administrator or a time server does."""
        self._wall += round(seconds * 1000)

    @property
    def sleeping(self) -> int:
        return sum(not future.done() for _, _, future in self._sleepers)

    async def settle(self) -> None:
        """Let everything run that can run without time passing."""
        loop = asyncio.get_running_loop()
        ready = getattr(loop, "_ready", None)
        while True:
            for _ in range(3 if ready is not None else 50):
                await asyncio.sleep(0)
            if any(busy() for busy in self._busy):
                await asyncio.sleep(0.0002)
            elif not ready:
                return

    async def advance(self, seconds: float) -> None:
        """Move on, waking every sleeper at its own instant."""
        end = self._passed + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end + 1e-9:
            at, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._passed = max(self._passed, at)
            future.set_result(None)
            if not (self._sleepers and self._sleepers[0][0] <= self._passed):
                await self.settle()
        self._passed = max(self._passed, end)
        await self.settle()

    async def until(self, condition: Callable[[], bool], most: float = 3600.0) -> None:
        """Move on from sleeper to sleeper until the condition holds; fails after ``most``."""
        end = self._passed + most
        await self.settle()
        while not condition():
            while self._sleepers and self._sleepers[0][2].done():
                heapq.heappop(self._sleepers)
            assert self._sleepers, "nothing sleeps and the condition does not hold"
            at = self._sleepers[0][0]
            assert at <= end, f"the condition does not hold after {most} s"
            await self.advance(max(0.0, at - self._passed))


class QuickClock:
    """The machine's clock, some times as fast: for whole gateways, whose seconds nobody waits for.

    A limit that a test does not mean to reach is shorter by as much: on a crowded machine the whole
    of it passes soon. Keep what is left of the shortest of them above a good second.
    """

    def __init__(self, times: float) -> None:
        self.times = times
        self._from = time.time_ns()

    def now(self) -> int:
        return (self._from + round((time.time_ns() - self._from) * self.times)) // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic() * self.times

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds) / self.times)
