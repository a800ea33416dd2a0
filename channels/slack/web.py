"""Calls of Slack's Web API, each made once, over one connection pool.

The library would repeat a call whose connection broke, and so could say a thing twice; here it
may not. No call leaves inside its method's penalty. It must not know what a call is for.
"""

from __future__ import annotations

import json
import logging
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from channels.slack.errors import LIBRARY, ODD_ANSWER, translate
from channels.slack.events import Me
from channels.slack.fields import Json, as_object, needed, string
from channels.slack.pace import Pace
from core.channel import RateLimited, Uncertain
from core.clock import Clock

OFFICIAL = "https://slack.com/api/"
_LOCAL = ("127.0.0.1", "localhost", "::1")
CONNECT, UPLOAD_ANSWER = 10.0, 120.0  # seconds

# The library's own lines tell addresses with tickets and what people wrote; ours say what matters.
library_log = logging.getLogger("channels.slack.library")
library_log.setLevel(logging.CRITICAL)


class Web:
    """Open it inside the running loop; ``close`` gives back the connections."""

    def __init__(
        self, bot_token: str, app_token: str, base: str, answer_within: float, clock: Clock
    ) -> None:
        self._app_token = app_token
        self.base = base if base.endswith("/") else f"{base}/"
        self.bot_token = bot_token
        self.pace = Pace(clock)
        self._clock = clock
        # A connect time-out is told apart from an answer that did not come: nothing was sent.
        times = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT, connect=CONNECT, sock_read=answer_within
        )
        self.session = aiohttp.ClientSession(timeout=times)
        self.client = AsyncWebClient(
            token=bot_token,
            base_url=self.base,
            session=self.session,
            logger=library_log,
            retry_handlers=[],
        )
        if self.local:
            self.client.proxy = None
        self.user = self.team = ""  # ours, once they are known
        self.ahead = 0  # ms that Slack's clock is ahead of the one that is asked

    @property
    def local(self) -> bool:
        """Whether it is a server on this machine."""
        return urlsplit(self.base).hostname in _LOCAL

    @property
    def host(self) -> str:
        return urlsplit(self.base).netloc

    async def close(self) -> None:
        await self.session.close()

    async def call(self, method: str, **fields: object) -> Json:
        """One call. Raises SendError; an answer that is no answer counts as Uncertain.

        Inside a penalty of its method it does not leave: RateLimited at once.
        """
        return (await self._called(method, fields))[0]

    async def when_free(self, method: str, most: float) -> None:
        """Wait for the end of a method's penalty, for so many seconds at most."""
        if (left := self.pace.left(method)) > 0:
            await self._clock.sleep(min(left, most))

    async def me(self, now: int) -> tuple[Me, Json, str]:
        """Who we are, what auth.test says beside, and the scopes of the token."""
        said, headers = await self._called("auth.test", {})
        try:
            me = Me(needed(said, "team_id"), needed(said, "user_id"), string(said, "bot_id"))
        except ValueError as caught:
            raise Uncertain(f"auth.test: {caught}") from None
        self.user, self.team = me.user, me.team
        self._set_clock(headers, now)
        return me, said, str(headers.get("x-oauth-scopes", ""))

    async def socket_url(self) -> str:
        """A fresh address for one connection."""
        said, _ = await self._called("apps.connections.open", {"app_token": self._app_token})
        try:
            return needed(said, "url")
        except ValueError as caught:
            raise Uncertain(f"apps.connections.open: {caught}") from None

    async def _called(self, method: str, fields: dict[str, Any]) -> tuple[Json, Any]:
        app_token = fields.pop("app_token", None)
        data = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in fields.items()
            if value is not None
        }
        token = {"token": app_token} if app_token else None
        self.pace.check(method)
        try:
            answer = await self.client.api_call(method, data=data, params=token)
            return as_object(answer.data, method), answer.headers
        except LIBRARY as caught:
            error = translate(caught, method)
            if isinstance(error, RateLimited):
                self.pace.limited(method, error.retry_after)
            raise error from None
        except ODD_ANSWER as caught:
            raise translate(caught, method) from None

    def _set_clock(self, headers: Any, now: int) -> None:
        """Slack's own time is what messages are stamped with, and a machine's may be wrong."""
        try:
            told = parsedate_to_datetime(str(headers.get("Date", ""))).timestamp()
        except (ValueError, TypeError):
            return
        ahead = int(told * 1000) - now
        self.ahead = ahead if abs(ahead) > 2000 else 0  # the header knows whole seconds only
