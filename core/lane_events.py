"""Every event of the lane rules, one line each: what happens to a lane or to all.

Values only, as in turns.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.turns import Busy, EnginePause, LaneFacts, Limits, Result, StopKind, Turn


@dataclass(frozen=True, slots=True)
class Arrived:
    """A turn wants to run. ``can_steer``/``can_side``: the lane's engine is able to."""

    turn: Turn
    facts: LaneFacts = LaneFacts()
    busy: Busy = Busy.QUEUE
    admin: bool = False
    can_steer: bool = False
    can_side: bool = False


@dataclass(frozen=True, slots=True)
class Edited:
    """The text of a message of this turn changed; taken only while the turn waits."""

    turn: int
    lane: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class SideAsked:
    """A side answer was asked for by name."""

    turn: Turn
    facts: LaneFacts = LaneFacts()
    can_side: bool = False


@dataclass(frozen=True, slots=True)
class AsideAsked:
    """A waiting message is to be answered on the side; where that cannot be, it stays waiting."""

    turn: int
    lane: str
    person: str
    admin: bool = False
    can_side: bool = False


@dataclass(frozen=True, slots=True)
class SteerAsked:
    """A waiting message is to be offered to the running turn."""

    turn: int
    lane: str
    person: str
    admin: bool = False
    can_steer: bool = False


@dataclass(frozen=True, slots=True)
class SteerTaken:
    turn: int
    lane: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class SteerRefused:
    turn: int
    lane: str


@dataclass(frozen=True, slots=True)
class StopAsked:
    """``turn`` is set by a stop button: it does nothing once that turn is over.

    A stop takes effect before it is stored. ``first`` is the main turn that it found then: one
    that has started since counts as the waiting message that it was.
    """

    lane: str
    person: str
    admin: bool = False
    turn: int | None = None
    first: Turn | None = None


@dataclass(frozen=True, slots=True)
class SkipAsked:
    """With a ``turn`` it ends that one and no later one."""

    lane: str
    person: str
    kind: StopKind = StopKind.SKIP
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class DropAsked:
    """``quiet``: the gateway's own wish, told by whoever has it."""

    turn: int
    lane: str
    person: str
    admin: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Prompted:
    """The engine is ready; may the prompt be handed over?"""

    turn: int
    lane: str


@dataclass(frozen=True, slots=True)
class Unsent:
    """No byte of the prompt left the gateway, or it had no effect; instead of `Finished`.

    ``uncounted``: this start does not count, since the next one waits for something else first.
    """

    turn: int
    lane: str
    error: str = ""
    uncounted: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    turn: int
    lane: str


@dataclass(frozen=True, slots=True)
class Answered:
    turn: int
    lane: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The engine's result. The lane settles, and keeps its slot until `Ended`."""

    turn: int
    lane: str
    result: Result
    error: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The engine's process is gone, handed back warm, or set aside: the lane is free."""

    turn: int
    lane: str
    at: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """A fresh session from the next turn on. ``facts`` for a lane that is not in memory."""

    lane: str
    facts: LaneFacts = LaneFacts()


@dataclass(frozen=True, slots=True)
class Configured:
    """The lane's engine or folder changed; used from the next turn.

    ``facts`` for a lane that is not in memory; without them it stays out of memory.
    """

    lane: str
    engine: str
    folder: str
    facts: LaneFacts | None = None


@dataclass(frozen=True, slots=True)
class LimitsChanged:
    limits: Limits


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Exactly one of ``lane``, ``engine`` or, with both empty, everything."""

    lane: str = ""
    engine: str = ""
    facts: LaneFacts = LaneFacts()
    why: EnginePause = EnginePause()  # of an engine


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    lane: str = ""
    engine: str = ""
    facts: LaneFacts = LaneFacts()


@dataclass(frozen=True, slots=True)
class DaySpent:
    """Who has spent what a day allows, and whether all together have; it replaces the last one.

    Nothing of these people starts, and what runs of them ends.
    """

    people: frozenset[str] = frozenset()
    everybody: bool = False


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """Nothing new starts from now on."""


@dataclass(frozen=True, slots=True)
class DrainEnded:
    """Running turns had their time; what still runs is interrupted."""


Event = (
    Arrived | Edited | SideAsked | AsideAsked | SteerAsked | SteerTaken | SteerRefused | StopAsked
    | SkipAsked | DropAsked | Prompted | Unsent | Asked | Answered | Finished | Ended
    | Renewed | Configured | LimitsChanged | PauseAsked | ResumeAsked | DaySpent | DrainAsked
    | DrainEnded
)  # fmt: skip
