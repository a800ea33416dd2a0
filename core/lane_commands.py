"""Every command of the lane rules, one line each: what is to be done once their step is stored.

Values only, as in turns.py; the runner carries them out. Commands that people give with a slash are
something else, and stand in ``core.commands``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.turns import LaneFacts, Turn


@dataclass(frozen=True, slots=True)
class Save:
    """Store the turn as it is now."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class SaveLane:
    """Store what idle lanes keep: end of the last turn, epoch, pause."""

    lane: str
    facts: LaneFacts


@dataclass(frozen=True, slots=True)
class Join:
    """The message belongs to a turn that waits already (``collect``)."""

    message_turn: int
    into: int


@dataclass(frozen=True, slots=True)
class Start:
    turn: Turn


@dataclass(frozen=True, slots=True)
class StartSide:
    turn: Turn


@dataclass(frozen=True, slots=True)
class Prompt:
    """Go ahead: the prompt may be handed to the engine."""

    turn: int


@dataclass(frozen=True, slots=True)
class Steer:
    """Offer the waiting message to the running turn's engine."""

    turn: int
    into: int


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take an offered message back, if the engine has not got it yet."""

    turn: int
    out_of: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """End this turn's engine; may come after its end, and then does nothing."""

    turn: int


class Refusal(StrEnum):
    """Why something was not done; the words for people stand elsewhere."""

    QUEUE_FULL = "queue full"
    NO_SIDE = "engine has no side answers"
    SIDE_BUSY = "side answer running"
    NO_STEER = "engine cannot be steered"
    NOT_YOURS = "not yours"
    NOTHING_RUNS = "nothing runs"
    NOT_WAITING = "not waiting"
    OVER = "over already"
    STOPPING = "stopping already"
    PAUSED = "paused"
    SPENT = "spent"  # what a day allows
    DRAINING = "shutting down"


@dataclass(frozen=True, slots=True)
class Refuse:
    """Not accepted: the turn never runs. A `Save` of it as dropped goes before."""

    turn: Turn
    reason: Refusal


class News(StrEnum):
    """What a thread or person is told."""

    STOPPED = "stopped"  # a stop's or skip's effect, dropped messages named
    NOTHING = "nothing"  # a stop with nothing to stop, or of what is stopping already
    DROPPED = "dropped"
    ENDED = "ended"  # a turn ended otherwise than done
    INTERRUPTED = "interrupted"
    GIVEN_UP = "given up"  # started twice without reaching the engine
    STEERED = "steered"
    STEER_UNCERTAIN = "steer uncertain"
    SIDE_CUT_OFF = "side cut off"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Tell:
    """``turn``: whom it is about (after the change). ``dropped``: what left the queue with it.
    ``why``: of what was given up, in an engine's words."""

    news: News
    lane: str
    turn: Turn | None = None
    by: str = ""
    dropped: tuple[Turn, ...] = ()
    reason: Refusal | None = None
    why: str = ""


Command = (
    Save | SaveLane | Join | Start | StartSide | Prompt | Steer | Withdraw | Cancel | Refuse | Tell
)
