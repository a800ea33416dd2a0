"""A day whose money is spent holds its people, and nobody else, until it is taken back."""

from __future__ import annotations

from core.lane_commands import Refusal
from core.lane_events import DaySpent
from core.lanes import Hold
from core.turns import Result, Status
from tests.lanes.world import World

ANN = DaySpent(frozenset({"ann"}))
ALL = DaySpent(everybody=True)


def test_what_runs_of_its_people_is_stopped_and_the_rest_goes_on() -> None:
    world = World()
    hers, his = world.working("a", "ann"), world.working("b", "ben")
    world.send(ANN)
    assert world.cancels == [hers]
    world.finish(hers, Result.CANCELLED)
    world.end(hers)
    assert world.statuses([hers, his]) == [Status.STOPPED, Status.RUNNING]


def test_their_messages_wait_and_others_overtake_them_in_other_lanes() -> None:
    world = World()
    world.send(ANN)
    hers, his = world.say("a", "ann"), world.say("b", "ben")
    assert world.statuses([hers, his]) == [Status.WAITING, Status.STARTING]
    assert world.view("a").paused == (Hold.PERSON_SPENT,)
    world.send(DaySpent())
    assert world.status(hers) is Status.STARTING


def test_what_all_have_spent_holds_everybody_whatever_is_resumed() -> None:
    world = World()
    world.send(ALL)
    message = world.say("a", "ben")
    world.pause()
    world.resume()
    world.resume("a")
    assert world.status(message) is Status.WAITING
    assert world.view("a").paused == (Hold.ALL_SPENT,)
    world.send(DaySpent())
    assert world.started == [message]


def test_taking_it_back_releases_no_other_pause() -> None:
    world = World()
    world.pause("a")
    world.send(ALL)
    message = world.say("a", "ben")
    world.send(DaySpent())
    assert world.status(message) is Status.WAITING


def test_side_answers_end_and_are_refused_with_the_reason() -> None:
    world = World()
    world.working("a", "ben")
    side = world.aside("a", "ann")
    world.send(ANN)
    assert world.cancels == [side]
    world.complete(side)
    refused = world.aside("a", "ann")
    assert world.refusals == [(refused, Refusal.SPENT)]
    world.aside("a", "ben")
    assert world.refusals == []


def test_a_turn_on_its_way_to_its_engine_is_left_to_wait() -> None:
    world = World()
    starting = world.say("a", "ann")
    world.send(ANN)
    assert world.cancels == []
    world.unsent(starting, uncounted=True)
    world.end(starting)
    assert world.status(starting) is Status.WAITING
