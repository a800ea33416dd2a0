"""Where platforms post what happened: the body is read for those who may post, and handed on.

What proves that it is the platform, and what a post means, its channel knows alone.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.channel import Hook, Hooked, Reply, Took
from gateway.web.access import Bad, Kind, limited, open_api
from gateway.web.site import site_of

BODY_MOST = 1_048_576  # bytes
COME_AGAIN = 5  # seconds, where a channel says nothing of it


def routes() -> list[Route]:
    return [open_api("/hooks/{channel}", _posted, methods=("POST",), kind=Kind.RAW, body=BODY_MOST)]


async def _posted(request: Request) -> Response:
    hook = _hook(request)
    if hook is None:
        raise Bad("nothing is posted here: this platform is not set up to", 404)
    headers = dict(request.headers)
    if not hook.lets_in(headers):
        raise _not_ours()
    return _answer(await hook.posted(headers, await limited(request, BODY_MOST)))


def _hook(request: Request) -> Hook | None:
    channel: object = site_of(request).parts.channels.get(request.path_params["channel"])
    return channel.hook if isinstance(channel, Hooked) else None


def _answer(reply: Reply) -> Response:
    match reply.took:
        case Took.STORED:
            return PlainTextResponse(reply.text)
        case Took.NOT_OURS:
            raise _not_ours()
        case Took.NO_SENSE:
            raise Bad("this is not what the platform posts")
        case Took.LATER:
            again = {"Retry-After": str(reply.again_after or COME_AGAIN)}
            return JSONResponse({"error": "not stored yet; post it again"}, 503, again)


def _not_ours() -> Bad:
    return Bad("the secret or the signature is wrong", 401)
