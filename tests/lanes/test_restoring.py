"""After a crash: the same state from what is stored."""

from __future__ import annotations

import pytest

from core.lane_commands import News, Save
from core.lanes import Lanes
from core.turns import (
    Busy,
    Kind,
    LaneFacts,
    Limits,
    Origin,
    Rank,
    Result,
    Status,
    Stop,
    StopKind,
    Turn,
)
from tests.lanes.world import World


def test_waiting_turns_wait_again_in_the_same_order() -> None:
    world = World(running=1)
    world.working("b", "bob")
    first = world.say("a")
    second = world.say("a", "cy")
    third = world.say("c", "cy")
    world.pause()
    before = world.view("a").waiting, world.view("c").waiting
    places = world.view("a").place, world.view("c").place
    world.crash()
    assert (world.view("a").waiting, world.view("c").waiting) == before
    assert (world.view("a").place, world.view("c").place) == places
    assert world.order("a") == [first, second]
    assert world.order("c") == [third]


def test_interrupting_messages_are_still_in_front() -> None:
    world = World()
    world.working()
    world.say()
    urgent = world.say(busy=Busy.INTERRUPT)
    world.crash()
    assert world.started == [urgent]


def test_lanes_wait_since_the_end_of_their_last_turn_after_a_restart_too() -> None:
    world = World(running=1)
    first = world.working("a", at=10)
    world.say("a", at=11)
    world.finish(first)
    world.end(first, at=30)
    world.pause()
    world.crash()  # the second turn of lane a was starting and waits again
    world.say("b", "bob", at=20)
    assert world.view("b").place == 1
    assert world.view("a").place == 2


def test_a_turn_that_was_starting_runs_again_first_in_its_lane() -> None:
    world = World()
    turn = world.say()
    world.say(busy=Busy.INTERRUPT)
    world.crash()
    assert world.started == [turn]
    assert world.saved[turn].rank is Rank.AGAIN
    assert world.news == []


def test_a_turn_starts_again_at_most_twice_and_its_thread_is_told() -> None:
    world = World()
    turn = world.say()
    behind = world.say()
    for attempt in (2, 3):
        world.crash()
        assert world.started == [turn]
        assert world.saved[turn].attempts == attempt
    world.crash()
    assert world.status(turn) is Status.FAILED
    assert world.news == [(News.GIVEN_UP, turn)]
    assert world.started == [behind]


def test_a_turn_that_was_running_is_interrupted_and_told_once() -> None:
    world = World()
    turn = world.working()
    behind = world.say()
    world.crash()
    assert world.status(turn) is Status.INTERRUPTED
    assert world.news == [(News.INTERRUPTED, turn)]
    assert world.started == [behind]
    world.crash()
    assert (News.INTERRUPTED, turn) not in world.news


def test_a_turn_that_asked_is_interrupted() -> None:
    world = World()
    turn = world.working()
    world.ask(turn)
    world.crash()
    assert world.status(turn) is Status.INTERRUPTED


def test_a_turn_that_was_settling_is_over() -> None:
    world = World()
    turn = world.working()
    world.finish(turn)
    world.crash()
    assert world.out == []
    assert world.lanes.view("a") is None


@pytest.mark.parametrize("prompted", [False, True])
def test_a_stopped_turn_ends_as_stopped_whatever_else_is_stored(prompted: bool) -> None:
    world = World()
    turn = world.say()
    if prompted:
        world.prompt(turn)
    world.stop()
    world.crash()
    assert world.status(turn) is Status.STOPPED
    assert world.news == []  # answered when it was asked for
    assert world.started == []


@pytest.mark.parametrize(
    ("kind", "status"), [(StopKind.LIMIT, Status.FAILED), (StopKind.BUDGET, Status.STOPPED)]
)
def test_a_turn_at_a_limit_ends_as_it_would_have_and_is_told(
    kind: StopKind, status: Status
) -> None:
    world = World()
    turn = world.working()
    world.skip(kind=kind, turn=turn)
    world.crash()
    assert world.status(turn) is status
    assert world.news == [(News.ENDED, turn)]


@pytest.mark.parametrize("prompted", [False, True])
def test_a_crash_after_a_drains_end_is_like_any_other(prompted: bool) -> None:
    world = World()
    turn = world.say()
    if prompted:
        world.prompt(turn)
    world.end_drain()
    world.crash()
    if prompted:
        assert world.news == [(News.INTERRUPTED, turn)]
    else:
        assert world.started == [turn]
        assert world.saved[turn].stop is None


def test_a_drain_is_over_after_the_restart() -> None:
    world = World()
    world.drain()
    turn = world.say()
    world.crash()
    assert world.started == [turn]


def test_an_unsent_turn_waits_again_after_a_crash() -> None:
    world = World()
    turn = world.working()
    world.unsent(turn)
    world.crash()
    assert world.started == [turn]


def test_an_offered_message_counts_as_prompted() -> None:
    world = World()
    main = world.working()
    offered = world.say(busy=Busy.STEER)
    world.crash()
    assert world.statuses([main, offered]) == [Status.INTERRUPTED] * 2
    assert world.news == [(News.INTERRUPTED, main), (News.STEER_UNCERTAIN, offered)]
    assert world.started == []


def test_a_message_offered_to_a_later_one_shares_its_end_too() -> None:
    world = World()
    first = world.working()
    waiting = world.say()
    urgent = world.say(busy=Busy.INTERRUPT)
    world.finish(first, Result.CANCELLED)
    world.end(first)
    world.prompt(urgent)
    world.steer(waiting)
    world.skip()
    world.crash()
    assert world.statuses([urgent, waiting]) == [Status.STOPPED] * 2
    assert world.news == [(News.STEER_UNCERTAIN, waiting)]


def test_a_taken_message_shares_the_turns_end_without_a_word_of_its_own() -> None:
    world = World()
    main = world.working()
    offered = world.say(busy=Busy.STEER)
    world.take(offered)
    world.crash()
    assert world.statuses([main, offered]) == [Status.INTERRUPTED] * 2
    assert world.news == [(News.INTERRUPTED, main)]


def test_an_offered_message_that_was_stopped_is_dropped() -> None:
    world = World()
    world.working()
    offered = world.say(busy=Busy.STEER)
    world.stop()
    world.crash()
    assert world.status(offered) is Status.DROPPED
    assert world.news == [(News.DROPPED, offered)]


def test_an_offer_to_a_turn_that_is_not_stored_as_open_is_interrupted() -> None:
    lanes = Lanes(Limits())
    offered = Turn(
        2, "a", "ann", Origin.PERSON, Kind.MAIN, 2, rank=Rank.OFFERED, offered_to=1, attempts=0
    )
    commands = lanes.restore([offered], {}, False, {})
    assert [c.turn.status for c in commands if isinstance(c, Save)] == [Status.INTERRUPTED]


def test_a_stop_mark_of_an_offered_message_is_kept_over_no_crash_twice() -> None:
    world = World()
    world.working()
    offered = world.say(busy=Busy.STEER)
    world.drop(offered)
    assert world.saved[offered].stop == Stop(StopKind.STOP, "ann")
    world.crash()
    world.crash()
    assert world.out == []


def test_pauses_hold_after_a_restart() -> None:
    world = World()
    world.configure("a", engine="demo")
    for scope in ({"lane": "a"}, {"engine": "demo"}, {}):
        world.pause(**scope)
        turn = world.say()
        world.crash()
        assert world.started == []
        assert world.view().paused
        world.resume(**scope)
        assert world.started == [turn]
        world.prompt(turn)
        world.complete(turn)


def test_epoch_and_folder_are_known_after_a_restart() -> None:
    world = World(per_person=9)
    world.configure("a", folder="/srv")
    world.configure("b", folder="/srv/deep")
    world.renew("a")
    turn = world.say("a")
    other = world.say("b")
    world.crash()
    assert world.started == [turn]
    assert world.saved[turn].epoch == 1
    assert world.status(other) is Status.WAITING


def test_caps_hold_after_a_restart() -> None:
    world = World(running=2, per_person=1)
    turns = [world.say(lane, person) for lane, person in ("aA", "bA", "cB", "dC")]
    world.crash()
    assert world.started == [turns[0], turns[2]]
    assert world.lanes.running == 2


def test_each_turn_is_saved_once_and_before_everything_else() -> None:
    world = World()
    turn = world.say()
    world.crash()
    assert [command.turn.status for command in world.said(Save)] == [Status.STARTING]
    assert world.started == [turn]


def test_a_lane_of_which_nothing_is_stored_is_as_new() -> None:
    lanes = Lanes(Limits())
    waiting = Turn(1, "a", "ann", Origin.PERSON, Kind.MAIN, 1)
    lanes.restore([waiting], {}, False, {})
    view = lanes.view("a")
    assert view is not None
    assert view.facts == LaneFacts()
