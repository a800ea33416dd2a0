"""A message arrives in a lane that has a main turn: queue, side, steer, interrupt, collect."""

from __future__ import annotations

import pytest

from core.lane_commands import Join, News, Refusal, Save, StartSide, Steer
from core.turns import Busy, Kind, Origin, Rank, Result, Status, StopKind
from tests.lanes.world import World

MODES = list(Busy)


@pytest.mark.parametrize("busy", MODES)
def test_in_an_idle_lane_every_mode_starts_an_ordinary_turn(busy: Busy) -> None:
    world = World()
    turn = world.say(busy=busy)
    assert world.started == [turn]
    assert world.saved[turn].kind is Kind.MAIN
    assert world.saved[turn].rank is Rank.ORDINARY


@pytest.mark.parametrize("busy", MODES)
def test_in_a_lane_that_waits_for_a_slot_every_mode_queues(busy: Busy) -> None:
    world = World(running=1)
    world.working("a")
    first = world.say("b", "bob", busy)
    second = world.say("b", "bob", busy)
    assert world.order("b") == [first, second]
    assert world.saved[second].rank is Rank.ORDINARY


@pytest.mark.parametrize("busy", MODES)
@pytest.mark.parametrize("origin", [Origin.SCHEDULE, Origin.CONTINUE, Origin.SIDE])
def test_what_is_no_message_of_a_person_queues_in_every_mode(busy: Busy, origin: Origin) -> None:
    world = World()
    world.working()
    waiting = world.say()
    turn = world.say(busy=busy, origin=origin)
    assert [type(command) for command in world.out] == [Save]
    assert world.order() == [waiting, turn]


@pytest.mark.parametrize("busy", MODES)
def test_a_compaction_queues_in_every_mode(busy: Busy) -> None:
    world = World()
    world.working()
    turn = world.say(busy=busy, kind=Kind.COMPACT)
    assert [type(command) for command in world.out] == [Save]
    assert world.saved[turn].kind is Kind.COMPACT


@pytest.mark.parametrize("busy", [Busy.STEER, Busy.INTERRUPT])
def test_while_it_asks_or_settles_steer_and_interrupt_queue(busy: Busy) -> None:
    world = World()
    turn = world.working()
    world.ask(turn)
    first = world.say(busy=busy)
    world.finish(turn)
    second = world.say(busy=busy)
    assert world.order() == [first, second]
    assert world.saved[first].rank is world.saved[second].rank is Rank.ORDINARY
    assert world.cancels == []


@pytest.mark.parametrize("busy", MODES)
def test_in_a_drain_nothing_is_asked_of_the_running_turn(busy: Busy) -> None:
    world = World()
    world.working()
    world.drain()
    turn = world.say(busy=busy)
    assert [type(command) for command in world.out] == [Save]
    assert world.order() == [turn]


# Side


def test_a_side_answer_is_given_beside_the_running_turn() -> None:
    world = World()
    main = world.working()
    side = world.say(person="bob", busy=Busy.SIDE)
    assert [command.turn.id for command in world.said(StartSide)] == [side]
    assert world.saved[side].kind is Kind.SIDE
    assert world.status(side) is Status.STARTING
    assert world.cancels == []
    assert world.status(main) is Status.RUNNING


def test_without_the_ability_a_side_message_queues() -> None:
    world = World()
    world.working()
    turn = world.say(busy=Busy.SIDE, can_side=False)
    assert world.order() == [turn]


def test_without_a_free_side_slot_a_side_message_queues() -> None:
    world = World(sides_per_lane=1, sides=2)
    for lane in "abc":
        world.working(lane, lane)
    world.say("a", busy=Busy.SIDE)
    in_lane = world.say("a", busy=Busy.SIDE)
    assert world.order("a") == [in_lane]
    world.say("b", busy=Busy.SIDE)
    in_all = world.say("c", busy=Busy.SIDE)
    assert world.order("c") == [in_all]


def test_a_side_answer_is_no_matter_of_the_queue_limit() -> None:
    world = World(queue=1)
    world.working()
    world.say()
    world.say(busy=Busy.SIDE)
    assert world.refusals == []
    assert world.said(StartSide)


# Steer


def test_a_steering_message_stays_first_in_the_queue_marked_and_is_offered() -> None:
    world = World()
    main = world.working()
    earlier = world.say()
    offered = world.say(busy=Busy.STEER)
    assert world.said(Steer) == [Steer(offered, main)]
    assert world.order() == [offered, earlier]
    assert world.saved[offered].offered_to == main


def test_offered_messages_keep_the_order_of_arrival() -> None:
    world = World()
    world.working()
    first, second = world.say(busy=Busy.STEER), world.say(busy=Busy.STEER)
    assert world.order() == [first, second]


@pytest.mark.parametrize(
    ("person", "admin", "offered"),
    [("ann", False, True), ("bob", True, True), ("bob", False, False)],
)
def test_only_who_began_the_turn_or_an_admin_may_steer(
    person: str, admin: bool, offered: bool
) -> None:
    world = World()
    world.working(person="ann")
    turn = world.say(person=person, busy=Busy.STEER, admin=admin)
    assert bool(world.said(Steer)) is offered
    assert world.order() == [turn]


def test_without_the_ability_a_steering_message_queues() -> None:
    world = World()
    world.working()
    turn = world.say(busy=Busy.STEER, can_steer=False)
    assert world.said(Steer) == []
    assert world.order() == [turn]


def test_a_turn_without_a_prompt_is_not_steered() -> None:
    world = World()
    world.say()
    world.say(busy=Busy.STEER)
    assert world.said(Steer) == []


def test_a_turn_that_is_being_stopped_is_not_steered() -> None:
    world = World()
    world.working()
    world.skip()
    world.say(busy=Busy.STEER)
    assert world.said(Steer) == []


def test_a_compaction_is_not_steered() -> None:
    world = World()
    world.working(kind=Kind.COMPACT)
    world.say(busy=Busy.STEER)
    assert world.said(Steer) == []


def test_a_turn_of_an_earlier_session_is_not_steered() -> None:
    world = World()
    world.working()
    world.renew()
    world.say(busy=Busy.STEER)
    assert world.said(Steer) == []


def test_an_offered_message_counts_for_the_queue_limit() -> None:
    world = World(queue=1)
    world.working()
    world.say(busy=Busy.STEER)
    over = world.say(busy=Busy.STEER)
    assert world.refusals == [(over, Refusal.QUEUE_FULL)]
    assert world.said(Steer) == []


# Interrupt


def test_an_interrupting_message_cancels_the_running_turn_and_runs_next() -> None:
    world = World()
    main = world.working()
    waiting = world.say()
    urgent = world.say(person="bob", busy=Busy.INTERRUPT)
    assert world.cancels == [main]
    assert world.order() == [urgent, waiting]
    world.finish(main, Result.CANCELLED)
    assert world.status(main) is Status.STOPPED
    assert world.news == [(News.ENDED, main)]
    world.end(main)
    assert world.started == [urgent]


def test_interrupting_messages_form_a_front_part_in_the_order_of_arrival() -> None:
    world = World()
    main = world.working()
    waiting = world.say()
    urgent = [world.say(busy=Busy.INTERRUPT)]
    assert world.cancels == [main]
    urgent.append(world.say(busy=Busy.INTERRUPT))
    assert world.cancels == []
    behind = world.say()
    assert world.order() == [*urgent, waiting, behind]


def test_a_turn_without_a_prompt_is_not_interrupted_and_the_message_still_goes_first() -> None:
    world = World()
    world.say()
    waiting = world.say()
    urgent = world.say(busy=Busy.INTERRUPT)
    assert world.cancels == []
    assert world.order() == [urgent, waiting]


def test_a_stopping_turn_is_not_cancelled_again() -> None:
    world = World()
    main = world.working()
    world.skip()
    world.say(busy=Busy.INTERRUPT)
    assert world.cancels == []
    stop = world.saved[main].stop
    assert stop is not None
    assert stop.kind is StopKind.SKIP


def test_an_interrupting_message_that_is_refused_interrupts_nothing() -> None:
    world = World(queue=1)
    world.working()
    world.say()
    over = world.say(busy=Busy.INTERRUPT)
    assert world.refusals == [(over, Refusal.QUEUE_FULL)]
    assert world.cancels == []


def test_an_interrupted_turn_that_finished_first_is_done() -> None:
    world = World()
    main = world.working()
    world.say(busy=Busy.INTERRUPT)
    world.finish(main)
    assert world.status(main) is Status.DONE


# Collect


def test_messages_are_collected_into_the_last_one_that_waits() -> None:
    world = World()
    world.working()
    first = world.say(busy=Busy.COLLECT)
    second = world.say(busy=Busy.COLLECT)
    assert world.said(Join) == [Join(second, first)]
    assert world.order() == [first]
    assert world.saved[first].pieces == 2
    assert world.saved[first].last_piece == world.now
    assert second not in world.saved


def test_another_persons_message_is_not_joined() -> None:
    world = World()
    world.working()
    first = world.say(person="ann", busy=Busy.COLLECT)
    second = world.say(person="bob", busy=Busy.COLLECT)
    third = world.say(person="ann", busy=Busy.COLLECT)
    assert world.order() == [first, second, third]


def test_only_the_last_waiting_message_is_joined() -> None:
    world = World()
    world.working()
    first = world.say(busy=Busy.COLLECT)
    job = world.say(origin=Origin.SCHEDULE)
    second = world.say(busy=Busy.COLLECT)
    assert world.order() == [first, job, second]


@pytest.mark.parametrize(("gap", "joined"), [(100, True), (101, False)])
def test_a_message_joins_up_to_the_gap_after_the_last_piece(gap: int, joined: bool) -> None:
    world = World(collect_gap=100)
    world.working()
    world.say(busy=Busy.COLLECT, at=1000)
    world.say(busy=Busy.COLLECT, at=1080)
    world.say(busy=Busy.COLLECT, at=1080 + gap)
    assert bool(world.said(Join)) is joined


def test_a_message_takes_so_many_pieces_and_no_more() -> None:
    world = World(collect_pieces=3)
    world.working()
    first = world.say(busy=Busy.COLLECT)
    world.say(busy=Busy.COLLECT)
    world.say(busy=Busy.COLLECT)
    fourth = world.say(busy=Busy.COLLECT)
    assert world.saved[first].pieces == 3
    assert world.order() == [first, fourth]


def test_an_offered_message_is_not_joined() -> None:
    world = World()
    world.working()
    offered = world.say(busy=Busy.STEER)
    turn = world.say(busy=Busy.COLLECT)
    assert world.order() == [offered, turn]


def test_a_compaction_is_not_joined() -> None:
    world = World()
    world.working()
    compaction = world.say(kind=Kind.COMPACT)
    turn = world.say(busy=Busy.COLLECT)
    assert world.order() == [compaction, turn]


def test_what_is_joined_is_no_matter_of_the_queue_limit() -> None:
    world = World(queue=1)
    world.working()
    world.say(busy=Busy.COLLECT)
    world.say(busy=Busy.COLLECT)
    assert world.refusals == []


def test_a_message_collects_while_the_turn_asks_or_settles_too() -> None:
    world = World()
    main = world.working()
    first = world.say(busy=Busy.COLLECT)
    world.ask(main)
    world.say(busy=Busy.COLLECT)
    world.finish(main)
    world.say(busy=Busy.COLLECT)
    assert world.saved[first].pieces == 3


# Edits


def test_an_edit_of_a_waiting_message_is_taken() -> None:
    world = World()
    world.working()
    before, turn, behind = world.say(), world.say(), world.say()
    world.edit(turn, "better words")
    assert [command.turn.id for command in world.said(Save)] == [turn]
    assert world.saved[turn].label == "better words"
    assert world.order() == [before, turn, behind]
    world.edit(turn)
    assert world.saved[turn].label == "better words"
    assert len(world.said(Save)) == 1


def test_an_edit_of_a_message_that_no_longer_waits_changes_nothing() -> None:
    world = World()
    turn = world.working()
    offered = world.say(busy=Busy.STEER)
    for late in (turn, offered):
        world.edit(late, "other words")
        assert world.out == []
    world.stop()
    world.complete(turn)
    world.edit(turn, "other words")
    assert world.out == []
