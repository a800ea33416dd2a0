"""The web application: every route, and how it is served. What a route does stands in its own file.

Loaded when the channels listen already: it costs a tenth of a second, and they come first.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from channels.local.channel import LocalChannel
from core.clock import Clock
from gateway.config import Settings
from gateway.living import Living
from gateway.parts import Parts
from gateway.web import (
    access,
    account,
    audit,
    chat,
    events,
    files,
    health,
    hooks,
    jobs,
    lanes,
    links,
    metrics,
    people,
    rendering,
    settings,
    signin,
    usage,
    wrong,
)
from gateway.web.access import open_api, page, rule_of
from gateway.web.accounts import Accounts
from gateway.web.headers import Headers
from gateway.web.hub import Hub
from gateway.web.post import Post
from gateway.web.serving import Patient
from gateway.web.signins import Signins
from gateway.web.site import Site
from gateway.web.visitor import Visitor

Routes = Callable[[], list[Route]]
AREAS: tuple[Routes, ...] = (
    health.routes,
    hooks.routes,
    metrics.routes,
    signin.routes,
    account.routes,
    settings.routes,
    chat.routes,
    events.routes,
    files.routes,
    lanes.routes,
    jobs.routes,
    usage.routes,
    people.routes,
    audit.routes,
    links.routes,
)


def all_routes() -> list[Route]:
    """Every route. One that was not made by ``access`` is refused here: it would have no rule."""
    routes = [
        page("/", _home, access.Who.MEMBERS),
        open_api("/static/{version}/{name}", rendering.static),
        *(route for area in AREAS for route in area()),
    ]
    for route in routes:
        rule_of(route)
    return routes


def application(site: Site) -> Starlette:
    """All of it."""
    app = Starlette(
        routes=all_routes(),
        middleware=[Middleware(Headers, https=lambda: site.https)],
        exception_handlers={HTTPException: wrong.routeless},
    )
    app.state.site = site
    app.router.redirect_slashes = False  # it would lead to whatever host the request names
    return app


def make_site(
    living: Living,
    parts: Parts,
    local: LocalChannel,
    clock: Clock,
    reasons: Callable[[], list[str]],
) -> Site:
    """What the routes work with."""
    accounts = Accounts(parts.store, parts.people, clock)
    post = Post(lambda: living.settings, clock)
    signins = Signins(
        parts.store, accounts, living.keys, clock, lambda: living.settings.signin_limits,
        post.deliver,
    )  # fmt: skip
    site = Site(
        living.settings, parts, local, clock, living.keys, accounts, reasons, living, signins, post
    )

    site.hub = Hub(site)
    accounts.on_ended = site.hub.doubt

    async def renewed(_: Settings, new: Settings) -> None:
        site.settings = new
        site.hub.doubt()

    living.on_change(renewed)
    return site


async def _home(request: Request, visitor: Visitor) -> Response:
    return RedirectResponse("/chat", status_code=303)


async def live(site: Site, listener: socket.socket) -> None:
    """Serve the page, and do what it does beside requests, until cancelled."""
    await site.accounts.begin()
    await site.signins.load()
    async with asyncio.TaskGroup() as group:
        group.create_task(site.post.run(), name="mail")
        group.create_task(site.hub.run(), name="live page")
        await serve(application(site), listener, site.hub.close)


async def serve(
    app: ASGIApp, listener: socket.socket, leaving: Callable[[], None] = lambda: None
) -> None:
    """Serve until cancelled. ``leaving`` ends what would go on for ever.

    Not uvicorn's own `serve`: that takes the process's signal handlers, and wakes ten times a
    second to keep a Date header that nobody here reads.
    """
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", date_header=False,
        server_header=False, timeout_graceful_shutdown=2, proxy_headers=False,
        http=Patient, ws="none",
    )  # fmt: skip
    config.load()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # not each noise on the wire
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        await asyncio.Event().wait()
    finally:
        leaving()
        await _leave(server, listener)


async def _leave(server: uvicorn.Server, listener: socket.socket) -> None:
    """As uvicorn leaves, which waits a tenth of a second even when nobody is connected."""
    for one in server.servers:
        one.close()
    await asyncio.sleep(0)  # a connection that was just taken is known after this
    if server.server_state.connections or server.server_state.tasks:
        await server.shutdown(sockets=[listener])
    else:
        listener.close()
