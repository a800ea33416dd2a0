"""Time as a parameter: what waits or stamps takes a Clock, so that no test sleeps."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """The wall clock in milliseconds since 1970 (UTC); it may jump."""

    def monotonic(self) -> float:
        """Seconds that never go back; for durations only."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock and the event loop's timers."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
