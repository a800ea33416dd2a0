"""Stop, skip and drop.

A stop is a mark on the turn, saved before the engine is cancelled, so that a crash in between
still ends the turn as stopped. It is the turn's alone: nothing is left behind for the next one.
"""

from __future__ import annotations

from dataclasses import replace

from core.lane_commands import Cancel, News, Refusal, Tell
from core.lane_events import DropAsked, SkipAsked, StopAsked
from core.lanes import endings, steering
from core.lanes.lane import UNDER_WAY, Lane
from core.lanes.step import Step
from core.turns import Status, Stop, StopKind, Turn
from core.waiting import Queue, exchanged, find, without


def stopped(turn: Turn, stop: Stop, step: Step) -> Turn:
    """The turn on its way to its end; cancelled once, however often it is stopped.

    The first stop stays, as it is the one that took effect. Only the end of a drain, which is
    nobody's wish, gives way to a later one: or the turn would be offered for continuing.
    """
    if turn.status is Status.WAITING:  # its prompt never left, and now it will not start again
        return step.end(replace(turn, stop=stop), endings.by_stop(stop, Status.STOPPED))
    if turn.status not in UNDER_WAY:
        return turn
    if turn.stop is None:
        step.do(Cancel(turn.id))
    elif endings.deliberate(turn.stop) or not endings.deliberate(stop):
        return turn
    return step.save(replace(turn, stop=stop))


def stop(lane: Lane, event: StopAsked, step: Step) -> Lane:
    """Ends what runs in the lane and drops what waits now; later messages are kept.

    Of what waits one's own goes; all of it if an admin asks, or the person whose turn runs.
    A turn that started after the stop was carried out from memory is treated like what waits.
    A button under a side answer ends that side answer. That a turn was stopped is told once.
    """
    by = Stop(StopKind.STOP, event.person)
    if event.turn is not None:
        if not _unfinished(lane, event.turn):
            return lane
        if side := find(lane.sides, event.turn):
            return _stop_one(lane, side, by, step, pressed=True)
    main = lane.main if lane.main and not lane.main.status.over else None
    found = event.first or main
    everything = event.admin or (found is not None and found.person == event.person)
    if main and found and main.id != found.id and not (everything or main.person == event.person):
        main = None  # nobody asked for its end
    offered = lane.waiting
    lane, dropped = _emptied(lane, by, step, everything=everything)
    withdrawn = any(turn.stop is not None and turn not in offered for turn in lane.waiting)
    ends: list[Turn] = []
    stopping: list[Turn] = []
    for turn in (main, *lane.sides):
        if turn is not None and not turn.status.over:
            after = stopped(turn, by, step)
            (stopping if after is turn else ends).append(after)
            lane = lane.with_turn(after)
    if ends or dropped or (withdrawn and not stopping):
        about = ends[0] if ends else None
        step.do(Tell(News.STOPPED, event.lane, about, event.person, dropped))
    elif stopping:
        if event.turn is None:  # who pressed a button has been answered there
            _tell_stopping(stopping[0], event.person, step)
    else:
        others = Refusal.NOT_YOURS if lane.waiting else None
        step.do(Tell(News.NOTHING, event.lane, by=event.person, reason=others))
    return lane


def skip(lane: Lane, event: SkipAsked, step: Step) -> Lane:
    """Ends one running turn and leaves the queue alone.

    Limits and budgets end turns this way too; these are told at the end, not here.
    """
    by_person = event.kind in (StopKind.SKIP, StopKind.STOP)
    turn = lane.main if event.turn is None else _running(lane, event.turn)
    if turn is not None and not turn.status.over:
        return _stop_one(lane, turn, Stop(event.kind, event.person), step, told=by_person)
    if by_person and event.turn is not None:
        step.deny(event.lane, event.person, Refusal.OVER)
    elif by_person:
        step.do(Tell(News.NOTHING, event.lane, by=event.person, reason=Refusal.NOTHING_RUNS))
    return lane


def drop(lane: Lane, event: DropAsked, step: Step) -> Lane:
    turn = find(lane.waiting, event.turn)
    if event.quiet:
        if turn is None or turn.offered_to is not None:
            return lane
        step.drop(turn)
        return replace(lane, waiting=without(lane.waiting, turn.id))
    if turn is None:
        step.deny(event.lane, event.person, Refusal.NOT_WAITING)
    elif turn.person != event.person and not event.admin:
        step.deny(event.lane, event.person, Refusal.NOT_YOURS, turn)
    elif turn.offered_to is not None:
        marked = steering.withdraw(turn, Stop(StopKind.STOP, event.person), step)
        return replace(lane, waiting=exchanged(lane.waiting, marked))
    else:
        step.tell(News.DROPPED, step.drop(turn), event.person)
        return replace(lane, waiting=without(lane.waiting, turn.id))
    return lane


def _stop_one(
    lane: Lane, turn: Turn, by: Stop, step: Step, *, told: bool = True, pressed: bool = False
) -> Lane:
    after = stopped(turn, by, step)
    if told and after is not turn:
        step.tell(News.STOPPED, after, by.by)
    elif told and not pressed:
        _tell_stopping(after, by.by, step)
    return lane.with_turn(after)


def _tell_stopping(turn: Turn, person: str, step: Step) -> None:
    """The answer to a stop of what is on its way to its end already, whoever sent it there."""
    step.do(Tell(News.NOTHING, turn.lane, turn, person, reason=Refusal.STOPPING))


def _emptied(lane: Lane, by: Stop, step: Step, *, everything: bool) -> tuple[Lane, Queue]:
    """The lane without what leaves its queue, and that."""
    dropped: list[Turn] = []
    kept: list[Turn] = []
    for turn in lane.waiting:
        if not everything and turn.person != by.by:
            kept.append(turn)
        elif turn.offered_to is not None:
            kept.append(steering.withdraw(turn, by, step))
        else:
            dropped.append(step.drop(turn))
    return replace(lane, waiting=tuple(kept)), tuple(dropped)


def _running(lane: Lane, turn: int) -> Turn | None:
    return lane.main if lane.main and lane.main.id == turn else find(lane.sides, turn)


def _unfinished(lane: Lane, turn: int) -> bool:
    found = _running(lane, turn) or find(lane.waiting, turn)
    return found is not None and not found.status.over
