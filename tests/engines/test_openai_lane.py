"""A whole lane on a chat-completions server: answers, a crash in between, a server that is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core import running
from core.engines.openai_http import ChatEngine
from tests.fakes.openai_server import MODEL, ChatServer, refuses
from tests.runner.scene import Scene


@pytest.fixture
async def server() -> AsyncIterator[ChatServer]:
    async with ChatServer() as made:
        yield made


@asynccontextmanager
async def scene(home: Path, base_url: str) -> AsyncIterator[Scene]:
    made = Scene(home)
    engine = ChatEngine("demo", base_url, home=home, clock=made.clock, key="sk-hush", model=MODEL)
    made.engine = engine  # type: ignore[assignment]
    try:
        async with made:
            yield made
    finally:
        await engine.close()


async def test_a_conversation_goes_on_after_a_crash(tmp_path: Path, server: ChatServer) -> None:
    async with scene(tmp_path, server.base_url) as before:
        await before.says("the door is blue")
        await before.until(lambda: before.texts() == ["Noted: the door is blue"])
        await before.crash()
    async with scene(tmp_path, server.base_url) as after:
        await after.says("recall")
        await after.until(lambda: after.texts()[-1:] == ["You said: the door is blue"])
        first, second = await after.turns()
        assert first.session == second.session
        assert (second.model, second.tokens_in, second.tokens_out) == (MODEL, 11, 3)


async def test_a_command_for_the_agent_itself_compacts(tmp_path: Path, server: ChatServer) -> None:
    async with scene(tmp_path, server.base_url) as there:
        await there.says("the door is blue")
        await there.until(lambda: len(there.texts()) == 1)
        await there.says("//compact")
        await there.until(lambda: "tokens of conversation" in there.texts()[-1])


async def test_a_server_that_is_away_is_tried_again_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(running, "RETRY_PAUSE", 0.01)
    async with scene(tmp_path, "http://127.0.0.1:9/v1") as there:
        await there.says("hello")
        await there.until(lambda: any("could not be reached" in text for text in there.texts()))
        (turn,) = await there.turns()
        assert turn.prompted_at is None, "no byte of it left"
    assert caplog.text.count("connection refused. Ask an admin") == 3


async def test_a_refusal_is_told_in_the_thread_without_the_key(
    tmp_path: Path, server: ChatServer
) -> None:
    server.script = [refuses(401, "no such key sk-hush")]
    async with scene(tmp_path, server.base_url) as there:
        await there.says("hello")
        await there.until(lambda: any("OPENAI" in text for text in there.texts()))
        (said,) = there.texts()
        assert "does not accept the key" in said
        assert "hush" not in said
