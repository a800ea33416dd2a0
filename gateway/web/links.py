"""The chats that are part of one's own account: a code for a new one, and the end of a link."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.linking import shown_code
from core.store import web
from gateway.web.access import Who, api, text
from gateway.web.naming import name_of
from gateway.web.people import unlinked
from gateway.web.site import site_of
from gateway.web.times import iso, said, zone_of
from gateway.web.visitor import Visitor


def routes() -> list[Route]:
    return [
        api("/api/account/links", _list, who=Who.MEMBERS),
        api("/api/account/links/code", _code, ("POST",), Who.MEMBERS),
        api("/api/account/links/remove", _remove, ("POST",), Who.MEMBERS),
    ]


async def _list(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    zone, now = zone_of(site, visitor), site.clock.now()
    mine = [one for one in await web.links(site.parts.store) if one.account == visitor.person]
    return JSONResponse(
        {
            "chats": [
                {
                    "identity": one.identity,
                    "name": name_of(site, one.identity),
                    "since": said(one.at, zone, now),
                }
                for one in mine
            ]
        }
    )


async def _code(request: Request, visitor: Visitor) -> Response:
    """A new code; the one before it is good no more."""
    site = site_of(request)
    made = site.parts.intake.ground.linking.new(visitor.person)
    return JSONResponse(
        {"code": shown_code(made.code), "until": iso(made.until, zone_of(site, visitor))}
    )


async def _remove(request: Request, visitor: Visitor) -> Response:
    """End a link of one's own."""
    site, identity = site_of(request), text(request, "identity", 200)
    told = await unlinked(site, visitor, identity, lambda one: one.account == visitor.person)
    return JSONResponse({"said": told})
