"""A gateway's outbox on a real database, a platform in memory and a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from core.channel import Channel, SendError
from core.messages import Address, Keyboard, Part
from core.outbox import Outbox
from core.store import reads, rows
from core.store.records import Delivery, DeliveryKind, DeliveryState, FilePart
from core.store.store import Store
from core.turns import Kind, Origin, Turn
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import FakeClock

ANA = "telegram:700000001"
BEN = "telegram:700000002"
TOPIC = "telegram:-100:36"
OTHER_TOPIC = "telegram:-100:37"


class Scene:
    def __init__(self, store: Store, clock: FakeClock, channel: FakeChannel) -> None:
        self.store = store
        self.clock = clock
        self.channel = channel
        self.channels: dict[str, Channel] = {channel.name: channel}
        self.moves: list[tuple[Address, str]] = []
        self.failed: list[tuple[Delivery, SendError]] = []
        self.outbox: Outbox = None
        self._running: asyncio.Task[None] | None = None

    # The process --------------------------------------------------------------------------

    def make(self) -> Outbox:
        self.outbox = Outbox(
            self.store,
            self.channels,
            self.clock,
            moved=self.follow,
            on_failed=lambda delivery, error: self.failed.append((delivery, error)),
        )
        return self.outbox

    async def start(self, restore: bool = False) -> None:
        self.make()
        if restore:
            await self.outbox.restore()
        self._running = asyncio.create_task(self.outbox.run(), name="outbox")
        await self.clock.settle()

    async def crash(self) -> None:
        """End the process as it is; what is committed stays."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
            if not self._running.cancelled():
                self._running.result()
            self._running = None

    async def restart(self) -> None:
        await self.crash()
        await self.start(restore=True)

    async def follow(self, old: Address, new_chat: str) -> None:
        self.moves.append((old, new_chat))
        for lane in await reads.lane_list(self.store):
            if (lane.address.channel, lane.address.chat) == (old.channel, old.chat):
                moved = Address(old.channel, new_chat, lane.address.thread)
                await self.store.save(*rows.lane_moved(lane.id, moved))

    def slow_disk(self, seconds: float) -> None:
        """The next write takes so long."""
        if not seconds:
            return
        save = self.store.save

        async def slowly(*rows: Any) -> None:
            self.store.save = save  # type: ignore[method-assign] # for this one call
            await self.clock.sleep(seconds)
            await save(*rows)

        self.store.save = slowly  # type: ignore[method-assign] # see above

    # What is said -------------------------------------------------------------------------

    async def lane(self, lane: str) -> str:
        channel, chat, *thread = lane.split(":")
        address = Address(channel, chat, thread[0] if thread else "")
        direct = not chat.startswith("-")
        await self.store.save(rows.new_lane(lane, address, direct, "", self.clock.now()))
        return lane

    async def turn(self, lane: str = ANA) -> int:
        turn = self.store.ids.turn()
        row = Turn(turn, lane, ANA, Origin.PERSON, Kind.MAIN, self.clock.now())
        await self.store.save(rows.turn(row))
        return turn

    async def say(self, text: str, lane: str = ANA, **changes: Any) -> Delivery:
        return (await self.say_all([text], lane, **changes))[0]

    async def say_all(
        self,
        texts: list[str],
        lane: str = ANA,
        kind: DeliveryKind = DeliveryKind.NOTICE,
        turn: int | None = None,
        target: str = "",
        keyboard: Keyboard = (),
        file: str = "",
        markup: str = "",
        slow_disk: float = 0.0,
    ) -> list[Delivery]:
        """Commit deliveries as pending and hand them over, as the runner does."""
        deliveries = [
            Delivery(
                self.store.ids.delivery(),
                lane,
                turn,
                kind,
                FilePart(file, file) if file else Part(text, markup),
                seq=seq if kind is DeliveryKind.ANSWER else 0,
                keyboard=keyboard,
                target=target,
                created_at=self.clock.now(),
            )
            for seq, text in enumerate(texts)
        ]
        await self.store.save(*map(rows.delivery, deliveries))
        self.slow_disk(slow_disk)
        if self.outbox is not None:
            self.outbox.deliver(deliveries)
        await self.clock.settle()
        return deliveries

    async def answer(self, *texts: str, turn: int, lane: str = ANA, **changes: Any) -> Delivery:
        kind = DeliveryKind.ANSWER
        return (await self.say_all(list(texts), lane, kind=kind, turn=turn, **changes))[0]

    async def preview(self, turn: int, text: str, footer: str = "", lane: str = ANA) -> None:
        self.outbox.preview(turn, lane, text, footer)
        await self.clock.settle()

    # What came of it ----------------------------------------------------------------------

    async def row(self, delivery: Delivery | int) -> Delivery:
        number = delivery if isinstance(delivery, int) else delivery.id
        found = await reads.delivery(self.store, number)
        assert found is not None
        return found

    async def state(self, delivery: Delivery | int) -> DeliveryState:
        return (await self.row(delivery)).state

    async def preview_row(self, turn: int) -> Delivery | None:
        for row in await reads.deliveries_of(self.store, turn):
            if row.kind is DeliveryKind.PREVIEW:
                return row
        return None


def watched(store: Store, clock: FakeClock) -> Store:
    """The same store; time stands still while it works."""
    busy = 0

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal busy
            busy += 1
            try:
                return await call(*args, **kwargs)
            finally:
                busy -= 1

        return counted

    for name in ("commit", "save", "fetch"):
        setattr(store, name, counting(getattr(store, name)))
    clock.watch(lambda: store.busy or (busy > 0 and not store.trouble))
    return store


@asynccontextmanager
async def scene(path: Path, *lanes: str, run: bool = True, **limits: Any) -> AsyncIterator[Scene]:
    clock = FakeClock()
    async with Store.open(path / "laneway.db", clock) as store:
        channel = FakeChannel(clock)
        channel.set_limits(**limits)
        it = Scene(watched(store, clock), clock, channel)
        for lane in lanes or (ANA, BEN, TOPIC, OTHER_TOPIC):
            await it.lane(lane)
        if run:
            await it.start()
        try:
            yield it
        finally:
            await it.crash()
