"""Watches over a real store and the real lane rules; what they look at is what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.watch_rules import Known, Seen, Unseen, What
from core.watches import Watches
from core.when.plan import to_instant
from tests.fakes.alarm import ClockAlarm
from tests.fakes.clock import FakeClock
from tests.jobs.scene import JobScene, jobs_in

NOON = to_instant(datetime(2027, 2, 9, 12, tzinfo=UTC))
PAGE = "url https://example.org/"


@dataclass
class World:
    """What there is to be seen."""

    clock: FakeClock
    saw: Seen | Unseen = field(default_factory=lambda: Seen("one", 200))
    takes: float = 0.0  # seconds
    looks: int = 0
    now: int = 0  # looks under way
    most: int = 0  # of them, at any time
    asked: list[What] = field(default_factory=list)
    breaks: bool = False

    async def look(self, what: What, lane: str, folder: str) -> Seen | Unseen:
        self.looks += 1
        self.asked.append(what)
        if self.breaks:
            raise RuntimeError("a bug")
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.takes:
                await self.clock.sleep(self.takes)
            return self.saw
        finally:
            self.now -= 1


@dataclass
class WatchScene:
    jobs: JobScene
    watches: Watches
    world: World

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jobs, name)

    async def known(self, ident: int = 1) -> Known:
        from core.store import watches as stored

        return await stored.of(self.jobs.store, ident)

    async def shows(self, text: str, code: int = 200) -> None:
        """From now on this is to be seen; it is looked at."""
        self.world.saw = Seen(text, code)
        await self.jobs.clock.advance(61)

    async def fails(self, why: str = "it is down") -> None:
        self.world.saw = Unseen(why)


@asynccontextmanager
async def watches_in(
    home: Path, clock: FakeClock, world: World | None = None, **more: Any
) -> AsyncIterator[WatchScene]:
    async with jobs_in(home, clock, **more) as house:
        world = world or World(clock)
        scene = house.scene
        alarm = ClockAlarm(clock)
        watches = Watches(house.jobs.firing, scene.rules, house.jobs, world, alarm)

        def changed() -> None:
            house.jobs.changed()
            watches.changed()

        scene.ground.jobs_changed = changed
        task = asyncio.create_task(watches.run(house.stopping), name="watches")
        await clock.settle()
        try:
            yield WatchScene(house, watches, world)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
