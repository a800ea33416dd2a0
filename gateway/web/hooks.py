"""Where platforms post what happened: the body is read for those who may post, and handed on.

What proves that it is the platform, and what a post means, its channel knows alone.
"""

from __future__ import annotations

import asyncio
import logging

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.channel import Hook, Hooked, Reply, Took
from gateway.web.access import Bad, Kind, limited, open_api
from gateway.web.site import site_of

log = logging.getLogger("laneway.web")

BODY_MOST = 1_048_576  # bytes
AT_ONCE = 32  # posts that are read or stored; a signature is known to be good only afterwards
COME_AGAIN = 5  # seconds, where a channel says nothing of it
TELL_EVERY = 600.0  # seconds between two lines of the log about who may not post


def routes() -> list[Route]:
    posts = _Posts()
    return [
        open_api("/hooks/{channel}", posts.take, ("POST",), kind=Kind.RAW, body=BODY_MOST),
    ]


class _Posts:
    def __init__(self) -> None:
        self._under_way = 0
        self._reading: dict[asyncio.Timeout, None] = {}  # bodies that come, the first one first
        self._told: dict[str, float] = {}  # channel: when its refusals were last told of

    async def take(self, request: Request) -> Response:
        hook = _hook(request)
        if hook is None:
            raise Bad("nothing is posted here: this platform is not set up to", 404)
        headers = dict(request.headers)
        if not hook.lets_in(headers):
            raise self._not_ours(request)
        if self._under_way >= AT_ONCE and not self._made_room():
            return _later(Reply(Took.LATER))
        self._under_way += 1
        try:
            body = await self._body(request)
            reply = await hook.posted(headers, body) if body is not None else Reply(Took.LATER)
        finally:
            self._under_way -= 1
        match reply.took:
            case Took.STORED:
                return PlainTextResponse(reply.text)
            case Took.NOT_OURS:
                raise self._not_ours(request)
            case Took.NO_SENSE:
                raise Bad("this is not what the platform posts")
            case Took.LATER:
                return _later(reply)

    async def _body(self, request: Request) -> bytes | None:
        """None: it had to go for another one."""
        try:
            async with asyncio.timeout(None) as patience:
                self._reading[patience] = None
                try:
                    return await limited(request, BODY_MOST)
                finally:
                    del self._reading[patience]
        except TimeoutError:
            return None

    def _made_room(self) -> bool:
        """Whether one goes that is long in coming: no stranger holds all places by being slow."""
        now = asyncio.get_running_loop().time()
        coming = (one for one in self._reading if one.when() is None)
        if (first := next(coming, None)) is None:
            return False
        first.reschedule(now)
        return True

    def _not_ours(self, request: Request) -> Bad:
        """Said in the log now and then: it may be a secret that does not fit, or a stranger."""
        channel, now = request.path_params["channel"], site_of(request).clock.monotonic()
        if now - self._told.get(channel, -TELL_EVERY) >= TELL_EVERY:
            self._told[channel] = now
            log.warning("%s: refused a post without the right secret or signature", channel)
        return Bad("the secret or the signature is wrong", 401)


def _hook(request: Request) -> Hook | None:
    channel: object = site_of(request).parts.channels.get(request.path_params["channel"])
    return channel.hook if isinstance(channel, Hooked) else None


def _later(reply: Reply) -> Response:
    again = {"Retry-After": str(reply.again_after or COME_AGAIN)}
    return JSONResponse({"error": "not stored yet; post it again"}, 503, again)
