"""One connection of Socket Mode, through the library; a broken one is thrown away, not healed.

The library keeps a single-use address that did not work for ever, and never says that a token is
refused; so it is given a fresh address, watched from outside, and rebuilt. It must not know what a
payload means.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import WSMessage, WSMsgType
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse

from channels.slack.web import Web, library_log

log = logging.getLogger(__name__)

Offer = Callable[[object], Awaitable[bool]]
CLOSE_TIME = 2.0  # seconds the other side gets to say goodbye


class Socket:
    """Open for as long as it works. ``greeted`` is set while Slack's last word was a greeting."""

    def __init__(self, web: Web, app_token: str, offer: Offer, ping_every: float) -> None:
        self.greeted = asyncio.Event()
        self.greetings = 0
        self.leaving = ""  # why Slack asked to come again, the last time it did
        self.connections = 1

        # As the middleware that is asked first, it alone decides what is acknowledged: the
        # library would acknowledge events before they are stored, and not at all what it has no
        # listener for.
        async def take(body: object) -> BoltResponse:
            return BoltResponse(status=200 if await offer(body) else 503, body="")

        app = AsyncApp(
            # Of a logger that the library silences; without a name it reads the whole stack's
            # sources to make one up.
            name=library_log.name,
            client=web.client,
            signing_secret="",
            before_authorize=take,
            request_verification_enabled=False,
            ssl_check_enabled=False,
            logger=library_log,
        )
        self._handler = AsyncSocketModeHandler(
            app, app_token, logger=library_log, web_client=web.client, ping_interval=ping_every
        )
        self._client = self._handler.client
        self._client.default_auto_reconnect_enabled = False
        self._client.auto_reconnect_enabled = False
        if web.local:
            self._client.proxy = None
        self._client.on_message_listeners.append(self._heard)

    async def connect(self, url: str) -> None:
        """Connect to a fresh address. Never ends by itself when that does not work."""
        self._client.wss_uri = url
        await self._handler.connect_async()  # type: ignore[no-untyped-call]

    async def alive(self) -> bool:
        return await self._client.is_connected()

    async def close(self) -> None:
        """End it and everything the library runs for it."""
        tasks = [
            task
            for task in (
                self._client.message_processor,
                self._client.current_session_monitor,
                self._client.message_receiver,
            )
            if task is not None
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIME):
                await self._handler.close_async()  # type: ignore[no-untyped-call]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.aiohttp_client_session.close()

    async def _heard(self, frame: WSMessage) -> None:
        """Slack's own words about the connection."""
        if frame.type is not WSMsgType.TEXT:
            return
        if '"envelope_id"' in frame.data:
            if not self.greetings:  # what delivers is there, whether it greeted or not
                self._greet()
            return
        try:
            said = json.loads(frame.data)
        except ValueError:
            return
        kind = said.get("type") if isinstance(said, dict) else None
        if kind == "hello":
            count = said.get("num_connections")
            self.connections = count if isinstance(count, int) else 1
            self._greet()
        elif kind == "disconnect":
            self.greeted.clear()  # the library comes again by itself, and is greeted anew
            self.leaving = str(said.get("reason"))
            log.debug("slack: the connection is renewed: %s", self.leaving)

    def _greet(self) -> None:
        self.greetings += 1
        self.greeted.set()
