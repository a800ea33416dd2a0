"""The rules of caps: one step in, what to store, to say and to tell the lane rules out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NewType

from core.budgets.values import (
    EVERYBODY,
    WARN,
    Budget,
    Capped,
    Change,
    DaySum,
    Effects,
    Expired,
    Look,
    Off,
    Put,
    Scope,
    Spending,
    Standing,
    State,
    Told,
    Warned,
    Why,
    reached,
)
from core.lane_commands import Command, Save, Start, StartSide
from core.lane_events import DaySpent, SkipAsked
from core.turns import Kind, Origin, Status, StopKind, Turn

DAYS_KEPT = 3  # that a clock which goes back finds again

Mark = NewType("Mark", int)


@dataclass(frozen=True, slots=True)
class _Spent:
    """What a turn has cost: in its present run, and on each day in all of them."""

    person: str
    now: float = 0.0
    days: tuple[tuple[str, float], ...] = ()

    @property
    def cost(self) -> float:
        return round(sum(cost for _, cost in self.days), 9)


class Budgets:
    """All caps that are open, and what was spent on the last few days."""

    def __init__(self, standing: Standing | None = None) -> None:
        self.standing = standing or Standing()
        self._waiting: dict[str, Budget] = {}  # by lane
        self._of_turn: dict[int, Budget] = {}
        self._spent: dict[int, _Spent] = {}  # turns that are not over
        self._days: dict[str, dict[str, float]] = {}  # by day and person
        self._held: dict[str, tuple[frozenset[str], bool]] = {}  # one entry: who waits for a day
        self._day = {"": ""}
        self._journal: list[tuple[dict[Any, Any], Any, Any]] = []
        self._settled = 0

    # The draft

    def mark(self) -> Mark:
        return Mark(self._settled + len(self._journal))

    def undo(self, mark: Mark) -> None:
        """Take back exactly what was changed since the mark."""
        while self._settled + len(self._journal) > mark:
            where, key, before = self._journal.pop()
            if before is None:
                where.pop(key, None)
            else:
                where[key] = before

    def settle(self) -> None:
        self._settled += len(self._journal)
        self._journal.clear()

    def _set(self, where: dict[Any, Any], key: Any, value: Any) -> None:
        """The only way to change anything. None takes the entry out."""
        self._journal.append((where, key, where.get(key)))
        if value is None:
            where.pop(key, None)
        else:
            where[key] = value

    # Looking

    def waiting(self, lane: str) -> Budget | None:
        return self._waiting.get(lane)

    def of_turn(self, turn: int) -> Budget | None:
        return self._of_turn.get(turn)

    def cost_of(self, turn: int) -> float:
        """What a turn that is not over has spent."""
        spent = self._spent.get(turn)
        return spent.cost if spent else 0.0

    def on_day(self, day: str, person: str = EVERYBODY) -> float:
        return self._days.get(day, {}).get(person, 0.0)

    def caps(self, turn: int, person: str, day: str) -> list[tuple[Scope, float, float]]:
        """Every cap a turn is under: of what, what is spent of it, and how much it is."""
        found = []
        if budget := self._of_turn.get(turn):
            found.append((Scope.TURN, budget.spent, budget.dollars))
        if self.standing.person is not None:
            found.append((Scope.PERSON, self.on_day(day, person), self.standing.person))
        if self.standing.everybody is not None:
            found.append((Scope.EVERYBODY, self.on_day(day), self.standing.everybody))
        return found

    def next_expiry(self) -> int | None:
        """When the first cap stops waiting for a turn."""
        ends = [one.until for one in self._waiting.values() if one.until is not None]
        return min(ends, default=None)

    @property
    def day(self) -> str:
        """The one that was last gone by."""
        return self._day[""]

    @property
    def held(self) -> tuple[frozenset[str], bool]:
        """Who has spent what a day allows, and whether all together have."""
        return self._held.get("", (frozenset(), False))

    # Beginning

    def load(self, budgets: Iterable[Budget], sums: Iterable[DaySum], open_: Iterable[int]) -> None:
        """What is stored: open caps, the sums of the last days, the turns that are not over."""
        for budget in budgets:
            if budget.state is State.WAITING:
                self._waiting[budget.lane] = budget
            elif budget.turn is not None:
                self._of_turn[budget.turn] = budget
        unfinished = set(open_)
        for one in sums:
            people = self._days.setdefault(one.day, {})
            for person in (one.person, EVERYBODY):
                people[person] = round(people.get(person, 0.0) + one.cost, 9)
            if one.turn in unfinished:
                spent = self._spent.get(one.turn, _Spent(one.person))
                days = (*spent.days, (one.day, one.cost))
                self._spent[one.turn] = replace(spent, days=days)

    # Steps

    def step(
        self,
        now: int,
        day: str,
        commands: Sequence[Command] = (),
        change: Change | None = None,
        spending: Spending | None = None,
    ) -> Effects:
        """One step of the gateway: what somebody said, what was spent, what the rules decided."""
        effects = Effects()
        match change:
            case Put(budget):
                self._put(budget, effects)
            case Off(lane):
                self._withdraw(lane, State.OFF, effects)
            case Look():
                self._expire(now, effects)
            case None:
                pass
        if spending is not None:
            self._spend(spending, day, effects)
        for command in commands:
            match command:
                case Save(turn):
                    self._saved(turn, now, day, effects)
                case Start(turn) | StartSide(turn):
                    self._started(turn, now, effects)
                case _:
                    pass
        if spending is not None or change is not None or day != self._day[""]:
            self._hold(day, effects)
        return effects

    # Caps of turns

    def _put(self, budget: Budget, effects: Effects) -> None:
        if budget.turn is None:
            self._withdraw(budget.lane, State.REPLACED, effects)
            self._set(self._waiting, budget.lane, budget)
        else:
            self._set(self._of_turn, budget.turn, budget)
        effects.budgets[budget.id] = budget

    def _withdraw(self, lane: str, state: State, effects: Effects) -> None:
        """What waits is no more, and what a turn has does not come back."""
        if old := self._waiting.get(lane):
            self._set(self._waiting, lane, None)
            effects.budgets[old.id] = replace(old, state=state)
        for budget in list(self._of_turn.values()):
            if budget.lane == lane and budget.why is Why.NEXT and budget.returns:
                self._keep(replace(budget, returns=False), effects)

    def _keep(self, budget: Budget, effects: Effects) -> None:
        """A cap that a turn has, as it is now."""
        self._set(self._of_turn, budget.turn, budget)
        effects.budgets[budget.id] = budget

    def _started(self, turn: Turn, now: int, effects: Effects) -> None:
        if spent := self._spent.get(turn.id):
            self._set(self._spent, turn.id, replace(spent, now=0.0))
        budget = self._waiting.get(turn.lane)
        mine = turn.origin is Origin.PERSON and turn.kind is Kind.MAIN
        if budget is None or not mine or turn.id in self._of_turn:
            return
        self._set(self._waiting, turn.lane, None)
        if budget.until is not None and budget.until <= now:
            self._expired(budget, effects)
        else:
            self._keep(replace(budget, state=State.RESERVED, turn=turn.id), effects)

    def _saved(self, turn: Turn, now: int, day: str, effects: Effects) -> None:
        budget = self._of_turn.get(turn.id)
        if turn.status.over:
            if turn.status is Status.STOPPED and turn.stop and turn.stop.kind is StopKind.BUDGET:
                effects.told += self._why(turn, day)
            if turn.id in self._spent:
                self._set(self._spent, turn.id, None)
            if budget is not None and budget.state is State.RESERVED:
                self._give_back(budget, now, effects)
            elif budget is not None:
                self._set(self._of_turn, turn.id, None)
                effects.budgets[budget.id] = replace(budget, state=State.OVER)
        elif budget is None:
            return
        elif turn.status is Status.RUNNING and budget.state is State.RESERVED:
            self._keep(replace(budget, state=State.USED), effects)
        elif turn.status is Status.WAITING and budget.why is Why.NEXT:
            self._give_back(budget, now, effects)

    def _give_back(self, budget: Budget, now: int, effects: Effects) -> None:
        """Its turn never reached the engine, or to no effect: the next one has what is left."""
        self._set(self._of_turn, budget.turn, None)
        free = replace(budget, turn=None)
        if budget.why is not Why.NEXT or reached(budget.spent, budget.dollars):
            effects.budgets[budget.id] = replace(budget, state=State.OVER)
        elif not budget.returns:
            effects.budgets[budget.id] = replace(free, state=State.REPLACED)
        elif budget.until is not None and budget.until <= now:
            self._expired(free, effects)
        else:
            free = replace(free, state=State.WAITING)
            self._set(self._waiting, budget.lane, free)
            effects.budgets[budget.id] = free

    def _expire(self, now: int, effects: Effects) -> None:
        for lane, budget in list(self._waiting.items()):
            if budget.until is not None and budget.until <= now:
                self._set(self._waiting, lane, None)
                self._expired(budget, effects)

    def _expired(self, budget: Budget, effects: Effects) -> None:
        effects.budgets[budget.id] = replace(budget, state=State.EXPIRED)
        effects.told.append(Expired(budget))

    # Spending

    def _spend(self, spending: Spending, day: str, effects: Effects) -> None:
        """Take in what a run has cost more than before; less, if a price was put right."""
        turn, person = spending.turn, spending.person
        spent = self._spent.get(turn, _Spent(person))
        more = spending.cost - spent.now
        before = self.caps(turn, person, day)
        days = dict(spent.days)
        days[day] = round(days.get(day, 0.0) + more, 9)
        self._set(self._spent, turn, replace(spent, now=spending.cost, days=tuple(days.items())))
        effects.sums[turn, day] = DaySum(turn, day, person, days[day])
        people = dict(self._days.get(day, {}))
        for one in (person, EVERYBODY):
            people[one] = round(people.get(one, 0.0) + more, 9)
        self._set(self._days, day, people)
        if budget := self._of_turn.get(turn):
            self._keep(replace(budget, spent=round(budget.spent + more, 9)), effects)
        after = self.caps(turn, person, day)
        for (scope, had, cap), (_, has, _) in zip(before, after, strict=True):
            if reached(has, cap):
                effects.events[:] = [SkipAsked(spending.lane, "", kind=StopKind.BUDGET, turn=turn)]
            elif reached(has, WARN * cap) and not reached(had, WARN * cap):
                effects.told.append(Warned(turn, spending.lane, scope, has, cap))

    def _why(self, turn: Turn, day: str) -> list[Told]:
        """Which cap stopped it: the one that is furthest used up."""
        caps = self.caps(turn.id, turn.person, day)
        if not caps:
            return []
        scope, _, cap = max(caps, key=lambda one: reached(one[1], one[2]))
        return [Capped(turn, scope, max(self.cost_of(turn.id), 0.0), cap)]

    def _hold(self, day: str, effects: Effects) -> None:
        """Who has to wait for the next day, told to the lane rules when it changes."""
        if day != self._day[""]:
            self._set(self._day, "", day)
            for old in sorted(past for past in self._days if past < day)[:-DAYS_KEPT]:
                self._set(self._days, old, None)
        cap, all_cap = self.standing.person, self.standing.everybody
        people = frozenset(
            person
            for person, cost in self._days.get(day, {}).items()
            if person != EVERYBODY and cap is not None and reached(cost, cap)
        )
        everybody = all_cap is not None and reached(self.on_day(day), all_cap)
        if (people, everybody) != self.held:
            self._set(self._held, "", (people, everybody))
            effects.events.append(DaySpent(people, everybody))
