"""One life of the gateway when its parts break: what is foreign costs itself only."""

from __future__ import annotations

import asyncio
import logging
import socket
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

import core.store.store as store_module
from channels.local.channel import LocalChannel
from core.channel import Intake
from core.clock import Clock, SystemClock
from core.engines.base import Engine, Finding
from core.engines.processes import Ledger
from core.messages import Address
from core.store import reads, rows
from core.store.store import Store
from core.turns import Kind, Origin, Status, Turn
from gateway import app, config
from gateway.app import Gateway
from gateway.cli import run
from gateway.control import OWNER
from gateway.listening import LISTEN_AGAIN, LISTENED_WELL
from gateway.paths import DATABASE
from gateway.settings_table import Settings
from tests.fakes.engine import PuppetEngine


class BrokenLook(PuppetEngine):
    """An engine whose check breaks in a way nobody thought of."""

    name = "acp"

    async def check(self) -> Sequence[Finding]:
        raise ArithmeticError("beyond all promises")


class Hours:
    """A clock on which listening takes as long as a test says, and pauses are only noted."""

    def __init__(self, lasts: Sequence[float]) -> None:
        self.lasts = list(lasts)
        self.pauses: list[float] = []
        self._real = SystemClock()
        self._at = 0.0

    def now(self) -> int:
        return self._real.now()

    def monotonic(self) -> float:
        return self._at

    def listen(self) -> bool:
        """Let a connection live and break; False when it is the last one, which holds."""
        if not self.lasts:
            return False
        self._at += self.lasts.pop(0)
        return True

    async def sleep(self, seconds: float) -> None:
        task = asyncio.current_task()
        if task is not None and task.get_name().startswith("listen"):
            self.pauses.append(seconds)
        else:
            await self._real.sleep(seconds)


def settings(home: Path) -> Settings:
    environ = {
        "LANEWAY_HOME": str(home),
        "LANEWAY_ENGINE": "acp",
        "LANEWAY_ACP_COMMAND": "agent",
        "LANEWAY_ACP_READONLY_MODE": "read-only",
        "LANEWAY_WEB_PORT": "0",
    }
    return config.load(environ, cwd=home.parent)


async def live(
    home: Path, clock: Clock, engine: Engine, meanwhile: Callable[[], Awaitable[None]]
) -> None:
    """A whole life; ``meanwhile`` is what happens between its start and its end."""

    def engines(_: Settings, __: Clock, ___: Ledger) -> Mapping[str, Engine]:
        return {engine.name: engine}

    gateway, ready = Gateway(settings(home), clock, engines), asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(gateway.run(ready.set), name="gateway")
        await ready.wait()
        await meanwhile()
        gateway.stop()


async def test_a_look_at_an_engine_that_breaks_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def told() -> None:
        while "could not be looked at" not in caplog.text:
            await asyncio.sleep(0.005)

    with caplog.at_level(logging.INFO):
        await live(tmp_path / "home", SystemClock(), BrokenLook(), told)
    assert "beyond all promises" in caplog.text


async def test_a_channel_that_held_for_long_is_opened_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Hours([0, 0, 1, LISTENED_WELL + 1, 0])
    listens = LocalChannel.listen

    async def listen(channel: LocalChannel, intake: Intake) -> None:
        if clock.listen():
            raise OSError("gone")
        await listens(channel, intake)

    async def held() -> None:
        while len(clock.pauses) < 5:
            await asyncio.sleep(0.005)

    monkeypatch.setattr(LocalChannel, "listen", listen)
    await live(tmp_path / "home", clock, PuppetEngine(), held)
    first, second, third, *_ = LISTEN_AGAIN
    assert clock.pauses == [first, second, third, first, second]


# The end before the beginning


async def left_behind(home: Path) -> None:
    """A turn that an earlier process was at: the next one has something to store at its start."""
    async with Store.open(home / DATABASE, SystemClock()) as store:
        lane, now = "local:main", 1
        turn = Turn(1, lane, OWNER, Origin.PERSON, Kind.MAIN, now, status=Status.RUNNING)
        await store.save(
            rows.new_lane(lane, Address("local", "main"), True, "", now), rows.turn(turn)
        )


@pytest.mark.parametrize("early", [False, True], ids=["while it waits", "before it begins"])
async def test_a_stop_before_it_is_ready_ends_it_though_nothing_can_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, early: bool
) -> None:
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.01)
    monkeypatch.setattr(app, "BEGIN", 0.2)
    home = tmp_path / "home"
    await left_behind(home)
    other = sqlite3.connect(home / DATABASE, isolation_level=None)

    def engines(_: Settings, __: Clock, ___: Ledger) -> Mapping[str, Engine]:
        other.execute("BEGIN IMMEDIATE")  # from here on nothing can be stored
        return {"acp": PuppetEngine()}

    gateway = Gateway(settings(home), SystemClock(), engines)
    readied: list[bool] = []
    try:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            if early:
                gateway.stop()
            life = group.create_task(gateway.run(lambda: readied.append(True)), name="gateway")
            # One that was stopped early may be over before it has even found out.
            while "another process holds" not in caplog.text and not life.done():
                await asyncio.sleep(0.005)
            gateway.stop()
    finally:
        other.close()
    assert readied == []
    assert "before it was ready" in caplog.text
    async with Store.open(home / DATABASE, SystemClock()) as store:
        (turn,) = await reads.open_turns(store)
        assert turn.status is Status.RUNNING, "the next start settles it"


async def test_a_stop_while_it_begins_leaves_no_limit_on_its_end(tmp_path: Path) -> None:
    """Once it is ready, the drain is what counts."""
    gateway = Gateway(
        settings(tmp_path / "home"), SystemClock(), lambda _, __, ___: {"acp": PuppetEngine()}
    )
    readied: list[bool] = []
    gateway.stop()
    async with asyncio.timeout(30):
        await gateway.run(lambda: readied.append(True))
    assert readied == [True]


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:")]
)
async def test_the_address_it_tells_is_the_one_where_it_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, shown: str
) -> None:
    made = config.load(
        {"LANEWAY_HOME": str(tmp_path), "LANEWAY_WEB_PORT": "0", "LANEWAY_WEB_HOST": host},
        cwd=tmp_path,
    )
    gateway = Gateway(made, SystemClock(), lambda *_: {})
    caplog.set_level(logging.INFO)

    def ready() -> None:
        run._ready(made, gateway.web_port)
        gateway.stop()

    async with asyncio.timeout(20):
        await gateway.run(ready)
    assert gateway.web_port > 0
    assert f"{shown}{gateway.web_port}/readyz" in caplog.text


@pytest.mark.parametrize("form", ["text", "json"])
async def test_the_owners_link_is_on_the_terminal_before_ready_and_in_no_log(
    tmp_path: Path,
    form: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = config.load(
        {"LANEWAY_HOME": str(tmp_path), "LANEWAY_WEB_PORT": "0", "LANEWAY_LOG_FORMAT": form},
        cwd=tmp_path,
    )
    gateway = Gateway(made, SystemClock(), lambda *_: {})
    caplog.set_level(logging.DEBUG)

    def ready() -> None:
        run._ready(made, gateway.web_port, gateway.owner_token)
        gateway.stop()

    async with asyncio.timeout(20):
        await gateway.run(ready)
    out, err = capsys.readouterr()
    link = f"http://127.0.0.1:{gateway.web_port}/signin/link#token={gateway.owner_token}"
    assert len(gateway.owner_token) > 40
    assert link in (err if form == "json" else out.partition("ready\n")[0])
    assert gateway.owner_token not in (out if form == "json" else err)
    assert gateway.owner_token not in caplog.text
    assert f"open http://127.0.0.1:{gateway.web_port} in a browser" in caplog.text


async def test_a_listener_is_taken_from_the_loop_before_it_is_closed() -> None:
    """Serving that is cut off as it begins leaves it there, and its number is given out again."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        loop.add_reader(listener, print)
        app._let_go(listener)
        assert not loop.remove_reader(listener)
    app._let_go(listener)  # closed already
