"""Scenery for tests of engines whose agent is a scripted program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from core.engines.agents import AgentEngine
from core.engines.base import Decision, Engine, Request
from tests.contracts.engine_contract import Play

FAKES = Path(__file__).parent.parent / "fakes"
E = TypeVar("E", bound=Engine)


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


Program = Callable[..., ProgramScene[AgentEngine[Any]]]  # makes a scene, with these options


def command(script: str, home: Path, *options: str) -> tuple[str, ...]:
    """Starts a scripted program of tests/fakes that keeps its sessions and a log in the home."""
    state, log = str(home / "sessions"), str(home / "received")
    return (sys.executable, "-I", "-S", str(FAKES / script), "--state", state, "--log", log,
            *options)  # fmt: skip
