"""Whether the gateway lives and can do its work, for supervisors and load balancers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.web.access import open_api
from gateway.web.site import site_of


def routes() -> list[Route]:
    return [open_api("/healthz", _healthz), open_api("/readyz", _readyz)]


async def _healthz(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _readyz(request: Request) -> Response:
    why = site_of(request).reasons()
    body = {"status": "not ready" if why else "ready", "reasons": why}
    return JSONResponse(body, status_code=503 if why else 200)
