"""An Intake that keeps what it is handed, and whose disk a test can hold up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from core.channel import Connection
from core.messages import Incoming, Message

T = TypeVar("T")


class RecordingIntake:
    def __init__(self) -> None:
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
