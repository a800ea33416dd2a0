"""The owner of the small tasks beside a channel's calls: a status under way, a suggestion.

They end with the channel, whatever they are at, and the error that ends the channel's block stays
the error it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Self


class SmallTasks:
    """A task group whose tasks are cancelled at its end instead of waited for."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Run it beside everything else; it may raise nothing."""
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        # A group wraps an error of its block into a group of errors. It must see a cancellation,
        # which may be its own, of a task that failed; anything else passes it by.
        if not isinstance(error, asyncio.CancelledError):
            kind = error = trace = None
        await self._group.__aexit__(kind, error, trace)
