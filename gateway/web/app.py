"""The HTTP side: health for supervisors. Pages and sign-in are routes of the same application.

It asks the gateway for its state and must not know how that state comes about.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


def application(reasons: Callable[[], Sequence[str]]) -> Starlette:
    """``reasons``: why the gateway cannot do its work now, in plain words; empty when it can."""

    async def healthz(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> JSONResponse:
        why = list(reasons())
        body = {"status": "not ready" if why else "ready", "reasons": why}
        return JSONResponse(body, status_code=503 if why else 200)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)])


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
