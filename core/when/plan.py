"""What a WHEN says once it is read: three kinds of times, and the zone they are meant in.

Values only. Instants are milliseconds since 1970 (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = 252_800_000_000_000  # ms, in the year 9980: what is later no clock of ours can show


@dataclass(frozen=True, slots=True)
class Once:
    """One instant."""

    at: int


@dataclass(frozen=True, slots=True)
class Every:
    """Always so many milliseconds after the one before, counted from ``start``.

    Real time: local clocks that are changed do not move it.
    """

    period: int
    start: int


@dataclass(frozen=True, slots=True)
class Cron:
    """The local times that match five fields: minute, hour, day of month, month, weekday."""

    line: str

    @property
    def real_time(self) -> bool:
        """It counts hours as they pass; else a local time means once a local day."""
        return self.line.split()[1].startswith("*")


@dataclass(frozen=True, slots=True)
class Plan:
    times: Once | Every | Cron
    zone: tzinfo

    @property
    def once(self) -> bool:
        return isinstance(self.times, Once)

    def local(self, instant: int) -> datetime:
        """The instant on the clocks of the plan's zone."""
        return to_datetime(instant).astimezone(self.zone)


def to_datetime(instant: int) -> datetime:
    return EPOCH + timedelta(milliseconds=instant)


def to_instant(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def instant_of(local: datetime, zone: tzinfo) -> int:
    """The instant of a local time: the first of two, or the end of the gap it falls into."""
    aware = local.replace(tzinfo=zone, fold=0)
    instant = to_instant(aware)
    back = to_datetime(instant).astimezone(zone).replace(tzinfo=None)
    if back == local:
        return instant
    # In a gap the offset before it was used, so what comes out lies behind the gap by as much as
    # the local time lies behind its beginning: the gap ends where the offset changes.
    return end_of_gap(instant, zone)


def end_of_gap(inside: int, zone: tzinfo) -> int:
    """The change of offset before an instant that was reckoned from a time in a gap."""
    after = to_datetime(inside).astimezone(zone).utcoffset()
    low, high = inside - 2 * 86_400_000, inside  # the widest gap is a day
    while high - low > 1:
        middle = (low + high) // 2
        if to_datetime(middle).astimezone(zone).utcoffset() == after:
            high = middle
        else:
            low = middle
    return high
