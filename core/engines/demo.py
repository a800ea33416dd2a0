"""The demo engine: the ACP adapter on the demo agent that ships with the project."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from core.clock import Clock
from core.engines.acp import AcpEngine
from core.engines.base import Abilities
from core.engines.processes import Ledger

AGENT = Path(__file__).with_name("demo_agent.py")


def demo_engine(
    home: Path,
    clock: Clock,
    ledger: Ledger | None = None,
    *,
    speed: float = 1.0,
    env: Sequence[str] = (),
) -> AcpEngine:
    """The engine for trying everything without a model, a login or a network.

    The agent is started by its file path and isolated, so that a folder ``core`` in a workspace is
    never imported by mistake.
    """
    state = home / "engines" / "demo" / "sessions"
    command = (sys.executable, "-I", "-S", str(AGENT), str(state), "--speed", str(speed))
    return AcpEngine(
        "demo",
        command,
        home=home,
        clock=clock,
        env=env,
        ledger=ledger,
        read_only_mode="read-only",
        abilities=Abilities(resume=True, side=True, images=True),
    )
