"""Caps at work: the rules of money follow each step of the lane rules, in the same transaction.

What one turn spends can end it, or hold everybody until tomorrow; what the lane rules answer to
that can start others. So both are asked in turn until neither has anything more to say. It must not
know how a turn runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from core import budget_words as words
from core.budgets import (
    Budgets,
    Capped,
    Effects,
    Expired,
    Look,
    Mark,
    Put,
    Scope,
    Standing,
    Told,
    Warned,
)
from core.clock import Clock
from core.engines.base import Engine, Usage
from core.items import Item, Said, Take
from core.lane_commands import Command
from core.lane_events import DaySpent
from core.lanes import Lanes
from core.prices import Prices
from core.settling import End
from core.store import budgets as stored
from core.store.rows import Row
from core.store.store import Reader
from core.telling import Telling
from core.turns import Kind, Result, Turn

log = logging.getLogger("laneway.runner")

TICK = 15.0  # seconds between two looks at the wall clock, at most
LEAST = 0.05
DAY = 86_400_000  # ms


@dataclass(frozen=True, slots=True)
class Money:
    """The caps that always hold, and whose days they go by."""

    standing: Standing = field(default_factory=Standing)
    zone: tzinfo = UTC


@dataclass(slots=True)
class Followed:
    """What a step came to: all commands, and what is stored and said beside theirs.

    ``ends``: turns whose end is told here, with what they spent.
    """

    commands: list[Command]
    rows: list[Row] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Cap:
    """A cap that a turn is under. ``left`` of ``dollars``."""

    scope: Scope
    left: float
    dollars: float


Tightest = Callable[[Turn], Cap | None]


class NotToday(Exception):
    """The day was spent while this turn was on its way to its engine: it waits like the others."""


def hindrance(turn: Turn, cap: Cap | None, engine: Engine, prices: Prices, model: str) -> str:
    """Why a turn under this cap must not begin, in words; "": it may. Raises NotToday."""
    if cap is None:
        return ""
    if not cap.left and cap.scope is not Scope.TURN and turn.kind is not Kind.SIDE:
        raise NotToday
    if not cap.left:
        return words.nothing_left(cap.scope, cap.dollars)
    if engine.abilities.cost is False and prices.of(engine.name, model) is None:
        return words.no_price(engine.name, model)
    return ""


def not_kept(cap: Cap | None, engine: Engine, end: End, usage: Usage | None) -> str:
    """What is told of a turn under a cap whose cost nobody told, as it turned out; "": nothing."""
    known = usage is not None and usage.cost is not None
    if cap is None or known or end.result is not Result.DONE:
        return ""
    return words.not_kept(engine.name)


def _who(spent: DaySpent) -> str:
    if spent.everybody:
        return "what all may spend"
    return ", ".join(sorted(spent.people)) or "nobody any more"


class Budgeting:
    """One for the process; a part of the runner's draft."""

    def __init__(
        self,
        money: Money,
        lanes: Lanes,
        telling: Telling,
        clock: Clock,
    ) -> None:
        self.budgets = Budgets(money.standing)
        self._zone = money.zone
        self._lanes = lanes
        self._telling = telling
        self._clock = clock
        self._changed = asyncio.Event()

    async def load(self, store: Reader, turns: Iterable[Turn]) -> None:
        """Once, before the first step."""
        since = self._day(self._clock.now() - DAY)
        self.budgets.load(
            await stored.open_budgets(store),
            await stored.sums(store, since),
            [turn.id for turn in turns],
        )

    def follow(self, commands: Sequence[Command], item: Item | None = None) -> Followed:
        """Called inside a step, with what the lane rules answered to it."""
        now = self._clock.now()
        day = self._day(now)
        followed = Followed(list(commands))
        change, spending = (item.budget, item.spending) if item else (None, None)
        if isinstance(change, Put):
            self._changed.set()
        fresh: Sequence[Command] = commands
        while True:
            effects = self.budgets.step(now, day, fresh, change, spending)
            self._written(effects, now, followed)
            for event in effects.events:
                if isinstance(event, DaySpent):
                    log.warning("spent for today: %s", _who(event))
            fresh = [one for event in effects.events for one in self._lanes.handle(event)]
            followed.commands += fresh
            if not fresh:
                return followed
            change = spending = None

    async def renew(self, money: Money, take: Take) -> None:
        """Go by other caps; who waits for a day is looked at anew."""
        self.budgets.standing, self._zone = money.standing, money.zone
        await take(Item(budget=Look()))
        self._changed.set()

    # The draft

    def mark(self) -> int:
        return self.budgets.mark()

    def undo(self, mark: int) -> None:
        self.budgets.undo(Mark(mark))

    def settle(self) -> None:
        self.budgets.settle()

    def _written(self, effects: Effects, now: int, followed: Followed) -> None:
        followed.rows += [stored.save(budget) for budget in effects.budgets.values()]
        followed.rows += [stored.spent(one) for one in effects.sums.values()]
        for news in effects.told:
            followed.said.append(self._said(news, now))
            if isinstance(news, Capped):
                followed.ends.add(news.turn.id)

    def _said(self, news: Told, now: int) -> Said:
        text = words.told(news, words.next_day(now, self._zone), now, self._zone)
        match news:
            case Warned(_, lane):
                return self._telling.remark(lane, text)
            case Expired(budget):
                return self._telling.remark(budget.lane, text)
            case Capped(turn):
                return self._telling.note(turn, text)

    def _day(self, now: int) -> str:
        return words.day_of(now, self._zone)

    # For a turn ---------------------------------------------------------------------------

    def tightest(self, turn: Turn) -> Cap | None:
        """Of the caps this turn is under, the one with the least left; None: it is under none."""
        caps = self.budgets.caps(turn.id, turn.person, self._day(self._clock.now()))
        left = [Cap(scope, max(0.0, round(cap - spent, 9)), cap) for scope, spent, cap in caps]
        return min(left, key=lambda cap: cap.left, default=None)

    # For commands -------------------------------------------------------------------------

    def seen(self, lane: str, person: str, turn: int | None) -> words.BudgetsSeen:
        now = self._clock.now()
        day, standing = self._day(now), self.budgets.standing
        return words.BudgetsSeen(
            waiting=self.budgets.waiting(lane),
            running=self.budgets.of_turn(turn) if turn is not None else None,
            own=self.budgets.on_day(day, person),
            all=self.budgets.on_day(day),
            person_cap=standing.person,
            all_cap=standing.everybody,
            until=words.next_day(now, self._zone),
        )

    # Time ---------------------------------------------------------------------------------

    async def run(self, take: Take) -> None:
        """Let waits end and days begin, until cancelled."""
        while True:
            now = self._clock.now()
            expiry, day = self.budgets.next_expiry(), self._day(now)
            due = expiry is not None and expiry <= now
            if due or (day != self.budgets.day and self.budgets.held != (frozenset(), False)):
                await take(Item(budget=Look()))
            ends = [words.next_day(now, self._zone), *([] if expiry is None else [expiry])]
            left = [(end - now) / 1000 for end in ends if end > now]
            await self._pause(max(LEAST, min(TICK, *left, TICK)))

    async def _pause(self, seconds: float) -> None:
        """So long, or until a cap is set that may end sooner."""
        self._changed.clear()
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._clock.sleep(seconds), name="next end of a cap")
            changed = group.create_task(self._changed.wait(), name="a cap is set")
            await asyncio.wait((timer, changed), return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
            changed.cancel()
