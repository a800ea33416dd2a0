"""One life of the gateway: open, remove what a crash left, restore, listen, drain, leave.

The parts are put together in parts.py; this file starts and ends them in the right order, as one
async context. Nothing here decides anything about messages or turns.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from socket import socket
from typing import TYPE_CHECKING

from channels.local.channel import LocalChannel
from core.alarm import Alarm, SchedulerAlarm
from core.channel import Channel, Connection
from core.clock import Clock
from core.engines.base import Engine
from core.engines.processes import Ledger
from core.intake import Intake
from core.lane_ids import LOCAL
from core.people import People
from core.showing import new_id
from core.store import housekeeping
from core.store.store import Store
from gateway.applying import Applying
from gateway.channel_parts import lists, wanted_channels
from gateway.choices import AfterCrash
from gateway.config import Settings, Written
from gateway.control import Ask, Control, listening
from gateway.engine_parts import StoreLedger, make_engines
from gateway.housekeeping import tidy_files
from gateway.job_parts import job_limits, zone_name
from gateway.job_reports import JobReports
from gateway.left import remove_left
from gateway.listening import Listening
from gateway.living import Living
from gateway.opening import load_each, platforms
from gateway.page_address import page_address
from gateway.parts import Parts, assemble
from gateway.paths import DATABASE, FILES
from gateway.reports import Reports
from gateway.signin_links import SigninDesk, link_of_start
from gateway.socket_path import socket_path
from gateway.tending import Tending
from gateway.web.listener import TOOLS_PATH, listen

if TYPE_CHECKING:
    from gateway.web.site import Site

log = logging.getLogger("laneway")

EngineMaker = Callable[[Settings, Clock, Ledger], Mapping[str, Engine]]
BEGIN = 5.0  # seconds a start may still take when its end was asked for already
FLUSH = 2.5  # seconds the last answers have to leave when everything else is done
LAND = 1.0  # seconds more for calls that are under way then
TIDY_EVERY = 3600.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class _Made:
    """What one life works with."""

    parts: Parts
    living: Living
    local: LocalChannel
    hears: Listening
    tending: Tending
    applying: Applying


class Gateway:
    """One process. Everything it owns lives inside ``run``."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        engines: EngineMaker = make_engines,
        alarm: Callable[[], Alarm] = SchedulerAlarm,
        written: Written | None = None,
    ) -> None:
        """``written``: what the settings were made of; without it nothing can be saved for good."""
        self.web_port = settings.web_port  # 0 until one is found, if any will do
        self.on_site: Callable[[Site], None] = lambda _: None  # told what the page works with
        self.owner_token = ""  # signs the built-in owner in once, while no admin has a mailbox
        self._settings = settings
        self._written = written
        self._make_engines = engines
        self._make_alarm = alarm
        self._clock = clock
        self._intake: Intake | None = None
        self._trouble: Callable[[], str] = lambda: "starting"
        self._stopping = asyncio.Event()
        self._begin: asyncio.Timeout | None = None  # of a start that is under way

    def stop(self) -> None:
        """Begin the orderly end; a second time changes nothing."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._hurry_start()

    def reasons(self) -> list[str]:
        """Why the gateway is not ready, in plain words; empty when it is."""
        why = [self._trouble()] if self._trouble() else []
        for name, connection in sorted(self._intake.connections.items() if self._intake else ()):
            if not connection.up:
                why.append(f"{name}: {connection.reason}")
        if self._stopping.is_set():
            why.append("shutting down")
        return why

    async def run(self, ready: Callable[[], None]) -> None:
        """Live until ``stop``; ``ready`` is called when messages are taken.

        A start waits for the disk as long as it takes; but not once it is to end: nothing runs yet,
        and what is stored is settled by the next start.
        """

        def begun() -> None:
            limit.reschedule(None)
            self._begin = None
            ready()

        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._begin = limit
                if self._stopping.is_set():
                    self._hurry_start()
                await self._life(begun)
        except TimeoutError:
            if not limit.expired():
                raise
            log.error("stopped before it was ready: %s", self._trouble() or "the start took long")
        finally:
            self._begin = None

    def _hurry_start(self) -> None:
        if self._begin is not None:
            self._begin.reschedule(asyncio.get_running_loop().time() + BEGIN)

    async def _life(self, ready: Callable[[], None]) -> None:
        """From the open store to the closed one."""
        settings = self._settings
        async with AsyncExitStack() as stack:
            web = stack.enter_context(listen(settings.web_host, settings.web_port))
            self.web_port = int(web.getsockname()[1])
            agents = stack.enter_context(listen(LOOPBACK, 0))  # never on the web address
            tools_url = f"http://{LOOPBACK}:{agents.getsockname()[1]}{TOOLS_PATH}"
            made = await self._made(stack, tools_url)
            terminals = stack.enter_context(listening(socket_path(settings.home)))
            for one in (web, agents, terminals):
                stack.callback(_let_go, one)
            async with asyncio.TaskGroup() as group:
                beside = [
                    group.create_task(made.parts.outbox.run(), name="outbox"),
                    group.create_task(self._tidy(made.parts.store), name="housekeeping"),
                ]
                made.tending.begin(group, made.parts.runner.uses)
                await self._live(group, made, (web, terminals, agents), ready)
                made.tending.end()
                for task in beside:
                    task.cancel()

    async def _made(self, stack: AsyncExitStack, tools_url: str) -> _Made:
        """Everything, put together; what has to be closed is in the stack."""
        clock, settings = self._clock, self._settings
        named = wanted_channels(settings)
        loaded = asyncio.get_running_loop().run_in_executor(None, load_each, named)
        store = await stack.enter_async_context(Store.open(settings.home / DATABASE, clock))
        self._trouble = lambda: store.trouble
        living = await Living.open(store, clock, settings, self._written)
        settings = self._settings = living.settings
        if wanted_channels(settings) != named:  # what was saved was not read before
            await loaded
            named = wanted_channels(settings)
            loaded = asyncio.get_running_loop().run_in_executor(None, load_each, named)
        await remove_left(settings.home, store)
        there = await stack.enter_async_context(platforms(named, await loaded, clock))
        local = LocalChannel(new_id, clock.now, settings.home / FILES)
        channels: dict[str, Channel] = {LOCAL: local, **there.channels}
        engines = dict(self._make_engines(settings, clock, StoreLedger(store)))
        tending = Tending(engines, clock)
        stack.push_async_callback(tending.close)
        people = People(lists(settings))
        await people.load(store)
        alarms = self._make_alarm(), self._make_alarm()
        parts = assemble(settings, clock, store, channels, engines, people, tools_url, *alarms)
        self._intake = parts.intake
        connections = parts.intake.connections
        connections.update({name: Connection("connecting") for name in there.opened})
        connections.update(there.missing)
        hears = Listening(there, channels, parts.here, parts.intake, connections, clock)
        renewing = self._make_engines, lambda new: wanted_channels(new)
        applying = Applying(parts, hears, tending, *renewing, clock)
        living.on_change(applying.apply)
        return _Made(parts, living, local, hears, tending, applying)

    async def _live(
        self,
        group: asyncio.TaskGroup,
        made: _Made,
        listeners: tuple[socket, socket, socket],
        ready: Callable[[], None],
    ) -> None:
        """From the restored state to the last answer."""
        web, terminals, agents = listeners
        parts, local = made.parts, made.local
        patience = self._settings.drain_timeout
        by_itself = self._settings.after_crash is AfterCrash.CONTINUE
        go_on = parts.intake.go_on if by_itself else None
        restored = asyncio.Event()
        await parts.outbox.restore()
        await parts.intake.resume()
        runner = group.create_task(
            parts.runner.run(restored, self._stopping, patience, go_on), name="runner"
        )
        await restored.wait()
        asks = self._asks(made)
        control = Control(parts.store, local, parts.runner, parts.outbox, parts.approvals, asks)
        work: list[tuple[str, Coroutine[None, None, None]]] = [
            ("intake", parts.intake.run()),
            ("what was not delivered", parts.undelivered.run(parts.runner.take)),
            ("titles", parts.titling.run()),
            ("jobs", parts.jobs.run(self._stopping)),
            ("watches", parts.watches.run(self._stopping)),
            ("local socket", control.serve(terminals)),
            ("web", self._web(parts, made.living, local, web)),
            ("tools of agents", self._tools(parts, agents)),
        ]
        made.hears.begin(group)
        beside = [group.create_task(what, name=name) for name, what in work]
        self.owner_token = link_of_start(parts.store, parts.people, self._clock.now())
        ready()
        await runner
        await parts.outbox.flushed(FLUSH)
        await parts.outbox.rest(LAND)
        made.hears.end()
        for task in beside:
            task.cancel()

    def _asks(self, made: _Made) -> dict[str, Ask]:
        """What the command line asks of a gateway that runs, by name."""
        parts, settings = made.parts, self._settings
        engine = settings.engine.value
        reports = Reports(parts.store, engine, parts.runner, parts.people, parts.intake.released)
        jobs = JobReports(
            parts.store, parts.people, job_limits(settings), zone_name(settings),
            parts.runner.take, parts.jobs_changed,
        )  # fmt: skip
        made.applying.begin(settings, reports, jobs)

        def address() -> str:
            return page_address(made.living.settings, self.web_port)

        desk = SigninDesk(parts.store, parts.people, self._clock.now, address)
        return reports.asks() | jobs.asks() | desk.asks()

    async def _web(
        self, parts: Parts, living: Living, local: LocalChannel, listener: socket
    ) -> None:
        # Late and beside the loop: it costs a tenth of a second, and channels come first.
        app = await asyncio.to_thread(importlib.import_module, "gateway.web.app")
        site = app.make_site(living, parts, local, self._clock, self.reasons)
        self.on_site(site)
        await app.live(site, listener)

    async def _tools(self, parts: Parts, listener: socket) -> None:
        app = await asyncio.to_thread(importlib.import_module, "gateway.web.app")
        tools = await asyncio.to_thread(importlib.import_module, "gateway.web.tools")
        await app.serve(tools.application(parts.tools), listener)

    async def _tidy(self, store: Store) -> None:
        while True:
            await store.save(*housekeeping.tidy(self._clock.now()))
            await tidy_files(self._settings.home, store, self._clock.now())
            await self._clock.sleep(TIDY_EVERY)


def _let_go(listener: socket) -> None:
    """Serving that was cut off as it began leaves the listener with the loop, when it is closed.

    The loop would then take the next socket of the same number for it.
    """
    if listener.fileno() >= 0:
        asyncio.get_running_loop().remove_reader(listener)
