"""An Intake that keeps what it is handed, and whose disk a test can hold up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from core.channel import Connection, Mark, Marks
from core.messages import Address, Incoming, Message

T = TypeVar("T")


class RecordingIntake:
    """``after`` is the intake of an earlier life: its marks are where this one goes on."""

    def __init__(self, after: RecordingIntake | None = None) -> None:
        self.since = after.since if after else 0
        self.threads: dict[Address, Mark] = dict(after.threads) if after else {}
        self.runs_from = after.runs_from if after else 0
        self.places: set[str] = set(after.places) if after else set()
        self.accepted: list[Incoming] = []
        self.offered: list[Incoming] = []  # also what was not stored
        self.glanced: list[Incoming] = []
        self.connections: list[Connection] = []
        self._disk = asyncio.Event()
        self._disk.set()

    async def accept(self, incoming: Sequence[Incoming]) -> None:
        self.offered += incoming
        await self._disk.wait()
        self.accepted += incoming
        for one in incoming:
            if isinstance(one, Message):
                self.places.add(one.address.place)
                if one.direct or (one.engages and (one.addressed or one.address in self.threads)):
                    self.threads[one.address] = Mark(one.message_id, one.at)

    async def marks(self, channel: str) -> Marks:
        return Marks(self.since, dict(self.threads), frozenset(self.places), self.runs_from)

    def reached(self, channel: str, at: int) -> None:
        self.since = max(self.since, at)

    def glance(self, incoming: Sequence[Incoming]) -> None:
        self.glanced += incoming

    def connection(self, channel: str, connection: Connection) -> None:
        self.connections.append(connection)

    def disk(self, works: bool) -> None:
        """Whether accept can store; while it cannot, it waits."""
        if works:
            self._disk.set()
        else:
            self._disk.clear()

    @property
    def up(self) -> bool:
        return bool(self.connections) and self.connections[-1].up

    @property
    def messages(self) -> list[Message]:
        return self.of(Message)

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    def of(self, kind: type[T]) -> list[T]:
        return [one for one in self.accepted if isinstance(one, kind)]
