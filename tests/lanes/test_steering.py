"""Messages offered to the running turn: taken, refused, uncertain."""

from __future__ import annotations

import pytest

from core.lane_commands import News, Refusal, Steer, Withdraw
from core.turns import Busy, Rank, Result, Status, Stop, StopKind
from tests.lanes.world import World


def steered() -> tuple[World, int, int]:
    """A running turn with an offered message behind which another one waits."""
    world = World()
    main = world.working()
    world.say(person="bob")
    offered = world.say(busy=Busy.STEER)
    return world, main, offered


@pytest.mark.parametrize("result", list(Result))
def test_a_taken_message_ends_with_the_turns_status(result: Result) -> None:
    world, main, offered = steered()
    world.take(offered)
    assert world.news == [(News.STEERED, offered)]
    assert world.status(offered) is Status.RUNNING
    assert offered not in world.order()
    world.finish(main, result)
    assert world.status(offered) is world.status(main)
    assert world.status(offered).over


def test_a_taken_message_cannot_be_dropped_or_offered_again() -> None:
    world, _, offered = steered()
    world.take(offered)
    world.drop(offered)
    assert world.denial is Refusal.NOT_WAITING
    world.steer(offered)
    assert world.denial is Refusal.NOT_WAITING


def test_a_message_taken_uncertainly_is_told_so() -> None:
    world, main, offered = steered()
    world.take(offered, certain=False)
    assert world.news == [(News.STEER_UNCERTAIN, offered)]
    world.finish(main)
    assert world.status(offered) is Status.DONE


def test_a_refused_message_waits_again_at_its_place_by_arrival() -> None:
    world = World()
    main = world.working()
    before = world.say()
    offered = world.say(busy=Busy.STEER)
    behind = world.say()
    world.refuse(offered)
    assert world.order() == [before, offered, behind]
    assert world.saved[offered].offered_to is None
    assert world.saved[offered].rank is Rank.ORDINARY
    assert world.status(offered) is Status.WAITING
    world.complete(main)
    assert world.started == [before]


def test_what_is_still_offered_when_the_turn_finishes_counts_as_taken() -> None:
    world, main, offered = steered()
    world.finish(main)
    assert world.news == [(News.STEER_UNCERTAIN, offered)]
    assert world.status(offered) is Status.DONE
    world.end(main)
    assert offered not in world.started


def test_what_is_still_offered_when_the_engine_dies_counts_as_taken() -> None:
    world, main, offered = steered()
    world.end(main)
    assert world.news == [(News.ENDED, main), (News.STEER_UNCERTAIN, offered)]
    assert world.status(offered) is Status.FAILED


def test_late_reports_about_an_offer_change_nothing() -> None:
    world, main, offered = steered()
    waiting = world.order()[-1]
    for turn in (waiting, main):
        world.take(turn)
        assert world.out == []
        world.refuse(turn)
        assert world.out == []
    world.take(offered)
    world.take(offered)
    assert world.out == []
    world.refuse(offered)
    assert world.out == []
    world.finish(main)
    world.take(offered)
    assert world.out == []


def test_a_waiting_message_is_offered_when_its_sender_asks() -> None:
    world = World()
    main = world.working()
    before, turn = world.say(), world.say()
    world.steer(turn)
    assert world.said(Steer) == [Steer(turn, main)]
    assert world.order() == [turn, before]


def test_an_admin_may_offer_any_waiting_message() -> None:
    world = World()
    main = world.working(person="ann")
    turn = world.say(person="bob")
    world.steer(turn, "root", admin=True)
    assert world.said(Steer) == [Steer(turn, main)]


def test_anothers_message_is_not_offered() -> None:
    world = World()
    world.working(person="ann")
    turn = world.say(person="bob")
    world.steer(turn, "ann")
    assert world.denial is Refusal.NOT_YOURS


def test_anothers_turn_is_not_steered() -> None:
    world = World()
    world.working(person="ann")
    turn = world.say(person="bob")
    world.steer(turn, "bob")
    assert world.denial is Refusal.NOT_YOURS


def test_a_message_that_does_not_wait_is_not_offered() -> None:
    world, main, offered = steered()
    for turn in (main, offered):
        world.steer(turn)
        assert world.denial is Refusal.NOT_WAITING


def test_where_nothing_is_at_work_nothing_is_offered() -> None:
    world = World(running=1)
    asking = world.working("a")
    turn = world.say("a")
    world.ask(asking)
    world.steer(turn)
    assert world.denial is Refusal.NO_STEER, "something runs: it asks, and reads nothing meanwhile"
    world.answer(asking)
    world.finish(asking)
    world.steer(turn)
    assert world.denial is Refusal.NOTHING_RUNS
    other = world.say("b", "bob")
    world.steer(other, "bob")
    assert world.denial is Refusal.NOTHING_RUNS


def test_without_the_ability_nothing_is_offered() -> None:
    world = World()
    world.working()
    turn = world.say()
    world.steer(turn, can_steer=False)
    assert world.denial is Refusal.NO_STEER


def test_in_a_drain_nothing_is_offered() -> None:
    world = World()
    world.working()
    turn = world.say()
    world.drain()
    world.steer(turn)
    assert world.denial is Refusal.DRAINING


# A prompt that never left


def test_when_the_prompt_never_left_what_was_offered_waits_again() -> None:
    world, main, offered = steered()
    other = world.order()[-1]
    world.unsent(main)
    assert world.order() == [other, offered]
    world.end(main)
    assert world.started == [main]


def test_when_the_prompt_never_left_what_was_taken_waits_again() -> None:
    world, main, offered = steered()
    world.take(offered)
    world.unsent(main)
    assert world.status(offered) is Status.WAITING
    assert world.saved[offered].offered_to is None
    assert offered in world.order()


def test_when_the_prompt_never_left_what_was_offered_and_stopped_is_dropped() -> None:
    world, main, offered = steered()
    world.drop(offered)
    world.unsent(main)
    assert world.status(offered) is Status.DROPPED
    assert (News.DROPPED, offered) in world.news


# Stopping an offered message


def test_a_stop_withdraws_what_was_offered() -> None:
    world, main, offered = steered()
    world.stop()
    assert world.said(Withdraw) == [Withdraw(offered, main)]
    assert world.status(offered) is Status.WAITING
    assert world.saved[offered].stop == Stop(StopKind.STOP, "ann")
    assert offered not in world.dropped


def test_a_withdrawn_message_that_the_engine_gives_back_is_dropped() -> None:
    world, main, offered = steered()
    world.stop()
    world.refuse(offered)
    assert world.status(offered) is Status.DROPPED
    assert world.news == [(News.DROPPED, offered)]
    world.finish(main, Result.CANCELLED)
    world.end(main)
    assert world.started == []


def test_a_withdrawn_message_that_the_engine_has_ends_with_the_turn() -> None:
    world, main, offered = steered()
    world.stop()
    world.take(offered)
    world.finish(main, Result.CANCELLED)
    assert world.status(offered) is world.status(main) is Status.STOPPED


def test_a_message_is_withdrawn_once() -> None:
    world, _, offered = steered()
    world.drop(offered)
    assert len(world.said(Withdraw)) == 1
    assert world.order()[0] == offered
    world.drop(offered)
    assert world.said(Withdraw) == []
    world.stop()
    assert world.said(Withdraw) == []


def test_a_stop_by_another_member_withdraws_only_what_is_theirs() -> None:
    world, _, _ = steered()
    world.stop(person="bob")
    assert world.said(Withdraw) == []
