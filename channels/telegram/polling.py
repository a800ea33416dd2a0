"""The polling loop: updates in, their offset confirmed only after they are stored.

It heals outages by itself and reports them; it never drops what waits at Telegram. It must not
know who may talk, nor what a message starts.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from channels.telegram.batches import Batches
from channels.telegram.content import Me
from channels.telegram.errors import TOKEN_REFUSED, Conflicted, TokenRefused
from channels.telegram.fields import Json
from channels.telegram.updates import update_id
from channels.telegram.wire import Wire
from core.channel import Connection, Intake, NotSent, RateLimited, SendError, Uncertain
from core.clock import Clock
from core.messages import Incoming

log = logging.getLogger(__name__)

LONG_POLL = 30
BATCH = 50  # fewer than a glance asks for, so that a stop behind a full batch is seen
GLANCE = 100
DISK_PATIENCE = 2.0
LEAST_PAUSE, MOST_PAUSE, TOKEN_PAUSE = 1.0, 30.0, 180.0
HICCUPS = 6  # refusals of the token that may pass: what stands before Telegram says 404 as well
CONFLICT_CALM = 60.0
CONFLICT_POLL = 5  # long enough that another instance would come back and end it
OTHER_INSTANCE = (
    "another program polls with this bot's token, most likely a second instance of the gateway;"
    " stop it, or give it a bot of its own"
)


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the channel wants to be told beside messages."""

    known: Callable[[Me, Json], None]  # once, when we know who we are
    up: Callable[[], Coroutine[None, None, None]]  # each time the connection works again


class Poller:
    """Receives for one listen(); its state is the connection's and ends with it."""

    def __init__(self, wire: Wire, intake: Intake, clock: Clock, hooks: Hooks) -> None:
        self._wire = wire
        self._intake = intake
        self._clock = clock
        self._hooks = hooks
        self._batches = Batches(intake, clock)
        self._me: Me | None = None
        self._offset: int | None = None
        self._wait = 0  # seconds the next poll may last; 0: is the connection there?
        self._aside: set[str] = set()  # unreadable ones of the last batch that had new ones
        self._failures = 0
        self._conflicts = 0
        self._conflict_at = -CONFLICT_CALM
        self._reported: Connection | None = None

    async def run(self) -> None:
        """Receive until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    await self._round(group)
                except SendError as error:
                    await self._clock.sleep(await self._trouble(error))

    def report(self, connection: Connection) -> None:
        """Tell a change of the connection, and only a change."""
        if connection != self._reported:
            self._reported = connection
            self._intake.connection("telegram", connection)

    async def _round(self, group: asyncio.TaskGroup) -> None:
        if self._me is None:
            self._me, facts = await self._wire.me()
            self._hooks.known(self._me, facts)
        updates = await self._wire.updates(self._offset, self._wait, BATCH)
        if self._works():
            group.create_task(self._hooks.up(), name="telegram connected")
        if not updates:
            self._failures = 0
            # What the offset confirmed is forgotten at Telegram; it may number anew from here.
            self._offset = None
            return
        await self._take(self._me, updates, group)
        known = [number for number in map(update_id, updates) if number is not None]
        if not known:
            raise Uncertain("none of its updates has a number, so nothing can be confirmed")
        self._offset = known[-1] + 1
        self._failures = 0

    def _works(self) -> bool:
        """A poll was answered; whether that is news."""
        self._wait = LONG_POLL
        if self._clock.monotonic() - self._conflict_at > CONFLICT_CALM:
            self._conflicts = 0
        news = self._reported != Connection()
        self.report(Connection())
        return news

    async def _take(self, me: Me, updates: list[object], group: asyncio.TaskGroup) -> None:
        """Store a batch. What cannot be read is stored as such and tried again beside the loop."""
        batch, failed = self._batches.read(me, updates)
        if failed := [one for one in failed if repr(one) not in self._aside]:
            self._aside = {repr(one) for one in failed}
            group.create_task(self._batches.again(me, failed), name="telegram unreadable updates")
        if not batch:
            return
        accepting = group.create_task(self._accept(batch), name="telegram accept")
        seen = {repr(update_id(update)) for update in updates}
        pause = DISK_PATIENCE
        while not await self._within(accepting, pause, group):
            await self._glance(me, seen)
            pause = LEAST_PAUSE
        accepting.result()

    async def _accept(self, batch: list[Incoming]) -> None:
        await self._intake.accept(batch)

    async def _within(
        self, task: asyncio.Task[None], seconds: float, group: asyncio.TaskGroup
    ) -> bool:
        """Whether a task ends within this time by our clock."""
        timer = group.create_task(self._clock.sleep(seconds), name="telegram patience")
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        return task.done()

    async def _glance(self, me: Me, seen: set[str]) -> None:
        """Look at what came meanwhile, for stops alone; nothing is confirmed by it."""
        try:
            updates = await self._wire.updates(self._offset, 0, GLANCE)
        except SendError:
            return  # the loop itself meets the same trouble, and reports it
        fresh = [one for one in updates if repr(update_id(one)) not in seen]
        seen.update(repr(update_id(one)) for one in fresh)
        if batch := self._batches.read(me, fresh)[0]:
            self._intake.glance(batch)

    async def _trouble(self, error: SendError) -> float:
        """Report what went wrong and say how long to wait."""
        self._wait = 0
        match error:
            case TokenRefused():
                self._failures += 1
                self.report(Connection(TOKEN_REFUSED, fatal=True))
                return growing(self._failures) if self._failures <= HICCUPS else TOKEN_PAUSE
            case Conflicted() if "webhook" in str(error).lower():
                return await self._webhook()
            case Conflicted():
                return self._conflict()
            case RateLimited():
                self.report(Connection("Telegram asks us to wait before the next poll"))
                return max(LEAST_PAUSE, error.retry_after)
            case _:
                self._failures += 1
                what = "cannot be reached" if isinstance(error, NotSent) else "does not answer well"
                self.report(Connection(f"Telegram {what}: {error}"))
                return growing(self._failures)

    def _conflict(self) -> float:
        self._conflicts += 1
        self._conflict_at = self._clock.monotonic()
        self._wait = CONFLICT_POLL
        self.report(Connection(OTHER_INSTANCE))
        return growing(self._conflicts)

    async def _webhook(self) -> float:
        """A webhook set elsewhere keeps updates from us: take it away, keep what waits."""
        log.warning(
            "telegram: a webhook was set for this bot; it is removed, so that polling works"
        )
        try:
            await self._wire.drop_webhook()
        except SendError as error:
            self._failures += 1
            self.report(Connection(f"a webhook is set and cannot be removed: {error}"))
            return growing(self._failures)
        self._conflicts += 1
        self._conflict_at = self._clock.monotonic()
        return growing(self._conflicts)


def growing(times: int) -> float:
    """1 s, 2 s, 4 s … 30 s, spread a little so that many instances do not come at once."""
    pause: float = LEAST_PAUSE * 2.0 ** min(times - 1, 10)
    return min(MOST_PAUSE, pause * random.uniform(1.0, 1.2))
