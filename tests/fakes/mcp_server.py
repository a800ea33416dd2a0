"""A tool server of the gateway on loopback, as small as one can be: MCP over HTTP, one tool.

async with ToolService() as tools:
    ... an agent that is told of tools.url calls send_message; tools.calls has the texts ...
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web


@dataclass
class ToolService:
    """Keeps what it was called with, and under which authorization."""

    headers: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> ToolService:
        app = web.Application()
        app.router.add_route("*", "/mcp", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/mcp"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        self.headers.append(request.headers.get("Authorization", ""))
        message = await request.json()
        match message["method"]:
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "laneway", "version": "1"},
                }
            case "tools/list":
                schema = {"type": "object", "properties": {"text": {"type": "string"}}}
                one = {"name": "send_message", "description": "d", "inputSchema": schema}
                result = {"tools": [one]}
            case "tools/call":
                self.calls.append(message["params"]["arguments"]["text"])
                result = {"content": [{"type": "text", "text": "sent"}]}
            case _:
                return web.Response(status=202)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})
