"""Who may use a route, decided in one place and before anything else of the request is looked at.

Every route of the application is made by ``page``, ``api`` or ``open_api``; one that says nothing
is for admins. What changes something needs the page's own origin and JSON, whatever the route.
It must not know what a route does.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from core.store.errors import Closed
from gateway.config import Settings
from gateway.values import Secret
from gateway.web import wrong
from gateway.web.rendering import html
from gateway.web.site import site_of
from gateway.web.visitor import Visitor

log = logging.getLogger("laneway.web")

COOKIE = "laneway"
BODY_MOST = 64 * 1024  # bytes of JSON that a route takes, where it says nothing
REST_WITHIN = 2.0  # seconds for what still comes of a body that is refused
BODY_WITHIN = 20.0  # seconds in which a body has to be here
READING = frozenset({"GET", "HEAD"})

Handler = Callable[[Request, Visitor], Awaitable[Response]]
Open = Callable[[Request], Awaitable[Response]]
Bearer = Callable[[Settings], Secret]


class _Number(IntegerConvertor):
    """Only what something stored can have: what is longer than any number breaks nothing."""

    regex = "[0-9]{1,18}"


register_url_convertor("int", _Number())


class Who(StrEnum):
    """For whom a route is."""

    ANYONE = "anyone"
    MEMBERS = "everybody who is signed in"
    ADMINS = "admins"


class Kind(StrEnum):
    """How a refusal is said, and what is asked of a change."""

    PAGE = "page"
    JSON = "json"
    RAW = "raw"  # a body of another type; it has rules of its own


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route says about itself; also what the walk over all routes reads."""

    who: Who
    kind: Kind
    methods: frozenset[str]
    body: int
    bearer: Bearer | None = None  # a token that lets in as well, if it is set


class Bad(Exception):
    """The request cannot be carried out; the message says why, in plain words."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def page(path: str, handler: Handler, who: Who = Who.ADMINS) -> Route:
    """A page; somebody who is not signed in is asked to, and led back."""
    return _route(path, Rule(who, Kind.PAGE, READING, 0), handler)


def api(
    path: str,
    handler: Handler,
    methods: Iterable[str] = ("GET",),
    who: Who = Who.ADMINS,
    body: int = BODY_MOST,
    raw: bool = False,
) -> Route:
    """JSON in and out. ``raw``: the body is another type, and the handler reads it itself."""
    kind = Kind.RAW if raw else Kind.JSON
    return _route(path, Rule(who, kind, frozenset(methods), body), handler)


def watched(path: str, handler: Open, bearer: Bearer) -> Route:
    """For admins, and for a machine that shows the token of the settings, if one is set."""

    async def handle(request: Request, _: Visitor | None) -> Response:
        return await handler(request)

    return _route(path, Rule(Who.ADMINS, Kind.JSON, READING, 0, bearer), handle)


def open_api(
    path: str,
    handler: Open,
    methods: Iterable[str] = ("GET",),
    kind: Kind = Kind.JSON,
    body: int = BODY_MOST,
) -> Route:
    """For anyone, signed in or not; its handler is told nobody's name.

    ``Kind.RAW``: it is called by machines, and proves itself in another way than by its origin.
    """

    async def handle(request: Request, _: Visitor | None) -> Response:
        return await handler(request)

    return _route(path, Rule(Who.ANYONE, kind, frozenset(methods), body), handle)


def rule_of(route: Route) -> Rule:
    """The rule of a route that was made here; AttributeError for any other."""
    rule: Rule = route.endpoint.rule  # type: ignore[attr-defined]  # set below
    return rule


def _route(path: str, rule: Rule, handler: Callable[[Request, Any], Awaitable[Response]]) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            if {"content-length", "transfer-encoding"} <= set(request.headers):
                raise Bad("say in one way how long the request is")
            if rule.bearer and _bears(request, rule.bearer(site_of(request).settings)):
                return await handler(request, None)
            visitor = None if rule.who is Who.ANYONE else await visitor_of(request)
            if refusal := _refused(request, rule, visitor):
                return refusal
            if rule.kind is Kind.JSON and request.method not in READING:
                request.state.body = await _json(request, rule)
            return await handler(request, visitor)
        except Bad as bad:
            await _rest(request)
            return wrong.answer(request, str(bad), bad.status)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody is there to read it
        except Closed as closed:
            return wrong.answer(request, str(closed), 503)
        except Exception:  # the border to whoever asks: they are told, and nothing more
            log.exception("%s %s broke", request.method, path)
            return wrong.answer(request, wrong.BROKE, 500)

    endpoint.rule = rule  # type: ignore[attr-defined]  # read by the walk over all routes
    return Route(path, endpoint, methods=sorted(rule.methods))


async def visitor_of(request: Request) -> Visitor | None:
    """Who is signed in, if anyone."""
    token = request.cookies.get(cookie_name(site_of(request).https), "")
    return await site_of(request).accounts.visitor(token)


def cookie_name(https: bool) -> str:
    return f"__Host-{COOKIE}" if https else COOKIE


def _bears(request: Request, secret: Secret) -> bool:
    """Whether a request shows this token; in a time that tells nothing about it."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode(), secret.reveal().encode())
    return bool(secret) and scheme.lower() == "bearer" and right


def _refused(request: Request, rule: Rule, visitor: Visitor | None) -> Response | None:
    if request.method not in READING and not _from_here(request, rule):
        return _no("this page is somewhere else; open the gateway's own address and try again", 403)
    if rule.who is Who.ANYONE:
        return None
    if visitor is None:
        if rule.kind is Kind.PAGE:
            back = quote(request.url.path, safe="/")
            return RedirectResponse(f"/signin?next={back}", status_code=303)
        refusal = _no("you are not signed in; sign in and try again", 401)
        if rule.bearer:
            refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal
    if rule.who is Who.ADMINS and not visitor.admin:
        if rule.kind is Kind.PAGE:
            return html(request, "refused.html", visitor, status=403)
        return _no("only admins can see or change this", 403)
    return None


def _from_here(request: Request, rule: Rule) -> bool:
    """Whether a change may come from where it comes from.

    Machines prove themselves in another way. Signing in needs no browser: what no browser sends
    says nothing of a page, and a page of another site cannot send JSON here, nor without saying so.
    """
    if rule.who is not Who.ANYONE:
        return own_origin(request)
    said = any(name in request.headers for name in ("origin", "sec-fetch-site"))
    return rule.kind is Kind.RAW or not said or own_origin(request)


def own_origin(request: Request) -> bool:
    """Whether a request comes from a page of ours: its origin, or the browser's word for it."""
    site, origin = site_of(request), request.headers.get("origin")
    if origin is not None:
        own = (site.origin(request), site.local_origin(request))
        return bool(origin) and origin.lower() in own
    return request.headers.get("sec-fetch-site") == "same-origin"


def _no(why: str, status: int) -> JSONResponse:
    return JSONResponse({"error": why}, status_code=status)


async def _json(request: Request, rule: Rule) -> Mapping[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Bad("send JSON (Content-Type: application/json)", 415)
    raw = await limited(request, rule.body)
    try:
        # JSON is UTF-8; json.loads would guess others of bytes, and let halves of characters in.
        body = json.loads(raw.decode("utf-8-sig") or "{}")
    except (ValueError, RecursionError):
        raise Bad("this is not JSON") from None
    if not isinstance(body, dict):
        raise Bad("send a JSON object")
    return _whole_characters(body) if b"\\ud" in raw.lower() else body


def _whole_characters(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same without halves of characters, which nothing can store."""
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    whole: Mapping[str, Any] = json.loads(text)
    return whole


async def limited(request: Request, most: int) -> bytes:
    """The body, never read beyond ``most`` bytes, nor for longer than BODY_WITHIN."""
    too_long = Bad(f"this is longer than {most} bytes", 413)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        raise too_long
    read = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN):
            async for chunk in request.stream():
                read += chunk
                if len(read) > most:
                    raise too_long
    except TimeoutError:
        raise Bad("this came too slowly; try again", 408) from None
    return bytes(read)


async def _rest(request: Request) -> None:
    """Throw away what comes of a refused body, where the answer closes the connection.

    Whoever is still sending then would see a broken connection instead of the answer; where the
    connection stays, the rest is thrown away after the answer.
    """
    if "close" not in request.headers.get("connection", "").lower():
        return
    if not {"content-length", "transfer-encoding"} & set(request.headers):
        return
    with suppress(TimeoutError, RuntimeError, ClientDisconnect):  # all of it was read already
        async with asyncio.timeout(REST_WITHIN):
            async for _ in request.stream():
                pass


def text(request: Request, name: str, most: int = 4000, *, needed: bool = True) -> str:
    """A text of the JSON body, or Bad."""
    value = request.state.body.get(name, None if needed else "")
    if not isinstance(value, str):
        raise Bad(f"{name} is missing, or is no text")
    if len(value) > most:
        raise Bad(f"{name} is longer than {most} characters")
    return value
