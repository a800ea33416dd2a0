"""An engine in this process, so that a bench measures the gateway and not an agent.

The prompt says how long it works: ``work 5`` or ``stream 60 0.1 (seconds, pause between pieces)``;
anything else is answered at once. It keeps when each prompt reached it and when each turn's last
token left it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence

from core.engines.base import (
    Abilities,
    Decision,
    Event,
    Finding,
    Finished,
    Request,
    Started,
    Text,
)
from core.turns import Result


class BenchRun:
    quarantine = ""

    def __init__(self, engine: BenchEngine, request: Request) -> None:
        self._engine = engine
        self._request = request
        self._stopped = asyncio.Event()

    async def events(self) -> AsyncGenerator[Event, None]:
        yield Started(f"bench-{self._request.lane}", resumed=bool(self._request.session))
        self._engine.prompted[self._request.prompt] = time.monotonic()
        words = self._request.prompt.split()
        if words[:1] == ["work"]:
            await asyncio.sleep(float(words[1]))
        elif words[:1] == ["stream"]:
            end, pause, count = time.monotonic() + float(words[1]), float(words[2]), 0
            while time.monotonic() < end:
                count += 1
                yield Text(f"w{count} ")
                await asyncio.sleep(pause)
        yield Text(f"answer to {self._request.prompt}")
        self._engine.finished[self._request.prompt] = time.monotonic()
        yield Finished(Result.DONE)

    def answer(self, approval: str, decision: Decision) -> None:
        """It asks nothing."""

    async def steer(self, turn: int, text: str) -> None:
        """It cannot be steered."""

    async def stop(self, grace: float) -> None:
        self._stopped.set()


class BenchEngine:
    name = "demo"
    abilities = Abilities(resume=True)

    def __init__(self) -> None:
        self.prompted: dict[str, float] = {}  # prompt → monotonic seconds
        self.finished: dict[str, float] = {}

    def run(self, request: Request) -> BenchRun:
        return BenchRun(self, request)

    async def check(self) -> Sequence[Finding]:
        return ()

    async def tend(self) -> None:
        """Nothing is kept warm."""

    async def close(self) -> None:
        """Nothing runs."""
