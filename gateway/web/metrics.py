"""``GET /metrics``: for whoever watches the gateway, by a token, or as an admin."""

from __future__ import annotations

import asyncio
import importlib

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.store.errors import ReadFailed
from gateway.web.access import watched
from gateway.web.site import site_of


def routes() -> list[Route]:
    return [watched("/metrics", _metrics, lambda settings: settings.metrics_token)]


async def _metrics(request: Request) -> Response:
    # The library costs a third of a second and some megabytes, which only those pay who ask.
    metrics = await asyncio.to_thread(importlib.import_module, "gateway.metrics")
    site = site_of(request)
    try:
        stored = await metrics.look(site.parts.store, site.clock.now())
    except ReadFailed:
        stored = None  # the rest is told all the same, also that the store is troubled
    text = metrics.exposition(site.parts, stored, not site.reasons(), site.hub.open_streams)
    return Response(text, media_type=metrics.CONTENT_TYPE)
