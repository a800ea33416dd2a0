"""Fixtures of the engine tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.engine_contract import processes_of
from tests.engines import chats as chat_scenes
from tests.engines import claude_scenes, codex_scenes, scenes
from tests.fakes.openai_server import ChatServer


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., scenes.Scene]]:
    """Makes a scene; at the end its engine is closed and must have left nothing behind."""
    home, folder = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    folder.mkdir()
    made: list[scenes.Scene] = []

    def scene(*options: str, **settings: Any) -> scenes.Scene:
        made.append(scenes.Scene(home, folder, scenes.engine(home, *options, **settings)))
        return made[-1]

    yield scene
    for one in made:
        await one.engine.close()
    assert processes_of(home) == []


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


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[claude_scenes.Make]:
    """The same for the scripted Claude Code."""
    home, folder = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    folder.mkdir()
    made: list[claude_scenes.Scene] = []

    def scene(*options: str, **settings: Any) -> claude_scenes.Scene:
        engine = claude_scenes.engine(home, *options, **settings)
        made.append(claude_scenes.Scene(home, folder, engine))
        return made[-1]

    yield scene
    for one in made:
        await one.engine.close()
    assert processes_of(home) == []


@pytest.fixture
async def codex(tmp_path: Path) -> AsyncIterator[codex_scenes.Make]:
    """The same for the scripted Codex."""
    home, folder = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    folder.mkdir()
    made: list[codex_scenes.Scene] = []

    def scene(*options: str, **settings: Any) -> codex_scenes.Scene:
        engine = codex_scenes.engine(home, *options, **settings)
        made.append(codex_scenes.Scene(home, folder, engine))
        return made[-1]

    yield scene
    for one in made:
        await one.engine.close()
    assert processes_of(home) == []
