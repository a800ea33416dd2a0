"""New settings, put into effect in a gateway that runs: which part is told what.

The only file that knows both. It must not know who changed them, nor where they are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields

from channels.registry import Wanted
from core.clock import Clock
from core.engines.base import Engine
from core.engines.processes import Ledger
from core.folders import claim
from core.items import Item
from core.lane_events import Configured
from core.store import reads
from gateway import logs
from gateway.channel_parts import lists
from gateway.choices import Approvers
from gateway.config import Settings
from gateway.engine_parts import StoreLedger, fallback, hearing
from gateway.job_parts import job_limits, zone_name
from gateway.job_reports import JobReports
from gateway.listening import Listening
from gateway.parts import Parts, house
from gateway.reports import Reports
from gateway.setting import Applies, Setting
from gateway.settings_table import table
from gateway.tending import Tending
from gateway.turn_parts import defaults, limits, money, time_limits

_ASIDE = frozenset({"people", "places"})  # options of a connection that are no reason for a new one

EngineMaker = Callable[[Settings, Clock, Ledger], Mapping[str, Engine]]
ChannelsOf = Callable[[Settings], Iterable[Wanted]]


class Applying:
    """One for the process; ``apply`` is what Living tells of a change."""

    def __init__(
        self,
        parts: Parts,
        listening: Listening,
        tending: Tending,
        make_engines: EngineMaker,
        channels_of: ChannelsOf,
        clock: Clock,
    ) -> None:
        self._parts = parts
        self._listening = listening
        self._tending = tending
        self._make_engines = make_engines
        self._channels_of = channels_of
        self._clock = clock
        self._reports: tuple[Reports, JobReports] | None = None

    def begin(self, settings: Settings, reports: Reports, jobs: JobReports) -> None:
        """Everything runs. Those who answer the command line go by the settings as well."""
        self._reports = reports, jobs
        self._tending.look(_side_engine(settings))

    async def apply(self, old: Settings, new: Settings) -> None:
        """Everything that differs. What is running goes on as it began."""
        logs.renew(new)
        self._people(new)
        self._words(new)
        self._turns(new)
        self._jobs(new)
        await self._engines(old, new)
        self._parts.intake.ground.house = house(new, self._parts.defaults, self._parts.engines)
        await self._parts.runner.renew(limits(new), money(new))
        await self._lanes(old, new)
        await self._channels(old, new)

    # In memory ----------------------------------------------------------------------------

    def _people(self, new: Settings) -> None:
        self._parts.people.lists = lists(new)

    def _words(self, new: Settings) -> None:
        voices = self._parts.within.voices
        patience = new.approval_timeout, new.approval_timeout_unattended
        voices.telling.renew(new.queue_limit, new.receipts)
        voices.notices.zone = new.timezone
        voices.approvals.renew(new.approvers is Approvers.STARTER, *patience)
        voices.questions.renew(*patience)

    def _turns(self, new: Settings) -> None:
        life, known = self._parts.within.life, self._parts.defaults
        wanted = defaults(new)
        for one in fields(known):
            setattr(known, one.name, getattr(wanted, one.name))
        life.limits = time_limits(new)
        life.previews = new.preview
        life.preparing.hearing = hearing(new, self._clock)
        self._parts.runner.patience = new.drain_timeout

    def _jobs(self, new: Settings) -> None:
        within, firing = self._parts.within, self._parts.jobs.firing
        allowed, zone = job_limits(new), zone_name(new)
        within.job_tools.limits, within.job_tools.zone = allowed, zone
        firing.catch_up, firing.zone = allowed.catch_up, zone
        within.looks.shared = self._parts.defaults.workspace
        within.looks.pages.private = new.watch_private
        within.looks.commands.env = sorted(new.engine_env)
        if self._reports is not None:
            reports, jobs = self._reports
            reports.engine = new.engine.value
            jobs.limits, jobs.zone = allowed, zone

    # With others --------------------------------------------------------------------------

    async def _engines(self, old: Settings, new: Settings) -> None:
        names = {
            part
            for row in table()
            if row.applies is Applies.RELOADS and _differs(row, old, new)
            for part in row.parts
        }
        chosen = {old.engine, old.fallback_engine} != {new.engine, new.fallback_engine}
        health = self._parts.within.life.health
        if names or chosen:
            # Beside the loop: an engine's library may have to be loaded first.
            ledger = StoreLedger(self._parts.store)
            fresh = await asyncio.to_thread(self._make_engines, new, self._clock, ledger)
            await self._tending.renew(fresh, names)
            for name in names:
                health.renewed(name)
            self._tending.look(_side_engine(new))
        health.fallback = fallback(new, self._parts.engines)

    async def _lanes(self, old: Settings, new: Settings) -> None:
        """What waits in lanes that name no engine or folder of their own runs with the new ones."""
        known = self._parts.defaults
        if (old.engine, old.workspace) == (new.engine, new.workspace):
            return
        for lane in await reads.lanes_open(self._parts.store):
            engine, folder = lane.engine or known.engine, claim(lane.workspace, known.workspace)
            await self._parts.runner.take(Item(event=Configured(lane.id, engine, folder)))

    async def _channels(self, old: Settings, new: Settings) -> None:
        before, after = self._connections(old), self._connections(new)
        wanted = {one.name: one for one in self._channels_of(new)}
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                await self._listening.renew(name, wanted.get(name), self._take_up)

    def _connections(self, settings: Settings) -> dict[str, dict[str, object]]:
        return {
            one.name: {name: value for name, value in one.options.items() if name not in _ASIDE}
            for one in self._channels_of(settings)
        }

    async def _take_up(self, name: str) -> None:
        """What is stored for a platform that was not set up since the start goes on, as at one."""
        await self._parts.outbox.restore(name)
        await self._parts.intake.take_up(name)
        await self._parts.runner.adopt(name)
        self._parts.jobs_changed()


def _side_engine(settings: Settings) -> str:
    """The engine whose side answers depend on what its agent can do; "" it does not matter."""
    return settings.engine.value if settings.acp_readonly_mode else ""


def _differs(row: Setting, old: Settings, new: Settings) -> bool:
    return bool(getattr(old, row.field) != getattr(new, row.field))
