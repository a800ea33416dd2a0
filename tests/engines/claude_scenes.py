"""Scenery for tests of the Claude Code adapter: an engine on the scripted program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.clock import Clock, SystemClock
from core.engines.base import Decision, Request
from core.engines.claude import ClaudeEngine
from tests.contracts.engine_contract import Play

SCRIPTED = Path(__file__).parent.parent / "fakes" / "claude_agent.py"


@dataclass
class Scene:
    """A home, a workspace and the engine under test."""

    home: Path
    folder: Path
    engine: ClaudeEngine
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

    def sessions(self) -> list[Path]:
        """What the programs have kept of turns that are over."""
        return list((self.home / "sessions").glob("*.json"))

    def prompts(self) -> list[Any]:
        found = [entry for entry in self.log if entry.get("type") == "user"]
        return [message["message"]["content"] for message in found]

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
    state, log = str(home / "sessions"), str(home / "received")
    return (sys.executable, "-I", "-S", str(SCRIPTED), "--state", state, "--log", log, *options)


def engine(home: Path, *options: str, clock: Clock | None = None, **settings: Any) -> ClaudeEngine:
    return ClaudeEngine(
        command(home, *options), home=home, clock=clock or SystemClock(), **settings
    )
