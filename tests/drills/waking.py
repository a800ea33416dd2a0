"""Jobs in a drill: a schedule on every platform, and a watch of a file that grows.

Each schedule has a direct chat of its own, whose texts name the moment they are about; each line of
the file has a number. It must not know what goes wrong meanwhile.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from gateway.paths import DATABASE
from tests.drills.platforms import Place, Platform
from tests.end_to_end.house import until

PERIOD = 2000  # ms
DUE = re.compile(r"\(Job (\d+), a schedule: .{1,40}? Due (\w{3} [0-9-]{10} [0-9:]{5,8}) UTC, ")
SET = re.compile(r"Job (\d+) is set(: I look)?")
LINE = re.compile(r"^> \+ line (\d+)$", re.M)
LONG = 150.0  # seconds; much waits after a long drill
SETTINGS = {"LANEWAY_MIN_INTERVAL": "1s", "LANEWAY_TIMEZONE": "UTC"}


class Waking:
    """``folder``: where the file that is watched lies. The first platform's person is an admin."""

    def __init__(self, folder: Path, platforms: Sequence[Platform]) -> None:
        self.platforms = {platform.name: platform for platform in platforms}
        self.places = [platform.places[0] for platform in platforms]
        self._file = folder / "watched.log"
        self._file.write_text("line 0\n")
        self._lines = 0
        self._jobs: dict[int, Place] = {}  # schedules and the watch, by number
        self._schedules: dict[int, Place] = {}

    @property
    def admins(self) -> str:
        return next(iter(self.platforms.values())).members()[0]

    def _texts(self, place: Place) -> list[str]:
        return self.platforms[place.platform].texts(place)

    def _say(self, place: Place, text: str) -> None:
        self.platforms[place.platform].say(place, text)

    async def begin(self, home: Path) -> None:
        """All are set; the watch has looked once: what it sees first is no change."""
        for place in self.places:
            self._say(place, f"!every {PERIOD // 1000}s : tick")
        self._say(self.places[0], f'!watch file "{self._file}" changed every 1s each time : read')

        def found() -> bool:
            for place in self.places:
                for number, what in SET.findall("\n".join(self._texts(place))):
                    self._jobs[int(number)] = place
                    if not what:
                        self._schedules[int(number)] = place
            return len(self._jobs) > len(self.places)

        await until(found, LONG)
        await until(lambda: _rows(home, "SELECT job FROM watches"), LONG)

    async def write(self, home: Path) -> None:
        """A line now and then, until cancelled; what is shown of one change is forty of them."""
        while True:
            while self._lines - max(_found(home), default=0) > 30:
                await asyncio.sleep(0.2)
            self._lines += 1
            with self._file.open("a") as file:
                file.write(f"line {self._lines}\n")
            await asyncio.sleep(0.7)

    async def end(self, home: Path) -> None:
        """The last line is found, then nothing fires any more and all runs are over."""
        await until(lambda: self._lines in _found(home), LONG)
        for ident, place in self._jobs.items():
            self._say(place, f"!job {ident} cancel")
        goes_on = "SELECT id FROM jobs WHERE state <> 'cancelled'"
        await until(lambda: not _rows(home, goes_on), LONG)
        await until(lambda: not _open(home), LONG)

    def check(self, home: Path) -> str:
        """Each moment and each line once; what was counted."""
        lines = Counter(_found(home))
        missing = set(range(1, self._lines + 1)) - set(lines)
        assert not missing, f"of {self._lines} lines these were not seen: {sorted(missing)}"
        assert max(lines.values()) == 1, f"lines were seen twice: {lines}"
        states: Counter[str] = Counter()
        for ident, place in self._schedules.items():
            states.update(_schedule(home, ident))
            told = Counter(DUE.findall("\n".join(self._texts(place))))
            assert set(told.values()) <= {1}, f"a moment was answered twice: {told}"
            _shown(home, ident, {moment for said, moment in told if said == str(ident)})
        return f"{dict(states)} of schedules, {len(lines)} lines of the file"


def _rows(home: Path, query: str, *values: object) -> list[sqlite3.Row]:
    with closing(sqlite3.connect(f"file:{home / DATABASE}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return database.execute(query, values).fetchall()


def _found(home: Path) -> list[int]:
    """The lines that the agent was shown, by the prompts of the watch."""
    prompts = _rows(
        home,
        "SELECT m.text FROM messages m JOIN turns t ON t.id = m.turn WHERE t.origin = 'watch'",
    )
    return [int(number) for one in prompts for number in LINE.findall(one["text"])]


def _open(home: Path) -> bool:
    (row,) = _rows(
        home,
        "SELECT count(*) AS open FROM turns t WHERE t.origin <> 'person'"
        " AND (t.ended_at IS NULL OR EXISTS (SELECT 1 FROM deliveries d"
        "  WHERE d.turn = t.id AND d.kind = 'answer' AND d.state IN ('pending', 'in_flight')))",
    )
    return bool(row["open"])


def _schedule(home: Path, ident: int) -> Counter[str]:
    """Every moment was decided about once, or stands in a later one; none was too late to run."""
    (job,) = _rows(home, "SELECT anchor, settled_at FROM jobs WHERE id = ?", ident)
    firings = _rows(
        home,
        "SELECT f.*, (SELECT count(*) FROM messages m WHERE m.turn = f.turn) AS prompts"
        " FROM firings f WHERE job = ? ORDER BY due",
        ident,
    )
    before = job["anchor"]
    for one in firings:
        passed, wrong = divmod(one["due"] - before, PERIOD)
        assert not wrong, f"job {ident} fired between its times"
        assert passed == one["missed"] + 1, f"job {ident}: {passed} times, {one['missed']} missed"
        assert one["state"] in ("done", "interrupted", "skipped", "dropped", "failed"), dict(one)
        assert one["prompts"] == (one["turn"] is not None), dict(one)
        before = one["due"]
    assert before == job["settled_at"]
    return Counter(one["state"] for one in firings)


def _shown(home: Path, ident: int, shown: set[str]) -> None:
    """What is said to be sent stands there."""
    sent = _rows(
        home,
        "SELECT f.due FROM deliveries d JOIN firings f ON f.turn = d.turn"
        " WHERE f.job = ? AND f.state = 'done' AND d.kind = 'answer' AND d.state = 'sent'",
        ident,
    )
    moments = {datetime.fromtimestamp(one["due"] / 1000, UTC) for one in sent}
    said = {f"{at:%a %Y-%m-%d %H:%M:%S}".removesuffix(":00") for at in moments}
    assert said <= shown, f"job {ident}: {said - shown} are said to be sent, and are not"
