"""What turns have used: tokens and cost of a lane, a person and all, and how that is told.

It reads what is stored and decides nothing. A cost that nobody told is said to be unknown, never
taken for nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from typing import Any

from core.store.store import Reader
from core.when.plan import instant_of, to_datetime
from core.wording import count, money, plain

_PERIOD = re.compile(r"([0-9]{1,5})\s*([mhdw])")
_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_NAMED = {"m": "minute", "h": "hour", "d": "day", "w": "week"}
USUAL = "30d"
KEPT = 100 * _MS["d"]  # how old a day may be whose sums are kept
DAYS_AT_ONCE = 10  # that one query sums up
NAMED_MOST = 5  # models that are named for having no price


@dataclass(frozen=True, slots=True)
class Period:
    """From when on; 0 is the beginning. ``words`` say it to people."""

    since: int  # ms
    words: str = "so far"


@dataclass(frozen=True, slots=True)
class Used:
    """A sum over turns that began. ``unpriced``: those of them whose cost nobody told."""

    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None  # US dollars; None where none was told at all
    unpriced: int = 0

    def __add__(self, other: Used) -> Used:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Used(
            self.turns + other.turns,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            round(sum(costs), 9) if costs else None,
            self.unpriced + other.unpriced,
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What ``/usage`` tells. ``missing``: engine and model of turns without a price."""

    period: Period
    here: Used = Used()
    own: Used = Used()
    all: Used = Used()
    missing: tuple[tuple[str, str], ...] = ()


def period(typed: str, now: int) -> Period | None:
    """A time span such as 7d, up to now, or ``all``; None: it is neither.

    Where nothing was typed it is a month, so that asking costs the same however long it has run.
    """
    typed = typed.strip().lower() or USUAL
    if typed == "all":
        return Period(0)
    found = _PERIOD.fullmatch(typed)
    if found is None or not int(found[1]):
        return None
    number = int(found[1])
    span = count(number, _NAMED[found[2]]) if number > 1 else _NAMED[found[2]]
    return Period(max(0, now - number * _MS[found[2]]), f"in the last {span}")


async def report(store: Reader, lane: str, person: str, within: Period) -> Report:
    """Of this lane, of this person and of all."""
    found = await store.fetch("usage.of_all", since=within.since)
    return Report(
        within,
        await of_lane(store, lane, within.since),
        _sum(row for row in found if row["person"] == person),
        _sum(found),
        unpriced((Source(row["person"], row["engine"], row["model"]), _used(row)) for row in found),
    )


async def of_lane(store: Reader, lane: str, since: int = 0) -> Used:
    """What a lane has used since an instant."""
    return _sum(await store.fetch("usage.of_lane", lane=lane, since=since))


async def by_lane(store: Reader, since: int) -> list[tuple[str, str, Used]]:
    """Of each lane and person, in the order of the lanes' ids."""
    found = await store.fetch("usage.by_lane", since=since)
    return [(row["lane"], row["person"], _used(row)) for row in found]


@dataclass(frozen=True, slots=True)
class Day:
    """A day of some zone, of 23 to 25 hours. ``start`` and ``end``: ms, the end not of it."""

    date: date
    start: int
    end: int


def days(zone: tzinfo, now: int, most: int) -> list[Day]:
    """So many days up to the one that ``now`` is in, the oldest first."""
    today = to_datetime(now).astimezone(zone).date()
    dates = [today - timedelta(days=back) for back in range(most - 1, -2, -1)]
    starts = [instant_of(datetime.combine(one, time()), zone) for one in dates]
    return [
        Day(one, start, end) for one, (start, end) in zip(dates, pairwise(starts), strict=False)
    ]


@dataclass(frozen=True, slots=True)
class Source:
    """Whose turns, and what did them."""

    person: str
    engine: str
    model: str


Sums = Mapping[Source, Used]


class Spent:
    """What was used on each of many days. Days on which nothing can change any more are kept.

    Of a hundred thousand turns each look but the first reads only those of today.
    """

    def __init__(self) -> None:
        self._over: dict[Day, Sums] = {}

    async def on(self, store: Reader, within: Sequence[Day], now: int) -> list[Sums]:
        """The sums of these days, in their order."""
        running = await store.fetch("usage.open", since=0)
        changes = min((row["started_at"] for row in running), default=now)
        kept = {day: one for day, one in self._over.items() if now - day.end < KEPT}
        read = await _of_days(store, [day for day in within if day not in kept])
        over = {day: one for day, one in read.items() if day.end <= min(changes, now)}
        self._over, sums = kept | over, kept | read
        found: list[Sums] = []
        for day in within:
            own = [row for row in running if day.start <= row["started_at"] < day.end]
            found.append(_with(sums[day], own))
        return found


async def _of_days(store: Reader, within: Sequence[Day]) -> dict[Day, Sums]:
    """Some days at a time: a query for each is slow, and one for all keeps other reads waiting."""
    found: dict[Day, Sums] = {}
    for first in range(0, len(within), DAYS_AT_ONCE):
        some = within[first : first + DAYS_AT_ONCE]
        spans = json.dumps([(day.start, day.end) for day in some])
        rows: list[list[Any]] = [[] for _ in some]
        for row in await store.fetch("usage.of_days", days=spans):
            rows[row["nth"]].append(row)
        found |= {day: _with({}, own) for day, own in zip(some, rows, strict=True)}
    return found


def _with(sums: Sums, more: Sequence[Any]) -> Sums:
    if not more:
        return sums
    after = dict(sums)
    for row in more:
        source = Source(row["person"], row["engine"], row["model"])
        after[source] = after.get(source, Used()) + _used(row)
    return after


async def last_seen(store: Reader, since: int) -> dict[str, int]:
    """When people had something done last; ms."""
    return {row["person"]: row["at"] for row in await store.fetch("usage.last", since=since)}


def unpriced(sums: Iterable[tuple[Source, Used]]) -> tuple[tuple[str, str], ...]:
    """Engine and model of what had no price."""
    return tuple(
        {
            (source.engine, source.model): None
            for source, used in sums
            if used.unpriced and used.tokens_in + used.tokens_out
        }
    )


def _sum(found: Iterable[Mapping[str, Any]] | Iterable[Any]) -> Used:
    return sum(map(_used, found), Used())


def _used(row: Any) -> Used:
    cost = row["cost"]
    return Used(
        row["turns"],
        row["tokens_in"],
        row["tokens_out"],
        None if cost is None else round(cost, 9),
        row["unpriced"],
    )


# In words -----------------------------------------------------------------------------------


def told(used: Used) -> str:
    """A sum in one line."""
    if not used.turns:
        return "nothing"
    parts = [count(used.turns, "turn")]
    if used.tokens_in or used.tokens_out:
        parts.append(f"{used.tokens_in:,} tokens in and {used.tokens_out:,} out")
    return f"{', '.join(parts)}, {cost(used)}"


def cost(used: Used) -> str:
    """Money, and what it does not hold."""
    if not used.unpriced:
        return money(used.cost or 0)
    if used.cost is None:
        return "cost not known"
    return f"{money(used.cost)} and {count(used.unpriced, 'turn')} whose cost is not known"


def answer(found: Report, *, admin: bool) -> str:
    """The answer to ``/usage``."""
    lines = [
        f"Used {found.period.words}:",
        "",
        f"- here: {told(found.here)}",
        f"- by you: {told(found.own)}",
    ]
    if admin:
        lines.append(f"- by all: {told(found.all)}")
        if found.missing:
            lines += ["", missing(found.missing)]
    return "\n".join(lines)


def missing(models: Sequence[tuple[str, str]]) -> str:
    """Models without a price, and where one can be given; Markdown."""
    named = [f"{plain(model) or 'its own model'} ({plain(engine)})" for engine, model in models]
    more = len(named) - NAMED_MOST
    listed = ", ".join(named[:NAMED_MOST]) + (f" and {more} more" if more > 0 else "")
    return f"No price was known for {listed}. Prices stand in `prices.toml` in the gateway's home."
