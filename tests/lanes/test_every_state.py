"""Every state that a small gateway can get into, and every event in each of them.

States that differ only in the numbers of turns, or in times that compare alike, are one. What
must hold is the same as for the random histories.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from core.lane_commands import Start
from core.lanes import Lanes
from core.lanes.lane import Lane
from core.turns import Busy, Kind, Result, Status, Turn
from tests.lanes.oracle import check
from tests.lanes.world import World

Act = Callable[[World], object]


@dataclass(frozen=True)
class Setting:
    """A small gateway and what may happen in it."""

    states: int  # that it has at least
    limits: dict[str, int]
    people: dict[str, str]  # who writes in which lane
    modes: tuple[Busy, ...] = (Busy.QUEUE,)
    whole_turns: bool = False  # a turn starts and ends; nothing in between
    sides: bool = False
    asking: bool = False
    unsent: bool = False
    stops: bool = False
    pauses: tuple[str, ...] = ()
    one_folder: bool = False


SETTINGS = {
    "two lanes, one slot": Setting(
        277,
        {"running": 1, "queue": 1, "attempts": 0},
        {"a": "ann", "b": "bob"},
        stops=True,
    ),
    "three lanes of two people, two slots": Setting(
        1647,
        {"running": 2, "per_person": 1, "queue": 1, "attempts": 0},
        {"a": "ann", "b": "ann", "c": "bob"},
        whole_turns=True,
    ),
    "two lanes, one slot, questions": Setting(
        872,
        {"running": 1, "queue": 1, "attempts": 0},
        {"a": "ann", "b": "bob"},
        asking=True,
    ),
    "two lanes, one slot, pauses": Setting(
        230,
        {"running": 1, "queue": 1, "attempts": 0},
        {"a": "ann", "b": "ann"},
        whole_turns=True,
        pauses=("a", "b"),
    ),
    "two lanes, one folder": Setting(
        79,
        {"running": 2, "queue": 1, "attempts": 0},
        {"a": "ann", "b": "bob"},
        one_folder=True,
    ),
    "one lane, interrupting": Setting(
        1030,
        {"running": 1, "queue": 2, "attempts": 1},
        {"a": "ann"},
        modes=(Busy.QUEUE, Busy.INTERRUPT),
        asking=True,
        unsent=True,
        stops=True,
    ),
    "one lane, steering": Setting(
        573,
        {"running": 1, "queue": 2, "attempts": 1},
        {"a": "ann"},
        modes=(Busy.QUEUE, Busy.STEER),
        unsent=True,
        stops=True,
    ),
    "one lane, side answers": Setting(
        333,
        {"running": 1, "queue": 1, "attempts": 0},
        {"a": "ann"},
        modes=(Busy.QUEUE, Busy.SIDE),
        sides=True,
        stops=True,
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_state_keeps_the_rules(name: str) -> None:
    setting = SETTINGS[name]
    begin = time.perf_counter()
    first = World(**setting.limits)
    if setting.one_folder:
        for lane in setting.people:
            first.configure(lane, folder="/srv")
    seen = {shape(first)}
    todo = [first]
    steps = 0
    while todo:
        world = todo.pop()
        for act in acts(world, setting):
            after = copy(world)
            act(after)
            steps += 1
            key = shape(after)
            if key not in seen or after.said(Start):  # a known state was checked when it was new
                check(after, setting.people)
            if key not in seen:
                seen.add(key)
                todo.append(after)
    took = time.perf_counter() - begin
    print(f"{name}: {len(seen)} states, {steps} steps, {took:.1f} s")
    assert len(seen) >= setting.states, "part of the states is no longer reached"


def acts(world: World, setting: Setting) -> Iterator[Act]:
    for lane, person in setting.people.items():
        for mode in setting.modes:
            if mode is not Busy.STEER or not _given(world, lane):
                yield partial(World.say, lane=lane, person=person, busy=mode)
        if setting.sides:
            yield partial(World.aside, lane=lane, person=person)
        if setting.stops:
            yield partial(World.stop, lane=lane, person=person)
            yield partial(World.skip, lane=lane, person=person)
        if lane in setting.pauses:
            yield partial(World.pause, lane=lane)
            yield partial(World.resume, lane=lane)
        for turn in world.order(lane):
            yield from message_acts(world, setting, turn)
    for turn in world.engines:
        yield from engine_acts(world, setting, turn)
    yield World.crash


def message_acts(world: World, setting: Setting, turn: int) -> Iterator[Act]:
    person = world.saved[turn].person
    if world.saved[turn].offered_to is not None:
        yield partial(World.take, turn=turn)
        yield partial(World.refuse, turn=turn)
    elif Busy.STEER in setting.modes and not _given(world, world.saved[turn].lane):
        yield partial(World.steer, turn=turn, person=person)
    if setting.sides:
        yield partial(World.move_aside, turn=turn, person=person)
    if setting.stops:
        yield partial(World.drop, turn=turn, person=person)


def _given(world: World, lane: str) -> bool:
    """A turn is steered by one message; nothing new would come of any number."""
    view = world.lanes.view(lane)
    return view is not None and any(
        turn.offered_to is not None for turn in (*view.taken, *view.waiting)
    )


def engine_acts(world: World, setting: Setting, turn: int) -> Iterator[Act]:
    if setting.whole_turns:
        yield partial(World.complete, turn=turn)
        return
    yield partial(World.end, turn=turn)
    if world.status(turn) is Status.STARTING:
        yield partial(World.prompt, turn=turn)
    if world.status(turn) in (Status.STARTING, Status.RUNNING):
        yield partial(World.finish, turn=turn)
        if setting.unsent:
            yield partial(World.unsent, turn=turn)
        if setting.stops:
            yield partial(World.finish, turn=turn, result=Result.CANCELLED)
    if world.status(turn) is Status.RUNNING and setting.asking:
        if world.asking[turn]:
            yield partial(World.answer, turn=turn)
        elif world.saved[turn].kind is Kind.MAIN:
            yield partial(World.ask, turn=turn)


def copy(world: World) -> World:
    """An independent copy that has forgotten what is over."""
    other = World()
    other.limits = world.limits
    other.lanes = clone(world.lanes)
    for turn in world.saved.values():
        if not turn.status.over or turn.id in world.engines:
            other.saved[turn.id] = turn
    other.facts = dict(world.facts)
    other.engines = dict(world.engines)
    other.prompts = set(world.prompts)
    other.cancelled = set(world.cancelled)
    other.folders = dict(world.folders)
    other.asking = world.asking.copy()
    other.now, other.count = world.now, world.count
    return other


def clone(lanes: Lanes) -> Lanes:
    other = Lanes(lanes.limits)
    other._board.set_door(lanes._board.door)
    for lane in lanes._board:
        other._board.put(lane)
    other.settle()
    return other


def shape(world: World) -> object:
    """The state, with times and numbers replaced by their order."""
    busy = [lane for lane in world.lanes._board if not lane.idle or lane.facts.paused]
    times = {time for lane in busy for time in _times(lane)}
    order = {at: place for place, at in enumerate(sorted(times))}
    return frozenset(_lane_shape(lane, order) for lane in busy)


def _may_wait(lane: Lane) -> list[Turn]:
    """The turns whose place in the line may matter yet."""
    main = [lane.main] if lane.main and not lane.main.status.over else []
    return [*main, *lane.taken, *lane.waiting]


def _times(lane: Lane) -> list[int]:
    arrived = [turn.arrived for turn in _may_wait(lane)]
    later = [lane.facts.ended] if arrived and lane.facts.ended > min(arrived) else []
    return arrived + later


def _lane_shape(lane: Lane, order: dict[int, int]) -> object:
    def one(turn: Turn | None) -> object:
        return turn and (
            order.get(turn.arrived),
            turn.kind,
            turn.status,
            turn.rank,
            turn.attempts,
            turn.asking,
            turn.stop and turn.stop.kind,
            turn.offered_to is not None,
        )

    known = order.get(lane.facts.ended) if lane.facts.ended in _times(lane) else None
    queues = (lane.taken, lane.waiting, lane.sides)
    turns = (one(lane.main), *(tuple(map(one, queue)) for queue in queues))
    return (lane.key, known, lane.facts.paused, turns)
