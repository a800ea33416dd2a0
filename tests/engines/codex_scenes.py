"""Scenery for tests of the Codex adapter: an engine on the scripted program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.clock import Clock, SystemClock
from core.engines.base import Decision, Request
from core.engines.codex import CodexEngine
from tests.contracts.engine_contract import Play

SCRIPTED = Path(__file__).parent.parent / "fakes" / "codex_agent.py"


@dataclass
class Scene:
    """A home, a workspace and the engine under test."""

    home: Path
    folder: Path
    engine: CodexEngine
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

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The parameters of every request of this kind."""
        return [entry["params"] for entry in self.log if entry.get("method") == method]

    def prompts(self) -> list[str]:
        return [told["input"][-1]["text"] for told in self.asked("turn/start")]

    def play(self, prompt: str, decision: Decision | None = Decision.ALLOW, **more: Any) -> Play:
        self.turns += 1
        fields = {"lane": "lane one", "turn": self.turns, "folder": self.folder, "prompt": prompt}
        return Play(self.engine.run(Request(**{**fields, **more})), decision)

    async def say(self, prompt: str, **more: Any) -> Play:
        play = self.play(prompt, **more)
        await play.through()
        return play


Make = Callable[..., Scene]  # a scene of an engine with these options and settings


def command(home: Path, *options: str) -> tuple[str, ...]:
    state, log = str(home / "threads"), str(home / "received")
    return (sys.executable, "-I", "-S", str(SCRIPTED), "--state", state, "--log", log, *options)


def engine(home: Path, *options: str, clock: Clock | None = None, **settings: Any) -> CodexEngine:
    return CodexEngine(command(home, *options), home=home, clock=clock or SystemClock(), **settings)
