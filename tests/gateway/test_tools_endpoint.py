"""The tools as agents reach them: the protocol's own client, and what must be refused."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import ModuleType

import httpx
import pytest

from core.engines.acp_session import BRIDGE
from core.engines.base import ToolReply, ToolSpec
from core.engines.tools_bridge import TOKEN, URL
from core.tools import Idle, Unknown
from gateway.web.app import serve
from gateway.web.listener import TOOLS_PATH, listen
from gateway.web.tools import application

SPEC = ToolSpec("say", "Says it.", {"type": "object", "properties": {"text": {"type": "string"}}})
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
BOTH = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def library() -> ModuleType:
    """It is read where it is used: every process that runs some tests collects this file."""
    importlib.import_module("mcp.client.streamable_http")
    return importlib.import_module("mcp")


class Box:
    """A toolbox with one tool that a test can hold up."""

    url = token = ""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, object]]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.given_up = False

    def offered(self) -> Sequence[ToolSpec]:
        return [SPEC]

    async def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        self.calls.append((name, arguments))
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.given_up = True
            raise
        return ToolReply(f"said {arguments.get('text')} 👋", failed=name != "say")


class Boxes:
    def __init__(self) -> None:
        self.box = Box()

    def seat(self, token: str) -> Box:
        if token == "idle":
            raise Idle
        if token != "good":
            raise Unknown
        return self.box


@asynccontextmanager
async def served(alive_every: float = 15.0) -> AsyncIterator[tuple[str, Box]]:
    boxes = Boxes()
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{TOOLS_PATH}"
    async with asyncio.TaskGroup() as group:
        app = application(boxes, alive_every)  # type: ignore[arg-type]
        task = group.create_task(serve(app, listener))
        try:
            yield url, boxes.box
        finally:
            task.cancel()


def bearer(token: str = "good") -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Accept": BOTH}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agents_client_finds_and_calls_the_tools(mode: str, library: ModuleType) -> None:
    httpx2 = importlib.import_module("httpx2")
    async with served() as (url, box), httpx2.AsyncClient(headers=bearer(), verify=False) as http:
        transport = library.client.streamable_http.streamable_http_client(url, http_client=http)
        async with library.Client(transport, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["say"]
            result = await client.call_tool("say", {"text": "hi"})
            assert not result.is_error
            assert result.content[0].text == "said hi 👋"
            assert (await client.call_tool("other", {})).is_error
    assert box.calls == [("say", {"text": "hi"}), ("other", {})]


async def test_an_agent_that_starts_programs_reaches_them_over_the_bridge(
    library: ModuleType,
) -> None:
    async with served() as (url, box):
        env = {URL: url, TOKEN: "good"}
        program = library.StdioServerParameters(
            command=sys.executable, args=["-I", "-S", str(BRIDGE)], env=env
        )
        async with library.Client(program) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["say"]
            result = await client.call_tool("say", {"text": "hi"})
            assert result.content[0].text == "said hi 👋"
    assert box.calls == [("say", {"text": "hi"})]


async def test_over_the_bridge_a_refusal_is_an_error_and_not_silence() -> None:
    async with served() as (url, _):
        for env in ({URL: url, TOKEN: "idle"}, {URL: "http://127.0.0.1:9/mcp", TOKEN: "good"}):
            bridge = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(BRIDGE), env=env, stdin=PIPE, stdout=PIPE
            )
            assert bridge.stdin is not None
            assert bridge.stdout is not None
            bridge.stdin.write(b"not json\n" + json.dumps(HELLO).encode() + b"\n")
            answer = json.loads(await bridge.stdout.readline())
            assert answer["id"] == 1
            assert answer["error"]["message"]
            bridge.stdin.close()
            assert await bridge.wait() == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic good"}, 401),
        (bearer("idle"), 403),
        (bearer() | {"Origin": "https://example.org"}, 403),
        (bearer() | {"Host": "example.org"}, 403),
    ],
)
async def test_nobody_else_gets_in(headers: dict[str, str], status: int) -> None:
    async with served() as (url, box), httpx.AsyncClient(verify=False) as http:
        answer = await http.post(url, json=HELLO, headers=headers)
    assert answer.status_code == status
    assert not box.calls


async def test_what_is_no_request_is_refused_and_costs_nothing() -> None:
    async with served() as (url, _), httpx.AsyncClient(headers=bearer(), verify=False) as http:
        assert (await http.get(url)).status_code == 405
        assert (await http.delete(url)).status_code == 405
        assert (await http.post(url, content=b"{")).json()["error"]["code"] == -32700
        assert (await http.post(url, content=b"[" * 500_000)).json()["error"]["code"] == -32700
        half = await http.post(url, content=json.dumps(HELLO | {"id": "\ud83d"}))
        assert half.json()["id"] == "\ud83d"
        assert (await http.post(url, json=[HELLO])).json()["error"]["code"] == -32600
        assert (await http.post(url, content=b" " * 1_100_000)).status_code == 413
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await http.post(url, json=note)).status_code == 202
        unknown = await http.post(url, json=HELLO | {"method": "resources/list"})
        assert unknown.json()["error"]["code"] == -32601
        bad = HELLO | {"method": "tools/call", "params": {"name": 5}}
        assert (await http.post(url, json=bad)).json()["error"]["code"] == -32602
        plain = HELLO | {"method": "tools/call", "params": {"name": "say", "arguments": {}}}
        answer = await http.post(url, json=plain, headers={"Accept": "application/json"})
        assert answer.json()["result"]["content"][0]["text"] == "said None 👋"


async def test_an_answer_that_takes_long_is_kept_alive() -> None:
    async with served(alive_every=0.01) as (url, box), httpx.AsyncClient(verify=False) as http:
        box.go.clear()
        call = HELLO | {"method": "tools/call", "params": {"name": "say"}}
        lines = []
        async with http.stream("POST", url, json=call, headers=bearer()) as answer:
            async for line in answer.aiter_lines():
                lines.append(line)
                if line.startswith(":"):
                    box.go.set()
        assert lines[0].startswith(":")
        assert lines[-2].startswith("data: ")


async def test_an_agent_that_does_not_wait_any_more_ends_its_call() -> None:
    async with served(alive_every=0.01) as (url, box), httpx.AsyncClient(verify=False) as http:
        box.go.clear()
        call = HELLO | {"method": "tools/call", "params": {"name": "say"}}
        async with http.stream("POST", url, json=call, headers=bearer()) as answer:
            await anext(answer.aiter_lines())
        async with asyncio.timeout(30):
            while not box.given_up:
                await asyncio.sleep(0.005)
