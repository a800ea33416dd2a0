"""A channel whose connection can be exchanged while lanes live on.

Core knows one channel a platform for the whole process. Calls that are under way end on the old
connection; new ones wait, as in an outage, until the new one says that it is up. It must not know
settings, nor when anything is exchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.channel import (
    Action,
    Channel,
    ChannelLimits,
    Connection,
    Done,
    Hook,
    Hooked,
    Intake,
    Marks,
    NotSent,
)
from core.messages import FileRef, Incoming, Part

HELD = 2.0  # seconds a call waits for the new connection; then it is tried again like in an outage


@dataclass(slots=True, eq=False)
class InUse:
    """One connection, and how many calls are under way on it."""

    channel: Channel
    calls: int = 0
    quiet: asyncio.Event = field(default_factory=asyncio.Event)


class Switched:
    """A Channel. ``switch`` exchanges what it stands for."""

    def __init__(self, channel: Channel) -> None:
        self._used: InUse | None = InUse(channel)
        self._last = channel  # for what needs no connection
        self._up = asyncio.Event()
        self._up.set()

    @property
    def name(self) -> str:
        return self._last.name

    @property
    def limits(self) -> ChannelLimits:
        return self._last.limits

    @property
    def hook(self) -> Hook | None:
        channel: object = self._used.channel if self._used else None
        return channel.hook if isinstance(channel, Hooked) else None

    def switch(self, channel: Channel | None) -> InUse | None:
        """Stand for another connection, or for none; returns the old one, see ``left``."""
        old, self._used = self._used, InUse(channel) if channel else None
        self._last = channel or self._last
        self._up.clear()
        return old

    async def listen(self, intake: Intake) -> None:
        """Receive until cancelled; a channel that has no connection waits for that."""
        if self._used is None:
            await asyncio.Event().wait()
        else:
            await self._used.channel.listen(_Ears(intake, self._up))

    def render(self, markdown: str) -> list[Part]:
        return self._last.render(markdown)

    async def do(self, action: Action) -> Done:
        used = await self._begin()
        try:
            return await used.channel.do(action)
        finally:
            self._end(used)

    async def fetch(self, file: FileRef, target: Path) -> None:
        used = await self._begin()
        try:
            await used.channel.fetch(file, target)
        finally:
            self._end(used)

    async def _begin(self) -> InUse:
        if not self._up.is_set():
            try:
                async with asyncio.timeout(HELD):
                    await self._up.wait()
            except TimeoutError:
                raise NotSent("the new connection is not up yet") from None
        if self._used is None:
            raise NotSent("it is not set up now")
        self._used.calls += 1
        return self._used

    @staticmethod
    def _end(used: InUse) -> None:
        used.calls -= 1
        if not used.calls:
            used.quiet.set()


async def left(used: InUse, seconds: float) -> None:
    """Wait until no call is under way on an old connection, at most so long."""
    if used.calls:
        used.quiet.clear()
        try:
            async with asyncio.timeout(seconds):
                await used.quiet.wait()
        except TimeoutError:
            return


class _Ears:
    """The intake, where it is noticed that the connection is up."""

    def __init__(self, intake: Intake, up: asyncio.Event) -> None:
        self._intake = intake
        self._up = up

    async def accept(self, incoming: Sequence[Incoming]) -> None:
        await self._intake.accept(incoming)

    def glance(self, incoming: Sequence[Incoming]) -> None:
        self._intake.glance(incoming)

    async def marks(self, channel: str) -> Marks:
        return await self._intake.marks(channel)

    def reached(self, channel: str, at: int) -> None:
        self._intake.reached(channel, at)

    def connection(self, channel: str, connection: Connection) -> None:
        if connection.up:
            self._up.set()
        self._intake.connection(channel, connection)
