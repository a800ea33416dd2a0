"""Scenery for tests of the ACP adapter: an engine on the scripted agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.clock import Clock, SystemClock
from core.engines.acp import AcpEngine
from tests.engines import program_scenes
from tests.engines.program_scenes import ProgramScene


class Scene(ProgramScene[AcpEngine]):
    """And what the agents of this home were asked."""

    def methods(self) -> list[str]:
        return [message["method"] for message in self.log if "method" in message]


def command(home: Path, *options: str) -> tuple[str, ...]:
    return program_scenes.command("acp_agent.py", home, *options)


def engine(home: Path, *options: str, clock: Clock | None = None, **settings: Any) -> AcpEngine:
    return AcpEngine(
        "acp", command(home, *options), home=home, clock=clock or SystemClock(), **settings
    )
