"""A chat-completions server on loopback that does what a test scripted, down to single bytes.

Each call takes the next answer of the script; when that is empty, the server behaves like a small
model that remembers what it was told. Every request is kept as it came.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

Body = dict[str, Any]
Answer = Callable[[web.Request, Body], Awaitable[web.StreamResponse]]
MODEL = "small-1"
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


def event(delta: Mapping[str, Any] | None = None, finish: str = "", **more: Any) -> bytes:
    """One piece of a stream as most servers write it."""
    choice: Body = {"index": 0, "delta": delta or {}, "finish_reason": finish or None}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def usage(**told: int) -> bytes:
    return b"data: " + json.dumps({"choices": [], "usage": told or USAGE}).encode() + b"\n\n"


def tool_call(name: str, arguments: str, id: str = "call_a", index: int = 0) -> Body:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id, "type": "function", "function": function}


DONE = b"data: [DONE]\n\n"


def frames(*pieces: bytes, abort: bool = False, hold: bool = False) -> Answer:
    """A stream of exactly these bytes; then its end, a broken connection, or silence."""

    async def answer(request: web.Request, body: Body) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if hold:
            await asyncio.Event().wait()
        if abort:
            assert request.transport is not None
            await asyncio.sleep(0)
            request.transport.abort()
        return response

    return answer


def says(text: str, *, finish: str = "stop") -> Answer:
    words = [event({"content": word}) for word in text.split(" ")[:1]]
    words += [event({"content": f" {word}"}) for word in text.split(" ")[1:]]
    return frames(event({"role": "assistant"}), *words, event(finish=finish), usage(), DONE)


def calls(*wanted: tuple[str, Mapping[str, Any]], finish: str = "tool_calls") -> Answer:
    pieces = [
        event({"tool_calls": [tool_call(name, json.dumps(told), f"call_{n}", n)]})
        for n, (name, told) in enumerate(wanted)
    ]
    return frames(*pieces, event(finish=finish), usage(), DONE)


def refuses(status: int, message: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    async def answer(request: web.Request, body: Body) -> web.StreamResponse:
        error = {"error": {"message": message, "type": "error"}}
        return web.json_response(error, status=status, headers=headers)

    return answer


def whole(**body: Any) -> Answer:
    """One JSON object instead of a stream."""

    async def answer(request: web.Request, _: Body) -> web.StreamResponse:
        return web.json_response(body)

    return answer


@dataclass
class Seen:
    """One request as it came."""

    body: Body
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[Body]:
        return list(self.body["messages"])

    @property
    def last(self) -> str:
        return str(self.messages[-1]["content"])


@dataclass
class ChatServer:
    """Runs inside ``async with``."""

    script: list[Answer] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    models: Answer | None = None
    left: int = 0  # answers that the other side broke off

    async def __aenter__(self) -> ChatServer:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen.append(Seen(body, dict(request.headers)))
        answer = self.script.pop(0) if self.script else self._as_a_model(body)
        try:
            return await answer(request, body)
        except asyncio.CancelledError:
            self.left += 1
            raise

    async def _models(self, request: web.Request) -> web.StreamResponse:
        if self.models is not None:
            return await self.models(request, {})
        return web.json_response({"object": "list", "data": [{"id": MODEL}, {"id": "large-1"}]})

    def _as_a_model(self, body: Body) -> Answer:
        told = [text(message) for message in body["messages"] if message["role"] == "user"]
        match told[-1].split():
            case ["hang", *_]:
                return frames(event({"content": "working"}), hold=True)
            case ["crash"]:
                return frames(event({"content": "then"}), abort=True)
            case ["fail"]:
                return refuses(400, "the printer is out of paper")
            case ["recall"]:
                return says("You said: " + " / ".join(told[:-1]))
        return says(f"Noted: {told[-1]}")


def text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    parts: Sequence[Body] = content
    return "".join(part.get("text", "") for part in parts)
