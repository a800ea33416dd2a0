"""Caps by rule: sentences about single steps, and random histories against plain book-keeping."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.budgets import (
    Budget,
    Budgets,
    Capped,
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
    Warned,
    Why,
    handed_on,
    of_turn,
)
from core.lane_commands import Command, Save, Start
from core.lane_events import DaySpent, SkipAsked
from core.turns import Kind, Origin, Status, Stop, StopKind, Turn
from tests.examples import tried

OVERS = (Status.DONE, Status.FAILED, Status.STOPPED)
DAY, NEXT_DAY = "2026-03-01", "2026-03-02"
ANA, BEN = "telegram:1", "telegram:2"


def turn(number: int, lane: str = "a", person: str = ANA, origin: Origin = Origin.PERSON) -> Turn:
    return Turn(number, lane, person, origin, Kind.MAIN, arrived=0, label=f"turn {number}")


def skip(number: int) -> SkipAsked:
    return SkipAsked("a", "", kind=StopKind.BUDGET, turn=number)


def put(number: int, dollars: float, lane: str = "a", until: int | None = None) -> Put:
    return Put(Budget(number, lane, dollars, made_at=0, until=until))


@dataclass
class World:
    """Steps of one gateway, and everything they stored."""

    budgets: Budgets = field(default_factory=Budgets)
    stored: dict[int, Budget] = field(default_factory=dict)
    sums: dict[tuple[int, str], DaySum] = field(default_factory=dict)
    now: int = 1000
    day: str = DAY

    def keep(self, effects: Effects) -> Effects:
        self.budgets.settle()
        self.stored |= effects.budgets
        self.sums |= effects.sums
        return effects

    def says(self, change: Put | Off | Look) -> Effects:
        return self.keep(self.budgets.step(self.now, self.day, change=change))

    def starts(self, *turns: Turn) -> Effects:
        started = [replace(one, status=Status.STARTING) for one in turns]
        commands: list[Command] = [*map(Save, started), *map(Start, started)]
        return self.keep(self.budgets.step(self.now, self.day, commands))

    def saves(self, one: Turn, status: Status, stop: Stop | None = None) -> Effects:
        saved = Save(replace(one, status=status, stop=stop))
        return self.keep(self.budgets.step(self.now, self.day, [saved]))

    def spends(self, one: Turn, cost: float) -> Effects:
        spending = Spending(one.id, one.lane, one.person, cost)
        return self.keep(self.budgets.step(self.now, self.day, spending=spending))

    def state(self, number: int) -> State:
        return self.stored[number].state

    def restarted(self, *unfinished: int) -> World:
        """Another process over what was stored."""
        after = World(Budgets(self.budgets.standing), self.stored, self.sums, self.now, self.day)
        open_ = [one for one in self.stored.values() if one.state.open]
        after.budgets.load(open_, self.sums.values(), unfinished)
        return after


@pytest.fixture
def world() -> World:
    return World()


def test_the_next_turn_of_a_person_has_it_and_no_other(world: World) -> None:
    world.says(put(1, 0.25))
    for origin in (Origin.SCHEDULE, Origin.WATCH, Origin.CONTINUE):
        world.starts(turn(7, origin=origin))
    world.starts(turn(8, lane="b"))
    assert world.budgets.waiting("a") is not None
    world.starts(turn(1))
    world.starts(turn(2, lane="a"))
    assert world.budgets.of_turn(2) is None
    found = world.budgets.of_turn(1)
    assert found is not None
    assert (found.dollars, found.state) == (0.25, State.RESERVED)


def test_of_two_that_start_in_one_step_one_has_it(world: World) -> None:
    world.says(put(1, 1))
    world.starts(turn(1), turn(2))
    assert [world.budgets.of_turn(number) is None for number in (1, 2)] == [False, True]


def test_a_compaction_does_not_take_it(world: World) -> None:
    world.says(put(1, 1))
    world.starts(replace(turn(1), kind=Kind.COMPACT))
    assert world.budgets.waiting("a") is not None


def test_what_never_reached_its_engine_gives_it_back(world: World) -> None:
    world.says(put(1, 1))
    world.starts(turn(1))
    world.saves(turn(1), Status.STOPPED, Stop(StopKind.STOP, ANA))
    assert world.state(1) is State.WAITING
    world.starts(turn(2))
    world.saves(turn(2), Status.WAITING)
    world.starts(turn(2))
    world.saves(turn(2), Status.RUNNING)
    assert world.state(1) is State.USED
    world.saves(turn(2), Status.DONE)
    assert world.state(1) is State.OVER
    assert world.budgets.waiting("a") is None


def test_an_old_one_that_comes_back_never_takes_the_place_of_a_newer_one(world: World) -> None:
    world.says(put(1, 1))
    world.starts(turn(1))
    world.says(put(2, 5))
    world.saves(turn(1), Status.WAITING)
    waiting = world.budgets.waiting("a")
    assert waiting is not None
    assert waiting.dollars == 5
    assert world.stored[1].state is State.REPLACED


def test_one_that_was_taken_off_does_not_come_back(world: World) -> None:
    world.says(put(1, 1))
    world.starts(turn(1))
    world.says(Off("a"))
    assert world.budgets.of_turn(1) is not None
    world.saves(turn(1), Status.WAITING)
    assert world.budgets.waiting("a") is None


def test_its_wait_ends_by_the_clock_and_is_told_once(world: World) -> None:
    world.says(put(1, 1, until=2000))
    assert world.says(Look()).told == []
    world.now = 2000
    assert world.starts(turn(1)).told == [Expired(Budget(1, "a", 1, made_at=0, until=2000))]
    assert world.budgets.of_turn(1) is None
    assert world.says(Look()).told == []
    assert world.stored[1].state is State.EXPIRED


def test_the_wait_does_not_limit_the_turn_that_has_it(world: World) -> None:
    world.says(put(1, 1, until=2000))
    world.starts(turn(1))
    world.saves(turn(1), Status.RUNNING)
    world.now = 9000
    assert world.says(Look()).told == []
    assert world.budgets.of_turn(1) is not None


def test_a_warning_comes_at_eighty_percent_once_and_the_stop_at_all_of_it(world: World) -> None:
    world.says(put(1, 1))
    world.starts(turn(1))
    world.saves(turn(1), Status.RUNNING)
    assert world.spends(turn(1), 0.79).told == []
    assert world.spends(turn(1), 0.8).told == [Warned(1, "a", Scope.TURN, 0.8, 1)]
    assert world.spends(turn(1), 0.9).told == []
    effects = world.spends(turn(1), 1.2)
    assert effects.told == []
    assert effects.events == [skip(1)]
    ended = world.saves(turn(1), Status.STOPPED, Stop(StopKind.BUDGET))
    (told,) = ended.told
    assert isinstance(told, Capped)
    assert (told.scope, told.spent, told.cap) == (Scope.TURN, 1.2, 1)


def test_a_second_run_of_a_turn_goes_on_where_the_first_left_off(world: World) -> None:
    world.says(put(1, 1))
    world.starts(turn(1))
    world.spends(turn(1), 0.3)
    world.saves(turn(1), Status.WAITING)
    world.starts(turn(1))
    world.spends(turn(1), 0.2)
    assert world.budgets.cost_of(1) == 0.5
    assert world.budgets.on_day(DAY, ANA) == 0.5
    found = world.budgets.of_turn(1)
    assert found is not None
    assert found.left == 0.5


def test_a_job_has_its_own_cap_for_each_run_and_leaves_that_of_the_lane(world: World) -> None:
    world.says(put(1, 1))
    job = turn(5, origin=Origin.SCHEDULE)
    world.says(Put(of_turn(2, "a", 5, 0.5, 0, ANA)))
    world.saves(job, Status.WAITING)
    world.starts(job)
    world.saves(job, Status.WAITING)
    world.starts(job)
    assert world.spends(job, 0.6).events == [skip(5)]
    assert world.budgets.waiting("a") is not None


def test_what_goes_on_with_a_turn_keeps_what_is_left(world: World) -> None:
    world.says(put(1, 1))
    world.starts(turn(1))
    world.saves(turn(1), Status.RUNNING)
    world.spends(turn(1), 0.7)
    world.saves(turn(1), Status.INTERRUPTED)
    world.says(Put(handed_on(world.stored[1], 2, 0, 9)))
    after = turn(9, origin=Origin.CONTINUE)
    world.starts(after)
    assert world.spends(after, 0.25).events == []
    assert world.spends(after, 0.3).events != []
    assert world.stored[2].why is Why.CONTINUE


def test_a_spent_day_holds_its_person_until_the_next_one() -> None:
    world = World(Budgets(Standing(person=1, everybody=5)))
    assert world.spends(turn(1), 0.85).told == [Warned(1, "a", Scope.PERSON, 0.85, 1)]
    assert world.spends(turn(1), 1.0).events == [skip(1), DaySpent(frozenset({ANA}))]
    assert world.spends(turn(2, person=BEN), 0.5).events == []
    again = world.restarted(1)
    assert again.keep(again.budgets.step(0, DAY)).events == [DaySpent(frozenset({ANA}))]
    world.day = NEXT_DAY
    assert world.says(Look()).events == [DaySpent()]
    assert world.spends(turn(1), 1.1).events == []
    assert round(world.budgets.on_day(NEXT_DAY, ANA), 6) == 0.1
    assert world.budgets.on_day(DAY, ANA) == 1.0


def test_a_spent_day_of_all_holds_everybody() -> None:
    world = World(Budgets(Standing(everybody=1)))
    world.spends(turn(1), 0.6)
    (told,) = world.spends(turn(2, person=BEN), 0.3).told
    assert isinstance(told, Warned)
    assert told.scope is Scope.EVERYBODY
    effects = world.spends(turn(2, person=BEN), 0.4)
    assert effects.events == [skip(2), DaySpent(everybody=True)]


def test_what_still_runs_on_a_spent_day_is_stopped_by_what_it_spends() -> None:
    world = World(Budgets(Standing(person=1)))
    world.spends(turn(1), 1.0)
    assert world.spends(turn(2), 0.1).events == [skip(2)]


LANES = ("a", "b")


class Histories(RuleBasedStateMachine):
    """People, turns, failed commits and restarts, in any order."""

    @initialize()
    def begin(self) -> None:
        self.world = World(Budgets(Standing(person=3, everybody=5)))
        self.number = 0
        self.main: dict[str, Turn] = {}
        self.paid: dict[str, float] = {}  # plain book-keeping, by person
        self.run: dict[int, float] = {}
        self.had: dict[int, set[int]] = {}  # cap → turns whose prompt left under it for good

    def _next(self) -> int:
        self.number += 1
        return self.number

    @rule(lane=st.sampled_from(LANES), dollars=st.sampled_from([0.5, 1.0]), ends=st.booleans())
    def cap(self, lane: str, dollars: float, ends: bool) -> None:
        until = self.world.now + 5 if ends else None
        self.world.says(put(self._next(), dollars, lane, until))

    @rule(lane=st.sampled_from(LANES))
    def off(self, lane: str) -> None:
        self.world.says(Off(lane))
        assert self.world.budgets.waiting(lane) is None

    @rule(passed=st.integers(1, 6))
    def time(self, passed: int) -> None:
        self.world.now += passed
        self.world.says(Look())

    @rule(lane=st.sampled_from(LANES), person=st.sampled_from([ANA, BEN]), mine=st.booleans())
    def start(self, lane: str, person: str, mine: bool) -> None:
        before = self.main.get(lane)
        if before is not None and before.status is not Status.WAITING:
            return
        origin = Origin.PERSON if mine else Origin.SCHEDULE
        one = before or turn(self._next(), lane, person, origin)
        offered = self.world.budgets.waiting(lane)
        self.world.starts(one)
        self.main[lane] = replace(one, status=Status.STARTING)
        self.run[one.id] = 0.0
        has = self.world.budgets.of_turn(one.id)
        wanted = offered if one.origin is Origin.PERSON else None
        assert (has and has.id) == (wanted and wanted.id)

    @rule(lane=st.sampled_from(LANES), cost=st.sampled_from([0.1, 0.25, 0.6]))
    def spend(self, lane: str, cost: float) -> None:
        one = self.main.get(lane)
        if one is None or one.status is not Status.RUNNING:
            return
        self.run[one.id] += cost
        self.paid[one.person] = self.paid.get(one.person, 0.0) + cost
        effects = self.world.spends(one, self.run[one.id])
        has = self.world.budgets.of_turn(one.id)
        stops = [event for event in effects.events if isinstance(event, SkipAsked)]
        people, everybody = self.world.budgets.held
        spent = has is not None and has.spent >= has.dollars - 1e-6
        assert bool(stops) == (spent or everybody or one.person in people)

    @rule(lane=st.sampled_from(LANES), to=st.sampled_from([Status.RUNNING, Status.WAITING, *OVERS]))
    def goes_on(self, lane: str, to: Status) -> None:
        one = self.main.get(lane)
        if one is None or one.status is to or one.status is Status.WAITING:
            return
        has = self.world.budgets.of_turn(one.id)
        reached = one.status is Status.RUNNING
        self.world.saves(one, to)
        if to.over:
            del self.main[lane]
            if has is not None and reached:
                self.had.setdefault(has.id, set()).add(one.id)
        else:
            self.main[lane] = replace(one, status=to)
        if has is not None and has.returns and not reached and to is not Status.RUNNING:
            state = self.world.stored[has.id].state
            assert state in (State.WAITING, State.EXPIRED, State.OVER)

    @precondition(lambda self: self.main)
    @rule(lane=st.sampled_from(LANES))
    def fails_to_commit(self, lane: str) -> None:
        """Whatever a step does, taking it back leaves everything as it was."""
        budgets, one = self.world.budgets, self.main.get(lane, turn(9999, lane))
        before, mark = _picture(budgets), budgets.mark()
        commands: list[Command] = [Save(replace(one, status=Status.DONE)), Start(turn(9998, lane))]
        spending = Spending(one.id, lane, one.person, 2.0)
        budgets.step(self.world.now + 3, NEXT_DAY, commands, put(9997, 1, lane), spending)
        budgets.undo(mark)
        assert _picture(budgets) == before

    @rule()
    def restart(self) -> None:
        """What was starting or running waits again or is over; nothing of money is forgotten."""
        before = _picture(self.world.budgets)
        self.world = self.world.restarted(*(one.id for one in self.main.values()))
        self.world.keep(self.world.budgets.step(self.world.now, self.world.day))
        assert _picture(self.world.budgets)[:2] == before[:2]
        for lane, one in list(self.main.items()):
            self.goes_on(lane, Status.WAITING if one.status is Status.STARTING else Status.FAILED)

    @invariant()
    def nothing_is_had_twice_or_lost(self) -> None:
        if not hasattr(self, "world"):
            return
        for turns in self.had.values():
            assert len(turns) == 1
        for lane in LANES:
            alive = [
                one
                for one in self.world.stored.values()
                if one.lane == lane and one.state.open and one.returns
            ]
            assert len(alive) <= 1, "one cap a lane"
        for person in (ANA, BEN):
            paid, found = self.paid.get(person, 0.0), self.world.budgets.on_day(DAY, person)
            assert abs(paid - found) < 1e-6
        all_paid = sum(self.paid.values())
        assert self.world.budgets.held == (
            frozenset(person for person, paid in self.paid.items() if paid >= 3 - 1e-6),
            all_paid >= 5 - 1e-6,
        )


def _picture(budgets: Budgets) -> tuple[object, ...]:
    return (
        dict(budgets._waiting),
        dict(budgets._of_turn),
        {key: dict(value) for key, value in budgets._days.items()},
        dict(budgets._spent),
        budgets.held,
        budgets.day,
    )


TestHistories = Histories.TestCase
TestHistories.settings = tried(25, stateful_step_count=25)
