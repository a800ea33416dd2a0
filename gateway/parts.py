"""The parts of the gateway, put together from the outbox up to the intake.

From settings to objects that know each other; nothing is started here. The files beside this one
(``*_parts.py``) make what one area consists of; they alone name concrete classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from core.alarm import Alarm
from core.approvals import Approvals
from core.channel import Channel, Forbidden, SendError, ThreadGone
from core.clock import Clock
from core.engines.base import Engine
from core.ground import Ground, House
from core.intake import Intake
from core.job_tools import JobTools
from core.jobs import Jobs
from core.outbox import Outbox
from core.people import People
from core.preparing import Defaults
from core.prices import PriceList
from core.runner import Runner
from core.showing import new_id
from core.store.records import Delivery
from core.store.store import Store
from core.titling import Titling
from core.tools import Tools
from core.turn_life import TurnLife
from core.undelivered import Undelivered
from core.watches import Watches
from core.watching.looks import Looking
from gateway.choices import Approvers, EngineName
from gateway.config import Settings
from gateway.engine_parts import StoreLedger
from gateway.job_parts import (
    job_limits,
    make_job_tools,
    make_jobs,
    make_looks,
    make_watches,
    zone_name,
)
from gateway.paths import OUTGOING
from gateway.turn_parts import (
    Above,
    Basis,
    Voices,
    defaults,
    make_outbox,
    make_runner,
    make_turn_life,
    make_voices,
)


@dataclass(frozen=True, slots=True)
class Within:
    """Parts of parts, for what changes them while they work."""

    voices: Voices
    life: TurnLife
    job_tools: JobTools
    looks: Looking


@dataclass(frozen=True, slots=True)
class Parts:
    """What one life of the gateway works with."""

    store: Store
    channels: Mapping[str, Channel]
    engines: Mapping[str, Engine]
    people: People
    outbox: Outbox
    runner: Runner
    intake: Intake
    jobs: Jobs
    watches: Watches
    undelivered: Undelivered
    titling: Titling
    defaults: Defaults
    approvals: Approvals
    tools: Tools
    here: set[str]  # channels that are set up now
    within: Within

    def jobs_changed(self) -> None:
        """Somebody made a job or changed one."""
        _look_again(self.jobs, self.watches)


def assemble(
    settings: Settings,
    clock: Clock,
    store: Store,
    channels: Mapping[str, Channel],
    engines: Mapping[str, Engine],
    people: People,
    tools_url: str = "",
    alarm: Alarm | None = None,
    watch_alarm: Alarm | None = None,
) -> Parts:
    """Objects that know each other; an alarm that is not given is the one of the process."""
    here = set(channels)
    basis = Basis(settings, clock, store, channels, engines, people, defaults(settings), here)
    above = Above()
    outbox = make_outbox(basis, above)
    voices = make_voices(basis, outbox)
    undelivered = Undelivered(store, basis.channel, clock)
    titling = Titling(store, outbox, basis.channel)
    listed = PriceList(settings.home, set(EngineName), clock.monotonic)
    job_tools = make_job_tools(basis, voices.showing)
    tools = Tools(
        store, basis.channel, voices.telling, voices.showing, outbox, voices.questions, job_tools,
        settings.home / OUTGOING, tools_url,
    )  # fmt: skip
    life = make_turn_life(basis, outbox, voices, tools, listed)
    runner = make_runner(basis, voices, life)
    jobs = make_jobs(basis, voices.showing, runner, alarm)
    looks = make_looks(basis, StoreLedger(store))
    watches = make_watches(jobs, runner, looks, watch_alarm)
    intake = _make_intake(
        basis, outbox, voices, runner, listed, partial(_look_again, jobs, watches)
    )
    parts = Parts(
        store, channels, engines, people, outbox, runner, intake, jobs, watches, undelivered,
        titling, basis.defaults, voices.approvals, tools, here,
        Within(voices, life, job_tools, looks),
    )  # fmt: skip
    _introduce(parts, above)
    return parts


def _introduce(parts: Parts, above: Above) -> None:
    """Tell those that were made first of those that came after them."""
    voices = parts.within.voices
    parts.runner.on_over(parts.titling.over)
    parts.runner.on_over(parts.jobs.over)
    parts.within.job_tools.changed = parts.jobs_changed
    parts.tools.begin(parts.runner.take, parts.intake.queue_up)
    above.intake = parts.intake
    above.failed += (
        voices.approvals.unshown,
        voices.questions.unshown,
        parts.undelivered.failed,
        _told_to(parts.jobs),
    )


def _look_again(jobs: Jobs, watches: Watches) -> None:
    jobs.changed()
    watches.changed()


def _told_to(jobs: Jobs) -> Callable[[Delivery, SendError], None]:
    """A run that has nobody to tell, because its thread is gone or closed to us."""

    def failed(delivery: Delivery, error: SendError) -> None:
        if delivery.turn is not None and isinstance(error, ThreadGone | Forbidden):
            jobs.unreachable(delivery.turn)

    return failed


def _make_intake(
    basis: Basis,
    outbox: Outbox,
    voices: Voices,
    runner: Runner,
    listed: PriceList,
    jobs_changed: Callable[[], None],
) -> Intake:
    ground = Ground(
        basis.store, runner, outbox, voices.approvals, voices.questions, basis.people,
        basis.channels, basis.clock, house(basis.settings, basis.defaults, basis.engines), new_id,
        jobs_changed, runner.budgeting.seen, lambda: listed.now,
    )  # fmt: skip
    return Intake(ground)


def house(settings: Settings, known: Defaults, engines: Iterable[str]) -> House:
    """The settings that intake goes by."""
    return House(
        home=settings.home,
        engine=known.engine,
        engines=tuple(sorted(engines)),
        approvals=settings.approvals.value,
        busy=settings.when_busy,
        workspace=known.workspace,
        zone=zone_name(settings),
        starter_approves=Approvers.STARTER is settings.approvers,
        bot_turns=settings.bot_turns.count,
        bot_seconds=settings.bot_turns.per,
        hears=bool(settings.transcribe_url),
        jobs=job_limits(settings),
    )
