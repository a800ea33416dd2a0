"""Calls of Discord's HTTP interface, each made once.

The library's own client waits and repeats inside a call; order, pace and retries are the outbox's
here, so each call is one request, and what went wrong is said. It must not know what a call is for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from discord import File
from discord.gateway import DiscordClientWebSocketResponse
from discord.http import HTTPClient, Route

from channels.discord.buckets import Buckets
from channels.discord.errors import (
    TOKEN_REFUSED,
    TokenRefused,
    api_error,
    rate_limited,
    translate,
)
from core.channel import NotSent, RateLimited, Uncertain
from core.clock import Clock

CONNECT = 10.0  # seconds
REFUSED_FOR = 600.0  # seconds in which a refused token is not tried again
SOCKET_CLOSE = 1.0  # seconds the gateway has to answer our good-bye
_NEVER_LEFT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
_APART = ("/interactions/", "/webhooks/")


class Rest(HTTPClient):
    """The library's calls over our request. Open it inside a running loop."""

    def __init__(self, token: str, clock: Clock, answer_within: float) -> None:
        super().__init__(asyncio.get_running_loop())
        self.token: str | None = token
        self.clock = clock
        self.ahead = 0  # ms that Discord's clock is ahead of ours, to the second below
        self._limits = Buckets()
        self._refused_until = 0.0  # seconds, monotonic
        self._times = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT, connect=CONNECT, sock_read=answer_within
        )
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections, also for files; the token is added call by call."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=64, keepalive_timeout=30),
                ws_response_class=DiscordClientWebSocketResponse,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._times,
            )
        return self._session

    def now(self) -> int:
        """Discord's clock, in ms, at most a second behind."""
        return self.clock.now() + self.ahead

    def trust(self) -> None:
        """The token may be good again: the next call asks."""
        self._refused_until = 0.0

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """The gateway's socket, for the library; a good-bye is not waited for."""
        return await self.session.ws_connect(
            url,
            max_msg_size=0,
            timeout=aiohttp.ClientWSTimeout(ws_close=SOCKET_CLOSE),
            autoclose=False,
            headers={"User-Agent": self.user_agent},
            compress=compress,
        )

    async def close(self) -> None:
        """Give back the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def request(
        self,
        route: Route,
        *,
        files: Sequence[File] | None = None,
        form: Iterable[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> Any:
        """One request. Raises SendError where no answer came, ApiError for one that refuses."""
        if self.clock.monotonic() < self._refused_until:  # refused calls count towards a ban
            raise TokenRefused(TOKEN_REFUSED)
        apart = route.path.startswith(_APART)
        self._limits.take(route.key, route.major_parameters, self.clock.monotonic(), apart)
        status, headers, body = await self._once(route, form, kwargs)
        now = self.clock.monotonic()
        self._limits.learn(route.key, route.major_parameters, headers, now)
        if 200 <= status < 300:
            return body
        self._limits.refused(status, now)
        if status == 429:
            limited = rate_limited(body, headers.get("Retry-After"))
            self._limits.penalty(route.key, route.major_parameters, limited, now)
            raise limited
        refusal = api_error(status, body)
        if status == 401 and not apart:
            self._refused_until = now + REFUSED_FOR
            raise translate(refusal)
        raise refusal

    async def _once(
        self, route: Route, form: Iterable[dict[str, Any]] | None, kwargs: dict[str, Any]
    ) -> tuple[int, Any, object]:
        headers = {"User-Agent": self.user_agent}
        if not route.path.startswith(_APART):
            headers["Authorization"] = f"Bot {self.token}"
        data: object = None
        if form is not None:
            fields = aiohttp.FormData(quote_fields=False)  # Discord reads no escaped brackets
            for field in form:
                fields.add_field(**field)
            data = fields
        elif "json" in kwargs:
            headers["Content-Type"] = "application/json"
            data = json.dumps(kwargs["json"]).encode()
        try:
            async with self.session.request(
                route.method,
                route.url,
                data=data,
                headers=headers,
                params=kwargs.get("params"),
                allow_redirects=False,
            ) as response:
                self._set_clock(response.headers.get("Date"))
                return response.status, response.headers, await _body(response)
        except _NEVER_LEFT as caught:
            raise NotSent(f"Discord cannot be reached ({type(caught).__name__})") from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as caught:
            raise Uncertain(f"Discord did not answer ({type(caught).__name__})") from None

    def _set_clock(self, date: str | None) -> None:
        if date:
            try:
                theirs = parsedate_to_datetime(date).timestamp() * 1000
            except (ValueError, TypeError):
                return
            self.ahead = int(theirs) - self.clock.now()

    async def patient(self, call: Any, most: float = 120.0) -> Any:
        """Await what ``call()`` begins, again after each rate limit; for work nobody waits on."""
        while True:
            try:
                return await call()
            except RateLimited as limited:
                if limited.retry_after > most:
                    raise
                await self.clock.sleep(limited.retry_after)


async def _body(response: aiohttp.ClientResponse) -> object:
    """The answer's JSON, whatever it says of its type; what is none is None."""
    text = await response.text(encoding="utf-8", errors="replace")
    if not text:
        return None
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        if 200 <= response.status < 300:
            raise ValueError("no JSON") from None
        return None
    return parsed
