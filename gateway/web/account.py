"""The page of one's own account: where one is signed in, and the time zone one's times are in."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from zoneinfo import available_timezones

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.store import roster
from core.store.web import Signin
from core.when import BadWhen
from core.when.grammar import named_zone
from gateway.web import cookies
from gateway.web.access import Bad, Who, api, page, text
from gateway.web.rendering import html
from gateway.web.site import Site, site_of
from gateway.web.visitor import Visitor

_SHOWN = 16  # signs of a sign-in's id that the page knows it by


def routes() -> list[Route]:
    return [
        page("/account", _page, Who.MEMBERS),
        api("/api/account/end", _end, ("POST",), Who.MEMBERS),
        api("/api/account/end-others", _end_others, ("POST",), Who.MEMBERS),
        api("/api/account/zone", _zone, ("POST",), Who.MEMBERS),
    ]


@cache
def zones() -> tuple[str, ...]:
    """Every zone that people may name, without the ones that exist for old programs only."""
    named = (zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/"))
    return ("UTC", *sorted(named))


async def _page(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    browsers = [_place(row, visitor) for row in await site.accounts.listed(visitor.person)]
    return html(
        request, "account.html", visitor,
        browsers=sorted(browsers, key=lambda one: not one["here"]),
        zone=_zone_of(site, visitor), zones=zones(), standard=str(site.settings.timezone),
    )  # fmt: skip


def _place(row: Signin, visitor: Visitor) -> dict[str, object]:
    return {
        "id": row.id[:_SHOWN],
        "here": row.id == visitor.signin,
        "browser": row.browser or "a browser",
        "network": row.network,
        "since": _iso(row.opened_at),
        "seen": _iso(row.seen_at),
    }


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")


def _zone_of(site: Site, visitor: Visitor) -> str:
    return site.parts.people.person(visitor.person, "").zone


async def _end(request: Request, visitor: Visitor) -> Response:
    """End one of one's own sign-ins, and no other's."""
    wanted = text(request, "id", _SHOWN)
    accounts = site_of(request).accounts
    mine = [row.id for row in await accounts.listed(visitor.person) if row.id[:_SHOWN] == wanted]
    if not mine:
        raise Bad("this sign-in is over already", 404)
    await accounts.close(mine[0], visitor.person)
    response = JSONResponse({"ended": wanted, "here": mine[0] == visitor.signin})
    if mine[0] == visitor.signin:
        cookies.sign_out(request, response)
    return response


async def _end_others(request: Request, visitor: Visitor) -> Response:
    ended = await site_of(request).accounts.close_others(visitor.person, visitor.signin)
    return JSONResponse({"ended": ended})


async def _zone(request: Request, visitor: Visitor) -> Response:
    """Name one's time zone; empty: the gateway's own again."""
    zone, site = text(request, "zone", 64), site_of(request)
    if zone:
        try:
            zone = named_zone(zone).key
        except BadWhen as refusal:
            raise Bad(str(refusal)) from None
    store = site.parts.store
    await store.save(roster.person_zone(visitor.person, zone, site.clock.now()))
    await site.parts.people.load(store)
    return JSONResponse({"zone": zone})
