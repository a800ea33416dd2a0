"""How long a turn may take: without a sign of its engine, and in all. Pauses while people decide.

It only tells when the time is over; what happens then is the caller's business.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum

from core.clock import Clock


class Limit(StrEnum):
    SILENT = "no sign of the engine"
    LONG = "the turn as a whole"


class Patience:
    """The two limits of one turn, in seconds."""

    def __init__(self, clock: Clock, idle: float, most: float) -> None:
        self._clock = clock
        self._idle = idle
        self._most = most
        self.begin()
        self._undecided = 0
        self._decided = asyncio.Event()
        self._decided.set()
        self._asked = 0.0
        self._paused = 0.0

    def begin(self) -> None:
        """Both limits count from now on: what came before was not the engine's."""
        self._heard = self._began = self._clock.monotonic()

    def heard(self) -> None:
        """The engine gave a sign."""
        self._heard = self._clock.monotonic()

    def pause(self) -> bool:
        """One more question to a person; True for the first one open."""
        self._undecided += 1
        if self._undecided > 1:
            return False
        self._asked = self._clock.monotonic()
        self._decided.clear()
        return True

    def resume(self) -> bool:
        """A question was answered; True when none is open any more."""
        self._undecided -= 1
        if self._undecided:
            return False
        self._heard = self._clock.monotonic()
        self._paused += self._heard - self._asked
        self._decided.set()
        return True

    async def lost(self) -> Limit:
        """Returns when a limit is met, and which."""
        while True:
            await self._decided.wait()
            now = self._clock.monotonic()
            silent = self._heard + self._idle - now
            left = min(silent, self._began + self._paused + self._most - now)
            if left <= 0:
                return Limit.SILENT if silent <= 0 else Limit.LONG
            await self._clock.sleep(left)
