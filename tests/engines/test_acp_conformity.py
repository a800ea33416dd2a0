"""Both sides against the protocol's own library: what we send, what we take, and our own agents."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.clock import SystemClock
from core.engines import acp_session
from core.engines.acp import AcpEngine
from core.engines.agents import ToolServer
from core.engines.base import ApprovalAsked, Approvals, Attachment, Finished, Text, Usage
from core.engines.demo import AGENT
from core.turns import Result
from tests.contracts.engine_contract import until
from tests.engines import scenes
from tests.engines.scenes import Scene, command

LIBRARY_AGENT = "fakes/library_agent.py"


@pytest.fixture(scope="module")
def library() -> ModuleType:
    """It is read where it is used: every process that runs some tests collects this file."""
    return importlib.import_module("acp")


REQUESTS: dict[str, str] = {
    "initialize": "InitializeRequest",
    "session/new": "NewSessionRequest",
    "session/load": "LoadSessionRequest",
    "session/resume": "ResumeSessionRequest",
    "session/fork": "ForkSessionRequest",
    "session/set_mode": "SetSessionModeRequest",
    "session/set_config_option": "SetSessionConfigOptionSelectRequest",
    "session/prompt": "PromptRequest",
    "session/cancel": "CancelNotification",
}


def check_sent(library: ModuleType, scene: Scene) -> set[str]:
    """Every message that an agent got is one of the protocol; their methods."""
    for message in scene.log:
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            kind = getattr(library.schema, REQUESTS[message["method"]])
            kind.model_validate(message["params"])
        elif "result" in message:
            library.schema.RequestPermissionResponse.model_validate(message["result"])
        else:
            assert message["error"]["code"] == -32601
    return set(scene.methods())


async def test_all_that_is_sent_is_in_the_protocol(
    make: Callable[..., Scene], tmp_path: Path, library: ModuleType
) -> None:
    picture = tmp_path / "workspace" / "a.png"
    picture.write_bytes(b"x")
    files = (Attachment(picture, "image/png"), Attachment(tmp_path / "b.txt", "text/plain"))
    server = ToolServer("laneway", "http://127.0.0.1:1/mcp", "t")
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
    sent = check_sent(library, scene)
    loading = make("--no-resume", "--config-modes", warm=0)
    await loading.say("hello", session=session)
    assert sent | check_sent(library, loading) == set(REQUESTS)


def test_the_version_is_the_one_of_the_library(library: ModuleType) -> None:
    assert acp_session.PROTOCOL_VERSION == library.PROTOCOL_VERSION


class LibraryClient:
    """The library's own client, which checks all that it receives."""

    def __init__(self, library: ModuleType) -> None:
        self.schema = library.schema
        self.kinds: list[str] = []
        self.text = ""

    async def session_update(self, session_id: str, update: Any, **rest: Any) -> None:
        self.kinds.append(update.session_update)
        if update.session_update == "agent_message_chunk":
            self.text += getattr(update.content, "text", "")

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **rest: Any
    ) -> Any:
        outcome = self.schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return self.schema.RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Any) -> None: ...


@asynccontextmanager
async def library_client(
    library: ModuleType, folder: Path, command: Sequence[str], caplog: pytest.LogCaptureFixture
) -> AsyncIterator[tuple[LibraryClient, Any]]:
    """The library's client and an agent; all that was said must have been understood."""
    client: Any = LibraryClient(library)
    program, *arguments = command
    env = {"PATH": os.environ["PATH"]}
    async with library.spawn_agent_process(
        client, program, *arguments, env=env, cwd=folder, use_unstable_protocol=True
    ) as (agent, _):
        yield client, agent
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


async def through_all_of_it(
    library: ModuleType, agent: Any, folder: Path, said: str, option: bool
) -> None:
    """Every request that an agent knows, answered as the protocol says."""
    hello = await agent.initialize(protocol_version=library.PROTOCOL_VERSION)
    assert hello.agent_capabilities is not None
    session = (await agent.new_session(cwd=str(folder))).session_id
    done = await agent.prompt(session_id=session, prompt=[library.text_block(said)])
    assert (done.stop_reason, bool(done.usage and done.usage.input_tokens)) == ("end_turn", True)
    await agent.load_session(cwd=str(folder), session_id=session)
    await agent.resume_session(cwd=str(folder), session_id=session)
    fork = await agent.fork_session(cwd=str(folder), session_id=session)
    assert fork.session_id != session
    await agent.set_session_mode(session_id=fork.session_id, mode_id="read-only")
    if option:
        await agent.set_config_option(session_id=session, config_id="model", value="b")
    with pytest.raises(library.RequestError):
        await agent.resume_session(cwd=str(folder), session_id="lost")


async def test_the_scripted_agent_speaks_the_protocol(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, library: ModuleType
) -> None:
    script = (
        "/say hi\n/think hm\n/tool t\n/approve tea\n/edit a.txt\n/usage 1 2 0.5\n"
        "/file f.txt x\n/image\nplain words"
    )
    program = command(tmp_path, "--models", "a,b")
    async with library_client(library, tmp_path, program, caplog) as (client, agent):
        await through_all_of_it(library, agent, tmp_path, script, option=True)
    assert "ran: tea." in client.text
    assert {"tool_call", "tool_call_update", "usage_update"} <= set(client.kinds)


async def test_the_demo_agent_speaks_the_protocol(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, library: ModuleType
) -> None:
    program = (sys.executable, "-I", "-S", str(AGENT), str(tmp_path / "state"), "--speed", "0")
    async with library_client(library, tmp_path, program, caplog) as (client, agent):
        await through_all_of_it(library, agent, tmp_path, "make a file", option=False)
        session = (await agent.new_session(cwd=str(tmp_path))).session_id
        for said in ("tell me a story", "run something", "hello"):
            await agent.prompt(session_id=session, prompt=[library.text_block(said)])
        with pytest.raises(library.RequestError, match="nothing is broken"):
            await agent.prompt(session_id=session, prompt=[library.text_block("fail")])
        slow = asyncio.create_task(
            agent.prompt(session, [library.text_block("wait 60s")]), name="slow"
        )
        await until(lambda: "60 seconds" in client.text)
        await agent.cancel(session_id=session)
        assert (await slow).stop_reason == "cancelled"
        with pytest.raises(library.RequestError):
            await agent.set_session_mode(session_id=session, mode_id="no such mode")
        with pytest.raises(library.RequestError):
            await agent.set_config_option(session_id=session, config_id="model", value="b")
    assert "demo-week.csv" in client.text
    assert {"tool_call", "tool_call_update", "agent_thought_chunk", "user_message_chunk"} <= set(
        client.kinds
    )


async def test_an_agent_built_on_the_library_is_understood(tmp_path: Path) -> None:
    program = (sys.executable, "-I", str(Path(scenes.__file__).parents[1] / LIBRARY_AGENT))
    engine = AcpEngine("acp", program, home=tmp_path, clock=SystemClock())
    scene = Scene(tmp_path, tmp_path, engine)
    try:
        play = await scene.say("tea, please")
        assert play.text == "ask: y"
        (asked,) = [event for event in play.events if isinstance(event, ApprovalAsked)]
        assert (asked.tool, asked.command) == ("Make tea", "make tea")
        assert Usage(3, 4) in play.events
        assert play.last == Finished(Result.DONE)
        failed = await scene.say("fail", session=play.started.session)
        assert isinstance(failed.last, Finished)
        assert "no more paper" in failed.last.error
        waiting = scene.play("wait", session=play.started.session)
        async with asyncio.TaskGroup() as group:
            group.create_task(waiting.through())
            await until(lambda: waiting.saw(Text))
            await waiting.run.stop(4.0)
        assert not waiting.started.resumed
        assert waiting.last == Finished(Result.CANCELLED)
    finally:
        await engine.close()
