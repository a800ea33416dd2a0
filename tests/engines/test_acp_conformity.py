"""Both sides against the protocol's own library: what we send, and our scripted agent."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp import schema as acp

from core.engines import acp_session
from core.engines.acp_session import ToolServer
from core.engines.base import ApprovalAsked, Approvals, Attachment
from tests.engines.scenes import Scene, command

REQUESTS: dict[str, Any] = {
    "initialize": acp.InitializeRequest,
    "session/new": acp.NewSessionRequest,
    "session/load": acp.LoadSessionRequest,
    "session/resume": acp.ResumeSessionRequest,
    "session/fork": acp.ForkSessionRequest,
    "session/set_mode": acp.SetSessionModeRequest,
    "session/set_config_option": acp.SetSessionConfigOptionSelectRequest,
    "session/prompt": acp.PromptRequest,
    "session/cancel": acp.CancelNotification,
}


def check_sent(scene: Scene) -> set[str]:
    """Every message that an agent got is one of the protocol; their methods."""
    for message in scene.log:
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            REQUESTS[message["method"]].model_validate(message["params"])
        elif "result" in message:
            acp.RequestPermissionResponse.model_validate(message["result"])
        else:
            assert message["error"]["code"] == -32601
    return set(scene.methods())


async def test_all_that_is_sent_is_in_the_protocol(
    make: Callable[..., Scene], tmp_path: Path
) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"x")
    files = (Attachment(picture, "image/png"), Attachment(tmp_path / "b.txt", "text/plain"))
    server = ToolServer("laneway", "http://127.0.0.1:1/mcp", (("Authorization", "Bearer t"),))
    scene = make(
        "--models", "a,b", "--efforts", "low,high",
        read_only_mode="read-only", servers=lambda request: (server,), warm=0,
    )  # fmt: skip
    first = await scene.say("/approve tea\n/unknown", attachments=files)
    session = first.started.session
    await scene.say("/hello", session=session, model="b", effort="high")
    await scene.say("/hello", session=session, read_only=True)
    await scene.say("/hello", session=session, approvals=Approvals.FULL)
    play = scene.play("/approve tea", session=session, decision=None)
    async for event in play.run.events():
        if isinstance(event, ApprovalAsked):
            await play.run.stop(1.0)
    sent = check_sent(scene)
    loading = make("--no-resume", "--config-modes", warm=0)
    await loading.say("hello", session=session)
    assert sent | check_sent(loading) == set(REQUESTS)


def test_the_version_is_the_one_of_the_library() -> None:
    assert acp_session.PROTOCOL_VERSION == PROTOCOL_VERSION


class LibraryClient:
    """The library's own client, which checks all that it receives."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.text = ""

    async def session_update(self, session_id: str, update: Any, **rest: Any) -> None:
        self.kinds.append(update.session_update)
        if update.session_update == "agent_message_chunk":
            self.text += getattr(update.content, "text", "")

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **rest: Any
    ) -> acp.RequestPermissionResponse:
        outcome = acp.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return acp.RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Any) -> None: ...


async def test_the_scripted_agent_speaks_the_protocol(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client: Any = LibraryClient()
    program, *arguments = command(tmp_path, "--models", "a,b")
    script = (
        "/say hi\n/think hm\n/tool t\n/approve tea\n/edit a.txt\n/usage 1 2 0.5\n"
        "/file f.txt x\n/image\nplain words"
    )
    env = {"PATH": os.environ["PATH"]}
    async with spawn_agent_process(
        client, program, *arguments, env=env, use_unstable_protocol=True
    ) as (agent, _):
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        assert hello.agent_capabilities is not None
        session = (await agent.new_session(cwd=str(tmp_path))).session_id
        done = await agent.prompt(session_id=session, prompt=[text_block(script)])
        assert (done.stop_reason, done.usage and done.usage.input_tokens) == ("end_turn", 1)
        await agent.load_session(cwd=str(tmp_path), session_id=session)
        await agent.resume_session(cwd=str(tmp_path), session_id=session)
        fork = await agent.fork_session(cwd=str(tmp_path), session_id=session)
        await agent.set_session_mode(session_id=fork.session_id, mode_id="read-only")
        await agent.set_config_option(session_id=session, config_id="model", value="b")
        with pytest.raises(RequestError):
            await agent.resume_session(cwd=str(tmp_path), session_id="lost")
    assert "ran: tea." in client.text
    assert {"tool_call", "tool_call_update", "usage_update"} <= set(client.kinds)
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []
