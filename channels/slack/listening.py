"""Receiving from Slack until cancelled: connections that come and go, and what was missed.

It heals outages by itself and reports them. It must not know who may talk, nor what a message
starts.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from channels.patience import happens
from channels.slack.catching import Catching, Reports, everything
from channels.slack.errors import SocketModeOff, TokenRefused
from channels.slack.events import Me
from channels.slack.inlet import Inlet
from channels.slack.names import Names
from channels.slack.socket import Socket
from channels.slack.web import Web
from core.channel import Connection, Intake, NotSent, RateLimited, SendError
from core.clock import Clock
from core.messages import Address

log = logging.getLogger(__name__)

WATCH = 1.0  # seconds between looks at the connection
CONNECT_PATIENCE, MOST_PATIENCE = 5.0, 30.0
LEAST_PAUSE, MOST_PAUSE, TOKEN_PAUSE = 1.0, 30.0, 180.0
REACHED_EVERY = 30.0
LAG = 60_000  # ms: Slack may still deliver again what was said so long ago
PING_EVERY = 5.0
_SHARED = (
    "slack: %d connections are open with this app's token, and each gets a part of the events;"
    " if another gateway runs with these tokens, stop it or make an app of its own for it"
)


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the channel wants to be told beside messages."""

    known: Callable[[Me], None]  # each time a connection begins
    told: Callable[[object], None]  # of every payload, before anything else
    left: Callable[[Address], None]  # of threads in which an earlier process may have worked


class Listener:
    """Receives for one ``listen``; its state is the connection's and ends with it."""

    def __init__(
        self, web: Web, app_token: str, intake: Intake, names: Names, clock: Clock, hooks: Hooks,
        people: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self._web = web
        self._app_token = app_token
        self._intake = intake
        self._names = names
        self._clock = clock
        self._hooks = hooks
        self.report = Reports(intake)
        self._catching = Catching(
            web, intake, names, clock, self.report, hooks.left, people, LAG
        )  # people: ids whose direct chats are looked at after a pause
        self._inlet: Inlet | None = None
        self._failures = 0

    async def run(self) -> None:
        """Receive until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    await self._life(group)
                except SendError as error:
                    await self._clock.sleep(self._trouble(error))

    async def _life(self, group: asyncio.TaskGroup) -> None:
        """One connection, from its tokens' check to its loss. Raises SendError."""
        me, _, _ = await self._web.me(self._clock.now())
        url = await self._web.socket_url()
        self._hooks.known(me)
        inlet = self._inlet
        if inlet is None:
            inlet = self._inlet = Inlet(me, self._intake, self._names, self._clock)
            group.create_task(inlet.run(), name="slack inlet")
        self._catching.done = False
        inlet.hold(everything)
        socket = Socket(self._web, self._app_token, self._offer, PING_EVERY)
        connecting = group.create_task(socket.connect(url), name="slack connect")
        reading: asyncio.Task[None] | None = None
        try:
            while True:
                await self._greeted(socket)
                await _ended(reading)
                inlet.hold(everything)  # until it is known what was missed
                reading = group.create_task(
                    self._catch_up(me, inlet, socket), name="slack back-fill"
                )
                await self._watch(socket)
        finally:
            connecting.cancel()
            await _ended(reading)
            await socket.close()

    async def _offer(self, body: object) -> bool:
        self._hooks.told(body)
        assert self._inlet is not None, "a connection begins after it"
        return await self._inlet.offer(body)

    async def _greeted(self, socket: Socket) -> None:
        """Until Slack greets. Raises NotSent when it does not."""
        patience = min(MOST_PATIENCE, CONNECT_PATIENCE * (1 + self._failures))
        if not await happens(self._clock, socket.greeted, patience):
            if socket.leaving == "link_disabled":
                raise SocketModeOff(socket.leaving)
            raise NotSent("Slack's socket does not open")
        if socket.connections > 1:
            log.warning(_SHARED, socket.connections)
        self._failures = 0
        self.report(Connection())

    async def _watch(self, socket: Socket) -> None:
        """Returns when the connection is renewed; raises NotSent when the connection is lost."""
        greetings = socket.greetings
        while socket.greeted.is_set() and socket.greetings == greetings:
            if not await socket.alive():
                raise NotSent("the connection to Slack was lost")
            if self._inlet is not None:
                self._catching.tell_reached(self._inlet, REACHED_EVERY)
            await self._clock.sleep(WATCH)

    async def _catch_up(self, me: Me, inlet: Inlet, socket: Socket) -> None:
        """From the next greeting on everything waits, for what was missed before that."""
        greeting = socket.greetings
        await self._catching.up(me, inlet, lambda: socket.greetings != greeting)

    def _trouble(self, error: SendError) -> float:
        """Report what went wrong and say how long to wait."""
        self._failures += 1
        match error:
            case TokenRefused() | SocketModeOff():
                self.report(Connection(str(error), fatal=True))
                return TOKEN_PAUSE
            case RateLimited():
                self.report(Connection("Slack asks us to wait before the next connection"))
                return max(LEAST_PAUSE, error.retry_after)
            case _:
                self.report(Connection(str(error)))
                pause: float = LEAST_PAUSE * 2.0 ** min(self._failures - 1, 10)
                return min(MOST_PAUSE, pause * random.uniform(1.0, 1.2))


async def _ended(task: asyncio.Task[None] | None) -> None:
    """End a task, and wait until it has."""
    if task is not None:
        task.cancel()
        await asyncio.wait({task})
