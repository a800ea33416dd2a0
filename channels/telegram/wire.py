"""The calls that must not depend on the library's reading of the answer: updates and set-up.

The library would read a whole batch of updates at once and fail as a whole when one of them is
malformed; here the answer stays JSON. It must not know what an update means.
"""

from __future__ import annotations

import json
import ssl
from urllib.parse import urlencode

import httpx
from telegram import error

from channels.telegram.connections import Connections
from channels.telegram.content import Me, person_name
from channels.telegram.errors import ODD_ANSWER, translate
from channels.telegram.fields import Json, as_object, integer, string
from channels.telegram.updates import KINDS
from core.channel import Uncertain

Trust = ssl.SSLContext | bool
POSTS = 10  # at once; each chat's come one after the other, so a stuck one holds up few
_SLACK = 10.0  # seconds an answer may take beyond what the long poll asks for


def trust_of(base: str) -> Trust:
    """Whom to trust; one for all connections, because each costs megabytes and milliseconds."""
    return False if base.startswith("http://") else httpx.create_ssl_context()


class Wire:
    """Raw calls over a connection of their own, so that a long poll never holds up a send."""

    def __init__(self, token: str, base: str, trust: Trust) -> None:
        self._token = token
        self._url = f"{base}/bot{token}"
        self._request = Connections(
            connection_pool_size=4,
            connect_timeout=10.0,
            pool_timeout=5.0,
            httpx_kwargs={"verify": trust},
        )

    async def close(self) -> None:
        """Give back the connections."""
        await self._request.shutdown()

    async def call(self, method: str, wait: float = 0.0, **fields: object) -> object:
        """One call. Raises SendError; an answer that is no answer counts as Uncertain."""
        given = {key: value for key, value in fields.items() if value is not None}
        query = urlencode({k: v if isinstance(v, str) else json.dumps(v) for k, v in given.items()})
        try:
            return await self._request.post(
                f"{self._url}/{method}?{query}", read_timeout=wait + _SLACK
            )
        except error.TelegramError as caught:
            raise translate(caught, self._token) from None
        except ODD_ANSWER as caught:
            raise Uncertain(
                f"Telegram's answer has an odd shape ({type(caught).__name__})"
            ) from None

    async def me(self) -> tuple[Me, Json]:
        """Who we are, and what getMe says beside."""
        try:
            answer = as_object(await self.call("getMe"), "getMe")
            name = person_name(answer)
            return Me(integer(answer, "id"), string(answer, "username"), name), answer
        except ValueError as caught:
            raise Uncertain(f"getMe: {caught}") from None

    async def updates(self, offset: int | None, wait: int, most: int) -> list[object]:
        """What waits for us. An offset confirms, for good, all updates before it."""
        answer = await self.call(
            "getUpdates",
            wait,
            offset=offset,
            timeout=wait,
            limit=most,
            allowed_updates=list(KINDS),
        )
        if not isinstance(answer, list):
            raise Uncertain("getUpdates: the answer is no list")
        return answer

    async def set_webhook(self, url: str, secret: str) -> None:
        """Updates are posted to this address; those that wait are kept."""
        await self.call(
            "setWebhook",
            url=url,
            secret_token=secret,
            allowed_updates=list(KINDS),
            max_connections=POSTS,
        )

    async def drop_webhook(self) -> None:
        """Updates come by polling again; those that wait are kept."""
        await self.call("deleteWebhook", drop_pending_updates=False)
