"""Scenery for tests of engines whose agent is a scripted program."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from core.engines.agents import AgentEngine
from core.engines.base import ApprovalAsked, Decision, Engine, Finished, Request, Text, Usage
from core.turns import Result
from tests.contracts.engine_contract import Play, until

FAKES = Path(__file__).parent.parent / "fakes"
DONE = Finished(Result.DONE)
CANCELLED = Finished(Result.CANCELLED)
E = TypeVar("E", bound=Engine)


def usages(play: Play) -> list[Usage]:
    return [event for event in play.events if isinstance(event, Usage)]


def questions(play: Play) -> list[ApprovalAsked]:
    return [event for event in play.events if isinstance(event, ApprovalAsked)]


def tool(name: str, **given: Any) -> str:
    """The model's script for a call of a tool."""
    return f"TOOL {name} {json.dumps(given)}"


def places(under: Path) -> tuple[Path, Path]:
    """A home and a workspace, made."""
    home, folder = under / "home", under / "workspace"
    home.mkdir()
    folder.mkdir()
    return home, folder


@asynccontextmanager
async def running(
    play: Play, seen: Callable[[], object] | None = None
) -> AsyncIterator[asyncio.TaskGroup]:
    """What is done in here is done while the turn runs, which it does to its end.

    It begins once the turn has said something, or ``seen`` is true; and has a group for more.
    """
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(seen or (lambda: play.saw(Text)))
        yield group


@dataclass
class ProgramScene(Generic[E]):
    """A home, a workspace and the engine under test."""

    home: Path
    folder: Path
    engine: E
    turns: int = 0

    @property
    def log(self) -> list[dict[str, Any]]:
        """What each program of this home was started with, and every message it received."""
        path = self.home / "received"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines()]

    @property
    def starts(self) -> list[list[str]]:
        return [entry["arguments"] for entry in self.log if "arguments" in entry]

    def play(self, prompt: str, decision: Decision | None = Decision.ALLOW, **more: Any) -> Play:
        self.turns += 1
        fields = {"lane": "lane one", "turn": self.turns, "folder": self.folder, "prompt": prompt}
        return Play(self.engine.run(Request(**{**fields, **more})), decision)

    async def say(self, prompt: str, **more: Any) -> Play:
        play = self.play(prompt, **more)
        await play.through()
        return play

    async def aside(self, script: str, session: str) -> Play:
        """A side answer to this, while a main turn of the session is at work; it goes on."""
        main = self.play("/say working\n/hang", session=session)
        async with running(main):
            side = await self.say(script, session=session, read_only=True)
            assert not main.over
            await main.run.stop(2.0)
        return side


Program = Callable[..., ProgramScene[AgentEngine[Any]]]  # makes a scene, with these options


def command(script: str, home: Path, *options: str) -> tuple[str, ...]:
    """Starts a scripted program of tests/fakes that keeps its sessions and a log in the home."""
    state, log = str(home / "sessions"), str(home / "received")
    return (sys.executable, "-I", "-S", str(FAKES / script), "--state", state, "--log", log,
            *options)  # fmt: skip
