"""The platforms of the settings, opened: one that cannot be is named, and stops no other.

Also the border round what a platform's menu does. It must not know what platforms are for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import field

from channels.registry import Opened, Wanted, load, open_channel
from core.channel import Connection
from core.clock import Clock
from core.frozen import dataclass

log = logging.getLogger("laneway")

OPEN_TIME = 3.0  # seconds; opening makes objects, the network comes with listening
CLOSE_TIME = 5.0


@dataclass(frozen=True, slots=True)
class Platforms:
    """What could be opened by name, and why the others could not."""

    opened: dict[str, Opened] = field(default_factory=dict)
    missing: dict[str, Connection] = field(default_factory=dict)


def load_each(wanted: Sequence[Wanted]) -> dict[str, Exception]:
    """Import what these channels need, in a thread; what could not be, by name."""
    faults: dict[str, Exception] = {}
    for one in wanted:
        try:
            load([one])
        except Exception as fault:  # noqa: BLE001 - the border to platforms; logged with its name
            faults[one.name] = fault
    return faults


@asynccontextmanager
async def platforms(
    wanted: Sequence[Wanted], faults: dict[str, Exception], clock: Clock
) -> AsyncIterator[Platforms]:
    """Open each; leaving gives back the connections of all of them."""
    found = Platforms()
    async with AsyncExitStack() as stack:
        for one in wanted:
            fault = faults.get(one.name)
            if fault is None:
                opened = await stack.enter_async_context(_opened(one, clock))
                if isinstance(opened, Opened):
                    found.opened[one.name] = opened
                    continue
                fault = opened
            why = f"could not be opened ({type(fault).__name__}); the log says more, then restart"
            log.error("%s %s", one.name, why, exc_info=fault)
            found.missing[one.name] = Connection(why, fatal=True)
        yield found


@asynccontextmanager
async def _opened(wanted: Wanted, clock: Clock) -> AsyncIterator[Opened | Exception]:
    """The channel, or what kept it from opening."""
    manager: AbstractAsyncContextManager[Opened] | None = None
    opened: Opened | Exception
    try:
        async with asyncio.timeout(OPEN_TIME):
            manager = open_channel(wanted, clock)
            opened = await manager.__aenter__()
    except Exception as fault:  # noqa: BLE001 - the border to platforms; logged with its name
        opened = fault
    try:
        yield opened
    finally:
        if manager is not None and isinstance(opened, Opened):
            await _closed(wanted.name, manager)


async def _closed(name: str, manager: AbstractAsyncContextManager[Opened]) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIME):
            await manager.__aexit__(None, None, None)
    except Exception:  # the border to platforms
        log.exception("%s did not close", name)


async def offer(name: str, opened: Opened, commands: Sequence[tuple[str, str]]) -> None:
    """Tell a platform which commands to list; what comes of it concerns this one alone."""
    try:
        await opened.menu(commands)
    except Exception:  # the border to platforms
        log.exception("%s: the commands menu could not be set", name)
