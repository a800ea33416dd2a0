"""Waiting: the order inside a lane, its limit, the merging of messages, and the line of lanes.

Pure: plain values in, plain values out. Must not know caps, pauses or what runs; whether a lane
*may* start is decided by the lane rules; this file only says who would be first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import replace
from operator import attrgetter

from core.turns import Kind, Limits, Origin, Turn

Queue = tuple[Turn, ...]

_order = attrgetter("rank", "id")


def queued(queue: Queue, turn: Turn) -> Queue:
    """The queue with the turn at its place: by rank, and among equals by arrival."""
    if not queue or _order(queue[-1]) < _order(turn):
        return (*queue, turn)
    turns = list(queue)
    insort(turns, turn, key=_order)
    return tuple(turns)


def without(queue: Queue, turn: int) -> Queue:
    return tuple(other for other in queue if other.id != turn)


def exchanged(queue: Queue, turn: Turn) -> Queue:
    """The queue with the newer state of one of its turns, at the place it had."""
    return tuple(turn if other.id == turn.id else other for other in queue)


def find(queue: Queue, turn: int) -> Turn | None:
    for other in queue:
        if other.id == turn:
            return other
    return None


def full(queue: Queue, limits: Limits) -> bool:
    """Whether one more message is too many. Firings of jobs are neither counted nor refused."""
    if len(queue) < limits.queue:
        return False
    return sum(not turn.origin.job for turn in queue) >= limits.queue


def merged(queue: Queue, turn: Turn, limits: Limits) -> Turn | None:
    """The queue's last message with this one joined to it, or None where they stay apart.

    Only the last one: joined to an earlier message, this one would overtake what lies between.
    """
    if not queue:
        return None
    last = queue[-1]
    gap = turn.arrived - max(last.arrived, last.last_piece)
    alike = (
        last.person == turn.person
        and last.origin is turn.origin is Origin.PERSON
        and last.kind is turn.kind is Kind.MAIN
        and last.offered_to is None
    )
    if not alike or gap > limits.collect_gap or last.pieces + turn.pieces > limits.collect_pieces:
        return None
    return replace(last, pieces=last.pieces + turn.pieces, last_piece=turn.arrived)


Entry = tuple[int, int, str]  # waits since, id of the head message, lane


def entry(lane: str, head: Turn, ended: int) -> Entry:
    """A lane waits since its head message came, or since its last turn ended if that is later.

    So a lane with much to do goes behind the others after each turn, and a restart, which knows
    both times, finds the same order.
    """
    return (max(head.arrived, ended), head.id, lane)


class Line:
    """The lanes that have something to start, longest waiting first.

    A sorted list: finding a place is a bisection, and moving ten thousand pointers by one costs
    a microsecond or two.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> str:
        return self._entries[index][2]

    def join(self, entry: Entry) -> None:
        insort(self._entries, entry)

    def leave(self, entry: Entry) -> None:
        del self._entries[bisect_left(self._entries, entry)]

    def place(self, entry: Entry) -> int:
        """1 for the first of the line."""
        return bisect_left(self._entries, entry) + 1
