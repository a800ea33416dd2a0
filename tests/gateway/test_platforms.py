"""Several platforms in one gateway: what goes wrong with one is named, and reaches no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from channels import registry
from channels.registry import Opened, Wanted
from core.channel import Connection, Intake
from core.clock import Clock, SystemClock
from core.commands import menu
from core.messages import Address, Message
from gateway import app, opening
from gateway.app import Gateway
from tests.fakes.channel import FakeChannel
from tests.fakes.engine import PuppetEngine
from tests.gateway.test_app import settings

NAMES = ("discord", "slack", "telegram")


class Platform(FakeChannel):
    """Connects at once."""

    async def listen(self, intake: Intake) -> None:
        intake.connection(self.name, Connection())
        await super().listen(intake)


class Broken(FakeChannel):
    async def listen(self, intake: Intake) -> None:
        raise ArithmeticError("beyond all promises")


class Leaving(FakeChannel):
    async def listen(self, intake: Intake) -> None:
        return


class Hanging(FakeChannel):
    async def listen(self, intake: Intake) -> None:
        await asyncio.Event().wait()


@dataclass
class World:
    """Three platforms, and what became of them."""

    kinds: dict[str, type[FakeChannel]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)  # where a platform breaks or hangs
    menus: dict[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    channels: dict[str, FakeChannel] = field(default_factory=dict)

    def opener(self, name: str) -> object:
        @asynccontextmanager
        async def opened(clock: Clock) -> AsyncIterator[Opened]:
            await self.go_wrong(name, "opening")

            async def offer(commands: Sequence[tuple[str, str]]) -> None:
                await self.go_wrong(name, "menu")
                self.menus[name] = commands

            channel = self.channels[name] = self.kinds.get(name, Platform)(clock, name)
            yield Opened(channel, offer)
            self.closed.append(name)
            await self.go_wrong(name, "closing")

        return opened

    async def go_wrong(self, name: str, where: str) -> None:
        match self.faults.get(name):
            case fault if fault == f"{where} breaks":
                raise ArithmeticError("beyond all promises")
            case fault if fault == f"{where} hangs":
                await asyncio.Event().wait()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(app, "wanted_channels", lambda _: [Wanted(name, {}) for name in NAMES])
    monkeypatch.setattr(registry, "ADAPTERS", dict.fromkeys(NAMES, "core.channel"))
    monkeypatch.setattr(registry, "OPENERS", {name: made.opener(name) for name in NAMES})
    for module, name in ((opening, "OPEN_TIME"), (app, "FLUSH"), (app, "LAND")):
        monkeypatch.setattr(module, name, 0.05)
    monkeypatch.setattr(opening, "CLOSE_TIME", 0.05)
    return made


async def life(home: Path, world: World, others: int = 2) -> list[str]:
    """A whole life: why it was not ready once so many platforms had their menus."""
    gateway = Gateway(settings(home), SystemClock(), lambda *_: {"acp": PuppetEngine()})
    ready = asyncio.Event()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(gateway.run(ready.set), name="gateway")
        await ready.wait()
        while len(world.menus) < others:
            await asyncio.sleep(0.005)
        reasons = gateway.reasons()
        gateway.stop()
    return reasons


async def test_all_platforms_come_up_and_get_the_menu(tmp_path: Path, world: World) -> None:
    assert await life(tmp_path / "home", world, others=3) == []
    assert world.menus == dict.fromkeys(NAMES, menu())
    assert sorted(world.closed) == sorted(NAMES)


@pytest.mark.parametrize("fault", ["opening breaks", "opening hangs"])
async def test_a_platform_that_cannot_be_opened_is_named_and_the_others_work(
    tmp_path: Path, world: World, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    world.faults["slack"] = fault
    (reason,) = await life(tmp_path / "home", world)
    assert reason.startswith("slack: could not be opened")
    assert set(world.menus) == {"discord", "telegram"}
    assert "slack could not be opened" in caplog.text


async def test_a_platform_whose_library_is_missing_is_named(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ADAPTERS, "discord", "no.such.library")  # type: ignore[arg-type]
    (reason,) = await life(tmp_path / "home", world)
    assert reason.startswith("discord: could not be opened (ModuleNotFoundError)")


@pytest.mark.parametrize("fault", ["menu breaks", "menu hangs"])
async def test_a_menu_that_fails_concerns_its_platform_alone(
    tmp_path: Path, world: World, fault: str
) -> None:
    world.faults["slack"] = fault
    assert await life(tmp_path / "home", world) == []
    assert set(world.menus) == {"discord", "telegram"}


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Broken, "broke (ArithmeticError)"), (Leaving, "stopped listening"), (Hanging, "connecting")],
)
async def test_a_platform_that_does_not_listen_is_named_and_the_others_work(
    tmp_path: Path, world: World, kind: type[FakeChannel], words: str
) -> None:
    world.kinds["telegram"] = kind
    (reason,) = await life(tmp_path / "home", world, others=3)
    assert reason.startswith(f"telegram: {words}")


@pytest.mark.parametrize("fault", ["closing breaks", "closing hangs"])
async def test_a_platform_that_does_not_close_holds_up_no_end(
    tmp_path: Path, world: World, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    world.faults["discord"] = fault
    with caplog.at_level(logging.INFO):
        await life(tmp_path / "home", world, others=3)
    assert "discord did not close" in caplog.text
    assert sorted(world.closed) == sorted(NAMES)


async def test_what_is_said_on_one_platform_is_answered_though_another_hangs(
    tmp_path: Path, world: World
) -> None:
    """Also each with its own title, set after the answer."""
    engine, ready = PuppetEngine(), asyncio.Event()
    made = replace(settings(tmp_path / "home"), members=frozenset(f"{name}:1" for name in NAMES))
    gateway = Gateway(made, SystemClock(), lambda *_: {"acp": engine})

    def says(name: str) -> Message:
        here, who = Address(name, "1", "7"), f"{name}:1"
        text = f"**look** at {name}, please"
        return Message(f"{name}:41", "41", here, who, "Ana", text, 5, direct=True)

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(gateway.run(ready.set), name="gateway")
        await ready.wait()
        world.channels["slack"].seconds = 3600.0
        for number, name in enumerate(NAMES, 1):
            await world.channels[name].push(says(name))
            (await engine.started(number)).answer_with(f"seen on {name}")
        for name in ("discord", "telegram"):
            channel = world.channels[name]
            while not channel.titles:
                await asyncio.sleep(0.005)
            assert channel.texts() == [f"seen on {name}"]
            assert channel.titles == {Address(name, "1", "7"): f"look at {name}, please"}
        assert world.channels["slack"].texts() == []
        gateway.stop()
