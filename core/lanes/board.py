"""The board: lanes as frozen values that can be taken back; of idle ones only the latest.

All changes go through `put` and `set_door`. Each notes the value it replaces, so a draft whose
commit failed is undone by putting the old values back; and what is derived from lanes (slots,
folders, the line) follows by difference in one place, so it cannot drift. Must not know events
or commands: what changes and why is decided in rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NewType

from core.lane_events import DaySpent
from core.lanes.lane import Lane
from core.lanes.slots import Slots
from core.turns import EnginePause, LaneFacts, Limits, Turn
from core.waiting import Entry, Line

Mark = NewType("Mark", int)

NOBODY = DaySpent()
REMEMBERED = 4096  # idle lanes that are kept in memory


@dataclass(frozen=True, slots=True)
class Door:
    """What holds for all lanes."""

    limits: Limits
    paused: bool = False
    engines: Mapping[str, EnginePause] = field(default_factory=dict)  # paused ones
    draining: bool = False
    spent: DaySpent = NOBODY  # who has to wait for the next day


class Board:
    def __init__(self, limits: Limits) -> None:
        self.door = Door(limits)
        self.slots = Slots()
        self.line = Line()
        # In this step: whether a slot or folder became free or the door changed, and the lanes
        # of the line that are not as they were.
        self.freed = False
        self.touched: set[str] = set()
        self._lanes: dict[str, Lane] = {}
        self._idle: dict[str, None] = {}  # the lanes with nothing to do, longest idle first
        self._journal: list[tuple[str, Lane | None] | Door] = []  # what was there before
        self._settled = 0  # entries the journal has had and forgotten

    def __iter__(self) -> Iterator[Lane]:
        return iter(list(self._lanes.values()))

    def get(self, key: str) -> Lane | None:
        return self._lanes.get(key)

    def lane(self, key: str, facts: LaneFacts) -> Lane:
        """The lane as it is. ``facts`` count only for a lane unknown here.

        They were read before this step, and memory is newer. That is why lanes are remembered
        for a while after they became idle: facts on their way here may be older than their end.
        """
        return self._lanes.get(key) or Lane(key, facts)

    def put(self, lane: Lane) -> None:
        before = self._lanes.get(lane.key)
        self._journal.append((lane.key, before))
        self._exchange(lane.key, before, lane)

    def set_door(self, door: Door) -> None:
        self._journal.append(self.door)
        self.door = door
        self.freed = True

    def begin_step(self) -> None:
        self.freed = False
        self.touched.clear()

    # The draft

    def mark(self) -> Mark:
        return Mark(self._settled + len(self._journal))

    def undo(self, mark: Mark) -> None:
        if mark < self._settled:
            raise ValueError("what is settled cannot be taken back")
        while self._settled + len(self._journal) > mark:
            past = self._journal.pop()
            if isinstance(past, Door):
                self.door = past
            else:
                key, lane = past
                self._exchange(key, self._lanes.get(key), lane)

    def settle(self) -> None:
        self._settled += len(self._journal)
        self._journal.clear()
        while len(self._idle) > REMEMBERED:
            key = next(iter(self._idle))
            del self._idle[key], self._lanes[key]

    # What is derived

    def _exchange(self, key: str, before: Lane | None, after: Lane | None) -> None:
        self._follow_slot(before and before.slot, after and after.slot)
        self._follow_folder(before.folder if before else "", after.folder if after else "")
        self._follow_line(key, before and before.entry, after and after.entry)
        self.slots.sides += len(after.sides if after else ()) - len(before.sides if before else ())
        if after is None:
            del self._lanes[key]
            self._idle.pop(key, None)
            return
        self._lanes[key] = after
        if after.idle:
            self._idle[key] = None
        else:
            self._idle.pop(key, None)

    def _follow_slot(self, before: Turn | None, after: Turn | None) -> None:
        if before is after or (before and after and before.id == after.id):
            return
        if before is not None:
            self.slots.count(before, -1)
            self.freed = True
        if after is not None:
            self.slots.count(after, 1)

    def _follow_folder(self, before: str, after: str) -> None:
        if before == after:
            return
        if before:
            self.slots.count_folder(before, -1)
            self.freed = True
        if after:
            self.slots.count_folder(after, 1)

    def _follow_line(self, key: str, before: Entry | None, after: Entry | None) -> None:
        if after is not None:
            self.touched.add(key)  # even at its old place: its engine or folder may be new
        if before == after:
            return
        if before is not None:
            self.line.leave(before)
        if after is not None:
            self.line.join(after)
