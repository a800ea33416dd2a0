"""How turns end: by the engine's result, by a stop, by a crash.

Pure. Must not know queues, caps or lanes; it looks at turns alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.turns import (
    Command,
    Kind,
    Limits,
    News,
    Rank,
    Result,
    Save,
    Status,
    Stop,
    StopKind,
    Tell,
    Turn,
)


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

    Starts are counted, whatever undid them, so neither a crash nor an unreachable engine can
    make a loop: after ``limits.attempts`` starts by itself the turn has failed.
    """
    if turn.attempts > limits.attempts:
        return replace(turn, status=Status.FAILED, stop=None)
    return replace(turn, status=Status.WAITING, rank=Rank.AGAIN, stop=None)


def after_crash(turns: Sequence[Turn], limits: Limits) -> tuple[list[Turn], list[Command]]:
    """What the stored unfinished turns come to: those that wait, and what to save and tell.

    "Reached the engine" means exactly that a turn is stored as running. Such a turn is over, for
    nobody can know what it has done already; one that was only starting waits again.
    """
    commands: list[Command] = []
    waiting: list[Turn] = []
    became: dict[int, Turn] = {}
    for turn in turns:
        if turn.offered_to is None:
            became[turn.id] = _cut_off(turn, limits)
    for turn in turns:
        if turn.offered_to is not None:
            became[turn.id] = _offered(turn, became.get(turn.offered_to))
    for turn in turns:
        now = became[turn.id]
        if now.status is Status.WAITING:
            waiting.append(now)
        if now is not turn:
            commands += [Save(now), *_words(turn, now)]
    return waiting, commands


def _cut_off(turn: Turn, limits: Limits) -> Turn:
    if turn.status is Status.WAITING:
        return turn
    if turn.status is Status.STARTING and turn.kind is not Kind.SIDE and not deliberate(turn.stop):
        return again(turn, limits)
    return replace(turn, status=by_stop(turn.stop, Status.INTERRUPTED), asking=0)


def _offered(turn: Turn, into: Turn | None) -> Turn:
    """Offered counts as prompted, so the message shares the end of the turn it was offered to."""
    if turn.status is Status.WAITING and turn.stop is not None:
        return replace(turn, status=Status.DROPPED)
    shared = into is not None and into.status.over
    return replace(turn, status=into.status if into and shared else Status.INTERRUPTED)


def _words(turn: Turn, now: Turn) -> list[Command]:
    said: News | None
    if now.status is Status.WAITING:
        said = None
    elif turn.offered_to is not None:
        if turn.status is Status.RUNNING:
            said = None  # taken for certain: what is told of the running turn covers it
        else:
            said = News.DROPPED if now.status is Status.DROPPED else News.STEER_UNCERTAIN
    elif turn.status is Status.STARTING and now.status is Status.FAILED and now.stop is None:
        said = News.GIVEN_UP
    else:
        said = news(now)
    return [] if said is None else [Tell(said, now.lane, now)]
