"""Slots: how many turns run, for whom and in which folders, and what the caps still admit.

Pure counting. Must not know lanes, queues or pauses: board.py reports each change of a lane here,
rules.py asks before each start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from core.turns import Limits, Turn


class Slots:
    def __init__(self) -> None:
        self.running = 0
        self.jobs = 0  # of those, turns that jobs began
        self.sides = 0
        self.persons: Counter[str] = Counter()
        self._used: Counter[str] = Counter()  # folders a main turn works in
        self._spanned: Counter[str] = Counter()  # those, and every folder above one of them

    def admit(self, turn: Turn, limits: Limits) -> bool:
        """A job's turn counts for the cap of all lanes alone, and jobs get at most half of it."""
        if self.running >= limits.running:
            return False
        if turn.origin.job:
            return self.jobs < max(1, limits.running // 2)
        return self.persons[turn.person] < limits.per_person

    def free(self, folder: str) -> bool:
        """No turn works in this folder, inside it or in one it lies in."""
        if not folder or not self._used:
            return True
        return folder not in self._spanned and not any(up in self._used for up in _upwards(folder))

    def count(self, turn: Turn, by: int) -> None:
        """``by`` is 1 for a turn that takes a slot, -1 for one that gives it back."""
        self.running += by
        if turn.origin.job:
            self.jobs += by
        else:
            _add(self.persons, turn.person, by)

    def count_folder(self, folder: str, by: int) -> None:
        _add(self._used, folder, by)
        for up in _upwards(folder):
            _add(self._spanned, up, by)


def _add(counter: Counter[str], key: str, by: int) -> None:
    counter[key] += by
    if not counter[key]:
        del counter[key]  # who has nothing running costs no memory


def _upwards(folder: str) -> Iterator[str]:
    """The folder itself and each one above it."""
    yield folder
    while folder != "/":
        folder = folder.rpartition("/")[0] or "/"
        yield folder
