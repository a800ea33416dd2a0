"""Waiting no longer than a clock says, for something that goes on by itself."""

from __future__ import annotations

import asyncio
from typing import Any

from core.clock import Clock


async def within(clock: Clock, task: asyncio.Future[Any], seconds: float) -> bool:
    """Whether a task or future ends in this time; it is not touched when it does not."""
    async with asyncio.TaskGroup() as group:
        timer = group.create_task(clock.sleep(seconds), name="patience")
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
    return task.done()


async def happens(clock: Clock, event: asyncio.Event, seconds: float) -> bool:
    """Whether an event is set in this time."""
    if not event.is_set():
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_set(event), name="wait")
            try:
                await within(clock, waiting, seconds)
            finally:
                waiting.cancel()
    return event.is_set()


async def _set(event: asyncio.Event) -> None:
    await event.wait()
