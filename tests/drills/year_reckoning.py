"""When the jobs of a simulated year are due, reckoned by the calendar: day by day, no cron line.

It must not know how the gateway reckons; both are held against each other.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BEGIN = 1_804_550_400_000  # 2027-03-09T00:00Z: the weeks in which most clocks change come first
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"),
    *("Pacific/Chatham", "Africa/Cairo", "America/Havana", "America/St_Johns", "Asia/Beirut"),
    *("Asia/Kathmandu", "America/Santiago"),
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
KINDS = {"daily": 8, "weekly": 40, "monthly": 20, "interval": 12, "cron": 12, "once": 8}  # of 100


@dataclass(frozen=True, slots=True)
class Due:
    """A job as it is written, and what is meant by it. ``days``: those of the week, Monday is 0."""

    said: str
    zone: str
    anchor: int  # ms, when it was said
    clock: time = time()
    days: frozenset[int] = frozenset(range(7))
    of_month: int | None = None
    period: int | None = None  # ms
    once: date | None = None

    def instants(self, until: int) -> list[int]:
        """All, later than the anchor and not later than ``until``, in order; ms."""
        if self.period is not None:
            return list(range(self.anchor + self.period, until + 1, self.period))
        zone = ZoneInfo(self.zone)
        day = _moment(self.anchor).astimezone(zone).date() - timedelta(days=1)
        last = _moment(until).astimezone(zone).date() + timedelta(days=1)
        found: list[int] = []
        while day <= last:
            if self._on(day):
                at = first_moment(datetime.combine(day, self.clock), zone)
                if self.anchor < at <= until:
                    found.append(at)
            day += timedelta(days=1)
        return found

    def _on(self, day: date) -> bool:
        if self.once is not None:
            return day == self.once
        return day.weekday() in self.days and self.of_month in (None, day.day)


def first_moment(local: datetime, zone: ZoneInfo) -> int:
    """The first instant at which clocks there show this time, or one they left out is over."""
    guess = local.replace(tzinfo=UTC)
    around = (guess + timedelta(hours=hours) for hours in (-30, -15, 0, 15, 30))
    offsets = {moment.astimezone(zone).utcoffset() or timedelta() for moment in around}
    shown = [guess - offset for offset in offsets]
    fitting = [at for at in shown if at.astimezone(zone).replace(tzinfo=None) == local]
    if fitting:
        return _instant(min(fitting))
    at = min(shown)
    while at.astimezone(zone).replace(tzinfo=None) < local:  # minute by minute over the gap
        at += timedelta(minutes=1)
    return _instant(at)


def draw(dice: random.Random, days: int) -> Due:
    """Any job, said on the first day."""
    zone, anchor = dice.choice(ZONES), BEGIN + dice.randrange(DAY)
    hour, minute = dice.choice((dice.randrange(24), 0, 2, 23)), dice.randrange(60)
    clock, on = time(hour, minute), dice.randrange(7)
    match dice.choices(list(KINDS), list(KINDS.values()))[0]:
        case "daily":
            return Due(f"every day at {clock:%H:%M}", zone, anchor, clock)
        case "weekly":
            said = f"every {DAYS[on]} at {clock:%H:%M}"
            return Due(said, zone, anchor, clock, frozenset({on}))
        case "monthly":
            of_month = dice.randrange(1, 32)
            said = f"every month on {of_month} at {clock:%H:%M}"
            return Due(said, zone, anchor, clock, of_month=of_month)
        case "cron":
            other = dice.randrange(7)
            said = f"{minute} {hour} * * {(on + 1) % 7},{other + 1}"
            return Due(said, zone, anchor, clock, frozenset({on, other}))
        case "once":
            day = _moment(anchor).date() + timedelta(days=dice.randrange(2, max(days, 4)))
            return Due(f"{day} {clock:%H:%M}", zone, anchor, clock, once=day)
        case _:
            hours = dice.choice((24, 24, 31, 24 * 9, 24 * 30))
            return Due(f"every {hours}h", zone, anchor, period=hours * HOUR)


def _moment(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)


def _instant(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
