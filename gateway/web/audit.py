"""The page of what admins did: who, what and when, the newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.store import jobs, roster, web
from core.store.web import Act
from gateway.editors import label_of
from gateway.settings_table import table
from gateway.web.access import Bad, api, page
from gateway.web.naming import name_of, straight
from gateway.web.rendering import html
from gateway.web.site import Site, site_of
from gateway.web.times import iso, said, zone_of
from gateway.web.visitor import Visitor

Json = dict[str, Any]
SHOWN = 100  # acts on one page
NEWEST = 2**62
LABELS = {setting.name: label_of(setting) for setting in table()}
ITSELF = "gateway"  # did it, and nobody else
# What the words of the store mean.
WORDS = {
    "all.paused": "paused everything",
    "all.resumed": "let everything run again",
    "approval.allowed": "allowed a command",
    "approval.always": "allowed a command for always",
    "approval.denied": "denied a command",
    "approvals.set": "set when a thread asks",
    "backup.released": "let go of what a restored backup held back",
    "engine.chosen": "chose the engine of a thread",
    "engine.paused": "paused an engine",
    "engine.resumed": "let an engine run again",
    "job.cancel": "cancelled a job of somebody else",
    "job.pause": "paused a job of somebody else",
    "job.resume": "resumed a job of somebody else",
    "job.run": "ran a job of somebody else",
    "link.made": "made a chat part of an account",
    "link.moved": "moved a chat to another account",
    "link.removed": "took a chat out of an account",
    "person.added": "added a person",
    "person.let_in": "let a person in",
    "person.refused": "refused a person",
    "person.removed": "removed a person",
    "person.role": "changed a role",
    "place.allowed": "allowed a place",
    "place.removed": "removed a place",
    "rule.revoked": "revoked what was always allowed",
    "setting.saved": "changed a setting",
    "signin.closed": "ended a sign-in",
    "signin.link_made": "made a link to sign in",
    "signin.opened": "signed in",
    "signin.refused": "refused sign-ins",
    "signin.ended": "ended a sign-in of somebody",
    "thread.paused": "paused a thread",
    "thread.resumed": "let a thread run again",
    "workspace.chosen": "chose the folder of a thread",
}


def routes() -> list[Route]:
    return [page("/audit", _page), api("/api/audit", _list)]


async def _page(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    person, act, before = _asked(request)
    found = await web.acts(site.parts.store, before, SHOWN + 1, person, act)
    zone = zone_of(site, visitor)
    people, kinds = await web.actors(site.parts.store)
    acts = await _acts(site, found[:SHOWN], zone)
    return html(
        request, "audit.html", visitor,
        acts=acts,
        older=found[SHOWN - 1].id if len(found) > SHOWN else None,
        first=before == NEWEST, person=person, act=act, zone=zone,
        people=sorted(((one, _who(site, one)) for one in people), key=lambda pair: pair[1].lower()),
        kinds=sorted(((one, words(one)) for one in kinds), key=lambda pair: pair[1]),
    )  # fmt: skip


async def _list(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    person, act, before = _asked(request)
    found = await web.acts(site.parts.store, before, SHOWN + 1, person, act)
    zone = zone_of(site, visitor)
    return JSONResponse(
        {
            "acts": await _acts(site, found[:SHOWN], zone),
            "older": found[SHOWN - 1].id if len(found) > SHOWN else None,
        }
    )


def words(act: str) -> str:
    """What an act is called; one of a version that knows more is at least readable."""
    return WORDS.get(act, act.replace(".", " ").replace("_", " "))


def _asked(request: Request) -> tuple[str, str, int]:
    """Of whom, which kind, and older than which one."""
    query = request.query_params
    before = query.get("before", "")
    if before and not (before.isascii() and before.isdigit() and len(before) <= 18):
        raise Bad("before is the number of an act.")
    return query.get("person", ""), query.get("act", ""), int(before or NEWEST)


async def _acts(site: Site, found: Sequence[Act], zone: str) -> list[Json]:
    """With the names of the threads, places and people that they are about."""
    lanes = await jobs.lanes(site.parts.store, {one.about for one in found if one.about})
    titles = {lane.id: straight(lane.title) for lane in lanes.values() if lane.title}
    titles |= {row.id: straight(row.title) for row in await roster.places(site.parts.store)}
    return [_shown(site, one, zone, titles) for one in found]


def _shown(site: Site, one: Act, zone: str, titles: Mapping[str, str]) -> Json:
    about = name_of(site, one.about) if ":" in one.about else LABELS.get(one.about, one.about)
    about, detail = titles.get(one.about) or about, one.detail
    if one.act.startswith("place.") and detail:
        about, detail = straight(detail), one.about  # as it was called then; by its id beside it
    return {
        "id": one.id,
        "at": iso(one.at, zone),
        "said": said(one.at, zone, site.clock.now()),
        "person": one.person,
        "name": _who(site, one.person),
        "act": one.act,
        "words": words(one.act),
        "about": one.about,
        "about_name": about,
        "detail": detail,
    }


def _who(site: Site, person: str) -> str:
    return "the gateway itself" if person in ("", ITSELF) else name_of(site, person)
