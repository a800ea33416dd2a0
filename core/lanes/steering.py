"""Steering: messages that are offered to the turn that runs.

An offered message stays in the queue, marked with the turn it was offered to, until the engine
has it for certain or certainly not. The engine settles every offer before it reports the turn's
end; what is open even then counts as taken, for to ask twice is worse than to ask the sender.
"""

from __future__ import annotations

from dataclasses import replace

from core.lane_commands import News, Refusal, Steer, Withdraw
from core.lane_events import SteerAsked, SteerRefused, SteerTaken
from core.lanes.lane import Lane, Phase
from core.lanes.step import Step
from core.turns import Kind, Rank, Status, Stop, Turn
from core.waiting import Queue, find, queued, without


def hindrance(
    lane: Lane, person: str, *, admin: bool, can_steer: bool, draining: bool
) -> Refusal | None:
    """Why this person cannot steer now: only who began the turn, or an admin, may, and only in
    the lane's present session."""
    main = lane.main
    if draining:
        return Refusal.DRAINING
    if main is None or main.stop is not None or lane.phase not in (Phase.RUNNING, Phase.ASKING):
        return Refusal.NOTHING_RUNS
    if not can_steer or lane.phase is Phase.ASKING:  # who waits for a decision reads nothing
        return Refusal.NO_STEER
    if main.kind is Kind.COMPACT or main.epoch != lane.facts.epoch:
        return Refusal.NO_STEER
    if person != main.person and not admin:
        return Refusal.NOT_YOURS
    return None


def offer(turn: Turn, into: Turn, step: Step) -> Turn:
    step.do(Steer(turn.id, into.id))
    return step.save(replace(turn, rank=Rank.OFFERED, offered_to=into.id))


def asked(lane: Lane, event: SteerAsked, step: Step) -> Lane:
    turn = find(lane.waiting, event.turn)
    if turn is None or turn.offered_to is not None:
        step.deny(event.lane, event.person, Refusal.NOT_WAITING)
        return lane
    reason = hindrance(
        lane,
        event.person,
        admin=event.admin,
        can_steer=event.can_steer,
        draining=step.door.draining,
    )
    if turn.person != event.person and not event.admin:
        reason = Refusal.NOT_YOURS
    if reason is not None or lane.main is None:
        step.deny(event.lane, event.person, reason or Refusal.NOTHING_RUNS, turn)
        return lane
    rest = without(lane.waiting, turn.id)
    return replace(lane, waiting=queued(rest, offer(turn, lane.main, step)))


def taken(lane: Lane, event: SteerTaken, step: Step) -> Lane:
    turn = lane.offered(event.turn)
    if turn is None:
        return lane
    turn = step.save(replace(turn, status=Status.RUNNING))
    step.tell(News.STEERED if event.certain else News.STEER_UNCERTAIN, turn)
    rest = without(lane.waiting, turn.id)
    return replace(lane, waiting=rest, taken=(*lane.taken, turn))


def refused(lane: Lane, event: SteerRefused, step: Step) -> Lane:
    turn = lane.offered(event.turn)
    return lane if turn is None else _back(lane, turn, step)


def withdraw(turn: Turn, stop: Stop, step: Step) -> Turn:
    """Stop an offered message: whether it can still be had back is the engine's to say.

    Refused, it is dropped for the sake of this mark; taken, it ends with the running turn.
    """
    if turn.stop is not None or turn.offered_to is None:
        return turn
    step.do(Withdraw(turn.id, turn.offered_to))
    return step.save(replace(turn, stop=stop))


def released(lane: Lane, step: Step) -> Lane:
    """The running turn's prompt never left, so nothing that was offered to it did."""
    for turn in (*lane.taken, *lane.waiting):
        if turn.offered_to is not None:
            lane = _back(lane, turn, step)
    return replace(lane, taken=())


def share_end(lane: Lane, status: Status, step: Step) -> Lane:
    """The running turn has ended, and with it what it has taken or may have taken."""
    kept: list[Turn] = []
    for turn in lane.taken:
        step.save(replace(turn, status=status))
    for turn in lane.waiting:
        if turn.offered_to is None:
            kept.append(turn)
        else:
            step.tell(News.STEER_UNCERTAIN, step.save(replace(turn, status=status)))
    return replace(lane, taken=(), waiting=tuple(kept))


def _back(lane: Lane, turn: Turn, step: Step) -> Lane:
    """Not taken: it waits again at its place by arrival, unless it was stopped meanwhile."""
    rest: Queue = without(lane.waiting, turn.id)
    if turn.stop is not None:
        step.tell(News.DROPPED, step.drop(turn), turn.stop.by)
        return replace(lane, waiting=rest)
    turn = replace(turn, status=Status.WAITING, rank=Rank.ORDINARY, offered_to=None)
    return replace(lane, waiting=queued(rest, step.save(turn)))
