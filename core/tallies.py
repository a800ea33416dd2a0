"""How long things took, counted so that it costs a few additions each time.

What is only counted needs no more than ``collections.Counter``. It must not know who reads it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Spread:
    """How many values were at most as large as each bound, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)  # of each step alone; the last is beyond all
        self.sum = 0.0

    def see(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def steps(self) -> list[tuple[float, int]]:
        """Each bound with how many values were not above it; the last bound is infinity."""
        found, below = [], 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            below += count
            found.append((bound, below))
        return found
