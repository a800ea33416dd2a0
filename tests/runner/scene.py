"""The gateway's inside for the runner's tests: real store, rules and outbox; a puppet engine.

    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await scene.engine.started()
        run.answer_with("hi")
        await scene.until(lambda: scene.texts() == ["hi"])

Seconds are short (``times``): what is proven here is order and durability, not pace.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from core.clock import Clock
from core.lane_ids import LOCAL
from core.messages import Address, Message
from core.people import Lists, People
from core.runner import GoOn
from core.store import reads
from core.store.records import TurnRow
from core.store.store import Store
from gateway import config
from gateway.parts import Parts, assemble
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import QuickClock
from tests.fakes.engine import PuppetEngine

ANA, BEN = "local:ana", "local:ben"
CHIEFS = ("telegram:1", "telegram:2")  # admins of another platform


class Scene:
    def __init__(
        self,
        home: Path,
        engine: PuppetEngine | None = None,
        channel: str = LOCAL,
        times: float = 4,
        **settings: str,
    ) -> None:
        environ = {
            "LANEWAY_HOME": str(home),
            "LANEWAY_STOP_GRACE": "1s",
        }
        self.settings = config.load(environ | settings, cwd=home)
        self.engine = engine or PuppetEngine()
        self.clock: Clock = QuickClock(times)
        self.channel = FakeChannel(self.clock, name=channel)
        self.channel.set_limits(chat_rate=1000.0, total_rate=1000.0)  # pace is proven elsewhere
        self.more_engines: dict[str, PuppetEngine] = {}
        self.go_on: GoOn | None = None  # what continues turns by itself after a crash
        self._stop = asyncio.Event()
        self._numbers = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self.parts: Parts

    async def __aenter__(self) -> Self:
        ready = asyncio.Event()
        self._task = asyncio.create_task(self._live(ready), name="scene")
        waiting = asyncio.create_task(ready.wait(), name="ready")
        await asyncio.wait((self._task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            await self._task
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        assert self._task is not None
        if self._task.done():
            return  # it crashed
        if error is not None:
            self._task.cancel()  # a failed test must not wait for a turn that never ends
            await asyncio.wait((self._task,))
            return
        async with asyncio.timeout(20):
            await self._task

    async def _live(self, ready: asyncio.Event) -> None:
        clock = self.clock
        async with Store.open(self.settings.home / "test.db", clock) as store:
            people = People(Lists(admins=frozenset({ANA, *CHIEFS}), members=frozenset({BEN})))
            self.parts = assemble(
                self.settings,
                clock,
                store,
                {self.channel.name: self.channel},
                {"demo": self.engine, **self.more_engines},
                people,
            )
            async with asyncio.TaskGroup() as group:
                outbox = group.create_task(self.parts.outbox.run(), name="outbox")
                await self.parts.outbox.restore()
                await self.parts.intake.resume()
                restored = asyncio.Event()
                drain = self.settings.drain_timeout
                runner = group.create_task(
                    self.parts.runner.run(restored, self._stop, drain, self.go_on), name="runner"
                )
                await restored.wait()
                intake = group.create_task(self.parts.intake.run(), name="intake")
                ready.set()
                await runner
                await self.parts.outbox.flushed(2)
                outbox.cancel()
                intake.cancel()

    async def crash(self) -> None:
        """Everything stops where it is; nothing is settled or told."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait((self._task,))

    @asynccontextmanager
    async def full_disk(self) -> AsyncIterator[None]:
        """SQLite's own page limit stands in for a disk without room."""
        writing = self.parts.store._writer._connection
        async with writing.execute("PRAGMA page_count") as cursor:
            (pages,) = await cursor.fetchone() or (0,)
        await writing.execute(f"PRAGMA max_page_count = {pages}")
        self.parts.store._ballast.drop()  # the reserve is used up already
        yield
        await writing.execute("PRAGMA max_page_count = 1000000000")

    def drain(self) -> None:
        self._stop.set()

    async def says(self, text: str, lane: str = "main", who: str = ANA) -> None:
        number = str(next(self._numbers))
        await self.parts.intake.accept(
            [
                Message(
                    identity=f"local:{id(self)}:{number}",
                    message_id=number,
                    address=Address(self.channel.name, lane),
                    sender=who,
                    sender_name=who.rpartition(":")[2].title(),
                    text=text,
                    at=self.clock.now(),
                    direct=True,
                )
            ]
        )

    def texts(self, lane: str = "main") -> list[str]:
        """What stands in the lane now, oldest first."""
        address = Address(self.channel.name, lane)
        return [m.text for m in self.channel.messages.values() if m.address == address]

    async def turns(self) -> list[TurnRow]:
        return list(reversed(await reads.turns_of(self.parts.store, None, 100)))

    async def statuses(self) -> list[str]:
        return [turn.status.value for turn in await self.turns()]

    async def until(self, true: Callable[[], Any], within: float = 20.0) -> None:
        async with asyncio.timeout(within):
            while not true():
                await asyncio.sleep(0.005)
