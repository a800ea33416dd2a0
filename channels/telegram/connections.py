"""Connections to a Bot API server, and its refusals in the one shape that the library reads.

Servers that stand in for Telegram, and what stands before it, tell the same in other ways: the code
in the answer alone, how long to wait in words or as a string. It must not know what is asked for.
"""

from __future__ import annotations

import json
import re

from telegram.request import HTTPXRequest, RequestData

from channels.telegram.fields import Json

_LIMITED = 429
_WAIT = 5  # seconds, where a limit comes without its time
_MOST = 100_000  # bytes; no refusal is longer
_TOLD = re.compile(r"(?:retry after |flood_wait_)(\d+)", re.IGNORECASE)


class Connections(HTTPXRequest):
    """As the library's own."""

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        *args: object,
        **more: object,
    ) -> tuple[int, bytes]:
        """Status and body of the answer."""
        status, body = await super().do_request(url, method, request_data, *args, **more)  # type: ignore[arg-type]  # time limits, passed on as they are
        return refusal(status, body)


def refusal(status: int, body: bytes) -> tuple[int, bytes]:
    """Status and body, of a refusal with its code as the status and its seconds as a number."""
    if len(body) > _MOST or b'"error_code"' not in body:
        return status, body
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return status, body
    if not isinstance(told, dict) or told.get("ok") is not False:
        return status, body
    code = told.get("error_code")
    if status < 300 and isinstance(code, int) and code >= 400:
        status = code
    if status == _LIMITED:
        body = json.dumps({**told, "parameters": _parameters(told)}).encode()
    return status, body


def _parameters(told: Json) -> Json:
    given = told.get("parameters")
    parameters = given if isinstance(given, dict) else {}
    seconds = parameters.get("retry_after")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
        return parameters
    words = f"retry after {seconds}" if isinstance(seconds, str) else str(told.get("description"))
    found = _TOLD.search(words)
    return {**parameters, "retry_after": max(1, int(found.group(1))) if found else _WAIT}
