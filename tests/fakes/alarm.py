"""An alarm that goes by any Clock, so that weeks pass in seconds."""

from __future__ import annotations

import asyncio

from core.alarm import TICK, Ring
from core.clock import Clock


class ClockAlarm:
    """Rings at the instant and at every tick, like the real one. Cheap to set again and again."""

    def __init__(self, clock: Clock, tick: float = TICK) -> None:
        self._clock = clock
        self._tick = tick
        self._task: asyncio.Task[None] | None = None

    async def set(self, at: int | None, ring: Ring) -> None:
        self.close()
        if at is not None:
            self._task = asyncio.create_task(self._wait(at, ring), name="alarm")

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _wait(self, at: int, ring: Ring) -> None:
        rang = False
        while True:
            left = (at - self._clock.now()) / 1000
            await self._clock.sleep(self._tick if rang else min(max(left, 0.0), self._tick))
            rang = rang or left <= self._tick
            ring()
