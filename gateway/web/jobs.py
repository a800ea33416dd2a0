"""The page of jobs: schedules, wake-ups and watches, how they went, and how new ones are made.

What a job is and who may change it are rules of the core; what is stored goes through the desk that
the shell uses too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core import job_words, watch_words
from core.commands.scheduling import VERBS
from core.job_rules import Job, JobState
from core.lane_ids import LOCAL, channel_of
from core.people import Role
from core.store import jobs as stored
from core.store import reads
from core.store.jobs import FiringRow
from core.store.records import LaneRow
from core.watch_rules import FOR_EVER
from core.when import BadWhen, upcoming
from core.wording import duration
from gateway.job_desk import NEXT, JobDesk, Wish, coming, verbs
from gateway.job_parts import job_limits, zone_name
from gateway.job_reports import as_json
from gateway.web import theirs
from gateway.web.access import Bad, Who, api, page, text
from gateway.web.naming import name_of, straight
from gateway.web.rendering import html
from gateway.web.site import Site, site_of
from gateway.web.times import iso, said, zone_of
from gateway.web.visitor import Visitor

Json = dict[str, Any]
PAST = 100  # firings of one job that are shown
GOING = 48  # jobs on one page
ENDED = 24  # that have ended
OWN = "me"
CHOICES = 300  # threads that are offered
ANY = "x"  # a prompt, where only the times are looked at


def routes() -> list[Route]:
    make = partial(_make, asyncio.Lock())
    return [
        page("/jobs", _page, Who.MEMBERS),
        page("/jobs/{id:int}", _one_page, Who.MEMBERS),
        api("/api/jobs", _list, who=Who.MEMBERS),
        api("/api/jobs", make, ("POST",), Who.MEMBERS),
        api("/api/when", _when, ("POST",), Who.MEMBERS),
        api("/api/jobs/{id:int}", _one, who=Who.MEMBERS),
        api("/api/jobs/{id:int}", _change, ("POST",), Who.MEMBERS),
    ]


# What is read --------------------------------------------------------------------------------


async def _page(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    own = request.query_params.get("of") == OWN
    found = await _listed(site, visitor, own=own)
    ended = [pair for pair in found if pair[0].state.ended]
    going = sorted((pair for pair in found if not pair[0].state.ended), key=_soonest)
    number = _number(request, len(going))
    first = (number - 1) * GOING
    return html(
        request, "jobs.html", visitor,
        going=await _all_shown(site, visitor, going[first : first + GOING]),
        number=number, pages=max(1, -(-len(going) // GOING)), count=len(going),
        ended=await _all_shown(site, visitor, ended[-ENDED:][::-1]),
        beyond=max(0, len(ended) - ENDED), own=own,
        lanes=await _choices(site, visitor),
        zone=zone_of(site, visitor),
        catch_up=duration(job_limits(site.settings).catch_up), for_ever=duration(FOR_EVER),
    )  # fmt: skip


async def _one_page(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    job = await _mine(request, visitor)
    lanes = await stored.lanes(site.parts.store, [job.lane])
    past = await stored.firings(site.parts.store, job.id, PAST)
    zone = zone_of(site, visitor)
    return html(
        request, "job.html", visitor,
        job=_shown(site, visitor, job, lanes.get(job.lane)),
        past=[_past(site, one, zone) for one in past], zone=zone, most=PAST,
    )  # fmt: skip


async def _list(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    listed = await _all_shown(site, visitor, await _listed(site, visitor))
    return JSONResponse({"jobs": listed, "zone": zone_of(site, visitor)})


async def _one(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    job = await _mine(request, visitor)
    lanes = await stored.lanes(site.parts.store, [job.lane])
    past = await stored.firings(site.parts.store, job.id, PAST)
    zone = zone_of(site, visitor)
    shown = _shown(site, visitor, job, lanes.get(job.lane))
    return JSONResponse(shown | {"firings": [_past(site, one, zone) for one in past]})


async def _listed(
    site: Site, visitor: Visitor, *, own: bool = False
) -> list[tuple[Job, LaneRow | None]]:
    """Whatever of somebody is open or ended within a week, with its lane; all of it for admins."""
    store = site.parts.store
    found = [
        job
        for job in await stored.listed(store, site.clock.now())
        if (visitor.admin and not own) or visitor.is_me(job.person)
    ]
    lanes = await stored.lanes(store, {job.lane for job in found})
    return [(job, lanes.get(job.lane)) for job in found]


def _soonest(pair: tuple[Job, LaneRow | None]) -> tuple[bool, int, int]:
    """What runs next comes first, what is paused last."""
    job = pair[0]
    return job.state is JobState.PAUSED, job.next_at or 0, job.id


def _number(request: Request, count: int) -> int:
    """Which page of the list is asked for; the last where there are fewer by now."""
    asked = request.query_params.get("page", "1")
    if not (asked.isascii() and asked.isdigit() and len(asked) < 6):
        raise Bad("page is a number.")
    return max(1, min(int(asked), -(-count // GOING)))


async def _all_shown(
    site: Site, visitor: Visitor, found: Sequence[tuple[Job, LaneRow | None]]
) -> list[Json]:
    """Reckoning with hundreds of plans takes a while; others have their turn in between."""
    listed = []
    for job, lane in found:
        listed.append(_shown(site, visitor, job, lane))
        await asyncio.sleep(0)
    return listed


async def _mine(request: Request, visitor: Visitor) -> Job:
    """The job that is asked for; what is not theirs is as if it were not there."""
    job = await stored.job(site_of(request).parts.store, int(request.path_params["id"]))
    if job is None or not (visitor.admin or visitor.is_me(job.person)):
        raise Bad("There is no such job, or it is somebody else's.", 404)
    return job


def _shown(site: Site, visitor: Visitor, job: Job, lane: LaneRow | None) -> Json:
    """A job as the page and its API show it; instants on the clocks of who looks."""
    zone, now = zone_of(site, visitor), site.clock.now()
    found = coming(job)
    late = job_limits(site.settings).catch_up
    return as_json(job) | {
        "noun": job_words.NOUNS[job.kind],
        "watch": job.what,
        "said": job.said,
        "title": straight(lane.title) if lane else "",
        "chat": channel_of(job.lane) == LOCAL and visitor.is_me(lane.owner) if lane else False,
        "ended": job.state.ended,
        "away": not job.state.ended and channel_of(job.lane) not in site.parts.here,
        "name": name_of(site, job.person),
        "mine": visitor.is_me(job.person),
        "coming": _coming(found, zone, now),
        "last_said": said(job.last_due, zone, now) if job.last_due else "",
        "until_said": said(job.until, zone, now) if job.until else "",
        "waits": job.turn is None and job.asked_at is not None,
        "over": job.state is JobState.ACTIVE and job.next_at is None and job.turn is not None,
        "tone": tone(job.last_result),
        "manner": watch_words.manner(job) if job.what else job_words.manner(job, late),
        "verbs": verbs(job),
    }


def _coming(found: Sequence[int], zone: str, now: int) -> list[Json]:
    """The next instants; with seconds where several lie in a minute."""
    exact = any(after - before < 60_000 for before, after in pairwise(found))
    return [{"at": iso(at, zone), "said": said(at, zone, now, exact=exact)} for at in found]


def tone(result: str) -> str:
    """How a result is coloured."""
    if result.startswith(("failed", "missed", "interrupted", "stopped")):
        return "bad"
    if result.startswith(("skipped", "late")):
        return "warn"
    return "good" if result else ""


def _past(site: Site, one: FiringRow, zone: str) -> Json:
    return {
        "due": iso(one.due, zone),
        "said": said(one.due, zone, site.clock.now()),
        "state": one.state.value,
        "turn": one.turn,
        "missed": one.missed,
        "result": one.result or one.state.value,
        "tone": tone(one.result),
    }


async def _choices(site: Site, visitor: Visitor) -> list[Json]:
    """The threads that somebody may have work done in, the newest first."""
    mine = await theirs.lanes_of(site, visitor)
    rows = await reads.lane_list(site.parts.store) if mine is None else list(mine.values())
    people, here = site.parts.people, site.parts.here
    rows = [row for row in rows if row.direct or people.listed(row.address)]
    rows = [row for row in rows if row.address.channel in here]
    return [
        {"lane": row.id, "title": straight(row.title) or row.id}
        for row in sorted(rows, key=lambda row: (-row.ended_at, row.id))[:CHOICES]
    ]


# What is changed -----------------------------------------------------------------------------


async def _make(one_by_one: asyncio.Lock, request: Request, visitor: Visitor) -> Response:
    """A new job in a lane that they may see; many at once pass no limit together."""
    site = site_of(request)
    lane = await theirs.belonging(site, text(request, "lane", 500))
    if lane is None or not theirs.sees(site.parts.people, visitor, lane):
        raise Bad("There is no such thread, or it is not yours. Choose one of the list.", 404)
    if not (lane.row.direct or site.parts.people.listed(lane.row.address)):
        raise Bad("Nobody may talk to me in that place. An admin can allow it on the people page.")
    if lane.row.address.channel not in site.parts.here:
        raise Bad("The platform of that thread is not set up: nothing could be said there.")
    wish = _wish(request)
    person = _person(site, visitor, lane, wish)
    desk = _desk(site)
    try:
        wanted = desk.asked(wish, person, zone_of(site, visitor))
        mine = (visitor.person, *visitor.linked)
        async with one_by_one:
            job = await desk.add(wanted, lane.row.id, person, mine)
    except BadWhen as refused:
        raise Bad(str(refused)) from refused
    return JSONResponse(_shown(site, visitor, job, lane.row), status_code=201)


def _person(site: Site, visitor: Visitor, lane: theirs.Belonging, wish: Wish) -> str:
    """Whose the job is: who somebody is in that thread, if that identity has what it takes."""
    there = theirs.as_in(visitor, lane)
    role = site.parts.people.role(there)
    enough = role is Role.ADMIN or (role and not (wish.watch and visitor.admin))
    return there if enough else visitor.person


async def _when(request: Request, visitor: Visitor) -> Response:
    """What a WHEN, or a whole watch, means: the next times, or why there are none."""
    site = site_of(request)
    zone = zone_of(site, visitor)
    wish = _wish(request, prompt=ANY)
    try:
        wanted = _desk(site).asked(wish, visitor.person, zone)
    except BadWhen as refused:
        raise Bad(str(refused)) from refused
    now = site.clock.now()
    found = upcoming(wanted.plan, now, NEXT)
    until = getattr(wanted, "until", None)
    return JSONResponse(
        {
            "coming": _coming(found, zone, now),
            "until": said(until, zone, now) if until else "",
            "once": wanted.plan.once,
            "zone": zone,
        }
    )


async def _change(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    job = await _mine(request, visitor)
    verb = text(request, "do", 20)
    if verb not in VERBS:
        raise Bad(f"Say what to do with job {job.id}: {', '.join(VERBS)}.")
    mine = visitor.is_me(job.person)
    answer = await _desk(site).change(job, verb, visitor.person, zone_of(site, visitor), mine)
    if not answer.rows:
        raise Bad(answer.text, 409)
    after = await stored.job(site.parts.store, job.id) or job
    lanes = await stored.lanes(site.parts.store, [after.lane])
    shown = _shown(site, visitor, after, lanes.get(after.lane))
    return JSONResponse({"said": answer.text, "job": shown})


def _wish(request: Request, prompt: str = "") -> Wish:
    body: Mapping[str, Any] = request.state.body
    each = body.get("each_time", False)
    if not isinstance(each, bool):
        raise Bad("each_time is true or false")

    def part(name: str, most: int = 200) -> str:
        return text(request, name, most, needed=False)

    return Wish(
        when=part("when"),
        prompt=prompt or part("prompt", 20_000),
        watch=part("watch", 5000),
        until=part("until"),
        each_time=each,
        catch_up=part("catch_up"),
        if_busy=part("if_busy"),
        budget=part("budget"),
    )


def _desk(site: Site) -> JobDesk:
    parts, settings = site.parts, site.settings
    return JobDesk(
        parts.store, parts.people, job_limits(settings), zone_name(settings), parts.runner.take,
        parts.jobs_changed,
    )  # fmt: skip
