"""The border round work that others depend on and that may break: a fault costs this work alone.

A task of a group that raises ends the whole group. What shows a frame or says something in one lane
is not worth the process: its fault goes to the log, and who started the work may settle for less.
It must not know what the work is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

log = logging.getLogger("laneway")

OnFault = Callable[[Exception], None]


async def fault_of(work: Awaitable[object], what: str) -> Exception | None:
    """Wait for work to end. Its fault is logged and handed back; None if there was none."""
    try:
        await work
    except Exception as fault:
        log.exception("%s broke", what)
        return fault
    return None


def guarded(
    group: asyncio.TaskGroup,
    work: Coroutine[Any, Any, object],
    name: str,
    on_fault: OnFault | None = None,
) -> asyncio.Task[None]:
    """A task of the group that never ends it; ``on_fault`` hears of what broke it."""

    async def alone() -> None:
        fault = await fault_of(work, name)
        if fault is not None and on_fault is not None:
            on_fault(fault)

    task = group.create_task(alone(), name=name)
    task.add_done_callback(lambda _: work.close())  # cancelled before it began, it never will
    return task
