"""Instants as the pages that the gateway writes show them: on the clocks of who looks.

It must not know what happened then.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from gateway.job_parts import zone_name
from gateway.web.site import Site
from gateway.web.visitor import Visitor


def zone_of(site: Site, visitor: Visitor) -> str:
    """The zone somebody named, on the page or in a chat of theirs, else the gateway's."""
    people = site.parts.people
    for person in (visitor.person, *sorted(visitor.linked)):
        if zone := people.person(person, "").zone:
            return zone
    return zone_name(site.settings)


def iso(at: int | None, zone: str = "UTC") -> str | None:
    """ISO 8601 with offset, to the second."""
    if at is None:
        return None
    return _local(at, zone).isoformat(timespec="seconds")


def said(at: int, zone: str, now: int, *, exact: bool = False) -> str:
    """``today 09:00``, ``Tue 9 Feb, 09:00``, ``9 Feb 2025, 09:00``; ``exact`` with seconds."""
    local, today = _local(at, zone), _local(now, zone)
    clock = f"{local:%H:%M:%S}" if exact else f"{local:%H:%M}"
    days = (local.date() - today.date()) // timedelta(days=1)
    if days in (-1, 0, 1):
        return f"{('yesterday', 'today', 'tomorrow')[days + 1]} {clock}"
    if abs(days) < 300:
        return f"{local:%a} {local.day} {local:%b}, {clock}"
    return f"{local.day} {local:%b %Y}, {clock}"


def _local(at: int, zone: str) -> datetime:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return moment.astimezone(ZoneInfo(zone))
