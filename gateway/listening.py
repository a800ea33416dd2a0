"""Every channel listened to, each in a task of its own; one can be connected anew at any time.

It must not know settings: what a connection is made of is handed in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from channels.registry import Wanted
from core.channel import Channel, Connection, Intake
from core.clock import Clock
from core.commands import menu
from core.guard import guarded
from gateway.opening import Platforms, load_each, offer

log = logging.getLogger("laneway")

TakeUp = Callable[[str], Awaitable[None]]
LISTEN_AGAIN = (1.0, 5.0, 30.0, 60.0)  # seconds after a channel broke
LISTENED_WELL = 300.0  # seconds after which a break is the first one again
LEAVE = 5.0  # seconds a channel has to stop listening


class Listening:
    """One for the process. ``channels`` and ``here`` are those of all parts; it keeps them."""

    def __init__(
        self,
        there: Platforms,
        channels: dict[str, Channel],
        here: set[str],
        intake: Intake,
        connections: dict[str, Connection],
        clock: Clock,
    ) -> None:
        self._there = there
        self._channels = channels
        self._here = here
        self._intake = intake
        self._connections = connections
        self._clock = clock
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._menus: set[asyncio.Task[None]] = set()

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Listen to all of them; the tasks live in ``group``."""
        self._group = group
        for name in self._channels:
            self._listen(name)

    def end(self) -> None:
        """Nothing is listened to from now on, whatever is connected anew."""
        self._group = None
        for task in (*self._tasks.values(), *self._menus):
            task.cancel()

    async def renew(self, name: str, wanted: Wanted | None, take_up: TakeUp) -> None:
        """Connect one anew, or not any more.

        Nothing else is touched: its running turns go on, and what is to be said waits. ``take_up``
        goes on with what is stored for a channel that there was not before; then it is listened to.
        """
        known = name in self._channels
        await self._hush(name)
        await self._there.close(name)
        if wanted is None:
            self._here.discard(name)
            self._connections.pop(name, None)
            log.info("%s: not set up any more", name)
            return
        faults = await asyncio.to_thread(load_each, [wanted])
        self._connections[name] = await self._there.open(wanted, faults.get(name))
        if name not in self._there.channels:
            return
        self._channels[name] = self._there.channels[name]
        self._here.add(name)
        if not known:
            await take_up(name)
        if name in self._there.opened:
            self._listen(name)

    def _listen(self, name: str) -> None:
        if self._group is None:
            return  # at the end of the gateway
        channel = self._channels[name]
        work = listen(channel, self._intake, self._clock)
        self._tasks[name] = self._group.create_task(work, name=f"listen {name}")
        if opened := self._there.opened.get(name):
            task = guarded(self._group, offer(name, opened, menu()), f"menu of {name}")
            self._menus.add(task)
            task.add_done_callback(self._menus.discard)

    async def _hush(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,), timeout=LEAVE)


async def listen(channel: Channel, intake: Intake, clock: Clock) -> None:
    """The border to platforms: a channel that breaks is opened again, and stops no other."""
    failures = 0
    while True:
        begun = clock.monotonic()
        try:
            await channel.listen(intake)
            log.error("%s stopped listening by itself", channel.name)
            why = "stopped listening; starting again"
        except Exception as fault:
            log.exception("%s broke", channel.name)
            why = f"broke ({type(fault).__name__}); starting again"
        intake.connection(channel.name, Connection(why))
        if clock.monotonic() - begun > LISTENED_WELL:
            failures = 0
        await clock.sleep(LISTEN_AGAIN[min(failures, len(LISTEN_AGAIN) - 1)])
        failures += 1
