"""``laneway when``: the next instants that a WHEN means, one ISO time a line."""

from __future__ import annotations

import argparse
from datetime import datetime, tzinfo

from core.when import BadWhen, parse, upcoming
from core.when.grammar import named_zone
from core.when.plan import LAST, instant_of, to_instant
from gateway import saved
from gateway.trouble import Refused

COUNT = 5
NOTES = """\
WHEN is one of: every 15m; every day at 09:00; every weekday at 9:00; every monday at 18:30;
every month on 1 at 08:00; a cron line (0 9 * * 1-5); in 20m; tomorrow at 8:00; 2026-12-24 18:00;
an ISO time with offset. A zone may follow (Europe/Berlin).
Exit status: 2 with the reason when it means nothing.
"""
FIRST = -62_000_000_000_000  # ms, in the year 5: what is earlier no zone can show


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = NOTES
    parser.add_argument("when", metavar="WHEN", help='such as "every day at 09:00"')
    parser.add_argument("--tz", metavar="ZONE", help="whose local time (LANEWAY_TIMEZONE)")
    parser.add_argument("--from", metavar="ISO", dest="since", help="reckon from then (now)")
    parser.add_argument(
        "--count", type=_count, default=COUNT, metavar="N", help=f"how many ({COUNT})"
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 10_000:
        raise argparse.ArgumentTypeError("N must be a whole number from 1 to 10000")
    return int(text)


def main(options: argparse.Namespace) -> int:
    try:
        zone = named_zone(options.tz) if options.tz else saved.load().timezone
        now = _now(options.since, zone)
        plan = parse(options.when, zone, now)
    except BadWhen as refusal:
        raise Refused(str(refusal)) from None
    for instant in upcoming(plan, now, options.count):
        print(plan.local(instant).isoformat(timespec="seconds"))
    return 0


def _now(since: str | None, zone: tzinfo) -> int:
    """Milliseconds; an ISO time without an offset is a local time of the zone."""
    if since is None:
        return to_instant(datetime.now(zone))
    try:
        moment = datetime.fromisoformat(since.strip())
        now = instant_of(moment, zone) if moment.tzinfo is None else to_instant(moment)
        if not FIRST <= now <= LAST:
            raise ValueError
        return now
    except (ValueError, OverflowError):
        raise BadWhen(f"--from {since} is no ISO time like 2026-12-24T18:00.") from None
