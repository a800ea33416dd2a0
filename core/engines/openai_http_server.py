"""One chat-completions server: its connections, what it refuses to hear, and single calls.

Knows HTTP and the server's words for errors, no turn and no history. The HTTP library is loaded
with the first call, off the loop.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.clock import Clock
from core.engines.openai_http_words import (
    Option,
    Refused,
    host_of,
    refused,
    secrets_in,
    silent,
    unreachable,
)
from core.engines.plain import Json

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("laneway.engine")

CONNECT_SECONDS = 10.0
ERROR_MOST = 64 * 1024  # bytes of a refusal that are read


class NotSent(Exception):
    """Certainly nothing left: there was no connection. The message is for people."""


class Lost(Exception):
    """The connection broke, or the server was silent too long (``late``). For people's eyes."""

    def __init__(self, message: str, *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


class Server:
    """Made once for an engine; ``close`` gives its connections back."""

    def __init__(self, base_url: str, key: str, clock: Clock, patience: float) -> None:
        self._base = base_url.rstrip("/")
        self._key = key
        self._secrets = secrets_in(base_url, key)
        self._clock = clock
        self._patience = patience  # seconds without a byte, also before the first one
        self._client: httpx.AsyncClient | None = None
        self._making = asyncio.Lock()
        self._refuses: set[tuple[str, Option, str]] = set()  # by model; of effort, each level
        self.host = host_of(base_url)

    def takes(self, model: str, option: Option, value: str = "") -> bool:
        """Whether it may be asked for this; True until it refused."""
        return (model, option, value) not in self._refuses

    def remember(self, model: str, option: Option, value: str = "") -> None:
        what = f"{option} {value}".strip()
        log.info("%s refuses %s for %s; it is left out from now on", self.host, what, model)
        self._refuses.add((model, option, value))

    def refusal(self, told: Json) -> Refused:
        """An error that came in place of an answer, or in the middle of it."""
        return refused(0, {"error": told}, {}, self._clock.now(), *self._secrets)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def post(self, body: Json) -> AsyncGenerator[bytes, None]:
        """The body of the answer, as it comes. Raises Refused, NotSent or Lost."""
        async with self._call("POST", "/chat/completions", json=body) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def get(self, path: str) -> bytes:
        """A whole body. Raises like ``post``."""
        async with self._call("GET", path) as response:
            body: bytes = await response.aread()
            return body

    @asynccontextmanager
    async def _call(self, method: str, path: str, **more: Any) -> AsyncGenerator[Any, None]:
        client = await self._opened()
        import httpx  # is loaded by now

        try:
            async with client.stream(method, self._base + path, **more) as response:
                if response.status_code != 200:
                    raise refused(
                        response.status_code,
                        await _start_of(response),
                        dict(response.headers),
                        self._clock.now(),
                        *self._secrets,
                    )
                yield response
        except (httpx.ConnectTimeout, httpx.PoolTimeout) as fault:
            raise NotSent(unreachable(self.host, "it did not answer in time")) from fault
        except httpx.ConnectError as fault:
            raise NotSent(unreachable(self.host, _reason(fault))) from fault
        except httpx.TimeoutException as fault:
            raise Lost(silent(self.host, self._patience), late=True) from fault
        except httpx.TransportError as fault:
            raise Lost(unreachable(self.host, "the connection broke")) from fault
        except httpx.DecodingError as fault:
            raise Lost(unreachable(self.host, "what it sent cannot be decoded")) from fault
        except httpx.InvalidURL as fault:
            raise NotSent(unreachable(self.host, "this is no address")) from fault

    async def _opened(self) -> httpx.AsyncClient:
        async with self._making:
            if self._client is None:
                try:
                    self._client = await asyncio.to_thread(self._make)
                except (ImportError, ValueError, OSError) as fault:
                    log.error("no connection to %s can be made: %r", self.host, fault)
                    why = "its key, or a proxy or certificates of the environment, cannot be used"
                    raise NotSent(unreachable(self.host, why)) from fault
            return self._client

    def _make(self) -> httpx.AsyncClient:
        library = importlib.import_module("httpx")
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        client: httpx.AsyncClient = library.AsyncClient(
            headers={"User-Agent": "laneway", **headers},
            timeout=library.Timeout(self._patience, connect=CONNECT_SECONDS),
            # Certificates of all the world cost megabytes; a plain connection checks none.
            verify=not self._base.startswith("http://"),
            # No proxy that the environment names leads to a server on this machine.
            trust_env=not _on_this_machine(self._base),
            limits=library.Limits(max_connections=None, max_keepalive_connections=8),
        )
        return client


def _on_this_machine(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return host == "localhost" or host.startswith("127.") or host == "::1"


async def _start_of(response: Any) -> bytes:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) >= ERROR_MOST:
            break
    return body


def _reason(fault: Exception) -> str:
    """Why there was no connection, as the system says it."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            said = cause.strerror
            if said.startswith("Connect call failed") and cause.errno:
                said = os.strerror(cause.errno)  # the event loop's words hide why
            return said[:1].lower() + said[1:]
        cause = cause.__cause__ or cause.__context__
    return "there is no connection"


__all__ = ["Lost", "NotSent", "Refused", "Server"]
