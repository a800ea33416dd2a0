"""Random histories: any order of messages, stops, ends, pauses, late reports and crashes.

A longer run: ``HYPOTHESIS_PROFILE=long pytest tests/lanes/test_histories.py``.
"""

from __future__ import annotations

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from core.lane_commands import StartSide, Tell
from core.lane_events import (
    Answered,
    Asked,
    Ended,
    Finished,
    Prompted,
    SteerRefused,
    SteerTaken,
    Unsent,
)
from core.turns import Busy, Kind, Origin, Result, Status, StopKind
from tests.examples import tried
from tests.lanes.oracle import check
from tests.lanes.world import World

LANES = ("a", "b", "c", "d")
PEOPLE = ("ann", "bob", "cy")
FOLDERS = ("", "", "/srv", "/srv/deep", "/srvs")
ENGINES = ("one", "two")

lanes = st.sampled_from(LANES)
people = st.sampled_from(PEOPLE)
rarely = st.sampled_from([False, False, False, True])
origins = st.sampled_from([*[Origin.PERSON] * 4, Origin.CONTINUE, Origin.WATCH, Origin.SIDE])
SCOPES: tuple[dict[str, str], ...] = (
    {"lane": "a"},
    {"lane": "b"},
    {"engine": "one"},
    {"engine": "two"},
    {},
)
scopes = st.sampled_from(SCOPES)


class Histories(RuleBasedStateMachine):
    """Each step is first handled, taken back and compared, as if its commit had failed."""

    @initialize(
        running=st.integers(1, 3),
        per_person=st.integers(1, 3),
        queue=st.integers(1, 4),
        sides=st.integers(0, 2),
    )
    def begin(self, running: int, per_person: int, queue: int, sides: int) -> None:
        self.world = World(
            running=running,
            per_person=per_person,
            queue=queue,
            sides_per_lane=1,
            sides=sides,
            collect_pieces=3,
            collect_gap=5,
            attempts=1,
        )
        self.world.doubtful = True

    def check(self) -> None:
        check(self.world, LANES)

    def one(self, data: st.DataObject, turns: list[int]) -> int:
        return data.draw(st.sampled_from(sorted(turns)))

    def waiting(self) -> list[int]:
        return [turn for lane in LANES for turn in self.world.order(lane)]

    def offered(self) -> list[int]:
        return [turn for turn in self.waiting() if self.world.saved[turn].offered_to is not None]

    def in_state(self, *statuses: Status) -> list[int]:
        return [turn for turn in self.world.engines if self.world.status(turn) in statuses]

    # People

    @rule(lane=lanes, person=people, busy=st.sampled_from(Busy), origin=origins, able=rarely)
    def say(self, lane: str, person: str, busy: Busy, origin: Origin, able: bool) -> None:
        self.world.say(
            lane, person, busy, origin=origin, can_steer=not able, can_side=not able, admin=able
        )
        self.check()

    @rule(lane=lanes, person=people)
    def compact(self, lane: str, person: str) -> None:
        self.world.say(lane, person, kind=Kind.COMPACT)
        self.check()

    @rule(lane=lanes, person=people, unable=rarely)
    def side(self, lane: str, person: str, unable: bool) -> None:
        self.world.aside(lane, person, can_side=not unable)
        self.check()

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), person=people, admin=rarely, unable=rarely)
    def move_aside(self, data: st.DataObject, person: str, admin: bool, unable: bool) -> None:
        turn = self.one(data, self.waiting())
        self.world.move_aside(turn, person, admin=admin, can_side=not unable)
        started = [command.turn.id for command in self.world.said(StartSide)]
        assert started == ([turn] if self.world.status(turn) is Status.STARTING else [])
        assert bool(started) is not bool(self.world.said(Tell))
        self.check()

    @rule(lane=lanes, person=people, admin=rarely)
    def stop(self, lane: str, person: str, admin: bool) -> None:
        self.world.stop(lane, person, admin=admin)
        self.check()

    @precondition(lambda self: self.world.saved)
    @rule(data=st.data(), lane=lanes, person=people, skips=st.booleans())
    def late_stop(self, data: st.DataObject, lane: str, person: str, skips: bool) -> None:
        """A stop that found another turn when it was carried out than runs when it is stored."""
        found = self.one(data, list(self.world.saved))
        view = self.world.lanes.view(lane)
        main = view.main if view and view.main and view.main.id != found else None
        theirs = main is not None and person in (main.person, self.world.saved[found].person)
        if skips:
            self.world.skip(lane, person, turn=found)
        else:
            self.world.stop(lane, person, first=found)
        assert main is None or main.id not in self.world.cancels or (theirs and not skips)
        self.check()

    @precondition(lambda self: self.world.saved)
    @rule(data=st.data(), person=people)
    def press_stop(self, data: st.DataObject, person: str) -> None:
        turn = self.one(data, list(self.world.saved))
        over = self.world.status(turn).over
        self.world.stop(self.world.saved[turn].lane, person, turn=turn)
        assert not over or not self.world.out
        self.check()

    @rule(lane=lanes, person=people, kind=st.sampled_from(StopKind))
    def skip(self, lane: str, person: str, kind: StopKind) -> None:
        if kind is not StopKind.DRAIN:
            self.world.skip(lane, person, kind)
        self.check()

    @precondition(lambda self: self.world.engines)
    @rule(data=st.data(), kind=st.sampled_from([StopKind.LIMIT, StopKind.BUDGET]))
    def limit_reached(self, data: st.DataObject, kind: StopKind) -> None:
        turn = self.one(data, list(self.world.engines))
        self.world.skip(self.world.saved[turn].lane, "", kind, turn)
        self.check()

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), person=people, admin=rarely)
    def drop(self, data: st.DataObject, person: str, admin: bool) -> None:
        self.world.drop(self.one(data, self.waiting()), person, admin=admin)
        self.check()

    @precondition(lambda self: self.world.saved)
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        turn = self.one(data, list(self.world.saved))
        taken = turn in self.waiting() and turn not in self.offered()
        self.world.edit(turn, "other words")
        assert bool(self.world.out) is taken
        self.check()

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), person=people, admin=rarely)
    def steer(self, data: st.DataObject, person: str, admin: bool) -> None:
        self.world.steer(self.one(data, self.waiting()), person, admin=admin)
        self.check()

    # Engines

    @precondition(lambda self: self.in_state(Status.STARTING))
    @rule(data=st.data())
    def prompt(self, data: st.DataObject) -> None:
        self.world.prompt(self.one(data, self.in_state(Status.STARTING)))
        self.check()

    @precondition(lambda self: self.in_state(Status.RUNNING))
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        turn = self.one(data, self.in_state(Status.RUNNING))
        if self.world.saved[turn].kind is not Kind.SIDE:
            self.world.ask(turn)
        self.check()

    @precondition(lambda self: +self.world.asking)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        self.world.answer(self.one(data, list(+self.world.asking)))
        self.check()

    @precondition(lambda self: self.offered())
    @rule(data=st.data(), taken=st.booleans(), certain=st.booleans())
    def settle_offer(self, data: st.DataObject, taken: bool, certain: bool) -> None:
        turn = self.one(data, self.offered())
        if taken:
            self.world.take(turn, certain=certain)
        else:
            self.world.refuse(turn)
        self.check()

    @precondition(lambda self: self.in_state(Status.STARTING, Status.RUNNING))
    @rule(data=st.data(), result=st.sampled_from(Result))
    def finish(self, data: st.DataObject, result: Result) -> None:
        turn = self.one(data, self.in_state(Status.STARTING, Status.RUNNING))
        self.world.finish(turn, result)
        assert (result is not Result.DONE) or self.world.status(turn) is Status.DONE
        self.check()

    @precondition(lambda self: self.in_state(Status.STARTING, Status.RUNNING))
    @rule(data=st.data(), uncounted=st.booleans())
    def unsent(self, data: st.DataObject, uncounted: bool) -> None:
        turn = self.one(data, self.in_state(Status.STARTING, Status.RUNNING))
        self.world.unsent(turn, uncounted=uncounted)
        self.check()

    @precondition(lambda self: self.world.engines)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.world.end(self.one(data, list(self.world.engines)))
        self.check()

    @rule(
        lane=lanes,
        turn=st.integers(1, 40),
        event=st.sampled_from([Prompted, Unsent, Asked, Answered, SteerTaken, SteerRefused]),
    )
    def late_report(self, lane: str, turn: int, event: type[Prompted]) -> None:
        if turn not in self.world.engines and turn not in self.waiting():
            self.world.send(event(turn, lane))
            assert self.world.out == []
            self.world.send(Finished(turn, lane, Result.FAILED))
            assert self.world.out == []
            self.world.send(Ended(turn, lane, self.world.now))
            assert self.world.out == []
        self.check()

    # The gateway

    @rule(lane=lanes)
    def renew(self, lane: str) -> None:
        self.world.renew(lane)
        self.check()

    @rule(lane=lanes, engine=st.sampled_from(ENGINES), folder=st.sampled_from(FOLDERS))
    def configure(self, lane: str, engine: str, folder: str) -> None:
        self.world.configure(lane, engine, folder)
        self.check()

    @rule(scope=scopes)
    def pause(self, scope: dict[str, str]) -> None:
        self.world.pause(**scope)
        assert not self.world.started
        self.check()

    @rule(scope=scopes)
    def resume(self, scope: dict[str, str]) -> None:
        self.world.resume(**scope)
        self.check()

    @rule(spent=st.sets(people, max_size=2), everybody=rarely)
    def spend(self, spent: set[str], everybody: bool) -> None:
        """A day is spent, or a new one begins: what runs of these is told to end, once."""
        told = {turn for turn in self.world.engines if self.world.saved[turn].stop is not None}
        self.world.spend(*spent, everybody=everybody)
        for turn in self.world.engines.values():
            theirs = everybody or turn.person in spent
            on_its_way = turn.kind is not Kind.SIDE and (
                self.world.status(turn.id) is Status.STARTING
            )
            ended = turn.id in self.world.cancels
            under_way = self.world.status(turn.id) in (Status.STARTING, Status.RUNNING)
            if turn.id not in self.world.started:
                assert ended is (theirs and under_way and not on_its_way and turn.id not in told), (
                    "stopped for somebody else's money, or not at all"
                )
        self.check()

    @rule(running=st.integers(1, 4), per_person=st.integers(1, 3))
    def limit(self, running: int, per_person: int) -> None:
        self.world.limit(running=running, per_person=per_person)
        self.check()

    @rule()
    def crash(self) -> None:
        before = {lane: view.waiting for lane in LANES if (view := self.world.lanes.view(lane))}
        self.world.crash()
        for lane, waited in before.items():
            kept = [turn.id for turn in waited if turn.offered_to is None]
            view = self.world.lanes.view(lane)
            again = [] if view is None else [turn.id for turn in view.waiting]
            if view is not None and view.main is not None:
                again = [view.main.id, *again]
            assert [turn for turn in again if turn in kept] == kept, "the order has changed"
        self.check()

    @rule()
    def drain_and_start_again(self) -> None:
        self.world.drain()
        self.check()
        self.world.say("a", "ann")
        self.world.end_drain()
        self.check()
        for turn in list(self.world.engines):
            if not self.world.status(turn).over and self.world.status(turn) is not Status.WAITING:
                self.world.finish(turn, Result.CANCELLED)
            self.check()
        self.world.crash()
        self.check()

    def teardown(self) -> None:
        """Nothing is stuck: when all engines come to their ends, every message has one."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.spend()
        for scope in SCOPES:
            world.resume(**scope)
        for _ in range(3 * len(world.saved) + 3):
            for turn in list(world.engines):
                world.finish(turn)
                world.end(turn)
        self.check()
        assert all(turn.status.over for turn in world.saved.values()), "a turn without an end"
        assert all(world.lanes.view(lane) is None for lane in LANES)


TestHistories = Histories.TestCase
TestHistories.settings = tried(50, stateful_step_count=50, suppress_health_check=list(HealthCheck))
