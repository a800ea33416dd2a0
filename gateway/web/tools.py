"""The gateway's tools for running agents, as MCP over streamable HTTP on a listener of its own.

Small on purpose: one POST is one request and its answer, there is no session and no stream from us
but the answer of a call, which is kept alive while a person thinks. Who asks is known by the bearer
token alone. It must not know what the tools do.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from core.engines.base import Toolbox, ToolReply
from core.tools import Idle, Tools, Unknown
from gateway.web.listener import TOOLS_PATH

log = logging.getLogger("laneway.tools")

BODY_MOST = 1_048_576  # bytes
ALIVE_EVERY = 15.0  # seconds; clients give up on an answer that is silent for minutes
NEWEST = "2025-11-25"  # the protocol's version that we speak where a client names none we know
VERSIONS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", NEWEST})
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
INSTRUCTIONS = (
    "These tools act in the chat thread you are working for. People read the thread on a phone;"
    " your final answer is sent there by itself."
)

Json = dict[str, Any]


def application(tools: Tools, alive_every: float = ALIVE_EVERY) -> Starlette:
    """One route; everything else is not there."""
    endpoint = _Endpoint(tools, alive_every)
    return Starlette(routes=[Route(TOOLS_PATH, endpoint.post, methods=["POST"])])


class _Endpoint:
    def __init__(self, tools: Tools, alive_every: float) -> None:
        self._tools = tools
        self._alive_every = alive_every

    async def post(self, request: Request) -> Response:
        if not _local(request):
            return Response("only for programs on this machine", 403)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            toolbox = self._tools.seat(token.strip() if scheme.lower() == "bearer" else "")
        except Unknown:
            return Response("a bearer token of a running turn is needed", 401)
        except Idle:
            return Response("no turn of this session runs now", 403)
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return Response("too large", 413)
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return _Json(_error(None, PARSE_ERROR, "not JSON"), 400)
        return await self._answer(message, toolbox, request)

    async def _answer(self, message: object, toolbox: Toolbox, request: Request) -> Response:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _Json(_error(None, INVALID_REQUEST, "not a JSON-RPC message"), 400)
        ident, method = message.get("id"), message.get("method")
        if "id" not in message or not isinstance(method, str):
            return Response(status_code=202)  # a notification, or an answer to nothing we asked
        given = message.get("params")
        params: Mapping[str, Any] = given if isinstance(given, dict) else {}
        match method:
            case "initialize":
                return _Json(_result(ident, _hello(params)))
            case "ping":
                return _Json(_result(ident, {}))
            case "tools/list":
                return _Json(_result(ident, _listed(toolbox)))
            case "tools/call":
                return await self._call(ident, params, toolbox, request)
        return _Json(_error(ident, NO_METHOD, f"no method {method[:80]}"))

    async def _call(
        self, ident: object, params: Mapping[str, Any], toolbox: Toolbox, request: Request
    ) -> Response:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return _Json(_error(ident, INVALID_PARAMS, "name and arguments are needed"))
        if "text/event-stream" not in request.headers.get("accept", ""):
            return _Json(_result(ident, _said(await toolbox.call(name, arguments))))
        return _Kept(ident, name, arguments, toolbox, self._alive_every)


class _Json(JSONResponse):
    """In ASCII, so that a half of a character that an agent sent is no fault when it comes back."""

    def render(self, content: object) -> bytes:
        return json.dumps(content).encode()


class _Kept(Response):
    """The answer of a call as the only event; before it, comments that keep the connection alive.

    An agent that does not wait any more ends the call.
    """

    def __init__(
        self,
        ident: object,
        name: str,
        arguments: Mapping[str, object],
        toolbox: Toolbox,
        alive_every: float,
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._ident = ident
        self._name = name
        self._arguments = arguments
        self._toolbox = toolbox
        self._alive_every = alive_every

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = (b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")
        await send({"type": "http.response.start", "status": 200, "headers": list(kind)})
        async with asyncio.TaskGroup() as group:
            call = group.create_task(
                self._toolbox.call(self._name, self._arguments), name=f"tool {self._name}"
            )
            gone = group.create_task(_gone(receive), name=f"who waits for tool {self._name}")
            while not call.done() and not gone.done():
                first = asyncio.FIRST_COMPLETED
                await asyncio.wait((call, gone), timeout=self._alive_every, return_when=first)
                if not call.done() and not gone.done():
                    await send(_piece(": still at it\n\n", more=True))
            gone.cancel()
            if not call.done():
                call.cancel()
                return
        answer = json.dumps(_result(self._ident, _said(call.result())))
        await send(_piece(f"event: message\ndata: {answer}\n\n", more=False))


async def _gone(receive: Receive) -> None:
    """Returns when the other side has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _piece(text: str, *, more: bool) -> Json:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}


def _local(request: Request) -> bool:
    """Whether a program asked us by our own address: no page of a browser can."""
    host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
    return host in ("127.0.0.1", "localhost") and "origin" not in request.headers


async def _body(request: Request) -> bytes | None:
    """The request's body; None when it is too large."""
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > BODY_MOST:
            return None
    return bytes(read)


def _hello(params: Mapping[str, Any]) -> Json:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else NEWEST,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "laneway", "title": "Laneway", "version": "1"},
        "instructions": INSTRUCTIONS,
    }


def _listed(toolbox: Toolbox) -> Json:
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
            for tool in toolbox.offered()
        ]
    }


def _said(reply: ToolReply) -> Json:
    return {"content": [{"type": "text", "text": reply.text}], "isError": reply.failed}


def _result(ident: object, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": ident, "result": result}


def _error(ident: object, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}
