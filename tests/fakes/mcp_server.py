"""A tool server of the gateway on loopback, as small as one can be: MCP over HTTP, one tool.

async with ToolService() as tools:
    ... an agent that is told of tools.url calls send_message; tools.calls has the texts ...
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.loopback import Loopback


@dataclass
class ToolService(Loopback):
    """Keeps what it was called with, and under which authorization."""

    base = "/mcp"
    headers: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/mcp", self._answer)
        return app

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
