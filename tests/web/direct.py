"""Requests handed to the application without a network: a walk over all routes makes thousands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp

from tests.web.wire import Answer


class Walker:
    """Somebody who asks an application for this and that; ``token`` is their sign-in."""

    def __init__(self, app: ASGIApp, host: str, cookie: str = "") -> None:
        self._app = app
        self._host = host
        self._own = {"origin": f"http://{host}", **({"cookie": cookie} if cookie else {})}

    async def ask(
        self, method: str, path: str, body: Iterable[bytes] | bytes = b"", **headers: str
    ) -> Answer:
        """One request; ``content_type`` is the header of that name, an empty one is left out."""
        raw, _, query = path.partition("?")
        given = {"host": self._host, **self._own}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": method, "path": unquote_to_bytes(raw).decode("utf-8", "replace"),
            "raw_path": raw.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(k.encode(), v.encode("latin-1")) for k, v in given.items() if v],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
        }  # fmt: skip
        pieces = [body] if isinstance(body, bytes) else list(body)
        answer = Answer(0, {}, b"")

        async def receive() -> dict[str, Any]:
            if not pieces:
                return {"type": "http.disconnect"}
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message: Any) -> None:
            nonlocal answer
            if message["type"] == "http.response.start":
                told = {k.decode().lower(): v.decode() for k, v in message["headers"]}
                answer = Answer(message["status"], told, b"")
            else:
                body = answer.body + message.get("body", b"")
                answer = Answer(answer.status, answer.headers, body)

        await self._app(scope, receive, send)
        return answer
