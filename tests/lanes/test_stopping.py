"""Stop, skip and drop."""

from __future__ import annotations

import pytest

from core.lane_commands import Cancel, News, Refusal, Save, Tell
from core.lane_events import StopAsked
from core.turns import Busy, Origin, Result, Status, Stop, StopKind
from tests.lanes.world import World


def test_a_stop_cancels_the_running_turn_and_is_saved_with_it() -> None:
    world = World()
    turn = world.working()
    world.stop()
    assert [type(command) for command in world.out] == [Save, Cancel, Tell]
    assert world.saved[turn].stop == Stop(StopKind.STOP, "ann")
    assert world.news == [(News.STOPPED, turn)]
    world.finish(turn, Result.CANCELLED)
    assert world.status(turn) is Status.STOPPED


def test_the_stop_notice_names_who_stopped_whose_turn() -> None:
    world = World()
    world.working(person="ann")
    world.stop(person="bob")
    (tell,) = world.said(Tell)
    assert tell.by == "bob"
    assert tell.turn is not None
    assert tell.turn.person == "ann"


def test_a_stop_drops_and_names_what_waited_and_keeps_later_messages() -> None:
    world = World()
    turn = world.working()
    waiting = [world.say(), world.say(person="bob"), world.say(origin=Origin.SCHEDULE)]
    world.stop()
    assert world.dropped == waiting
    assert world.statuses(waiting) == [Status.DROPPED] * 3
    later = world.say()
    world.finish(turn, Result.CANCELLED)
    world.end(turn)
    assert world.started == [later]


@pytest.mark.parametrize(
    ("person", "admin", "everything"),
    [("ann", False, True), ("bob", False, False), ("root", True, True)],
)
def test_a_stop_drops_all_for_an_admin_or_whose_turn_runs_else_ones_own(
    person: str, admin: bool, everything: bool
) -> None:
    world = World()
    turn = world.working(person="ann")
    waiting = {name: world.say(person=name) for name in ("ann", "bob", "cy")}
    world.stop(person=person, admin=admin)
    assert world.cancels == [turn]
    assert world.dropped == (list(waiting.values()) if everything else [waiting["bob"]])


def test_what_a_stop_left_waiting_goes_on_when_the_turn_has_ended() -> None:
    world = World()
    turn = world.working(person="ann")
    others = world.say(person="cy")
    world.stop(person="bob")
    world.finish(turn, Result.CANCELLED)
    world.end(turn)
    assert world.started == [others]


def test_where_nothing_runs_a_stop_drops_ones_own_waiting_messages() -> None:
    world = World(running=1)
    world.working("b", "bob")
    mine, others = world.say("a", "ann"), world.say("a", "cy")
    world.stop("a", "ann")
    assert world.dropped == [mine]
    assert world.news == [(News.STOPPED, None)]
    assert world.order("a") == [others]


def test_the_person_of_a_turn_that_is_over_has_no_say_about_others() -> None:
    world = World()
    turn = world.working(person="ann")
    others = world.say(person="bob")
    world.finish(turn)
    world.stop(person="ann")
    assert world.news == [(News.NOTHING, None)]
    assert world.order() == [others]


@pytest.mark.parametrize("known", [False, True])
def test_a_stop_with_nothing_to_stop_is_told_so(known: bool) -> None:
    world = World()
    if known:
        world.complete(world.working())
    world.stop()
    assert world.out == [Tell(News.NOTHING, "a", by="ann")]


def is_told_that_it_stops_already(world: World, turn: int) -> bool:
    (tell,) = world.said(Tell)
    about = tell.turn.id if tell.turn else None
    return (tell.news, tell.reason, about) == (News.NOTHING, Refusal.STOPPING, turn)


def test_a_second_stop_is_answered_and_cancels_nothing_again() -> None:
    world = World()
    turn = world.working()
    world.stop()
    world.stop(person="bob")
    assert world.cancels == []
    assert is_told_that_it_stops_already(world, turn)
    assert world.saved[turn].stop == Stop(StopKind.STOP, "ann")


@pytest.mark.parametrize("first", ["stop", "skip"])
@pytest.mark.parametrize("then", ["stop", "skip", "the same skip"])
@pytest.mark.parametrize("person", ["ann", "bob"])
def test_that_a_turn_was_stopped_is_told_once_however_it_is_stopped_again(
    first: str, then: str, person: str
) -> None:
    world = World()
    turn = world.working()
    if first == "stop":
        world.stop()
    else:
        world.skip()
    assert world.news == [(News.STOPPED, turn)]
    if then == "stop":
        world.stop(person=person)
    else:
        world.skip(person=person, turn=turn if then == "the same skip" else None)
    assert is_told_that_it_stops_already(world, turn)


def test_a_later_stop_that_drops_messages_names_them_and_not_the_turn() -> None:
    world = World()
    world.working(person="ann")
    waiting = [world.say(person="cy"), world.say(person="bob")]
    world.skip(person="ann")
    world.stop(person="bob")
    assert world.news == [(News.STOPPED, None)]
    assert world.dropped == waiting[1:]
    world.stop(person="ann")
    assert world.news == [(News.STOPPED, None)]
    assert world.dropped == waiting[:1]


def test_a_later_stop_that_ends_a_side_answer_is_told_of_that() -> None:
    world = World()
    turn = world.working()
    world.skip()
    side = world.aside()
    world.stop()
    assert world.cancels == [side]
    assert world.news == [(News.STOPPED, side)]
    world.stop()
    assert is_told_that_it_stops_already(world, turn)


def test_a_stop_button_that_is_pressed_again_says_nothing_in_the_thread() -> None:
    world = World()
    turn, side = world.working(), world.aside()
    world.stop(turn=side)
    world.stop(turn=side)
    assert world.out == []
    world.stop(turn=turn)
    world.stop(turn=turn, person="bob")
    assert world.out == []


def test_a_stop_of_what_a_newer_message_interrupted_is_told_that_it_ends_already() -> None:
    world = World()
    turn = world.working()
    world.say(person="cy", busy=Busy.INTERRUPT)
    world.stop(person="bob")
    assert is_told_that_it_stops_already(world, turn)


def test_a_stop_button_does_nothing_once_its_turn_is_over() -> None:
    world = World()
    first = world.working()
    second = world.say()
    world.finish(first)
    world.stop(turn=first)
    assert world.out == []
    world.end(first)
    world.prompt(second)
    world.stop(turn=first)
    assert world.out == []
    assert world.status(second) is Status.RUNNING
    world.send(StopAsked("never heard of", "ann", turn=99))
    assert world.out == []


def test_a_stop_button_of_the_running_turn_stops_like_the_command() -> None:
    world = World()
    turn = world.working()
    waiting = world.say()
    world.stop(turn=turn)
    assert world.cancels == [turn]
    assert world.dropped == [waiting]


def test_a_stopping_turn_is_refused_its_prompt() -> None:
    world = World()
    turn = world.say()
    world.stop()
    assert world.cancels == [turn]
    world.prompt(turn)
    assert world.out == []
    world.finish(turn, Result.CANCELLED)
    assert world.status(turn) is Status.STOPPED


def test_a_turn_whose_engine_had_finished_before_the_cancel_is_done() -> None:
    world = World()
    turn = world.working()
    world.stop()
    world.finish(turn, Result.DONE)
    assert world.status(turn) is Status.DONE


def test_an_engine_that_dies_of_the_stop_has_not_failed() -> None:
    world = World()
    turn = world.working()
    world.stop()
    world.finish(turn, Result.FAILED)
    assert world.status(turn) is Status.STOPPED


def test_a_stop_leaves_nothing_behind_for_the_next_turn() -> None:
    world = World()
    first = world.working()
    world.stop()
    second = world.say()
    world.finish(first)
    world.end(first)
    world.prompt(second)
    assert world.saved[second].stop is None
    world.finish(second, Result.FAILED)
    assert world.status(second) is Status.FAILED
    assert world.news == [(News.ENDED, second)]


def test_a_stop_of_a_turn_that_asks_cancels_it() -> None:
    world = World()
    turn = world.working()
    world.ask(turn)
    world.stop()
    assert world.cancels == [turn]


def test_a_stop_works_in_a_drain() -> None:
    world = World()
    turn = world.working()
    waiting = world.say()
    world.drain()
    world.stop()
    assert world.cancels == [turn]
    assert world.dropped == [waiting]


def test_a_stop_of_one_lane_leaves_the_others_alone() -> None:
    world = World()
    world.working("a")
    other = world.working("b")
    world.stop("a")
    assert world.status(other) is Status.RUNNING
    assert other not in world.cancels


# Skip


def test_a_skip_cancels_the_running_turn_only() -> None:
    world = World()
    turn = world.working()
    waiting = world.say()
    world.skip(person="bob")
    assert world.cancels == [turn]
    assert world.news == [(News.STOPPED, turn)]
    assert world.saved[turn].stop == Stop(StopKind.SKIP, "bob")
    assert world.order() == [waiting]
    world.finish(turn, Result.CANCELLED)
    assert world.status(turn) is Status.STOPPED
    world.end(turn)
    assert world.started == [waiting]


def test_a_skip_where_nothing_runs_is_told_so() -> None:
    world = World(running=1)
    world.skip()
    assert world.news == [(News.NOTHING, None)]
    turn = world.working()
    world.finish(turn)
    world.skip()
    assert world.news == [(News.NOTHING, None)]


def test_a_skip_of_a_turn_that_is_over_ends_no_later_one_and_says_so() -> None:
    world = World()
    turn = world.working()
    later = world.say()
    world.complete(turn)
    assert world.started == [later]
    world.skip(turn=turn)
    assert world.cancels == []
    assert world.denial is Refusal.OVER


def test_a_limit_that_comes_after_the_end_says_nothing() -> None:
    world = World()
    turn = world.working()
    world.finish(turn)
    world.skip(kind=StopKind.LIMIT, turn=turn, person="")
    assert world.out == []
    world.skip(kind=StopKind.BUDGET, person="")
    assert world.out == []


def test_a_late_stop_leaves_alone_what_started_since_and_is_not_its_senders() -> None:
    world = World()
    anns = world.working(person="ann")
    bobs = world.say(person="bob")
    cys = world.say(person="cy")
    world.complete(anns)
    assert world.started == [bobs]
    world.stop(person="dan", first=anns)
    assert world.cancels == []
    assert world.news == [(News.NOTHING, None)]
    assert world.order() == [cys]


def test_a_late_stop_ends_what_it_would_have_dropped_while_it_waited() -> None:
    for stopper, admin, left in (("ann", False, 0), ("bob", False, 1), ("root", True, 0)):
        world = World()
        anns = world.working(person="ann")
        bobs = world.say(person="bob")
        cys = world.say(person="cy")
        world.complete(anns)
        assert world.started == [bobs]
        world.stop(person=stopper, admin=admin, first=anns)
        assert world.cancels == [bobs]
        assert world.order() == [cys][:left]


def test_a_stop_that_is_stored_in_time_ends_what_it_found() -> None:
    world = World()
    turn = world.working(person="ann")
    world.stop(person="bob", first=turn)
    assert world.cancels == [turn]


def test_a_skip_of_one_turn_does_not_hit_the_next() -> None:
    world = World()
    first = world.working()
    second = world.say()
    world.complete(first)
    world.prompt(second)
    world.skip(turn=first)
    assert world.cancels == []


@pytest.mark.parametrize(
    ("kind", "status"), [(StopKind.LIMIT, Status.FAILED), (StopKind.BUDGET, Status.STOPPED)]
)
def test_limits_and_budgets_end_a_turn_and_are_told_at_its_end(
    kind: StopKind, status: Status
) -> None:
    world = World()
    turn = world.working()
    world.skip(kind=kind, turn=turn, person="")
    assert world.cancels == [turn]
    assert world.news == []
    world.finish(turn, Result.CANCELLED)
    assert world.status(turn) is status
    assert world.news == [(News.ENDED, turn)]


# Drop


def test_one_drops_ones_own_waiting_message() -> None:
    world = World()
    world.working()
    keep, turn = world.say(), world.say()
    world.drop(turn)
    assert world.status(turn) is Status.DROPPED
    assert world.news == [(News.DROPPED, turn)]
    assert world.order() == [keep]


def test_anothers_message_is_dropped_by_admins_only() -> None:
    world = World()
    world.working(person="ann")
    turn = world.say(person="bob")
    world.drop(turn, "ann")
    assert world.denial is Refusal.NOT_YOURS
    world.drop(turn, "root", admin=True)
    assert world.status(turn) is Status.DROPPED


def test_the_gateways_own_drop_is_told_by_whoever_wants_it() -> None:
    world = World()
    running = world.working()
    turn = world.say()
    world.drop(turn, quiet=True)
    assert world.status(turn) is Status.DROPPED
    world.drop(running, quiet=True)  # it does not wait any more: it goes on
    offered = world.say(busy=Busy.STEER)
    world.drop(offered, quiet=True)
    assert world.status(offered) is Status.WAITING
    assert world.status(running) is Status.RUNNING
    assert world.news == []


def test_what_does_not_wait_is_not_dropped() -> None:
    world = World()
    turn = world.working()
    world.drop(turn)
    assert world.denial is Refusal.NOT_WAITING
    world.complete(turn)
    world.drop(turn)
    assert world.denial is Refusal.NOT_WAITING


def test_an_offered_message_is_dropped_when_the_engine_gives_it_back() -> None:
    world = World()
    world.working()
    turn = world.say(busy=Busy.STEER)
    world.drop(turn)
    assert world.status(turn) is Status.WAITING
    world.refuse(turn)
    assert world.status(turn) is Status.DROPPED
    assert world.news == [(News.DROPPED, turn)]
