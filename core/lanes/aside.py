"""Side answers: turns beside the main one of a lane, with a small number of places of their own.

They wait for nothing: where one cannot start now, who asked is told why, and a message that waits
keeps its place.
"""

from __future__ import annotations

from dataclasses import replace

from core.lane_commands import Refusal, StartSide
from core.lane_events import AsideAsked, SideAsked
from core.lanes import starting
from core.lanes.board import Board
from core.lanes.lane import Hold, Lane
from core.lanes.step import Step
from core.turns import Kind, Origin, Turn
from core.waiting import find, without


def is_message(turn: Turn) -> bool:
    """Said by a person, for this lane's agent; not a job, a continued turn or a compaction."""
    return turn.origin is Origin.PERSON and turn.kind is Kind.MAIN


def asked(board: Board, event: SideAsked, step: Step) -> None:
    lane = board.lane(event.turn.lane, event.facts)
    if reason := hindrance(board, lane, event.turn, event.can_side):
        step.refuse(event.turn, reason)
    else:
        start(board, lane, event.turn, step)


def moved(board: Board, event: AsideAsked, step: Step) -> None:
    """The message leaves the queue for a side answer, as the turn it is, in this one step."""
    lane = board.get(event.lane)
    turn = find(lane.waiting, event.turn) if lane else None
    if lane is None or turn is None or turn.offered_to is not None:
        step.deny(event.lane, event.person, Refusal.NOT_WAITING)
    elif turn.person != event.person and not event.admin:
        step.deny(event.lane, event.person, Refusal.NOT_YOURS, turn)
    elif reason := hindrance(board, lane, turn, event.can_side and is_message(turn)):
        step.deny(event.lane, event.person, reason, turn)
    else:
        rest = replace(lane, waiting=without(lane.waiting, turn.id))
        start(board, rest, turn, step)


def hindrance(board: Board, lane: Lane, turn: Turn, can_side: bool) -> Refusal | None:
    """Why this turn cannot be answered on the side now."""
    door = board.door
    if door.draining:
        return Refusal.DRAINING
    if starting.meets(door.spent, turn):
        return Refusal.SPENT
    if any(hold is not Hold.PERSON_SPENT for hold in starting.holds(board.door, lane)):
        return Refusal.PAUSED
    if not can_side:
        return Refusal.NO_SIDE
    in_lane, in_all = len(lane.sides), board.slots.sides
    if in_lane >= door.limits.sides_per_lane or in_all >= door.limits.sides:
        return Refusal.SIDE_BUSY
    return None


def start(board: Board, lane: Lane, turn: Turn, step: Step) -> None:
    side = starting.started(lane, replace(turn, kind=Kind.SIDE), step)
    step.do(StartSide(side))
    board.put(replace(lane, sides=(*lane.sides, side)))
