"""Turns, and every event and command of the lane rules, one line each.

Values only: no rule stands here, and nothing here knows a clock, a store or a platform.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Origin(StrEnum):
    """Why a turn exists."""

    PERSON = "person"
    SCHEDULE = "schedule"
    WAKEUP = "wakeup"
    WATCH = "watch"
    CONTINUE = "continue"
    SIDE = "side"

    @property
    def job(self) -> bool:
        return self in (Origin.SCHEDULE, Origin.WAKEUP, Origin.WATCH)


class Kind(StrEnum):
    MAIN = "main"
    SIDE = "side"
    COMPACT = "compact"


class Status(StrEnum):
    """Where a turn is. Main turns pass waiting, starting, running, then one of the ends."""

    WAITING = "waiting"
    STARTING = "starting"  # the engine is being opened; the prompt has not left
    RUNNING = "running"  # `Prompted` is committed
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"  # cut off by a crash or a drain's end
    DROPPED = "dropped"  # never started: dropped, or refused with the reason

    @property
    def over(self) -> bool:
        return self in OVER


OVER = frozenset({Status.DONE, Status.FAILED, Status.STOPPED, Status.INTERRUPTED, Status.DROPPED})


class Busy(StrEnum):
    """What a message does that arrives in a busy lane."""

    QUEUE = "queue"
    SIDE = "side"
    STEER = "steer"
    INTERRUPT = "interrupt"
    COLLECT = "collect"


class Rank(IntEnum):
    """Order inside a lane; equal ranks go by turn id, which is the order of arrival."""

    AGAIN = 0  # never reached the engine and starts again
    OFFERED = 1  # offered to the running turn
    INTERRUPTING = 2
    ORDINARY = 3


class StopKind(StrEnum):
    """Who or what ends a running turn."""

    STOP = "stop"
    SKIP = "skip"
    INTERRUPT = "interrupt"
    LIMIT = "limit"  # a time limit of the gateway
    BUDGET = "budget"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class Stop:
    kind: StopKind
    by: str = ""  # person id, where a person asked


@dataclass(frozen=True, slots=True)
class Turn:
    """All of a turn that the lane rules look at; the store keeps exactly these and the content."""

    id: int
    lane: str
    person: str  # who asked; of a job, its owner
    origin: Origin
    kind: Kind
    arrived: int  # ms
    label: str = ""  # the first words, for notices
    status: Status = Status.WAITING
    rank: Rank = Rank.ORDINARY
    last_piece: int = 0  # ms; of merged messages, the newest
    pieces: int = 1
    offered_to: int | None = None
    epoch: int = 0  # of the session, since it started
    attempts: int = 0  # starts so far, counted before each
    unsent: int = 0  # prompts that certainly never left
    asking: int = 0  # open questions to a person
    stop: Stop | None = None


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """What is stored about a lane; comes with `Arrived`, as idle lanes are not in memory."""

    ended: int = 0  # ms; end of its last turn
    epoch: int = 0
    paused: bool = False
    engine: str = ""
    folder: str = ""  # resolved workspace; "" is a folder of its own


@dataclass(frozen=True, slots=True)
class Limits:
    running: int = 8
    per_person: int = 3
    queue: int = 20
    sides_per_lane: int = 1
    sides: int = 4
    collect_pieces: int = 30
    collect_gap: int = 120_000  # ms
    attempts: int = 2  # automatic starts again before a prompt left


# Events -----------------------------------------------------------------------------------


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


class Result(StrEnum):
    """How the engine ended a turn."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


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
class EnginePause:
    """Why an engine is paused, and when (ms) that ends; None: when an admin says so."""

    reason: str = ""
    until: int | None = None


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


# Commands ---------------------------------------------------------------------------------


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
