"""The HTTP side: health for supervisors. Pages and sign-in are routes of the same application.

It asks the gateway for its state and must not know how that state comes about.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

log = logging.getLogger("laneway.web")


def application(reasons: Callable[[], Sequence[str]]) -> Starlette:
    """``reasons``: why the gateway cannot do its work now, in plain words; empty when it can."""

    async def healthz(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> JSONResponse:
        why = list(reasons())
        body = {"status": "not ready" if why else "ready", "reasons": why}
        return JSONResponse(body, status_code=503 if why else 200)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)])


class PortTaken(Exception):
    """The web address cannot be used; the message says which and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """The listening socket, taken before anything else starts, so that a clash is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as fault:
        reason = fault.strerror or str(fault)
        raise PortTaken(
            f"cannot listen on {host}:{port} ({reason}). Is another gateway running? "
            "Choose another address with LANEWAY_WEB_HOST and LANEWAY_WEB_PORT."
        ) from fault


async def serve(app: Starlette, listener: socket.socket) -> None:
    """Serve until cancelled.

    Not uvicorn's own `serve`: that takes the process's signal handlers, and wakes ten times a
    second to keep a Date header that nobody here reads.
    """
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", date_header=False,
        server_header=False, timeout_graceful_shutdown=2,
    )  # fmt: skip
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        await asyncio.Event().wait()
    finally:
        await server.shutdown(sockets=[listener])
