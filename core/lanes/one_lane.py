"""The events that concern one lane alone: each is a function from the lane to the lane after it.

A lane that nothing happened in comes back as the same object.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from core.lane_events import (
    Answered,
    Asked,
    DropAsked,
    Edited,
    Ended,
    Finished,
    Prompted,
    SkipAsked,
    SteerAsked,
    SteerRefused,
    SteerTaken,
    StopAsked,
    Unsent,
)
from core.lanes import running, steering, stopping
from core.lanes.lane import Lane
from core.lanes.step import Step
from core.waiting import exchanged, find

OneLane = (
    Prompted | Finished | Ended | Asked | Answered | Unsent | SteerAsked | SteerTaken
    | SteerRefused | StopAsked | SkipAsked | DropAsked | Edited
)  # fmt: skip


def changed(lane: Lane, event: OneLane, step: Step) -> Lane:
    match event:
        case Prompted():
            return running.prompted(lane, event, step)
        case Finished():
            return running.finished(lane, event, step)
        case Ended():
            return running.ended(lane, event, step)
        case Asked():
            return running.asking(lane, event, 1)
        case Answered():
            return running.asking(lane, event, -1)
        case Unsent():
            return running.unsent(lane, event, step)
        case SteerAsked():
            return steering.asked(lane, event, step)
        case SteerTaken():
            return steering.taken(lane, event, step)
        case SteerRefused():
            return steering.refused(lane, event, step)
        case StopAsked():
            return stopping.stop(lane, event, step)
        case SkipAsked():
            return stopping.skip(lane, event, step)
        case DropAsked():
            return stopping.drop(lane, event, step)
        case Edited():
            return _edited(lane, event, step)
        case _:
            assert_never(event)


def _edited(lane: Lane, event: Edited, step: Step) -> Lane:
    """The shell replaces the text exactly when a `Save` comes back: the message still waits.

    An offered one does not count as waiting; the engine may have the old text.
    """
    turn = find(lane.waiting, event.turn)
    if turn is None or turn.offered_to is not None:
        return lane
    if event.label is not None:
        turn = replace(turn, label=event.label)
    return replace(lane, waiting=exchanged(lane.waiting, step.save(turn)))
