"""The cookies of the page: what they are called, how long they are kept, who can read them.

No script can read them and no other site's page makes the browser send them with a change. By
https they carry the prefix with which a browser takes them from this host alone.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from gateway.web.access import cookie_name
from gateway.web.signins import BROWSERS_MOST, DEVICE_LASTS, Opened, is_name
from gateway.web.site import site_of

DAY = 86_400  # seconds
SESSION_KEPT = 180 * DAY  # how long it is good is decided here, not by the browser
NAME_KEPT = DAY


def session_token(request: Request) -> str:
    return request.cookies.get(cookie_name(site_of(request).https), "")


def device_of(request: Request) -> str:
    return request.cookies.get(_called(request, "device"), "")


def names_of(request: Request) -> tuple[str, ...]:
    """The names by which this browser asked for codes.

    There are several when two tabs asked at once before either had one: each keeps its own.
    """
    kept = request.cookies
    named = [kept[cookie] for cookie in _asked(request) if is_name(kept[cookie])]
    return tuple(named[:BROWSERS_MOST])


def _asked(request: Request) -> list[str]:
    ours = re.compile(re.escape(_called(request, "asked")) + r"-[0-9a-f]{8}")
    return sorted(filter(ours.fullmatch, request.cookies))


def keep_name(request: Request, response: Response, name: str) -> None:
    """Let the browser keep the name by which it asks."""
    _set(request, response, f"asked-{_mark(name)}", name, NAME_KEPT)


def sign_in(request: Request, response: Response, opened: Opened) -> None:
    """The browser is signed in, and known as one that was."""
    site = site_of(request)
    _put(response, cookie_name(site.https), opened.token, SESSION_KEPT, site.https)
    _set(request, response, "device", opened.device, DEVICE_LASTS)
    for name in _asked(request):
        _put(response, name, "", 0, site.https)


def sign_out(request: Request, response: Response) -> None:
    site = site_of(request)
    _put(response, cookie_name(site.https), "", 0, site.https)


def _mark(name: str) -> str:
    return name.encode().hex()[:8]


def _called(request: Request, what: str) -> str:
    return f"{cookie_name(site_of(request).https)}-{what}"


def _set(request: Request, response: Response, what: str, value: str, kept: int) -> None:
    _put(response, _called(request, what), value, kept, site_of(request).https)


def _put(response: Response, name: str, value: str, kept: int, https: bool) -> None:
    response.set_cookie(
        name, value, max_age=kept, path="/", secure=https, httponly=True, samesite="lax"
    )
