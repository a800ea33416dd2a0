"""The Responses API on loopback, with a scripted model: for engines that bring their own client.

    async with ResponsesServer() as server:
        ... base_url = server.url ...

The newest words of the person are the model's script; what was asked stands in ``server.seen``:

    SLOW n        n pieces "w0 w1 …", ``pause`` seconds apart; before TOOL, what it says first
    TOOL name {}  calls a tool with this input; then says what it answered. Of a tool in
                  a namespace the name is space/name
    … THEN …      on lines of their own: what is done next, once a tool has answered
    PATCH text    calls the tool that changes files, with this patch
    SCRIPT js     calls the tool that runs JavaScript, which some models have
    THINK words   a thought, then the words as text
    ERROR n       answers with this HTTP status, ``error`` being its words and kind
    RECALL        says all that the person said before
    else          says it again
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import web

from tests.fakes.loopback import Loopback

Json = dict[str, Any]
TOKENS_IN, CACHED, TOKENS_OUT = 1200, 200, 50
KINDS = {401: "invalid_request_error", 429: "rate_limit_exceeded"}
ANSWERS = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output")


@dataclass
class ResponsesServer(Loopback):
    """Counts and keeps what it was asked."""

    base = "/v1"
    headers: Mapping[str, str] = field(default_factory=dict)  # of every failure
    error: Json = field(default_factory=dict)  # what a failure says beside its message
    seen: list[Json] = field(default_factory=list)  # bodies of the requests
    pause: float = 0.1  # seconds between the pieces of SLOW
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def app(self) -> web.Application:
        app = web.Application(client_max_size=100 * 2**20)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_route("*", "/{tail:.*}", self._unknown)
        return app

    def tools(self, request: int = -1) -> set[str]:
        """Names of the tools that the model was offered, those inside of namespaces as well."""
        return set(_names(_tools(self.seen[request])))

    async def _unknown(self, request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "no such path"}}, status=404)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen.append(body)
        text, answer = _last(body["input"])
        if answer is not None and "\nTHEN " in text:
            text, answer = _next(text, body["input"], answer)
        if answer is None and (found := re.match(r"ERROR (\d+)", text)):
            status = int(found[1])
            error = {"type": KINDS.get(status, "server_error"), "code": None}
            error |= {"message": f"the service says {status}", **self.error}
            return web.json_response({"error": error}, status=status, headers=self.headers)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        items = self._reply(text, answer, body)
        with contextlib.suppress(ConnectionError):  # it was interrupted
            async for event in self._events(f"resp_{next(self._numbers)}", items):
                data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                await response.write(data.encode())
        return response

    def _reply(self, text: str, answer: str | None, body: Json) -> list[Json]:
        if answer is not None:
            return [self._message(f"The tool says: {answer}")]
        if found := re.match(r"(?:SLOW (\d+) )?TOOL (\S+) (?=\{)", text):
            given, _ = json.JSONDecoder().raw_decode(text, found.end())
            first = self._slow(int(found[1])) if found[1] else self._message("I will do it.")
            return [first, self._call(found[2], json.dumps(given))]
        if found := re.match(r"SLOW (\d+)", text):
            return [self._slow(int(found[1]))]
        if found := re.match(r"PATCH (.+)", text, re.S):
            return [self._message("I will change it."), self._custom("apply_patch", found[1])]
        if found := re.match(r"SCRIPT (.+)", text, re.S):
            return [self._message("I will compute it."), self._custom("exec", found[1])]
        if found := re.match(r"THINK (.+)", text, re.S):
            return [self._thought(found[1]), self._message(found[1])]
        if text.startswith("RECALL"):
            return [self._message(" | ".join(_said(body["input"])[:-1]) or "nothing")]
        return [self._message(f"You said: {text}")]

    def _number(self, kind: str) -> str:
        return f"{kind}_{next(self._numbers)}"

    def _message(self, text: str) -> Json:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        number = self._number("msg")
        return {"type": "message", "id": number, "role": "assistant", "content": content}

    def _slow(self, pieces: int) -> Json:
        return {**self._message(""), "pieces": [f"w{n} " for n in range(pieces)]}

    def _thought(self, text: str) -> Json:
        summary = [{"type": "summary_text", "text": text}]
        return {"type": "reasoning", "id": self._number("rs"), "summary": summary}

    def _call(self, name: str, given: str) -> Json:
        space, _, name = name.rpartition("/")
        call = {"type": "function_call", "id": self._number("fc"), "call_id": self._number("call")}
        call |= {"name": name, "arguments": given}
        return {**call, "namespace": space} if space else call

    def _custom(self, name: str, given: str) -> Json:
        call = {"type": "custom_tool_call", "id": self._number("ctc"), "name": name}
        return {**call, "call_id": self._number("call"), "input": given}

    async def _events(self, number: str, items: list[Json]) -> AsyncIterator[Json]:
        shell = {"id": number, "object": "response", "status": "in_progress", "output": []}
        yield {"type": "response.created", "response": shell}
        for index, item in enumerate(items):
            at = {"output_index": index, "item_id": item["id"]}
            pieces = item.pop("pieces", None)
            yield {"type": "response.output_item.added", "output_index": index, "item": item}
            if item["type"] == "message":
                whole = item["content"][0]
                for piece in pieces or [whole["text"]]:
                    delta = {"content_index": 0, "delta": piece}
                    yield {"type": "response.output_text.delta", **at, **delta}
                    await asyncio.sleep(self.pause if pieces else 0)
                whole["text"] = "".join(pieces or [whole["text"]])
            elif item["type"] == "reasoning":
                delta = {"summary_index": 0, "delta": item["summary"][0]["text"]}
                yield {"type": "response.reasoning_summary_text.delta", **at, **delta}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        usage = {
            "input_tokens": TOKENS_IN,
            "input_tokens_details": {"cached_tokens": CACHED},
            "output_tokens": TOKENS_OUT,
            "output_tokens_details": {"reasoning_tokens": 10},
            "total_tokens": TOKENS_IN + TOKENS_OUT,
        }
        done = {**shell, "status": "completed", "output": items, "usage": usage}
        yield {"type": "response.completed", "response": done}


def _tools(body: Json) -> list[Json]:
    """Some models are told their tools as a part of the conversation."""
    told = [item["tools"] for item in body["input"] if item.get("type") == "additional_tools"]
    return [*body.get("tools", ()), *(tool for tools in told for tool in tools)]


def _names(tools: Sequence[Json]) -> list[str]:
    found: list[str] = []
    for tool in tools:
        found.append(tool.get("name") or tool["type"])
        found += _names(tool.get("tools", ()))
    return found


def _text_of(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    kinds = ("input_text", "text", "output_text")
    return [block["text"].strip() for block in content if block.get("type") in kinds]


def _said(items: list[Json]) -> list[str]:
    """What a person said, without what a client adds in angle brackets and headings."""
    texts = [
        text for item in items if item.get("role") == "user" for text in _text_of(item["content"])
    ]
    said = [text for text in texts if text and text[0] not in "<#"]
    return [re.sub(r"^\w+: ", "", text) for text in said]  # who said it, where several talk


def _next(text: str, items: list[Json], answer: str) -> tuple[str, str | None]:
    """The step of a script that comes after what was answered, or that last answer."""
    steps = text.split("\nTHEN ")
    done = 0
    for item in items:
        done = 0 if item.get("role") == "user" and text in _said([item]) else done
        done += item.get("type") in ANSWERS
    return (steps[done], None) if done < len(steps) else (text, answer)


def _last(items: list[Json]) -> tuple[str, str | None]:
    """The person's newest words, and what a tool answered since, if it did."""
    answer: str | None = None
    for item in items:
        if item.get("type") in ANSWERS:
            output = item.get("output", "")
            answer = output if isinstance(output, str) else json.dumps(output)
        elif item.get("role") == "user" and _said([item]):
            answer = None
    said = _said(items)
    return (said[-1] if said else ""), answer
