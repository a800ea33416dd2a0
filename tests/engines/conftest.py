"""Fixtures of the engine tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.contracts.engine_contract import processes_of
from tests.engines import chats as chat_scenes
from tests.engines import claude_scenes, codex_scenes, scenes
from tests.engines.program_scenes import ProgramScene, places
from tests.fakes.openai_server import ChatServer

S = TypeVar("S", bound=ProgramScene[Any])
Maker = Callable[..., S]


@asynccontextmanager
async def maker(under: Path, kind: type[S], engine: Callable[..., Any]) -> AsyncIterator[Maker[S]]:
    """Makes scenes; at the end their engines are closed and must have left nothing behind."""
    home, folder = places(under)
    made: list[S] = []

    def scene(*options: str, **settings: Any) -> S:
        made.append(kind(home, folder, engine(home, *options, **settings)))
        return made[-1]

    yield scene
    for one in made:
        await one.engine.close()
    assert processes_of(home) == []


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., scenes.Scene]]:
    """For the agent of the protocol."""
    async with maker(tmp_path, scenes.Scene, scenes.engine) as found:
        yield found


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[claude_scenes.Make]:
    """For the scripted Claude Code."""
    async with maker(tmp_path, claude_scenes.Scene, claude_scenes.engine) as found:
        yield found


@pytest.fixture
async def codex(tmp_path: Path) -> AsyncIterator[codex_scenes.Make]:
    """For the scripted Codex."""
    async with maker(tmp_path, codex_scenes.Scene, codex_scenes.engine) as found:
        yield found


@pytest.fixture
async def chats(tmp_path: Path) -> AsyncIterator[chat_scenes.Chats]:
    """A chat-completions server on loopback, and what is needed to ask it."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    async with ChatServer() as server:
        made = chat_scenes.Chats(tmp_path / "home", folder, server)
        yield made
        for engine in made.engines:
            await engine.close()
