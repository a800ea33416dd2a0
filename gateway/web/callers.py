"""The browser behind a request, as signing in sees it."""

from __future__ import annotations

from starlette.requests import Request

from gateway.web.browsers import browser_name
from gateway.web.cookies import device_of, names_of, session_token
from gateway.web.peer import network, peer
from gateway.web.signins import Caller
from gateway.web.site import site_of


def address_of(request: Request) -> str:
    """From where a request comes; only trusted proxies are believed when they say it."""
    remote = request.client.host if request.client else ""
    forwarded = request.headers.getlist("x-forwarded-for")
    return peer(remote, forwarded, site_of(request).settings.trusted_proxies)


def caller_of(request: Request, *new: str) -> Caller:
    """``new``: the name this browser gets, where it has none."""
    address = address_of(request)
    return Caller(
        address,
        network(address),
        browser_name(request.headers.get("user-agent", "")),
        names_of(request) or new,
        device_of(request),
        session_token(request),
    )
