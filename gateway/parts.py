"""The parts of the gateway, put together: the only file that names concrete classes.

From settings to objects that know each other; nothing is started here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from channels.registry import Wanted
from core.alarm import Alarm
from core.approvals import Approvals
from core.at_work import AtWork
from core.budgeting import Money
from core.budgets import Standing
from core.channel import Channel, Forbidden, SendError, ThreadGone
from core.clock import Clock
from core.engines.acp import AcpEngine
from core.engines.base import Engine
from core.engines.claude_program import find_program
from core.engines.codex_program import find_program as find_codex
from core.engines.demo import demo_engine
from core.engines.processes import Ledger
from core.engines.trees import Record
from core.folders import resolved
from core.ground import Ground, House
from core.health import Health
from core.hearing import Hearing
from core.intake import Intake
from core.jobs import Jobs
from core.lane_ids import channel_of
from core.messages import Address
from core.notices import Notices
from core.outbox import Outbox
from core.people import Lists, People
from core.preparing import Defaults, Preparing
from core.prices import PriceList
from core.questions import Questions
from core.runner import Runner
from core.showing import Showing, new_id
from core.store import rows
from core.store.records import Delivery, ProcessRow
from core.store.store import Store
from core.telling import Telling
from core.titling import Titling
from core.tools import Tools
from core.turn_life import TimeLimits, TurnLife
from core.turns import Limits
from core.undelivered import Undelivered
from core.watches import Watches
from gateway.config import Settings
from gateway.control import OWNER
from gateway.job_parts import (
    job_limits,
    make_job_tools,
    make_jobs,
    make_watches,
    zone_name,
)
from gateway.paths import APPROVALS, OUTGOING, PRIVATE
from gateway.settings_table import Approvers, EngineName

SIDES_IN_ALL = 4


class StoreLedger:
    """Keeps records of engine processes in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, record: Record) -> None:
        row = ProcessRow(record.pid, record.created, record.lane, record.marker)
        await self._store.save(rows.process(row))

    def remove(self, record: Record) -> None:
        # Never waited for: a stop and the end of the gateway must not depend on the disk.
        self._store.save_later(rows.remove_process(record.pid, record.created))


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

    def jobs_changed(self) -> None:
        """Somebody made a job or changed one."""
        self.jobs.changed()
        self.watches.changed()


def wanted_channels(settings: Settings) -> list[Wanted]:
    """The platforms that the settings name; the local channel is always there."""
    wanted = []
    if settings.telegram_token:
        options = {
            "token": settings.telegram_token.reveal(),
            "api_base": settings.telegram_api_base,
        }
        wanted.append(Wanted("telegram", options))
    if settings.slack_bot_token and settings.slack_app_token:
        slack: dict[str, object] = {
            "bot_token": settings.slack_bot_token.reveal(),
            "app_token": settings.slack_app_token.reveal(),
            "api_base": settings.slack_api_base,
            "streams": settings.slack_streams.value,
            "people": _ids("slack", settings.admins | settings.members),
        }
        wanted.append(Wanted("slack", slack))
    if settings.discord_token:
        wanted.append(Wanted("discord", _discord_options(settings)))
    return wanted


def _ids(channel: str, named: frozenset[str]) -> frozenset[str]:
    """A channel's own, of ids as the settings have them."""
    pairs = (one.partition(":") for one in named)
    return frozenset(ident for name, _, ident in pairs if name == channel)


def _discord_options(settings: Settings) -> dict[str, object]:
    return {
        "token": settings.discord_token.reveal(),
        "api_base": settings.discord_api_base,
        "gateway_url": settings.discord_gateway_url,
        "auto_thread": settings.discord_auto_thread,
        "people": _ids("discord", settings.admins | settings.members),
        "places": _ids("discord", settings.places),
    }


def make_engines(settings: Settings, clock: Clock, ledger: Ledger) -> dict[str, Engine]:
    """Every engine that can be chosen here; none of them starts anything yet."""
    env = sorted(settings.engine_env)
    engines: dict[str, Engine] = {"demo": demo_engine(settings.home, clock, ledger, env=env)}
    if settings.acp_command:
        engines["acp"] = AcpEngine(
            EngineName.ACP.value,
            settings.acp_command,
            home=settings.home,
            clock=clock,
            env=env,
            read_only_mode=settings.acp_readonly_mode,
            ledger=ledger,
            grace=settings.stop_grace,
        )
    if settings.openai_base_url:
        engines["openai"] = _chat_engine(settings, clock)
    chosen = {settings.engine, settings.fallback_engine}
    if EngineName.CLAUDE in chosen or settings.claude_command or find_program():
        engines["claude"] = _claude_engine(settings, clock, ledger)
    if EngineName.CODEX in chosen or settings.codex_command or find_codex():
        engines["codex"] = _codex_engine(settings, clock, ledger)
    return engines


def _claude_engine(settings: Settings, clock: Clock, ledger: Ledger) -> Engine:
    from core.engines.claude import ClaudeEngine  # loaded where it is used

    own = [(settings.home, name) for name in PRIVATE]
    return ClaudeEngine(
        settings.claude_command or (find_program() or "claude",),
        home=settings.home,
        clock=clock,
        env=sorted(settings.engine_env),
        private=[*own, (Path.cwd(), ".env")],
        ledger=ledger,
        grace=settings.stop_grace,
    )


def _codex_engine(settings: Settings, clock: Clock, ledger: Ledger) -> Engine:
    from core.engines.codex import CodexEngine  # loaded where it is used
    from core.engines.workspace_tools import reading_tools

    return CodexEngine(
        settings.codex_command or (find_codex() or "codex",),
        home=settings.home,
        clock=clock,
        env=sorted(settings.engine_env),
        private=[settings.home, Path.cwd() / ".env"],
        ledger=ledger,
        grace=settings.stop_grace,
        tools=lambda request: reading_tools(request, (settings.home, Path(".env"))),
    )


def _chat_engine(settings: Settings, clock: Clock) -> Engine:
    from core.engines.openai_http import Bounds, ChatEngine  # loaded where it is used
    from core.engines.workspace_tools import reading_tools

    concealed = (settings.home, Path(".env"))  # whatever folder the workspace is
    return ChatEngine(
        EngineName.OPENAI.value,
        settings.openai_base_url,
        home=settings.home,
        clock=clock,
        key=settings.openai_api_key.reveal() if settings.openai_api_key else "",
        model=settings.openai_model,
        bounds=Bounds(context=settings.openai_context),
        tools=lambda request: reading_tools(request, concealed),
    )


def hearing(settings: Settings, clock: Clock) -> Hearing | None:
    """The service that makes voice notes text, where one is set up."""
    if not settings.transcribe_url:
        return None
    key = settings.transcribe_api_key.reveal() if settings.transcribe_api_key else ""
    return Hearing(settings.transcribe_url, key, settings.transcribe_model, clock)


def fallback(settings: Settings, engines: Mapping[str, Engine]) -> str:
    """The engine that stands in for one that fails; "" none does."""
    name = settings.fallback_engine.value if settings.fallback_engine else ""
    return name if name in engines else ""


def lists(settings: Settings) -> Lists:
    """Who and what the environment names. Whoever can open the local socket is the owner."""
    return Lists(
        admins=settings.admins | {OWNER},
        members=settings.members,
        places=settings.places,
        bots=settings.bots,
    )


def money(settings: Settings) -> Money:
    """The caps that hold every day, and whose days they go by."""
    person, everybody = settings.budget_person_day, settings.budget_day
    standing = Standing(
        float(person) if person is not None else None,
        float(everybody) if everybody is not None else None,
    )
    return Money(standing, settings.timezone)


def limits(settings: Settings) -> Limits:
    return Limits(
        running=settings.max_turns,
        per_person=settings.max_turns_per_person,
        queue=settings.queue_limit,
        sides_per_lane=settings.max_side,
        sides=SIDES_IN_ALL,
    )


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
    """Objects that know each other, from the outbox up to the intake."""
    workspace = str(resolved(settings.workspace)) if settings.workspace else ""
    defaults = Defaults(settings.home, settings.engine.value, settings.approvals, workspace)
    late: list[Intake] = []  # the outbox is below the intake, and tells it of moved chats

    async def moved(address: Address, new_chat: str) -> None:
        await late[0].moved(address, new_chat)

    def failed(delivery: Delivery, error: SendError) -> None:
        approvals.unshown(delivery, error)
        questions.unshown(delivery, error)
        undelivered.failed(delivery, error)
        if delivery.turn is not None and isinstance(error, ThreadGone | Forbidden):
            jobs.unreachable(delivery.turn)

    outbox = Outbox(store, channels, clock, moved=moved, on_failed=failed)

    def channel(lane: str) -> Channel:
        return channels[channel_of(lane)]

    undelivered = Undelivered(store, channel, clock)
    titling = Titling(store, outbox, channel)
    approvals = Approvals(
        store,
        channel,
        clock,
        new_id,
        people.name,
        people.admins,
        Approvers.STARTER is settings.approvers,
        settings.approval_timeout,
        settings.approval_timeout_unattended,
        settings.home / APPROVALS,
    )
    rules = limits(settings)
    private = [resolved(settings.home), resolved(Path(".env"))]  # whatever the workspace is
    telling = Telling(
        store.ids, channel, outbox, clock, new_id, people.name, rules.queue, settings.receipts,
        private,
    )  # fmt: skip
    showing = Showing(store.ids, channel, clock, new_id)
    questions = Questions(
        channel,
        showing,
        clock,
        new_id,
        people.name,
        settings.approval_timeout,
        settings.approval_timeout_unattended,
    )
    spill = settings.home / OUTGOING
    listed = PriceList(settings.home, set(EngineName), clock.monotonic)
    job_tools = make_job_tools(settings, store, people, showing, clock)
    tools = Tools(store, telling, showing, outbox, questions, job_tools, spill, tools_url)
    health = Health(clock, fallback(settings, engines))
    at_work = AtWork()
    hears = hearing(settings, clock)
    life = TurnLife(
        Preparing(store, engines, channel, defaults, clock, health, at_work, hears),
        approvals,
        outbox,
        telling,
        tools,
        clock,
        TimeLimits(settings.turn_idle_timeout, settings.turn_timeout, settings.stop_grace),
        settings.preview,
        spill,
        health,
        at_work,
        prices=lambda: listed.now,
    )
    notices = Notices(store, channel, clock, new_id, settings.timezone)
    runner = Runner(
        store, telling, notices, life, engines, defaults, frozenset(channels), clock, rules,
        money(settings),
    )  # fmt: skip
    health.paused = lambda: runner.lanes.engine_pauses
    runner.on_over(titling.over)
    jobs = make_jobs(
        settings, store, people, frozenset(channels), showing, clock, defaults, runner, alarm
    )
    runner.on_over(jobs.over)
    ledger = StoreLedger(store)
    watches = make_watches(settings, jobs, runner, ledger, defaults, watch_alarm)

    def jobs_changed() -> None:
        jobs.changed()
        watches.changed()

    job_tools.changed = jobs_changed
    house = House(
        home=settings.home,
        engine=defaults.engine,
        engines=tuple(sorted(engines)),
        approvals=settings.approvals.value,
        busy=settings.when_busy,
        workspace=workspace,
        zone=zone_name(settings),
        starter_approves=Approvers.STARTER is settings.approvers,
        bot_turns=settings.bot_turns.count,
        bot_seconds=settings.bot_turns.per,
        hears=hears is not None,
        jobs=job_limits(settings),
    )
    ground = Ground(
        store, runner, outbox, approvals, questions, people, channels, clock, house, new_id,
        jobs_changed, runner.budgeting.seen, lambda: listed.now,
    )  # fmt: skip
    intake = Intake(ground)
    tools.begin(runner.take, intake.queue_up)
    late.append(intake)
    return Parts(
        store,
        channels,
        engines,
        people,
        outbox,
        runner,
        intake,
        jobs,
        watches,
        undelivered,
        titling,
        defaults,
        approvals,
        tools,
    )
