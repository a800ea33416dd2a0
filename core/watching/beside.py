"""Work in a thread of its own, which may hang for ever: a disk or a name server that is silent.

The loop's own threads are few and others need them at once (a stop does), and the end of the
process waits for them; so what may hang gets none of those.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def beside(work: Callable[[], T], name: str) -> T:
    """What the work returns or raises (OSError, ValueError); giving up leaves it to itself."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, fault: Exception | None) -> None:
        if done.done():
            return
        if fault is not None:
            done.set_exception(fault)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, fault = None, None
        try:
            result = work()
        except (OSError, ValueError) as raised:  # UnicodeError is a ValueError
            fault = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, fault)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done
