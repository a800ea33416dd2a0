"""One lane: a frozen value, what it is at, and the view of it that others get.

Must not know events, caps or other lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import final

from core.turns import EnginePause, LaneFacts, Status, Turn
from core.waiting import Entry, Queue, entry, exchanged, find

UNDER_WAY = frozenset({Status.STARTING, Status.RUNNING})


class Phase(StrEnum):
    """What a lane's main turn is at."""

    STARTING = "starting"
    RUNNING = "running"
    ASKING = "asking"  # a person has to decide; holds no slot
    SETTLING = "settling"  # its engine has finished and is not gone yet


class Hold(StrEnum):
    """Why nothing starts in a lane. Holds are independent: each is released by itself."""

    LANE = "lane"
    ENGINE = "engine"
    ALL = "all"
    PERSON_SPENT = "person spent"  # who asked first has spent what a day allows
    ALL_SPENT = "all spent"


PAUSES = frozenset({Hold.LANE, Hold.ENGINE, Hold.ALL})  # what a spent day is not: it is waited out


@final
@dataclass(frozen=True, slots=True)
class Lane:
    key: str
    facts: LaneFacts
    main: Turn | None = None
    folder: str = ""  # the main turn's, frozen when it started
    taken: Queue = ()  # messages the main turn has taken; they share its end
    waiting: Queue = ()
    sides: Queue = ()

    @property
    def phase(self) -> Phase | None:
        if self.main is None:
            return None
        match self.main.status:
            case Status.STARTING:
                return Phase.STARTING
            case Status.RUNNING:
                return Phase.ASKING if self.main.asking else Phase.RUNNING
            case _:  # over; or waiting, when the prompt never left and it will start again
                return Phase.SETTLING

    @property
    def idle(self) -> bool:
        return self.main is None and not self.waiting and not self.sides

    @property
    def slot(self) -> Turn | None:
        """The turn that takes up a slot."""
        return None if self.main is None or self.main.asking else self.main

    @property
    def entry(self) -> Entry | None:
        """Its place in the line, if it has something to start and is not paused itself."""
        if self.main is not None or not self.waiting or self.facts.paused:
            return None
        return entry(self.key, self.waiting[0], self.facts.ended)

    def under_way(self, turn: int) -> Turn | None:
        """The main turn or side answer of this id, unless its end is known already."""
        found = self.main if self.main and self.main.id == turn else find(self.sides, turn)
        return found if found and found.status in UNDER_WAY else None

    def offered(self, turn: int) -> Turn | None:
        """The waiting message of this id, if it is offered to the running turn."""
        found = find(self.waiting, turn)
        return found if found and found.offered_to is not None else None

    def with_turn(self, turn: Turn) -> Lane:
        """With the newer state of its main turn or of one of its side answers."""
        if self.main is not None and self.main.id == turn.id:
            return replace(self, main=turn)
        return replace(self, sides=exchanged(self.sides, turn))


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane as notices and commands show it."""

    lane: str
    facts: LaneFacts
    phase: Phase | None  # None: nothing runs; messages wait or a side answer goes on
    main: Turn | None
    taken: Queue
    waiting: Queue  # in the order they run
    sides: Queue
    paused: tuple[Hold, ...]
    place: int  # in the line of lanes that wait for a slot, from 1; 0: not in it
    engine_pause: EnginePause | None = None  # its engine's, if that is paused

    @property
    def halted(self) -> bool:
        """Whether a pause holds it; who has spent what a day allows only waits."""
        return not PAUSES.isdisjoint(self.paused)
