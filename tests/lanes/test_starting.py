"""Who starts, and when: one main turn a lane, caps, the line of waiting lanes, folders."""

from __future__ import annotations

import pytest

from core.lane_commands import Refusal, Save, Start
from core.lanes import Phase
from core.turns import Kind, Origin, Result, Status, StopKind
from tests.lanes.world import World


def test_a_message_in_an_idle_lane_starts_at_once() -> None:
    world = World()
    first = world.say()
    assert world.started == [first]
    assert world.saved[first].status is Status.STARTING


def test_a_turn_is_saved_before_it_is_started_and_only_once() -> None:
    world = World()
    world.say()
    assert [type(command) for command in world.out] == [Save, Start]


def test_a_lane_runs_one_main_turn_at_a_time() -> None:
    world = World()
    first = world.working()
    second = world.say()
    assert world.started == []
    assert world.order() == [second]
    world.finish(first)
    assert world.started == []
    world.end(first)
    assert world.started == [second]


def test_a_turn_goes_from_waiting_over_starting_running_settling_to_over() -> None:
    world = World()
    seen = []
    turn = world.say()
    seen.append(world.view().phase)
    world.prompt(turn)
    seen.append(world.view().phase)
    world.ask(turn)
    seen.append(world.view().phase)
    world.answer(turn)
    seen.append(world.view().phase)
    world.finish(turn)
    seen.append(world.view().phase)
    world.end(turn)
    assert seen == [
        Phase.STARTING,
        Phase.RUNNING,
        Phase.ASKING,
        Phase.RUNNING,
        Phase.SETTLING,
    ]
    assert world.lanes.view("a") is None
    assert world.status(turn) is Status.DONE


def test_a_settling_lane_keeps_its_slot() -> None:
    world = World(running=1)
    first = world.working("a")
    other = world.say("b", "bob")
    world.finish(first)
    assert world.started == []
    assert world.lanes.running == 1
    world.end(first)
    assert world.started == [other]


def test_messages_of_a_lane_run_in_the_order_of_arrival() -> None:
    world = World()
    turns = [world.say() for _ in range(4)]
    ran = []
    for _ in turns:
        main = world.view().main
        assert main is not None
        ran.append(main.id)
        world.prompt(main.id)
        world.complete(main.id)
    assert ran == turns


def test_no_more_turns_run_than_the_cap_of_all_lanes() -> None:
    world = World(running=2)
    world.say("a", "ann")
    world.say("b", "bob")
    world.say("c", "cy")
    assert world.started == []
    assert world.lanes.running == 2
    assert world.lanes.lanes_waiting == 1


def test_a_freed_slot_goes_to_the_lane_that_waits_longest() -> None:
    world = World(running=1)
    first = world.working("a")
    longest, newer = world.say("b", "bob"), world.say("c", "cy")
    world.complete(first)
    assert world.started == [longest]
    world.complete(longest)
    assert world.started == [newer]


def test_a_newcomer_never_overtakes() -> None:
    world = World(running=1)
    first = world.working("a")
    older = world.say("b", "bob")
    world.finish(first)
    newcomer = world.say("c", "cy")
    world.end(first)
    assert world.started == [older]
    assert world.order("c") == [newcomer]


def test_a_flood_in_one_lane_gets_one_turn_in_its_row() -> None:
    world = World(running=1)
    flood = [world.say("a", "ann") for _ in range(4)]
    other = world.say("b", "bob")
    world.complete(flood[0])
    assert world.started == [other]
    world.complete(other)
    assert world.started == [flood[1]]


def test_a_lane_waits_since_the_later_of_its_head_and_its_last_end() -> None:
    world = World(running=1, per_person=9)
    first = world.say("a", at=10)
    second = world.say("a", at=20)
    other = world.say("b", at=30)
    world.finish(first)
    world.end(first, at=25)  # lane a now waits since 25, lane b since 30
    assert world.started == [second]
    world.finish(second)
    world.say("a", at=40)
    world.end(second, at=40)
    assert world.started == [other]


def test_a_person_at_their_cap_blocks_nobody() -> None:
    world = World(running=3, per_person=1)
    first = world.working("a", "ann")
    held = world.say("b", "ann")
    assert world.started == []
    bob = world.say("c", "bob")
    assert world.started == [bob]
    assert world.lanes.running_for("ann") == 1
    world.complete(first)
    assert world.started == [held]


def test_inside_a_lane_order_beats_caps() -> None:
    world = World(running=3, per_person=1)
    first = world.working("a", "ann")
    world.say("b", "bob")
    bob = world.view("b").main
    assert bob is not None
    head, behind = world.say("b", "ann"), world.say("b", "cy")
    world.complete(bob.id)
    assert world.started == []  # cy could run, but ann's message is first
    assert world.order("b") == [head, behind]
    world.complete(first)
    assert world.started == [head]


def test_a_turn_that_asks_gives_its_slot_to_others() -> None:
    world = World(running=1)
    asking = world.working("a", "ann")
    other = world.say("b", "bob")
    world.ask(asking)
    assert world.started == [other]


def test_a_turn_that_asks_does_not_count_for_its_person() -> None:
    world = World(running=5, per_person=1)
    asking = world.working("a", "ann")
    other = world.say("b", "ann")
    world.ask(asking)
    assert world.started == [other]
    assert world.lanes.running_for("ann") == 1


def test_an_answered_turn_goes_on_at_once_and_no_start_comes_above_the_cap() -> None:
    world = World(running=1)
    asking = world.working("a", "ann")
    other = world.say("b", "bob")
    world.ask(asking)
    world.answer(asking)
    assert world.view("a").phase is Phase.RUNNING
    assert world.lanes.running == 2
    third = world.say("c", "cy")
    world.complete(asking)
    assert world.started == []
    world.complete(other)
    assert world.started == [third]


def test_a_turn_asks_until_its_last_question_is_answered() -> None:
    world = World()
    turn = world.working()
    world.ask(turn)
    world.ask(turn)
    world.answer(turn)
    assert world.view().phase is Phase.ASKING
    world.answer(turn)
    assert world.view().phase is Phase.RUNNING
    world.answer(turn)
    world.ask(turn)
    assert world.view().phase is Phase.ASKING


def test_a_question_ends_with_its_turn() -> None:
    world = World(running=1)
    turn = world.working()
    world.ask(turn)
    world.finish(turn, Result.FAILED)
    assert world.lanes.running == 1  # it settles, with its slot
    world.answer(turn)
    world.ask(turn)
    assert world.view().phase is Phase.SETTLING
    world.end(turn)
    assert world.lanes.running == 0


def test_jobs_take_at_most_half_of_the_slots() -> None:
    world = World(running=4)
    for lane in "abc":
        world.say(lane, "ann", origin=Origin.SCHEDULE)
    assert world.lanes.running == 2
    person = world.say("d", "bob")
    assert world.started == [person]


def test_a_single_slot_is_open_to_jobs_too() -> None:
    world = World(running=1)
    job = world.say("a", origin=Origin.WATCH)
    assert world.started == [job]


@pytest.mark.parametrize("origin", [Origin.SCHEDULE, Origin.WAKEUP, Origin.WATCH])
def test_a_jobs_turn_does_not_count_for_its_owner(origin: Origin) -> None:
    world = World(running=4, per_person=1)
    world.say("a", "ann", origin=origin)
    assert world.lanes.running_for("ann") == 0
    mine = world.say("b", "ann")
    assert world.started == [mine]
    another = world.say("c", "ann", origin=origin)
    assert world.started == [another]


def test_a_continued_turn_counts_for_its_person() -> None:
    world = World(running=4, per_person=1)
    world.say("a", "ann", origin=Origin.CONTINUE)
    assert world.lanes.running_for("ann") == 1
    world.say("b", "ann")
    assert world.started == []


def test_a_compaction_takes_a_main_slot() -> None:
    world = World(running=1)
    compaction = world.say("a", kind=Kind.COMPACT)
    assert world.started == [compaction]
    assert world.lanes.running == 1
    world.say("b", "bob")
    assert world.started == []


def test_a_waiting_lane_knows_its_place_in_the_line() -> None:
    world = World(running=1)
    world.working("a")
    world.say("b", "bob")
    world.say("c", "cy")
    world.say("c", "cy")
    assert [world.view(lane).place for lane in "abc"] == [0, 1, 2]
    assert world.view("c").phase is None
    assert world.lanes.lanes_waiting == 2


def test_the_queue_of_a_lane_is_limited_and_what_is_refused_is_saved_as_dropped() -> None:
    world = World(queue=2)
    world.working()
    kept = [world.say(), world.say()]
    over = world.say()
    assert world.refusals == [(over, Refusal.QUEUE_FULL)]
    assert world.status(over) is Status.DROPPED
    assert world.order() == kept


def test_the_limit_holds_for_a_lane_that_waits_for_a_slot_too() -> None:
    world = World(running=1, queue=1)
    world.working("a")
    world.say("b", "bob")
    over = world.say("b", "bob")
    assert world.refusals == [(over, Refusal.QUEUE_FULL)]


def test_firings_of_jobs_are_neither_counted_nor_refused_by_the_queue_limit() -> None:
    world = World(queue=1)
    world.working()
    jobs = [world.say(origin=Origin.SCHEDULE) for _ in range(3)]
    message = world.say()
    assert world.refusals == []
    job = world.say(origin=Origin.WATCH)
    assert world.order() == [*jobs, message, job]


@pytest.mark.parametrize(
    ("one", "other", "beside"),
    [
        ("/srv/app", "/srv/app", False),
        ("/srv/app", "/srv/app/docs", False),
        ("/srv/app/docs", "/srv/app", False),
        ("/", "/srv", False),
        ("/srv/app", "/", False),
        ("/srv/app", "/srv/apples", True),
        ("/srv/app/a", "/srv/app/b", True),
        ("", "", True),
        ("", "/srv", True),
        ("/srv", "", True),
    ],
)
def test_a_folder_is_used_by_one_main_turn_at_a_time(one: str, other: str, beside: bool) -> None:
    world = World(per_person=9)
    world.configure("a", folder=one)
    world.configure("b", folder=other)
    first = world.working("a")
    second = world.say("b")
    assert world.started == ([second] if beside else [])
    if not beside:
        world.complete(first)
        assert world.started == [second]


def test_a_lane_whose_folder_is_in_use_lets_others_pass() -> None:
    world = World(per_person=9)
    world.configure("a", folder="/srv")
    world.configure("b", folder="/srv/deep")
    world.working("a")
    world.say("b")
    other = world.say("c")
    assert world.started == [other]


def test_a_turn_that_asks_still_uses_its_folder() -> None:
    world = World(per_person=9)
    world.configure("a", folder="/srv")
    world.configure("b", folder="/srv")
    asking = world.working("a")
    world.ask(asking)
    blocked = world.say("b")
    assert world.started == []
    world.finish(asking)
    assert world.started == []
    world.end(asking)
    assert world.started == [blocked]


def test_a_turn_that_dies_while_it_asks_frees_its_folder() -> None:
    world = World(per_person=9)
    world.configure("a", folder="/srv")
    world.configure("b", folder="/srv")
    asking = world.working("a")
    world.ask(asking)
    blocked = world.say("b")
    world.end(asking)
    assert world.started == [blocked]


def test_two_folders_inside_a_third_both_block_it() -> None:
    world = World(per_person=9)
    for lane, folder in (("a", "/srv/one"), ("b", "/srv/two"), ("c", "/srv")):
        world.configure(lane, folder=folder)
    one, two = world.working("a"), world.working("b")
    outer = world.say("c")
    world.complete(one)
    assert world.started == []
    world.complete(two)
    assert world.started == [outer]


def test_one_freed_slot_starts_one_turn_and_a_raised_cap_as_many_as_fit() -> None:
    world = World(running=1)
    world.working("a", "ann")
    waiting = [world.say(lane, lane) for lane in "bcde"]
    world.limit(running=4)
    assert world.started == waiting[:3]


def test_a_lowered_cap_ends_nothing_and_starts_nothing_until_it_fits() -> None:
    world = World(running=3)
    running = [world.working(lane, lane) for lane in "abc"]
    waiting = world.say("d", "dee")
    world.limit(running=1)
    assert world.out == []
    world.complete(running[0])
    world.complete(running[1])
    assert world.started == []
    world.complete(running[2])
    assert world.started == [waiting]


def test_a_raised_cap_of_persons_starts_what_it_held() -> None:
    world = World(running=8, per_person=1)
    world.working("a")
    held = world.say("b")
    world.limit(per_person=2)
    assert world.started == [held]


def test_a_dropped_head_lets_the_next_message_of_the_lane_start() -> None:
    world = World(running=8, per_person=1)
    world.working("a", "ann")
    head = world.say("b", "ann")
    behind = world.say("b", "bob")
    world.drop(head)
    assert world.started == [behind]


def test_stopping_a_turn_lets_no_other_start_before_it_has_ended() -> None:
    world = World(running=1)
    first = world.working("a")
    other = world.say("b", "bob")
    world.skip("a", "ann", StopKind.SKIP)
    world.finish(first, Result.CANCELLED)
    assert world.started == []
    world.end(first)
    assert world.started == [other]
