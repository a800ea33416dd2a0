"""The platforms of the settings, opened: one that cannot be is named, and stops no other.

Each can be closed and opened anew while the others go on. Also the border round what a platform's
menu does. It must not know what platforms are for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from channels.registry import Opened, Wanted, load, open_channel
from core.channel import Connection
from core.clock import Clock
from gateway.switched import InUse, Switched, left

log = logging.getLogger("laneway")

OPEN_TIME = 3.0  # seconds; opening makes objects, the network comes with listening
CLOSE_TIME = 5.0
LAST_CALLS = 20.0  # seconds that calls of an old connection may take


@dataclass(slots=True)
class _Life:
    """One connection to a platform, from its opening to its closing, in a task of its own."""

    opened: asyncio.Future[Opened | Exception]
    leave: asyncio.Event = field(default_factory=asyncio.Event)


class Platforms:
    """What could be opened by name, and why the others could not. Made by ``platforms``."""

    def __init__(self, clock: Clock, group: asyncio.TaskGroup) -> None:
        self.opened: dict[str, Opened] = {}
        self.missing: dict[str, Connection] = {}
        self.channels: dict[str, Switched] = {}  # one a platform, whatever it is connected with
        self._clock = clock
        self._group = group
        self._lives: dict[str, _Life] = {}

    async def open(self, wanted: Wanted, fault: Exception | None = None) -> Connection:
        """Open one that is not open; how it is connected then. ``fault``: why it cannot be."""
        name = wanted.name
        found = fault or await self._begin(wanted)
        if isinstance(found, Opened):
            self.opened[name] = found
            self.missing.pop(name, None)
            if name in self.channels:
                self.channels[name].switch(found.channel)
            else:
                self.channels[name] = Switched(found.channel)
            return Connection("connecting")
        why = f"could not be opened ({type(found).__name__}); the log says more, then restart"
        log.error("%s %s", name, why, exc_info=found)
        self.missing[name] = Connection(why, fatal=True)
        return self.missing[name]

    async def close(self, name: str) -> None:
        """Take the connection away; calls that are under way end on it, a while at most."""
        self.missing.pop(name, None)
        life, opened = self._lives.pop(name, None), self.opened.pop(name, None)
        if life is None or opened is None:
            return
        used = self.channels[name].switch(None)
        ending = self._end(life, used)
        self._group.create_task(ending, name=f"end of the old connection of {name}")

    def leave(self) -> None:
        """Let all of them close."""
        for life in self._lives.values():
            life.leave.set()

    async def _begin(self, wanted: Wanted) -> Opened | Exception:
        life = _Life(asyncio.get_running_loop().create_future())
        self._group.create_task(self._keep(wanted, life), name=f"connection of {wanted.name}")
        found = await life.opened
        if isinstance(found, Opened):
            self._lives[wanted.name] = life
        return found

    async def _keep(self, wanted: Wanted, life: _Life) -> None:
        async with _opened(wanted, self._clock) as opened:
            if life.opened.done():
                return  # whoever wanted it was cancelled
            life.opened.set_result(opened)
            if isinstance(opened, Opened):
                await life.leave.wait()

    async def _end(self, life: _Life, used: InUse | None) -> None:
        if used is not None:
            await left(used, LAST_CALLS)
        life.leave.set()


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
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        found = Platforms(clock, group)
        try:
            for one in wanted:
                await found.open(one, faults.get(one.name))
            yield found
        except Exception as error:  # noqa: BLE001 - raised below, unwrapped
            failure = error
        finally:
            found.leave()
    if failure is not None:
        raise failure


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
