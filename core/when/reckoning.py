"""Which instants a plan means.

Whoever changes the clocks changes what a local time means: a time that is skipped counts at the
first moment after the gap, one that comes twice counts the first time. A cron line whose hour
begins with ``*`` goes by the hours that really pass instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from cronsim import CronSim

from core.when.plan import LAST, Cron, Every, Once, Plan, instant_of, to_datetime, to_instant

DAY = 86_400_000
FAR = timedelta(days=366 * 9)  # 29 February is at most eight years away


def following(plan: Plan, after: int) -> int | None:
    """The first instant later than ``after``; None when there is none."""
    match plan.times:
        case Once(at):
            return at if at > after else None
        case Every(period, start):
            # Also before its start: the clock may have been ahead when that was taken down.
            instant = start + ((after - start) // period + 1) * period
            return instant if instant <= LAST else None
        case Cron(line):
            if after > LAST:
                return None
            if plan.times.real_time:
                return _passing(line, plan.zone, after)
            return _once_a_day(line, plan.zone, after)


def upcoming(plan: Plan, after: int, count: int) -> list[int]:
    """The next instants later than ``after``, at most ``count``."""
    found: list[int] = []
    while len(found) < count:
        instant = following(plan, found[-1] if found else after)
        if instant is None:
            break
        found.append(instant)
    return found


def matches(line: str, after: datetime) -> Iterator[datetime]:
    """The local times (without zone) that match a cron line, later than ``after``, in order."""
    end = after + FAR
    for moment in CronSim(line, after):
        if moment > end:
            return
        yield moment


def _once_a_day(line: str, zone: tzinfo, after: int) -> int | None:
    """Times of the calendar, each of which means one instant; these never go backwards."""
    for moment in matches(line, to_datetime(after).astimezone(zone).replace(tzinfo=None)):
        instant = instant_of(moment, zone)
        if instant > after:
            return instant
    return None


def _passing(line: str, zone: tzinfo, after: int) -> int | None:
    """Instants whose local time matches, whichever pass of a repeated hour it is.

    Between two changes of the clocks the local time is real time and an offset.
    """
    begin = after + 1
    end = begin + FAR // timedelta(milliseconds=1)
    while begin < end:
        here = to_datetime(begin).astimezone(zone)
        before = here.replace(tzinfo=None) - timedelta(milliseconds=1)
        found = next(matches(line, before), None)
        if found is None:
            return None
        offset = here.utcoffset() or timedelta()
        instant = to_instant((found - offset).replace(tzinfo=UTC))
        change = _change(zone, begin, instant)
        if change is None:
            return instant
        begin = change
    return None


def _change(zone: tzinfo, begin: int, until: int) -> int | None:
    """The first change of the clocks later than ``begin`` and not later than ``until``."""

    def offset(instant: int) -> timedelta | None:
        return to_datetime(instant).astimezone(zone).utcoffset()

    low, before = begin, offset(begin)
    while low < until:
        high = min(low + DAY, until)  # no zone changes its clocks and changes them back in a day
        if offset(high) != before:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            return high
        low = high
    return None
