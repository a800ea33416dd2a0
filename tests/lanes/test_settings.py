"""New sessions, changed settings, pauses and the drain."""

from __future__ import annotations

import pytest

from core.lane_commands import News, SaveLane
from core.lane_events import Configured, PauseAsked
from core.lanes import Hold
from core.turns import EnginePause, LaneFacts, Origin, Result, Status, StopKind
from tests.lanes.world import World


def test_a_new_session_raises_the_epoch_and_a_running_turn_keeps_its_own() -> None:
    world = World()
    first = world.working()
    second = world.say()
    world.renew()
    (saved,) = world.said(SaveLane)
    assert saved.facts.epoch == 1
    assert world.saved[first].epoch == 0
    world.complete(first)
    assert world.started == [second]
    assert world.saved[second].epoch == 1


def test_an_idle_lane_is_renewed_too() -> None:
    world = World()
    world.facts["a"] = LaneFacts(ended=5, epoch=7)
    world.renew()
    assert world.facts["a"] == LaneFacts(ended=5, epoch=8)
    turn = world.say()
    assert world.saved[turn].epoch == 8


def test_a_changed_folder_counts_from_the_next_turn() -> None:
    world = World(per_person=9)
    world.configure("a", folder="/old")
    first = world.working("a")
    world.configure("a", folder="/new")
    world.configure("b", folder="/old")
    held = world.say("b")
    assert world.started == []  # the running turn still works there
    world.configure("c", folder="/new")
    free = world.say("c")
    assert world.started == [free]
    behind = world.say("a")
    world.complete(first)
    assert world.started == [held]
    assert world.order("a") == [behind]  # its new folder is in use


def test_a_lane_that_waits_for_a_folder_starts_when_it_gets_another_one() -> None:
    world = World(per_person=9)
    world.configure("a", folder="/srv")
    world.configure("b", folder="/srv")
    world.working("a")
    turn = world.say("b")
    assert world.started == []
    world.configure("b", folder="/elsewhere")
    assert world.started == [turn]


def test_settings_of_a_lane_that_is_not_in_memory_need_its_facts() -> None:
    world = World()
    world.facts["a"] = LaneFacts(epoch=3, engine="demo")
    world.send(Configured("a", "other", ""))
    turn = world.say()
    assert world.view().facts == world.facts["a"]
    assert world.saved[turn].epoch == 3


def test_settings_changed_while_a_message_was_on_its_way_win_over_its_older_facts() -> None:
    world = World()
    world.pause(engine="new")
    world.configure("a", engine="new")
    world.facts["a"] = LaneFacts(engine="old")  # what the message's sender has read
    turn = world.say()
    assert world.started == []
    assert world.order() == [turn]


# Pauses

SCOPES = [{"lane": "a"}, {"engine": "demo"}, {}]


@pytest.mark.parametrize("scope", SCOPES)
def test_while_paused_nothing_starts_and_messages_are_kept(scope: dict[str, str]) -> None:
    world = World()
    world.configure("a", engine="demo")
    world.pause(**scope)
    turns = [world.say(), world.say()]
    assert world.order() == turns
    world.resume(**scope)
    assert world.started == turns[:1]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_running_turn_goes_on_in_a_pause_and_the_next_does_not_start(
    scope: dict[str, str],
) -> None:
    world = World()
    world.configure("a", engine="demo")
    turn = world.working()
    waiting = world.say()
    world.pause(**scope)
    assert world.cancels == []
    world.complete(turn)
    assert world.status(turn) is Status.DONE
    assert world.started == []
    world.resume(**scope)
    assert world.started == [waiting]


def test_resuming_releases_only_what_that_pause_held() -> None:
    world = World()
    world.configure("a", engine="demo")
    world.pause("a")
    world.pause(engine="demo")
    world.pause()
    turn = world.say()
    assert world.view().paused == (Hold.LANE, Hold.ENGINE, Hold.ALL)
    for scope in ({"lane": "a"}, {"engine": "demo"}):
        world.resume(**scope)
        assert world.started == []
    assert world.view().paused == (Hold.ALL,)
    world.resume()
    assert world.started == [turn]
    assert world.view().paused == ()


@pytest.mark.parametrize("scope", [{"lane": "a"}, {"engine": "demo"}])
def test_a_pause_of_one_scope_lets_the_others_start(scope: dict[str, str]) -> None:
    world = World()
    world.configure("a", engine="demo")
    world.configure("b", engine="other")
    world.pause(**scope)
    held, other = world.say("a"), world.say("b", "bob")
    assert world.started == [other]
    assert world.order("a") == [held]


def test_a_pause_of_an_engine_counts_for_the_engine_a_lane_has_now() -> None:
    world = World()
    world.configure("a", engine="demo")
    world.pause(engine="demo")
    turn = world.say()
    world.configure("a", engine="other")
    assert world.started == [turn]


def test_one_engine_is_resumed_and_another_stays_paused() -> None:
    world = World()
    world.configure("a", engine="one")
    world.configure("b", engine="two")
    world.pause(engine="one")
    world.pause(engine="two")
    first, held = world.say("a"), world.say("b", "bob")
    world.resume(engine="one")
    assert world.started == [first]
    assert world.order("b") == [held]


def test_a_paused_lane_holds_no_place_in_the_line() -> None:
    world = World(running=1)
    first = world.working("a")
    world.say("b", "bob")
    other = world.say("c", "cy")
    world.pause("b")
    assert world.view("b").place == 0
    assert world.view("c").place == 1
    world.complete(first)
    assert world.started == [other]


def test_the_pause_of_a_lane_is_stored() -> None:
    world = World()
    world.pause("a")
    assert world.facts["a"].paused
    world.resume("a")
    assert not world.facts["a"].paused


def test_an_engine_without_a_pause_may_be_resumed() -> None:
    world = World()
    for scope in SCOPES:
        world.resume(**scope)
        assert world.started == []


# Drain


def test_in_a_drain_nothing_starts_and_messages_are_accepted() -> None:
    world = World()
    running = world.working("a")
    world.drain()
    turns = [world.say("a"), world.say("b"), world.say("c", origin=Origin.SCHEDULE)]
    assert world.statuses(turns) == [Status.WAITING] * 3
    world.complete(running)
    world.resume()
    world.limit(running=99)
    assert world.started == []


def test_a_drain_leaves_running_turns_their_time() -> None:
    world = World()
    turn = world.working()
    world.drain()
    assert world.cancels == []
    world.finish(turn)
    assert world.status(turn) is Status.DONE


def test_a_turn_that_was_starting_when_the_drain_began_may_still_prompt() -> None:
    world = World()
    turn = world.say()
    world.drain()
    world.prompt(turn)
    assert world.status(turn) is Status.RUNNING


def test_the_end_of_a_drain_interrupts_what_still_runs_and_tells_it() -> None:
    world = World()
    turn = world.working()
    world.drain()
    world.end_drain()
    assert world.cancels == [turn]
    world.finish(turn, Result.CANCELLED)
    assert world.status(turn) is Status.INTERRUPTED
    assert world.news == [(News.INTERRUPTED, turn)]
    world.end(turn)
    world.crash()
    assert world.out == []  # told once, not again at the next start


def test_the_end_of_a_drain_leaves_alone_what_settles_or_is_stopped_already() -> None:
    world = World()
    settling, stopping = world.working("a"), world.working("b", "bob")
    world.finish(settling)
    world.stop("b", "bob")
    world.drain()
    world.end_drain()
    assert world.cancels == []
    world.finish(stopping, Result.CANCELLED)
    assert world.status(stopping) is Status.STOPPED


def test_a_turn_without_a_prompt_at_the_end_of_a_drain_runs_after_the_restart() -> None:
    world = World()
    turn = world.say()
    world.drain()
    world.end_drain()
    assert world.cancels == [turn]
    world.finish(turn, Result.CANCELLED)
    assert world.status(turn) is Status.WAITING
    assert world.saved[turn].stop is None
    world.end(turn)
    assert world.news == []
    world.crash()
    assert world.started == [turn]


def test_a_prompt_that_never_left_before_the_end_of_a_drain_runs_after_the_restart() -> None:
    world = World()
    turn = world.working()
    world.end_drain()
    world.unsent(turn)
    world.end(turn)
    assert world.status(turn) is Status.WAITING
    world.crash()
    assert world.started == [turn]


def test_a_turn_that_finished_within_the_drain_is_done_although_it_was_cancelled() -> None:
    world = World()
    turn = world.working()
    world.end_drain()
    world.finish(turn)
    assert world.status(turn) is Status.DONE


def test_a_persons_stop_takes_the_place_of_a_drains_end() -> None:
    world = World()
    turn = world.working()
    world.end_drain()
    world.stop()
    assert world.cancels == []
    stop = world.saved[turn].stop
    assert stop is not None
    assert stop.kind is StopKind.STOP
    world.finish(turn, Result.CANCELLED)
    assert world.status(turn) is Status.STOPPED


def test_a_paused_engine_is_shown_with_the_reason_and_when_it_goes_on() -> None:
    world = World()
    world.configure("a", engine="demo")
    why = EnginePause("its limit of use is reached", 5_000)
    world.send(PauseAsked(engine="demo", why=why))
    world.say()
    assert world.view().engine_pause == why
    assert world.lanes.engine_pauses == {"demo": why}
    world.resume(engine="demo")
    assert world.lanes.engine_pauses == {}


def test_a_start_that_does_not_count_can_be_made_again_and_again() -> None:
    world = World(attempts=1)
    turn = world.working()
    for _ in range(5):
        world.unsent(turn, uncounted=True)
        assert world.status(turn) is Status.WAITING
        assert world.saved[turn].unsent == 0
        world.end(turn)
        assert world.started == [turn]
        world.prompt(turn)
    for _ in range(2):
        world.unsent(turn)
        world.end(turn)
        world.prompt(turn)
    assert world.status(turn) is Status.FAILED


def test_a_turn_whose_engine_is_paused_meanwhile_waits_first_in_its_lane() -> None:
    world = World()
    world.configure("a", engine="demo")
    turn = world.working()
    later = world.say()
    world.pause(engine="demo")
    world.unsent(turn, uncounted=True)
    world.end(turn)
    assert world.started == []
    assert world.order() == [turn, later]
    world.resume(engine="demo")
    assert world.started == [turn]
