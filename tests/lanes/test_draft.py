"""The draft that can be taken back, and what stays in memory."""

from __future__ import annotations

import pytest

from core.lane_events import (
    Arrived,
    DrainAsked,
    Ended,
    Event,
    Finished,
    LimitsChanged,
    PauseAsked,
    Prompted,
    Renewed,
    StopAsked,
)
from core.lanes import Lanes
from core.lanes.board import REMEMBERED
from core.turns import Busy, EnginePause, Kind, LaneFacts, Limits, Origin, Result, Turn
from tests.lanes.world import World


def message(number: int, lane: str = "a") -> Turn:
    return Turn(number, lane, "ann", Origin.PERSON, Kind.MAIN, number)


def test_everything_since_the_mark_is_taken_back() -> None:
    world = World(running=1)
    world.configure("a", folder="/srv")
    first = world.working("a")
    world.say("b")
    before = world.view("a"), world.view("b")
    mark = world.lanes.mark()
    events: list[Event] = [
        Arrived(message(50)),
        Arrived(message(51, "c")),
        StopAsked("a", "ann"),
        Finished(first, "a", Result.DONE),
        LimitsChanged(Limits(running=5)),
        Ended(first, "a", 99),
        PauseAsked("b"),
        PauseAsked(engine="demo"),
        Renewed("d", LaneFacts(epoch=3)),
        DrainAsked(),
    ]
    for event in events:
        world.lanes.handle(event)
    world.lanes.undo(mark)
    assert (world.view("a"), world.view("b")) == before
    assert world.lanes.view("c") is None
    assert (world.lanes.running, world.lanes.lanes_waiting) == (1, 1)
    assert not world.lanes.draining
    assert world.lanes.limits.running == 1


def test_the_same_events_give_the_same_commands_after_an_undo() -> None:
    world = World(running=1)
    turn = world.working()
    world.say("b")
    events: list[Event] = [
        Arrived(message(50), busy=Busy.INTERRUPT),
        Finished(turn, "a", Result.CANCELLED),
        Ended(turn, "a", 9),
    ]
    mark = world.lanes.mark()
    once = [world.lanes.handle(event) for event in events]
    world.lanes.undo(mark)
    assert [world.lanes.handle(event) for event in events] == once


def test_marks_nest() -> None:
    lanes = Lanes(Limits())
    outer = lanes.mark()
    lanes.handle(Arrived(message(1)))
    inner = lanes.mark()
    lanes.handle(Arrived(message(2)))
    lanes.undo(inner)
    view = lanes.view("a")
    assert view is not None
    assert view.waiting == ()
    lanes.undo(outer)
    assert lanes.view("a") is None


def test_what_is_settled_is_not_taken_back() -> None:
    lanes = Lanes(Limits())
    lanes.handle(Arrived(message(1)))
    lanes.settle()
    lanes.undo(lanes.mark())
    assert lanes.view("a") is not None


def test_a_mark_from_before_what_is_settled_is_refused() -> None:
    lanes = Lanes(Limits())
    mark = lanes.mark()
    lanes.handle(Arrived(message(1)))
    lanes.settle()
    with pytest.raises(ValueError, match="settled"):
        lanes.undo(mark)
    assert lanes.view("a") is not None


def test_a_restore_can_be_taken_back() -> None:
    lanes = Lanes(Limits())
    mark = lanes.mark()
    lanes.restore([message(1)], {}, True, {"demo": EnginePause("limit", 5)})
    lanes.undo(mark)
    assert lanes.view("a") is None
    lanes.handle(Arrived(message(2)))
    view = lanes.view("a")
    assert view is not None
    assert view.paused == ()


def idle_lanes(lanes: Lanes, count: int) -> None:
    for number in range(1, count + 1):
        lane = f"lane {number}"
        lanes.handle(Arrived(message(number, lane), LaneFacts(epoch=1)))
        lanes.handle(Prompted(number, lane))
        lanes.handle(Finished(number, lane, Result.DONE))
        lanes.handle(Ended(number, lane, number))
        lanes.settle()


def test_idle_lanes_are_rows_not_objects() -> None:
    lanes = Lanes(Limits())
    idle_lanes(lanes, REMEMBERED + 500)
    in_memory = sum(1 for _ in lanes._board)
    assert in_memory == REMEMBERED
    assert lanes.view("lane 1") is None


def test_a_lane_that_was_just_busy_knows_better_than_facts_on_their_way() -> None:
    lanes = Lanes(Limits(running=1))
    stale = LaneFacts(ended=0, epoch=0)
    lanes.handle(Renewed("a", stale))
    lanes.handle(PauseAsked("a", facts=stale))
    lanes.settle()
    lanes.handle(Arrived(message(1), stale))
    view = lanes.view("a")
    assert view is not None
    assert view.facts == LaneFacts(epoch=1, paused=True)


def test_a_lane_that_left_memory_is_known_by_its_facts() -> None:
    lanes = Lanes(Limits())
    idle_lanes(lanes, REMEMBERED + 1)
    lanes.handle(Arrived(message(9_999, "lane 1"), LaneFacts(ended=7, epoch=5)))
    view = lanes.view("lane 1")
    assert view is not None
    assert view.facts == LaneFacts(ended=7, epoch=5)


def test_events_about_an_idle_lane_leave_nothing_in_memory() -> None:
    lanes = Lanes(Limits())
    lanes.handle(StopAsked("a", "ann"))
    lanes.handle(Ended(1, "a", 5))
    assert not list(lanes._board)
