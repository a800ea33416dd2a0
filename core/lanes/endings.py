"""How turns end: by the engine's result, by a stop, by a crash.

Pure. Must not know queues, caps or lanes; it looks at turns alone.
"""

from __future__ import annotations

from dataclasses import replace

from core.lane_commands import News
from core.turns import Kind, Limits, Rank, Result, Status, Stop, StopKind, Turn


def by_result(result: Result, stop: Stop | None) -> Status:
    """An engine that had finished before the cancel took effect is done, stop or no stop.

    Under a stop everything else is that stop's doing: an engine that is killed mostly reports a
    failure. A cancelled turn that nobody cancelled has failed.
    """
    if result is Result.DONE:
        return Status.DONE
    return by_stop(stop, Status.FAILED)


def by_stop(stop: Stop | None, otherwise: Status) -> Status:
    if stop is None:
        return otherwise
    match stop.kind:
        case StopKind.STOP | StopKind.SKIP | StopKind.INTERRUPT | StopKind.BUDGET:
            return Status.STOPPED
        case StopKind.LIMIT:
            return Status.FAILED
        case StopKind.DRAIN:
            return Status.INTERRUPTED


def deliberate(stop: Stop | None) -> bool:
    """Whether the turn itself was to end; the end of a drain cuts off whatever still runs."""
    return stop is not None and stop.kind is not StopKind.DRAIN


def news(turn: Turn) -> News | None:
    """What to tell when the turn has ended like this: each end that is not done is told once.

    A person's stop or skip was answered when it was asked for.
    """
    match turn.status:
        case Status.DONE | Status.DROPPED:
            return None
        case Status.INTERRUPTED:
            return News.SIDE_CUT_OFF if turn.kind is Kind.SIDE else News.INTERRUPTED
        case Status.STOPPED if turn.stop and turn.stop.kind in (StopKind.STOP, StopKind.SKIP):
            return None
        case _:
            return News.ENDED


def again(turn: Turn, limits: Limits) -> Turn:
    """A turn that was started and never reached the engine: it waits again, first in its lane.

    Starts are counted, whatever undid them, so neither a crash nor an engine out of reach can
    make a loop: after ``limits.attempts`` further starts by itself the turn has failed.
    """
    if turn.attempts > limits.attempts:
        return replace(turn, status=Status.FAILED, asking=0, stop=None)
    return replace(turn, status=Status.WAITING, rank=Rank.AGAIN, asking=0, stop=None)


def after_crash(turn: Turn, limits: Limits) -> tuple[Turn, News | None]:
    """What a stored unfinished turn comes to, and what to tell of it.

    "Reached the engine" means exactly that a turn is stored as running. Such a turn is over, for
    nobody can know what it has done already; one that was only starting waits again. A stop that
    was asked for counts whatever else is stored. Side answers are never started by themselves.
    """
    if turn.status is Status.WAITING:
        return turn, None
    reached = turn.status is Status.RUNNING or turn.kind is Kind.SIDE
    if reached or deliberate(turn.stop):
        turn = replace(turn, status=by_stop(turn.stop, Status.INTERRUPTED), asking=0)
        return turn, news(turn)
    turn = again(turn, limits)
    return turn, News.GIVEN_UP if turn.status is Status.FAILED else None


def offered_after_crash(turn: Turn, into: Turn | None) -> tuple[Turn, News | None]:
    """The same for a message that was offered to a turn, given what that one came to.

    Offered counts as prompted, so the message shares the turn's end. If it was taken for certain,
    what is told of the turn covers it.
    """
    taken = turn.status is Status.RUNNING
    if turn.stop is not None and not taken:
        return replace(turn, status=Status.DROPPED), News.DROPPED
    status = into.status if into is not None and into.status.over else Status.INTERRUPTED
    return replace(turn, status=status), None if taken else News.STEER_UNCERTAIN
