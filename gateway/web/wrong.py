"""How it is said that something went wrong: to people as a page, to programs as JSON.

A trace, or what broke, is for the log alone. It must not know what was asked for.
"""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from gateway.web.rendering import html

BROKE = "something broke here; the gateway's log says what, then try again"
_WORDS = {
    404: "there is nothing here; look whether the address is written right",
    405: "this address cannot be used like that",
}
_WITH_A_SLASH = re.compile(r"((?:/[A-Za-z0-9_-]+)+)/")


def answer(request: Request, words: str, status: int) -> Response:
    """An answer of this status that says what is wrong."""
    made: Response
    if _by_a_person(request):
        made = html(request, "wrong.html", None, status, words=words)
    else:
        made = JSONResponse({"error": words}, status_code=status)
    unclear = {"content-length", "transfer-encoding"} <= set(request.headers)
    if status == 408 or unclear:  # what is still to come is not waited for, nor taken for another
        made.headers["Connection"] = "close"
    return made


async def routeless(request: Request, fault: Exception) -> Response:
    """What no route answers."""
    assert isinstance(fault, HTTPException), "it is asked for those alone"
    path = _WITH_A_SLASH.fullmatch(request.url.path)
    if path is not None and fault.status_code == 404 and request.method in ("GET", "HEAD"):
        return RedirectResponse(path[1])  # without a host: a stranger may have named that
    words = _WORDS.get(fault.status_code, fault.detail)
    made = answer(request, words, fault.status_code)
    for name, value in (fault.headers or {}).items():
        made.headers[name] = value
    return made


def _by_a_person(request: Request) -> bool:
    """Whether a browser shows the answer to somebody."""
    return "text/html" in request.headers.get("accept", "")
