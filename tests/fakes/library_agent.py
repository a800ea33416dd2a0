"""An agent built on the protocol's own library: asks once, answers, remembers nothing.

A program of its own, run by its file path. What it shows is that an engine gets along with agents
that are made this way, as most are.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from acp import (
    PROTOCOL_VERSION,
    RequestError,
    run_agent,
    start_tool_call,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
)
from acp.interfaces import Agent
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    ToolCallUpdate,
    Usage,
)

MODES = SessionModeState(
    current_mode_id="yolo",
    available_modes=[SessionMode(id="yolo", name="All"), SessionMode(id="ask", name="Asks")],
)


class LibraryAgent:
    def __init__(self) -> None:
        self.mode = "yolo"
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **rest: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=True),
            auth_methods=[],
        )

    async def new_session(self, cwd: str, **rest: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="library-1", modes=MODES)

    async def load_session(self, **rest: Any) -> None:
        raise RequestError.resource_not_found("it remembers nothing")

    async def set_session_mode(
        self, mode_id: str, session_id: str, **rest: Any
    ) -> SetSessionModeResponse:
        self.mode = mode_id
        return SetSessionModeResponse()

    async def cancel(self, session_id: str, **rest: Any) -> None:
        self.cancelled.set()

    async def prompt(self, prompt: list[Any], session_id: str, **rest: Any) -> PromptResponse:
        async def tell(update: Any) -> None:
            await self.client.session_update(session_id=session_id, update=update)

        if prompt[0].text == "wait":
            await tell(update_agent_message_text("waiting"))
            await self.cancelled.wait()
            return PromptResponse(stop_reason="cancelled")
        if prompt[0].text == "fail":
            raise RequestError(-32000, "no more paper")
        await tell(update_agent_thought_text("hm"))
        await tell(start_tool_call("1", "Make tea", kind="execute", status="pending"))
        asked = await self.client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id="1", raw_input={"command": "make tea"}),
            options=[
                PermissionOption(option_id="y", name="Yes", kind="allow_once"),
                PermissionOption(option_id="n", name="No", kind="reject_once"),
            ],
        )
        await tell(update_tool_call("1", status="completed"))
        await tell(update_agent_message_text(f"{self.mode}: {asked.outcome.option_id}"))
        usage = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
        return PromptResponse(stop_reason="end_turn", usage=usage)


if __name__ == "__main__":
    asyncio.run(run_agent(cast(Agent, LibraryAgent())))
