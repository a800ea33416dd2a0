"""Starts: which lane of the line may begin its next turn, and what holds one back.

Asked are pauses, spent caps, the drain, slots and folders. It must not know what brought a turn
into the line.
"""

from __future__ import annotations

from dataclasses import replace

from core.lane_commands import Start
from core.lane_events import DaySpent
from core.lanes.board import Board, Door
from core.lanes.lane import Hold, Lane
from core.lanes.step import Step
from core.turns import Status, Turn


def fill(board: Board, step: Step) -> None:
    """Start what can start, the longest waiting lane first.

    Nothing that could start was left over before this event. So unless a slot or a folder
    became free, only a lane the event was about needs a look: the line can be long, and one
    more message must not cost a walk along it.
    """
    if board.door.draining or board.door.paused:
        return
    if board.freed or len(board.touched) > 1:
        _walk(board, step)
    else:
        for key in list(board.touched):
            lane = board.get(key)
            if lane is not None and lane.entry is not None and _may_start(board, lane):
                _start(board, lane, step)


def _walk(board: Board, step: Step) -> None:
    index = 0
    while index < len(board.line) and board.slots.running < board.door.limits.running:
        lane = board.get(board.line[index])
        if lane is not None and _may_start(board, lane):
            _start(board, lane, step)  # and the next lane moves up to this place
        else:
            index += 1


def _may_start(board: Board, lane: Lane) -> bool:
    """Whether a lane of the line may start. In a lane order beats caps: its head counts."""
    return (
        board.slots.admit(lane.waiting[0], board.door.limits)
        and lane.facts.engine not in board.door.engines
        and board.slots.free(lane.facts.folder)
        and not meets(board.door.spent, lane.waiting[0])
    )


def _start(board: Board, lane: Lane, step: Step) -> None:
    turn = started(lane, lane.waiting[0], step)
    step.do(Start(turn))
    rest = lane.waiting[1:]
    board.put(replace(lane, main=turn, folder=lane.facts.folder, waiting=rest))


def holds(door: Door, lane: Lane) -> tuple[Hold, ...]:
    """Every pause and spent cap that keeps this lane from starting, the nearest first."""
    facts = lane.facts
    found = []
    if facts.paused:
        found.append(Hold.LANE)
    if facts.engine in door.engines:
        found.append(Hold.ENGINE)
    if door.paused:
        found.append(Hold.ALL)
    if door.spent.everybody:
        found.append(Hold.ALL_SPENT)
    elif lane.waiting and meets(door.spent, lane.waiting[0]):
        found.append(Hold.PERSON_SPENT)
    return tuple(found)


def meets(spent: DaySpent, turn: Turn) -> bool:
    return spent.everybody or turn.person in spent.people


def started(lane: Lane, turn: Turn, step: Step) -> Turn:
    """The start is counted and saved before it is made, so that no crash makes it a loop."""
    return step.save(
        replace(turn, status=Status.STARTING, attempts=turn.attempts + 1, epoch=lane.facts.epoch)
    )
