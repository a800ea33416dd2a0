"""Scenery for tests of the Codex adapter: an engine on the scripted program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.clock import Clock, SystemClock
from core.engines.codex import CodexEngine
from tests.engines.program_scenes import ProgramScene, command


class Scene(ProgramScene[CodexEngine]):
    """And what the program was asked."""

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The parameters of every request of this kind."""
        return [entry["params"] for entry in self.log if entry.get("method") == method]

    def prompts(self) -> list[str]:
        return [told["input"][-1]["text"] for told in self.asked("turn/start")]


Make = Callable[..., Scene]  # a scene of an engine with these options and settings


def engine(home: Path, *options: str, clock: Clock | None = None, **settings: Any) -> CodexEngine:
    started = command("codex_agent.py", home, *options)
    return CodexEngine(started, home=home, clock=clock or SystemClock(), **settings)
