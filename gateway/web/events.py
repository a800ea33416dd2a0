"""``GET /api/events``: what somebody may see, as it happens, by server-sent events.

A stream ends when its person signs out or loses the right, when they are something else now, when
it falls behind, and at the end of the gateway; the browser comes back by itself, and begins with
the whole state again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from core.lane_ids import LOCAL
from gateway.web import theirs
from gateway.web.access import Bad, Who, api, visitor_of
from gateway.web.hub import Hub, Stream, TooMany
from gateway.web.site import site_of
from gateway.web.visitor import Visitor

HEARTBEAT = 15.0  # seconds; at least so often it is looked whether somebody may still see this
STUCK = 30.0  # seconds after which a browser that takes nothing is gone
_BEAT = b": still here\n\n"
_AGAIN = b"retry: 1000\n\n"  # ms after which a browser comes back


def routes() -> list[Route]:
    return [api("/api/events", _events, who=Who.MEMBERS)]


async def _events(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    lane = request.query_params.get("lane", "")
    if lane:
        found = await theirs.belonging(site, lane)
        if found is not None and (
            found.row.address.channel != LOCAL or not theirs.sees(site.parts.people, visitor, found)
        ):
            raise Bad("there is no such thread", 404)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    try:
        stream = site.hub.open(visitor, lane)
    except TooMany as fault:
        raise Bad(str(fault), 503) from fault
    return Events(request, site.hub, stream)


class Events(Response):
    """An answer that goes on until one of both sides ends it."""

    def __init__(self, request: Request, hub: Hub, stream: Stream) -> None:
        super().__init__(media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._request = request
        self._hub = hub
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                leaving = group.create_task(self._left(receive), name="browser leaves")
                beating = group.create_task(self._beat(), name="heartbeat of the page")
                with suppress(TimeoutError):
                    await self._send(send)
                leaving.cancel()
                beating.cancel()
        finally:
            self._hub.leave(self._stream)

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": _AGAIN, "more_body": True})
        while (event := await self._stream.get()) is not None:
            async with asyncio.timeout(STUCK):
                await send({"type": "http.response.body", "body": event, "more_body": True})
        async with asyncio.timeout(STUCK):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _left(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.end()

    async def _beat(self) -> None:
        """Say now and then that we are here, and look whether somebody still may be."""
        stream = self._stream
        while not stream.over:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT):
                    await stream.doubted.wait()
            stream.doubted.clear()
            if await visitor_of(self._request) != stream.visitor:
                stream.end()  # somebody else now, or nobody
            else:
                stream.put(_BEAT)
