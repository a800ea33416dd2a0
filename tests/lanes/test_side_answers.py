"""Side answers asked for by name, and their ends."""

from __future__ import annotations

from core.lane_commands import Cancel, News, Prompt, Refusal, StartSide
from core.turns import Busy, Kind, Origin, Result, Status, StopKind
from tests.lanes.world import World


def test_in_an_idle_lane_a_side_answer_is_given_at_once_and_stays_one() -> None:
    world = World()
    side = world.aside()
    assert [command.turn.id for command in world.said(StartSide)] == [side]
    assert world.saved[side].kind is Kind.SIDE
    main = world.say()
    assert world.started == [main]


def test_a_side_answer_takes_no_main_slot() -> None:
    world = World(running=1, per_person=1)
    world.aside("a")
    assert world.lanes.running == 0
    main = world.say("b")
    assert world.started == [main]
    world.aside("c")
    assert world.said(StartSide)


def test_without_the_ability_it_is_refused_with_the_reason() -> None:
    world = World()
    side = world.aside(can_side=False)
    assert world.refusals == [(side, Refusal.NO_SIDE)]
    assert world.status(side) is Status.DROPPED


def test_without_a_free_side_slot_it_is_refused_with_the_reason() -> None:
    world = World(sides_per_lane=1, sides=2)
    world.aside("a")
    second = world.aside("a")
    assert world.refusals == [(second, Refusal.SIDE_BUSY)]
    world.aside("b")
    third = world.aside("c")
    assert world.refusals == [(third, Refusal.SIDE_BUSY)]


def test_in_a_drain_it_is_refused_with_the_reason() -> None:
    world = World()
    world.drain()
    side = world.aside()
    assert world.refusals == [(side, Refusal.DRAINING)]


def test_in_a_pause_it_is_refused_with_the_reason() -> None:
    world = World()
    world.configure("a", engine="demo")
    for scope in ({"lane": "a"}, {"engine": "demo"}, {}):
        world.pause(**scope)
        side = world.aside()
        assert world.refusals == [(side, Refusal.PAUSED)]
        world.resume(**scope)
    side = world.aside()
    assert world.said(StartSide)


def test_its_prompt_is_handed_over_like_any_other() -> None:
    world = World()
    side = world.aside()
    world.prompt(side)
    assert world.said(Prompt) == [Prompt(side)]
    assert world.status(side) is Status.RUNNING


def test_it_ends_with_its_result_and_its_slot_is_free_when_its_engine_is_gone() -> None:
    world = World()
    side = world.aside()
    world.prompt(side)
    world.finish(side)
    assert world.status(side) is Status.DONE
    world.aside()
    assert world.refusals
    world.end(side)
    world.aside()
    assert world.said(StartSide)


def test_it_does_not_touch_the_running_turn() -> None:
    world = World()
    main = world.working()
    side = world.aside()
    world.prompt(side)
    world.finish(side, Result.FAILED)
    world.end(side)
    assert world.status(main) is Status.RUNNING
    assert world.status(side) is Status.FAILED
    assert world.lanes.running == 1


def test_an_end_that_was_never_reported_is_a_failure() -> None:
    world = World()
    side = world.aside()
    world.end(side)
    assert world.status(side) is Status.FAILED
    assert world.news == [(News.ENDED, side)]
    assert world.lanes.view("a") is None


def test_one_whose_prompt_never_left_has_failed() -> None:
    world = World()
    side = world.aside()
    world.prompt(side)
    world.unsent(side)
    assert world.status(side) is Status.FAILED
    assert world.news == [(News.ENDED, side)]
    world.end(side)
    assert world.said(StartSide) == []


def test_a_new_session_leaves_it_alone() -> None:
    world = World()
    side = world.aside()
    world.prompt(side)
    world.renew()
    assert world.cancels == []
    world.finish(side)
    assert world.status(side) is Status.DONE


def test_a_stop_cancels_the_main_turn_and_every_side_answer_once() -> None:
    world = World(sides_per_lane=2)
    main, one, two = world.working(), world.aside(), world.aside()
    world.stop()
    assert world.said(Cancel) == [Cancel(main), Cancel(one), Cancel(two)]
    world.stop()
    assert world.cancels == []
    world.finish(one, Result.CANCELLED)
    assert world.status(one) is Status.STOPPED
    assert world.out[1:] == []  # the stop has been answered


def test_a_stop_ends_a_side_answer_in_a_lane_without_a_main_turn() -> None:
    world = World()
    side = world.aside()
    world.stop()
    assert world.cancels == [side]
    assert world.news == [(News.STOPPED, side)]


def test_there_is_nothing_to_stop_where_a_side_answer_only_settles() -> None:
    world = World()
    side = world.aside()
    world.finish(side)
    world.stop()
    assert world.news == [(News.NOTHING, None)]


def test_the_button_of_a_side_answer_ends_it_alone() -> None:
    world = World()
    main = world.working()
    side = world.aside()
    waiting = world.say()
    world.stop(turn=side)
    assert world.cancels == [side]
    assert world.news == [(News.STOPPED, side)]
    assert world.status(main) is Status.RUNNING
    assert world.order() == [waiting]


def test_a_skip_leaves_side_answers_alone() -> None:
    world = World()
    main, _ = world.working(), world.aside()
    world.skip()
    assert world.cancels == [main]


def test_a_time_limit_ends_one_side_answer() -> None:
    world = World()
    world.working()
    side = world.aside()
    world.skip(kind=StopKind.LIMIT, turn=side, person="")
    assert world.cancels == [side]
    assert world.news == []
    world.finish(side, Result.CANCELLED)
    assert world.status(side) is Status.FAILED
    assert world.news == [(News.ENDED, side)]


def test_one_cut_off_by_a_crash_is_interrupted_told_and_never_a_main_turn() -> None:
    world = World()
    starting = world.aside("a")
    running = world.aside("b")
    world.prompt(running)
    world.crash()
    assert world.statuses([starting, running]) == [Status.INTERRUPTED] * 2
    assert world.news == [(News.SIDE_CUT_OFF, starting), (News.SIDE_CUT_OFF, running)]
    assert world.started == []
    assert world.said(StartSide) == []


def test_one_cut_off_by_a_drain_is_interrupted_and_told() -> None:
    world = World()
    side = world.aside()
    world.end_drain()
    assert world.cancels == [side]
    world.finish(side, Result.CANCELLED)
    assert world.status(side) is Status.INTERRUPTED
    assert world.news == [(News.SIDE_CUT_OFF, side)]


def test_a_stopped_one_is_stopped_after_a_crash_too() -> None:
    world = World()
    side = world.aside()
    world.stop()
    world.crash()
    assert world.status(side) is Status.STOPPED
    assert world.news == []


# A waiting message that is answered on the side instead


def test_a_waiting_message_becomes_a_side_answer_in_one_step() -> None:
    world = World()
    world.working()
    first, second = world.say(), world.say()
    world.move_aside(first)
    assert [command.turn.id for command in world.said(StartSide)] == [first]
    assert world.saved[first].kind is Kind.SIDE
    assert world.order() == [second]
    assert world.news == []


def test_one_that_waits_for_a_slot_can_be_answered_on_the_side_too() -> None:
    world = World(running=1)
    world.working("a")
    waiting = world.say("b")
    world.move_aside(waiting)
    assert world.status(waiting) is Status.STARTING
    assert world.lanes.lanes_waiting == 0


def test_what_stood_behind_it_starts_if_it_can() -> None:
    world = World(per_person=1)
    world.working("a", "ann")
    anns, bobs = world.say("b", "ann"), world.say("b", "bob")
    world.move_aside(anns)
    assert world.started == [bobs]


def test_pieces_that_were_collected_into_it_go_along() -> None:
    world = World()
    world.working()
    first = world.say(busy=Busy.COLLECT)
    world.say(busy=Busy.COLLECT)
    world.move_aside(first)
    assert world.saved[first].pieces == 2
    assert world.order() == []


def test_without_the_ability_it_stays_waiting_with_the_reason() -> None:
    world = World()
    world.working()
    waiting = world.say()
    world.move_aside(waiting, can_side=False)
    assert world.denial is Refusal.NO_SIDE
    assert world.order() == [waiting]


def test_beside_another_side_answer_it_stays_waiting_with_the_reason() -> None:
    world = World()
    world.working()
    world.aside()
    waiting = world.say()
    world.move_aside(waiting)
    assert world.denial is Refusal.SIDE_BUSY
    assert world.order() == [waiting]


def test_in_a_pause_and_in_a_drain_it_stays_waiting_with_the_reason() -> None:
    world = World()
    world.working()
    waiting = world.say()
    world.pause()
    world.move_aside(waiting)
    assert world.denial is Refusal.PAUSED
    world.resume()
    world.drain()
    world.move_aside(waiting)
    assert world.denial is Refusal.DRAINING
    assert world.order() == [waiting]


def test_only_its_sender_or_an_admin_has_it_answered_on_the_side() -> None:
    world = World()
    world.working()
    waiting = world.say(person="bob")
    world.move_aside(waiting, person="ann")
    assert world.denial is Refusal.NOT_YOURS
    world.move_aside(waiting, person="ann", admin=True)
    assert world.status(waiting) is Status.STARTING


def test_what_runs_already_or_is_offered_is_not_answered_on_the_side_as_well() -> None:
    world = World()
    main = world.working()
    world.move_aside(main)
    assert world.denial is Refusal.NOT_WAITING
    offered = world.say(busy=Busy.STEER)
    world.move_aside(offered)
    assert world.denial is Refusal.NOT_WAITING
    assert world.order() == [offered]
    world.complete(main)
    world.move_aside(main)
    assert world.denial is Refusal.NOT_WAITING
    assert world.said(StartSide) == []


def test_jobs_and_compactions_are_not_answered_on_the_side() -> None:
    world = World()
    world.working()
    job = world.say(origin=Origin.SCHEDULE)
    compaction = world.say(kind=Kind.COMPACT)
    for turn in (job, compaction):
        world.move_aside(turn)
        assert world.denial is Refusal.NO_SIDE
    assert world.order() == [job, compaction]


def test_a_message_moved_aside_is_never_a_main_turn_after_a_crash() -> None:
    world = World()
    world.working()
    waiting = world.say()
    world.move_aside(waiting)
    world.crash()
    assert world.status(waiting) is Status.INTERRUPTED
    assert (News.SIDE_CUT_OFF, waiting) in world.news
    assert world.started == []
