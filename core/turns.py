"""Turns, and what is known of the lane they run in.

Values only: no rule stands here, and nothing here knows a clock, a store or a platform. What
happens to a lane is in lane_events.py, what its rules want done in lane_commands.py.
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


class Result(StrEnum):
    """How the engine ended a turn."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


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
class EnginePause:
    """Why an engine is paused, and when (ms) that ends; None: when an admin says so."""

    reason: str = ""
    until: int | None = None


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
