"""Scenery for tests of the Claude Code adapter: an engine on the scripted program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.clock import Clock, SystemClock
from core.engines.claude import ClaudeEngine
from tests.engines.program_scenes import ProgramScene, command


class Scene(ProgramScene[ClaudeEngine]):
    """And what the program was asked."""

    def sessions(self) -> list[Path]:
        """What the programs have kept of turns that are over."""
        return list((self.home / "sessions").glob("*.json"))

    def prompts(self) -> list[Any]:
        found = [entry for entry in self.log if entry.get("type") == "user"]
        return [message["message"]["content"] for message in found]


Make = Callable[..., Scene]  # a scene of an engine with these options and settings


def engine(home: Path, *options: str, clock: Clock | None = None, **settings: Any) -> ClaudeEngine:
    started = command("claude_agent.py", home, *options)
    return ClaudeEngine(started, home=home, clock=clock or SystemClock(), **settings)
