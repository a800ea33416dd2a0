"""What a cap is, what is said about it and spent of it, and what follows: values only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from core.lane_events import Event
from core.turns import Turn

WARN = 0.8  # of a cap, when its thread is warned
MOST = 100_000.0  # dollars; more is a slip of the pen
EDGE = 1e-9
EVERYBODY = ""  # in place of a person: the sum of all


class Why(StrEnum):
    NEXT = "next"  # of a lane: for the next turn of a person that starts there
    JOB = "job"  # of each run of a job
    CONTINUE = "continue"  # what a turn that was cut off had left


class State(StrEnum):
    WAITING = "waiting"
    RESERVED = "reserved"  # its turn has started; the prompt has not left
    USED = "used"
    OVER = "over"  # its turn has ended
    EXPIRED = "expired"  # no turn came in time
    REPLACED = "replaced"  # by a newer one
    OFF = "off"

    @property
    def open(self) -> bool:
        return self in (State.WAITING, State.RESERVED, State.USED)


@dataclass(frozen=True, slots=True)
class Budget:
    """A cap. Dollars; instants in ms. ``returns``: nobody has said anything newer in its lane."""

    id: int
    lane: str
    dollars: float
    made_at: int
    why: Why = Why.NEXT
    by: str = ""
    until: int | None = None  # how long it waits for a turn
    state: State = State.WAITING
    turn: int | None = None
    spent: float = 0.0
    returns: bool = True

    @property
    def left(self) -> float:
        return max(0.0, round(self.dollars - self.spent, 9))


def of_turn(number: int, lane: str, turn: int, dollars: float, made_at: int, by: str) -> Budget:
    """The cap of one run of a job, for the turn that it begins."""
    return Budget(number, lane, dollars, made_at, Why.JOB, by, None, State.USED, turn)


def handed_on(cap: Budget, number: int, made_at: int, turn: int) -> Budget:
    """What is left of the cap of a turn that was cut off, for the one that goes on with it."""
    return replace(
        cap, id=number, made_at=made_at, why=Why.CONTINUE, until=None, state=State.USED, turn=turn
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """Caps that hold every day, in dollars; None: none."""

    person: float | None = None
    everybody: float | None = None


@dataclass(frozen=True, slots=True)
class DaySum:
    """What a turn has spent on one day (``2026-03-01``), in all of its runs."""

    turn: int
    day: str
    person: str
    cost: float


# What comes in -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    """A new cap: of a lane, where it replaces the one that waits, or of the turn it names."""

    budget: Budget


@dataclass(frozen=True, slots=True)
class Off:
    """No cap waits in this lane any more. A turn that has one keeps it."""

    lane: str


@dataclass(frozen=True, slots=True)
class Look:
    """Time has passed."""


Change = Put | Off | Look


@dataclass(frozen=True, slots=True)
class Spending:
    """What the present run of a turn has cost so far."""

    turn: int
    lane: str
    person: str
    cost: float


# What goes out -----------------------------------------------------------------------------


class Scope(StrEnum):
    TURN = "turn"
    PERSON = "person"
    EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class Warned:
    """A turn brought what is spent to WARN of a cap."""

    turn: int
    lane: str
    scope: Scope
    spent: float
    cap: float


@dataclass(frozen=True, slots=True)
class Expired:
    budget: Budget


@dataclass(frozen=True, slots=True)
class Capped:
    """A turn has ended that a cap stopped. ``spent``: by this turn."""

    turn: Turn
    scope: Scope
    spent: float
    cap: float


Told = Warned | Expired | Capped


@dataclass(slots=True)
class Effects:
    """Of one step: what to store, what to say, what the lane rules have to hear."""

    budgets: dict[int, Budget] = field(default_factory=dict)
    sums: dict[tuple[int, str], DaySum] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def reached(spent: float, cap: float) -> bool:
    return spent >= cap - EDGE
