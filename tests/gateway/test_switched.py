"""A channel whose connection is exchanged: nothing is lost, and nothing goes out too early."""

from __future__ import annotations

import asyncio

import pytest

from core.channel import Channel, Connection, Done, Intake, NotSent, Send
from core.clock import SystemClock
from core.messages import Address, Part
from gateway import switched
from gateway.switched import Switched, left
from tests.fakes.channel import FakeChannel
from tests.fakes.recording_intake import RecordingIntake

HELLO = Send(Address("telegram", "1"), Part("hello"))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switched, "HELD", 0.02)


class Platform(FakeChannel):
    """Says that it is connected when it is told to."""

    def __init__(self, name: str = "telegram") -> None:
        super().__init__(SystemClock(), name)
        self.connects = asyncio.Event()
        self.hangs: asyncio.Event | None = None

    async def listen(self, intake: Intake) -> None:
        await self.connects.wait()
        intake.connection(self.name, Connection())
        await asyncio.Event().wait()

    async def do(self, action: object) -> Done:
        if self.hangs is not None:
            await self.hangs.wait()
        return await super().do(action)  # type: ignore[arg-type]  # only sends


async def test_before_anything_is_exchanged_it_is_the_channel_itself() -> None:
    platform = Platform()
    channel: Channel = Switched(platform)
    assert (channel.name, channel.limits) == ("telegram", platform.limits)
    assert channel.render("*a*") == platform.render("*a*")
    await channel.do(HELLO)
    assert platform.texts() == ["hello"]


async def test_calls_wait_for_the_new_connection_and_go_out_on_it() -> None:
    old, new = Platform(), Platform()
    channel = Switched(old)
    channel.switch(new)
    with pytest.raises(NotSent, match="not up yet"):
        await channel.do(HELLO)
    listening = asyncio.create_task(channel.listen(RecordingIntake()))
    waiting = asyncio.create_task(channel.do(HELLO))
    new.connects.set()
    await waiting
    assert (old.texts(), new.texts()) == ([], ["hello"])
    listening.cancel()


async def test_a_call_that_is_under_way_ends_on_the_old_connection() -> None:
    old, new = Platform(), Platform()
    old.hangs = asyncio.Event()
    channel = Switched(old)
    call = asyncio.create_task(channel.do(HELLO))
    await asyncio.sleep(0)
    used = channel.switch(new)
    assert used is not None
    gone = asyncio.create_task(left(used, 5))
    await asyncio.sleep(0)
    assert not gone.done()
    old.hangs.set()
    await asyncio.gather(call, gone)
    assert old.texts() == ["hello"]


async def test_an_old_connection_is_not_waited_for_for_ever() -> None:
    old = Platform()
    old.hangs = asyncio.Event()
    channel = Switched(old)
    call = asyncio.create_task(channel.do(HELLO))
    await asyncio.sleep(0)
    used = channel.switch(None)
    assert used is not None
    await left(used, 0.01)
    assert not call.done()
    call.cancel()


async def test_without_a_connection_everything_waits_and_nothing_is_heard() -> None:
    channel = Switched(Platform())
    channel.switch(None)
    with pytest.raises(NotSent):
        await channel.do(HELLO)
    assert channel.hook is None
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await channel.listen(RecordingIntake())
