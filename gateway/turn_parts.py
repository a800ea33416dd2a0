"""What a turn goes through, put together area by area: sending, asking, working, deciding.

Each function makes what its area consists of from what stands below it; nothing is started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.approvals import Approvals
from core.asking import Asking
from core.at_work import AtWork
from core.budgeting import Money
from core.budgets import Standing
from core.channel import Channel, SendError
from core.clock import Clock
from core.engines.base import Engine
from core.folders import resolved
from core.health import Health
from core.intake import Intake
from core.lane_ids import channel_of
from core.messages import Address
from core.notices import Notices
from core.outbox import Outbox
from core.people import People
from core.preparing import Defaults, Preparing
from core.prices import PriceList
from core.questions import Questions
from core.runner import Runner
from core.showing import Showing, new_id
from core.store.records import Delivery
from core.store.store import Store
from core.telling import Telling
from core.tools import Tools
from core.turn_life import TimeLimits, TurnLife
from core.turns import Limits
from gateway.choices import Approvers
from gateway.config import Settings
from gateway.engine_parts import fallback, hearing
from gateway.paths import APPROVALS, OUTGOING

SIDES_IN_ALL = 4


@dataclass(frozen=True, slots=True)
class Basis:
    """What is there before any part is made."""

    settings: Settings
    clock: Clock
    store: Store
    channels: Mapping[str, Channel]
    engines: Mapping[str, Engine]
    people: People
    defaults: Defaults
    here: set[str]  # channels that are set up now

    def channel(self, lane: str) -> Channel:
        return self.channels[channel_of(lane)]


def defaults(settings: Settings) -> Defaults:
    workspace = str(resolved(settings.workspace)) if settings.workspace else ""
    return Defaults(settings.home, settings.engine.value, settings.approvals, workspace)


# Sending ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Above:
    """What the outbox tells parts that are above it, and made after it."""

    intake: Intake | None = None
    failed: list[Callable[[Delivery, SendError], None]] = field(default_factory=list)

    async def moved(self, address: Address, new_chat: str) -> None:
        assert self.intake is not None, "nothing is sent before the parts are put together"
        await self.intake.moved(address, new_chat)

    def gave_up(self, delivery: Delivery, error: SendError) -> None:
        for tell in self.failed:
            tell(delivery, error)


def make_outbox(basis: Basis, above: Above) -> Outbox:
    return Outbox(
        basis.store, basis.channels, basis.clock, moved=above.moved, on_failed=above.gave_up
    )


# Asking and telling people ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Voices:
    """Everybody who says something in a thread, or asks for something there."""

    showing: Showing
    telling: Telling
    notices: Notices
    approvals: Approvals
    questions: Questions


def make_voices(basis: Basis, outbox: Outbox) -> Voices:
    settings, store, clock, names = basis.settings, basis.store, basis.clock, basis.people.name
    patience = settings.approval_timeout, settings.approval_timeout_unattended
    showing = Showing(store.ids, basis.channel, clock, new_id)
    private = [resolved(settings.home), resolved(Path(".env"))]  # whatever the workspace is
    telling = Telling(
        showing, basis.channel, outbox, names, settings.queue_limit, settings.receipts, private
    )
    asking = Asking(
        store, basis.channel, showing, new_id, basis.people,
        Approvers.STARTER is settings.approvers, settings.home / APPROVALS,
    )  # fmt: skip
    return Voices(
        showing,
        telling,
        Notices(store, basis.channel, clock, new_id, settings.timezone),
        Approvals(store, asking, showing, names, clock, *patience),
        Questions(basis.channel, showing, clock, new_id, names, *patience),
    )


# Working ----------------------------------------------------------------------------------


def time_limits(settings: Settings) -> TimeLimits:
    return TimeLimits(settings.turn_idle_timeout, settings.turn_timeout, settings.stop_grace)


def make_turn_life(
    basis: Basis, outbox: Outbox, voices: Voices, tools: Tools, listed: PriceList
) -> TurnLife:
    settings, clock = basis.settings, basis.clock
    health = Health(clock, fallback(settings, basis.engines))
    at_work = AtWork()
    preparing = Preparing(
        basis.store,
        basis.engines,
        basis.channel,
        basis.defaults,
        clock,
        health,
        at_work,
        hearing(settings, clock),
    )
    return TurnLife(
        preparing,
        voices.approvals,
        outbox,
        voices.telling,
        tools,
        clock,
        time_limits(settings),
        settings.preview,
        settings.home / OUTGOING,
        health,
        at_work,
        prices=lambda: listed.now,
    )


# Deciding ---------------------------------------------------------------------------------


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


def make_runner(basis: Basis, voices: Voices, life: TurnLife) -> Runner:
    runner = Runner(
        basis.store,
        voices.notices,
        life,
        basis.engines,
        basis.defaults,
        basis.here,
        limits(basis.settings),
        money(basis.settings),
    )
    life.health.paused = lambda: runner.lanes.engine_pauses
    return runner
