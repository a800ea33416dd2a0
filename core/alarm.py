"""The clock that wakes whoever waits for an instant: at that instant, and every few seconds.

A timer sleeps on a clock that sees neither steps of the wall clock nor a machine that slept, so it
also ticks, and whoever is woken looks at the wall clock anew. It must not know what is due.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

TICK = 15.0  # seconds

Ring = Callable[[], None]


class Alarm(Protocol):
    async def set(self, at: int | None, ring: Ring) -> None:
        """Call ``ring`` at the instant ``at`` (ms) and at every tick; None: not any more."""

    def close(self) -> None: ...


class SchedulerAlarm:
    """APScheduler, which is loaded when there is something to wait for."""

    def __init__(self) -> None:
        self._scheduler: Any = None

    async def set(self, at: int | None, ring: Ring) -> None:
        if at is None:
            self.close()
            return
        if self._scheduler is None:
            await self._begin(ring)
        moment = datetime.fromtimestamp(at / 1000, UTC)
        self._scheduler.add_job(
            _calling(ring), "date", id="next", run_date=moment, replace_existing=True
        )

    def close(self) -> None:
        scheduler, self._scheduler = self._scheduler, None
        if scheduler is not None:
            scheduler.shutdown(wait=False)

    async def _begin(self, ring: Ring) -> None:
        # It takes half a second to load, in which nothing else would run.
        library = await asyncio.to_thread(importlib.import_module, "apscheduler.schedulers.asyncio")
        logging.getLogger("apscheduler").setLevel(logging.WARNING)  # a line for every tick
        self._scheduler = library.AsyncIOScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True}
        )
        self._scheduler.add_job(_calling(ring), "interval", id="tick", seconds=TICK)
        self._scheduler.start()


def _calling(ring: Ring) -> Callable[[], Any]:
    """As a coroutine function: plain ones run in another thread there."""

    async def call() -> None:
        ring()

    return call
