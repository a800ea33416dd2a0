"""The page of what turns have used: by day, by engine, by person, and what caps leave of today.

What is drawn stands below it as a table of the same numbers. It must not know how a turn is priced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core import usage
from core.budget_words import day_of
from core.store import budgets
from core.usage import Day, Source, Spent, Sums, Used
from core.wording import money
from gateway.job_parts import zone_name
from gateway.web.access import Bad, Who, api, page
from gateway.web.naming import name_of
from gateway.web.plots import plot, share
from gateway.web.rendering import html
from gateway.web.site import Site, site_of
from gateway.web.visitor import Visitor

Json = dict[str, Any]
PERIODS = {"7d": 7, "30d": 30, "90d": 90}
USUAL = "30d"
COLOURS = 6  # the last of them is of all engines beyond
SHOWS = ("cost", "tokens")


@dataclass(frozen=True, slots=True)
class Seen:
    """What somebody may see of a period, day by day."""

    period: str
    zone: str
    days: tuple[Day, ...]
    sums: tuple[Sums, ...]

    def every(self) -> Iterable[tuple[Source, Used]]:
        return (pair for day in self.sums for pair in day.items())


def routes() -> list[Route]:
    spent = Spent()
    return [
        page("/usage", partial(_page, spent), Who.MEMBERS),
        api("/api/usage", partial(_api, spent), who=Who.MEMBERS),
    ]


async def _page(spent: Spent, request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    seen = await _seen(spent, request, visitor)
    shown = request.query_params.get("show", SHOWS[0])
    if shown not in SHOWS:
        raise Bad(f"What is shown is one of {', '.join(SHOWS)}.")
    caps = await _caps(site, visitor)
    engines = _engines(seen, shown)
    return html(
        request, "usage.html", visitor,
        period=seen.period, periods=list(PERIODS), shown=shown, zone=seen.zone,
        total=_row(_total(used for _, used in seen.every())),
        plot=_plot(seen, engines, shown, caps["cap"]),
        engines=engines, days=[_day(day, sums) for day, sums in _pairs(seen)][::-1],
        people=_people(site, seen, caps, shown) if visitor.admin else [],
        caps=caps, missing=usage.unpriced(seen.every()),
    )  # fmt: skip


async def _api(spent: Spent, request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    seen = await _seen(spent, request, visitor)
    caps = await _caps(site, visitor)
    return JSONResponse(
        {
            "period": seen.period,
            "zone": seen.zone,
            "total": _row(_total(used for _, used in seen.every())),
            "days": [_day(day, sums) for day, sums in _pairs(seen)],
            "engines": _engines(seen),
            "people": _people(site, seen, caps) if visitor.admin else [],
            "today": {"spent_usd": caps["spent"], "cap_usd": caps["cap"]},
        }
    )


# What is read --------------------------------------------------------------------------------


async def _seen(spent: Spent, request: Request, visitor: Visitor) -> Seen:
    """Of a member, only what their own turns used."""
    site, period = site_of(request), request.query_params.get("period", USUAL)
    if period not in PERIODS:
        raise Bad(f"A period is one of {', '.join(PERIODS)}.")
    now = site.clock.now()
    days = usage.days(site.settings.timezone, now, PERIODS[period])
    found = await spent.on(site.parts.store, days, now)
    if not visitor.admin:
        found = [{s: used for s, used in day.items() if visitor.is_me(s.person)} for day in found]
    return Seen(period, zone_name(site.settings), tuple(days), tuple(found))


async def _caps(site: Site, visitor: Visitor) -> Json:
    """Today's money as the caps count it: of all for an admin, else of this person.

    A member's identities have a cap each; the one that has used the most of it counts.
    """
    settings, now = site.settings, site.clock.now()
    today = day_of(now, settings.timezone)
    each: dict[str, float] = {}
    for one in await budgets.sums(site.parts.store, today):
        if one.day == today:
            each[one.person] = each.get(one.person, 0.0) + one.cost
    person_cap, all_cap = settings.budget_person_day, settings.budget_day
    if visitor.admin:
        spent, cap = sum(each.values()), all_cap
    else:
        spent = max((cost for who, cost in each.items() if visitor.is_me(who)), default=0.0)
        cap = person_cap
    return {
        "each": each,
        "spent": spent,
        "cap": None if cap is None else float(cap),
        "person_cap": None if person_cap is None else float(person_cap),
        "share": share(spent, float(cap)) if cap is not None else None,
        "spent_said": money(spent),
        "cap_said": "" if cap is None else money(float(cap)),
        "person_said": "" if person_cap is None else money(float(person_cap)),
    }


# What is shown -------------------------------------------------------------------------------


def _pairs(seen: Seen) -> list[tuple[Day, Sums]]:
    return list(zip(seen.days, seen.sums, strict=True))


def _total(found: Iterable[Used]) -> Used:
    return sum(found, Used())


def _row(used: Used) -> Json:
    return {
        "turns": used.turns,
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "cost_usd": used.cost,
        "cost": _cost(used),
        "unpriced_turns": used.unpriced,
    }


def _cost(used: Used) -> str:
    """Money that was told; what nobody told is no zero."""
    if used.cost is None:
        return "not known" if used.unpriced else money(0)
    return money(used.cost)


def _day(day: Day, sums: Sums) -> Json:
    hours = (day.end - day.start) // 3_600_000
    return {
        "day": day.date.isoformat(),
        "said": f"{day.date:%a} {day.date.day} {day.date:%b}",
        "hours": hours,
        **_row(_total(sums.values())),
    }


def _engines(seen: Seen, shown: str = SHOWS[0]) -> list[Json]:
    """Each engine with its colour and its part of the longest bar, the most turns first."""
    sums: dict[str, Used] = {}
    for source, used in seen.every():
        sums[source.engine] = sums.get(source.engine, Used()) + used
    order = sorted(sums.items(), key=lambda pair: (-pair[1].turns, pair[0]))
    most = max((_measure(used, shown) for used in sums.values()), default=0.0)
    return [
        {
            "engine": name,
            "colour": min(place, COLOURS - 1),
            "part": share(_measure(used, shown), most) if most else 0.0,
            **_row(used),
        }
        for place, (name, used) in enumerate(order)
    ]


def _people(site: Site, seen: Seen, caps: Json, shown: str = SHOWS[0]) -> list[Json]:
    """What each person has used, and of today's cap; whoever used the most money first."""
    sums: dict[str, Used] = {}
    for source, used in seen.every():
        sums[source.person] = sums.get(source.person, Used()) + used
    order = sorted(sums.items(), key=lambda one: (-(one[1].cost or 0.0), -one[1].turns, one[0]))
    most = max((_measure(used, shown) for used in sums.values()), default=0.0)
    cap = caps["person_cap"]
    listed = []
    for person, used in order:
        today = caps["each"].get(person, 0.0)
        name = name_of(site, person) or "the gateway itself"
        listed.append(
            {
                "person": person,
                "name": name,
                "today_usd": today,
                "today": money(today),
                "share": share(today, cap) if cap is not None else None,
                "part": share(_measure(used, shown), most) if most else 0.0,
                **_row(used),
            }
        )
    return listed


def _plot(seen: Seen, engines: Sequence[Json], shown: str, cap: float | None) -> Json:
    """The days as bars, each engine with its colour."""
    colours = {one["engine"]: one["colour"] for one in engines}
    stacks = []
    for day, sums in _pairs(seen):
        parts = [0.0] * COLOURS
        for source, used in sums.items():
            parts[colours[source.engine]] += _measure(used, shown)
        told = _row(_total(sums.values()))
        said = f"{day.date:%a} {day.date.day} {day.date:%b}: {_measured(told, shown)}"
        stacks.append((said, parts))
    drawn = plot(stacks, cap if shown == "cost" else None)
    count = len(seen.days)
    return {
        "drawn": drawn,
        "top": _level(drawn.top, shown),
        "middle": _level(drawn.top / 2, shown),
        "dates": [_short(seen.days[place]) for place in (0, (count - 1) // 2, count - 1)],
        "empty": not any(bar.pieces for bar in drawn.bars),
    }


def _short(day: Day) -> str:
    return f"{day.date.day} {day.date:%b}"


def _measure(used: Used, shown: str) -> float:
    return used.cost or 0.0 if shown == "cost" else float(used.tokens_in + used.tokens_out)


def _measured(told: Json, shown: str) -> str:
    if shown == "tokens":
        return f"{told['tokens_in']:,} tokens in, {told['tokens_out']:,} out"
    unknown = told["unpriced_turns"]
    more = f", and {unknown} of its turns without a known cost" if unknown else ""
    return f"{told['cost']}{more}"


def _level(number: float, shown: str) -> str:
    if shown == "cost":
        return money(number)
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{sign}"
    return f"{number:g}"
