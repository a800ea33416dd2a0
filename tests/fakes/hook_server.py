"""A web server in front of one channel's hook: what the gateway's route is, and nothing more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from core.channel import Hook, Took

STATUS = {Took.STORED: 200, Took.NOT_OURS: 401, Took.NO_SENSE: 400, Took.LATER: 503}


@asynccontextmanager
async def posted_to(hook: Callable[[], Hook | None]) -> AsyncIterator[str]:
    """The address to post to, while it is there."""

    async def handle(request: web.Request) -> web.Response:
        found = hook()
        assert found is not None, "nothing is posted in this mode"
        headers = {name.lower(): value for name, value in request.headers.items()}
        reply = await found.posted(headers, await request.read())
        return web.Response(status=STATUS[reply.took], text=reply.text)

    app = web.Application()
    app.router.add_post("/", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()
