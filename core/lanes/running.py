"""A turn on its way from its start to its end, as its engine's shell reports it."""

from __future__ import annotations

from dataclasses import replace

from core.lane_commands import News, Prompt, Tell
from core.lane_events import Answered, Asked, Ended, Finished, Prompted, Unsent
from core.lanes import endings, steering
from core.lanes.lane import Lane
from core.lanes.step import Step
from core.turns import Kind, Result, Status, Turn
from core.waiting import find, queued, without


def prompted(lane: Lane, event: Prompted, step: Step) -> Lane:
    """No `Prompt` comes back for a turn that is to end; the shell then reports it cancelled."""
    turn = lane.under_way(event.turn)
    if turn is None or turn.status is not Status.STARTING or turn.stop is not None:
        return lane
    step.do(Prompt(turn.id))
    return lane.with_turn(step.save(replace(turn, status=Status.RUNNING)))


def asking(lane: Lane, event: Asked | Answered, by: int) -> Lane:
    """Open questions are counted and not saved: none outlives its turn, nor a crash.

    An answer lets the turn go on at once, also beyond the cap: it waited long enough.
    """
    main = lane.main
    if main is None or main.id != event.turn or main.status is not Status.RUNNING:
        return lane
    return replace(lane, main=replace(main, asking=max(0, main.asking + by)))


def finished(lane: Lane, event: Finished, step: Step) -> Lane:
    turn = lane.under_way(event.turn)
    return lane if turn is None else _over(lane, turn, event.result, step)


def unsent(lane: Lane, event: Unsent, step: Step) -> Lane:
    turn = lane.under_way(event.turn)
    if turn is None:
        return lane
    if event.uncounted:
        turn = replace(turn, attempts=turn.attempts - 1)
    else:
        turn = replace(turn, unsent=turn.unsent + 1)
    if turn.kind is Kind.SIDE:
        return lane.with_turn(step.end(turn, endings.by_stop(turn.stop, Status.FAILED)))
    lane = steering.released(lane, step)
    if endings.deliberate(turn.stop):
        return lane.with_turn(step.end(turn, endings.by_stop(turn.stop, Status.STOPPED)))
    return _again(lane, turn, step, event.error)


def ended(lane: Lane, event: Ended, step: Step) -> Lane:
    """The engine is gone. A turn whose end was never reported has failed."""
    turn = lane.under_way(event.turn)
    if turn is not None:
        lane = _over(lane, turn, Result.FAILED, step)
    if find(lane.sides, event.turn):
        return replace(lane, sides=without(lane.sides, event.turn))
    main = lane.main
    if main is None or main.id != event.turn:
        return lane
    if main.status is Status.WAITING:
        # It has not had its turn: `ended` stays, and with it the lane's place in the line.
        return replace(lane, main=None, folder="", waiting=queued(lane.waiting, main))
    facts = step.save_lane(lane.key, replace(lane.facts, ended=event.at))
    return replace(lane, facts=facts, main=None, folder="")


def _over(lane: Lane, turn: Turn, result: Result, step: Step) -> Lane:
    if turn.kind is Kind.SIDE:
        return lane.with_turn(step.end(turn, endings.by_result(result, turn.stop)))
    drained = turn.stop is not None and not endings.deliberate(turn.stop)
    if drained and turn.status is Status.STARTING and result is not Result.DONE:
        return _again(lane, turn, step)  # as at a crash: it never reached the engine
    main = step.end(turn, endings.by_result(result, turn.stop))
    return steering.share_end(lane.with_turn(main), main.status, step)


def _again(lane: Lane, turn: Turn, step: Step, why: str = "") -> Lane:
    """Its prompt did not leave. It joins the queue when its engine is gone, at `Ended`."""
    turn = step.save(endings.again(turn, step.door.limits))
    if turn.status is Status.FAILED:
        step.do(Tell(News.GIVEN_UP, turn.lane, turn, why=why))
    return lane.with_turn(turn)
