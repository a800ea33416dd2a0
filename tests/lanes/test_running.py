"""A turn on its way from start to end: prompts, results, ends, and prompts that never left."""

from __future__ import annotations

import pytest

from core.lane_commands import News, Prompt, Save, SaveLane
from core.lane_events import Asked, Ended, Finished, Prompted, Unsent
from core.turns import Rank, Result, Status, StopKind
from tests.lanes.world import World


def test_a_prompt_is_saved_before_it_may_be_handed_over() -> None:
    world = World()
    turn = world.say()
    world.prompt(turn)
    assert [type(command) for command in world.out] == [Save, Prompt]
    assert world.status(turn) is Status.RUNNING


def test_a_prompt_is_handed_over_once() -> None:
    world = World()
    turn = world.working()
    world.prompt(turn)
    assert world.out == []


@pytest.mark.parametrize(
    ("result", "status", "news"),
    [
        (Result.DONE, Status.DONE, []),
        (Result.FAILED, Status.FAILED, [News.ENDED]),
        (Result.CANCELLED, Status.FAILED, [News.ENDED]),  # nobody asked for it
    ],
)
def test_a_turn_ends_with_its_engines_result(
    result: Result, status: Status, news: list[News]
) -> None:
    world = World()
    turn = world.working()
    world.finish(turn, result)
    assert world.status(turn) is status
    assert world.news == [(one, turn) for one in news]
    world.end(turn)
    assert world.news == []


def test_an_engine_that_could_not_be_opened_ends_its_turn_as_failed() -> None:
    world = World()
    turn = world.say()
    world.finish(turn, Result.FAILED)
    assert world.status(turn) is Status.FAILED
    assert world.news == [(News.ENDED, turn)]


def test_an_end_without_a_result_is_a_failure_and_frees_the_lane() -> None:
    world = World()
    turn = world.working()
    waiting = world.say()
    world.end(turn)
    assert world.status(turn) is Status.FAILED
    assert world.news == [(News.ENDED, turn)]
    assert world.started == [waiting]


def test_an_end_without_a_result_of_a_stopped_turn_is_its_stop() -> None:
    world = World()
    turn = world.working()
    world.stop()
    world.end(turn)
    assert world.status(turn) is Status.STOPPED


def test_the_end_of_a_turn_is_stored_with_its_lane() -> None:
    world = World()
    turn = world.working()
    world.finish(turn)
    assert world.said(SaveLane) == []
    world.end(turn, at=77)
    (saved,) = world.said(SaveLane)
    assert saved.facts.ended == 77


def test_late_reports_about_another_turn_change_nothing() -> None:
    world = World()
    first = world.working()
    second = world.say()
    world.complete(first)
    for event in (
        Prompted(first, "a"),
        Unsent(first, "a"),
        Asked(first, "a"),
        Finished(first, "a", Result.FAILED),
        Ended(first, "a", 99),
        Ended(second, "elsewhere", 99),
        Finished(999, "a", Result.DONE),
    ):
        world.send(event)
        assert world.out == []
    assert world.status(second) is Status.STARTING
    assert world.lanes.running == 1


def test_a_second_result_changes_nothing() -> None:
    world = World()
    turn = world.working()
    world.finish(turn)
    world.finish(turn, Result.FAILED)
    assert world.out == []
    world.unsent(turn)
    assert world.out == []


def test_no_question_is_open_before_the_prompt() -> None:
    world = World(running=1)
    turn = world.say()
    world.ask(turn)
    assert world.lanes.running == 1


# The prompt never left


def test_a_turn_whose_prompt_never_left_waits_again_when_its_engine_is_gone() -> None:
    world = World()
    turn = world.working()
    behind = world.say()
    world.unsent(turn)
    assert world.status(turn) is Status.WAITING
    assert world.saved[turn].rank is Rank.AGAIN
    assert world.saved[turn].unsent == 1
    assert world.started == []
    assert world.lanes.running == 1
    world.end(turn)
    assert world.started == [turn]
    assert world.order() == [behind]
    assert world.news == []


def test_it_comes_before_everything_else_in_its_lane() -> None:
    world = World(running=1)
    turn = world.working("a")
    world.say("b", "bob")
    world.say("a")
    world.unsent(turn)
    world.say("a", "cy")
    world.end(turn)
    assert world.order("a")[0] == turn or world.started == [turn]


def test_it_keeps_its_place_in_the_line() -> None:
    world = World(running=1)
    turn = world.working("a", at=10)
    world.say("b", "bob", at=20)
    world.unsent(turn)
    world.end(turn, at=30)
    assert world.started == [turn]
    assert world.said(SaveLane) == []


def test_it_starts_again_at_most_twice_and_is_then_given_up() -> None:
    world = World()
    turn = world.working()
    for attempt in (2, 3):
        world.unsent(turn)
        world.end(turn)
        assert world.started == [turn]
        assert world.saved[turn].attempts == attempt
        world.prompt(turn)
    world.unsent(turn)
    assert world.status(turn) is Status.FAILED
    assert world.news == [(News.GIVEN_UP, turn)]
    waiting = world.say()
    world.end(turn)
    assert world.started == [waiting]


def test_a_start_undone_by_a_crash_counts_like_one_undone_by_an_unsent_prompt() -> None:
    world = World()
    turn = world.say()
    world.crash()
    world.prompt(turn)
    world.unsent(turn)
    world.end(turn)
    world.prompt(turn)
    world.unsent(turn)
    assert world.news == [(News.GIVEN_UP, turn)]


def test_a_stopped_turn_whose_prompt_never_left_is_stopped() -> None:
    world = World()
    turn = world.working()
    world.stop()
    world.unsent(turn)
    assert world.status(turn) is Status.STOPPED
    world.end(turn)
    assert world.started == []


def test_a_turn_over_its_time_limit_whose_prompt_never_left_has_failed() -> None:
    world = World()
    turn = world.working()
    world.skip(kind=StopKind.LIMIT, turn=turn)
    world.unsent(turn)
    assert world.status(turn) is Status.FAILED
    assert world.news == [(News.ENDED, turn)]


def test_between_two_tries_a_turn_can_be_stopped() -> None:
    world = World()
    turn = world.working()
    waiting = world.say(person="bob")
    world.unsent(turn)
    world.stop()
    assert world.status(turn) is Status.STOPPED
    assert world.cancels == []
    assert world.news == [(News.STOPPED, turn)]
    assert world.dropped == [waiting]
    world.end(turn)
    assert world.started == []


def test_between_two_tries_a_turn_can_be_skipped() -> None:
    world = World()
    turn = world.working()
    waiting = world.say()
    world.unsent(turn)
    world.skip()
    assert world.status(turn) is Status.STOPPED
    assert world.news == [(News.STOPPED, turn)]
    world.end(turn)
    assert world.started == [waiting]


def test_while_it_waits_again_its_button_still_stops_it() -> None:
    world = World(running=1)
    turn = world.working("a")
    world.unsent(turn)
    world.pause()
    world.end(turn)
    assert world.order() == [turn]
    world.stop(turn=turn)
    assert world.status(turn) is Status.DROPPED


def test_an_end_that_comes_before_the_unsent_report_is_a_failure() -> None:
    world = World()
    turn = world.working()
    world.end(turn)
    world.unsent(turn)
    assert world.out == []
    assert world.status(turn) is Status.FAILED
