"""The Messages API on loopback, with a scripted model: for engines that bring their own client.

    async with AnthropicServer() as server:
        ... ANTHROPIC_BASE_URL=server.url ...

The newest words of the person are the model's script; what came before stands in ``server.seen``:

    SLOW n        n pieces "w0 w1 …", ``pause`` seconds apart; before TOOL, what it says first
    TOOL name {}  calls a tool with this input; then says what it answered
    … THEN …      on lines of their own: what is done next, once a tool has answered
    THINK words   a thought, then the words as text
    ERROR n       answers with this HTTP status
    RECALL        says all that the person said before
    else          says it again
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import web

from tests.fakes.loopback import Loopback

Json = dict[str, Any]
TOKENS_IN, TOKENS_OUT = 1000, 50
KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


@dataclass
class AnthropicServer(Loopback):
    """Counts and keeps what it was asked."""

    headers: Mapping[str, str] = field(default_factory=dict)  # of every failure
    seen: list[Json] = field(default_factory=list)  # bodies of the requests for messages
    pause: float = 0.1  # seconds between the pieces of SLOW
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def app(self) -> web.Application:
        app = web.Application(client_max_size=100 * 2**20)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count)
        app.router.add_route("*", "/{tail:.*}", self._unknown)
        return app

    def texts(self) -> list[str]:
        """What the person said last, of each request."""
        return [_last(body["messages"])[0] for body in self.seen]

    async def _count(self, request: web.Request) -> web.Response:
        return web.json_response({"input_tokens": TOKENS_IN})

    async def _unknown(self, request: web.Request) -> web.Response:
        error = {"type": "not_found_error", "message": "no such path"}
        return web.json_response({"type": "error", "error": error}, status=404)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen.append(body)
        text, answer = _last(body["messages"])
        if answer is not None and "\nTHEN " in text:
            text, answer = _next(text, body["messages"], answer)
        if answer is None and (found := re.match(r"ERROR (\d+)", text)):
            status = int(found[1])
            kind = KINDS.get(status, "api_error")
            error = {"type": kind, "message": f"the service says {status}"}
            told = {"type": "error", "error": error}
            return web.json_response(told, status=status, headers=self.headers)
        blocks = self._reply(text, answer, body["messages"])
        message = {
            "id": f"msg_{next(self._numbers)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "stop_reason": "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT},
        }
        if not body.get("stream"):
            for block in blocks:
                block.pop("pieces", None)
            return web.json_response({**message, "content": blocks})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):  # it was interrupted
            async for event in self._events(message, blocks):
                data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                await response.write(data.encode())
        return response

    def _reply(self, text: str, answer: str | None, messages: list[Json]) -> list[Json]:
        if answer is not None:
            return [_text(f"The tool says: {answer}")]
        if found := re.match(r"(?:SLOW (\d+) )?TOOL (\S+) (?=\{)", text):
            number = f"toolu_{next(self._numbers)}"
            given, _ = json.JSONDecoder().raw_decode(text, found.end())
            call: Json = {"type": "tool_use", "id": number, "name": found[2], "input": given}
            return [_slow(int(found[1])) if found[1] else _text("I will do it."), call]
        if found := re.match(r"SLOW (\d+)", text):
            return [_slow(int(found[1]))]
        if found := re.match(r"THINK (.+)", text, re.S):
            thought = {"type": "thinking", "thinking": found[1], "signature": "s"}
            return [thought, _text(found[1])]
        if text.startswith("RECALL"):
            return [_text(" | ".join(_said(messages)[:-1]) or "nothing")]
        return [_text(f"You said: {text}")]

    async def _events(self, message: Json, blocks: list[Json]) -> AsyncIterator[Json]:
        usage = {**message["usage"], "output_tokens": 1}
        start = {**message, "content": [], "stop_reason": None, "usage": usage}
        yield {"type": "message_start", "message": start}
        for index, block in enumerate(blocks):
            at = {"index": index}
            match block["type"]:
                case "text":
                    pieces = block.get("pieces")
                    yield {"type": "content_block_start", **at, "content_block": _text("")}
                    for piece in pieces or [block["text"]]:
                        delta = {"type": "text_delta", "text": piece}
                        yield {"type": "content_block_delta", **at, "delta": delta}
                        await asyncio.sleep(self.pause if pieces else 0)
                case "thinking":
                    empty: Json = {"type": "thinking", "thinking": "", "signature": ""}
                    yield {"type": "content_block_start", **at, "content_block": empty}
                    delta = {"type": "thinking_delta", "thinking": block["thinking"]}
                    yield {"type": "content_block_delta", **at, "delta": delta}
                    delta = {"type": "signature_delta", "signature": "s"}
                    yield {"type": "content_block_delta", **at, "delta": delta}
                case _:
                    empty = {**block, "input": {}}
                    yield {"type": "content_block_start", **at, "content_block": empty}
                    written = json.dumps(block["input"])
                    delta = {"type": "input_json_delta", "partial_json": written}
                    yield {"type": "content_block_delta", **at, "delta": delta}
            yield {"type": "content_block_stop", **at}
        ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
        yield {"type": "message_stop"}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _slow(pieces: int) -> Json:
    return {**_text(""), "pieces": [f"w{n} " for n in range(pieces)]}


def _next(text: str, messages: list[Json], answer: str) -> tuple[str, str | None]:
    """The step of a script that comes after what was answered, or that last answer."""
    steps = text.split("\nTHEN ")
    done = 0
    for message in messages:
        if text in _said([message]):
            done = 0
        done += sum(block["type"] == "tool_result" for block in _blocks(message))
    return (steps[done], None) if done < len(steps) else (text, answer)


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [_text(content)] if isinstance(content, str) else content


def _said(messages: list[Json]) -> list[str]:
    """What a person said, without what a client adds in angle and square brackets."""
    texts = [
        block["text"].strip()
        for message in messages
        if message["role"] == "user"
        for block in _blocks(message)
        if block["type"] == "text"
    ]
    said = [text for text in texts if text and text[0] not in "<["]
    return [re.sub(r"^\w+: ", "", text) for text in said]  # who said it, where several talk


def _last(messages: list[Json]) -> tuple[str, str | None]:
    """The person's newest words, and what a tool answered since, if it did."""
    answer: str | None = None
    for block in _blocks(messages[-1]):
        if block["type"] == "tool_result":
            content = block.get("content", "")
            answer = content if isinstance(content, str) else json.dumps(content)
    said = _said(messages)
    return (said[-1] if said else ""), answer
