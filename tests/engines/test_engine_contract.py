"""Every engine that runs an agent program keeps the contract of the port."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from core.clock import SystemClock
from core.engines.acp import AcpEngine
from core.engines.base import Engine
from core.engines.demo import demo_engine
from tests.contracts.engine_contract import Act, EngineContract

SCRIPTED = Path(__file__).parent.parent / "fakes" / "acp_agent.py"


class TestScriptedAgent(EngineContract):
    prompts: ClassVar[Mapping[Act, str]] = {
        Act.ANSWER: "remember the blue door",
        Act.RECALL: "/turns",
        Act.HANG: "/say working\n/hang",
        Act.APPROVE: "/approve make tea",
        Act.FAIL: "/error no more paper",
        Act.CRASH: "/crash 9",
    }
    remembered = "1"

    def make_engine(self, home: Path) -> Engine:
        command = (sys.executable, "-I", "-S", str(SCRIPTED), "--state", str(home / "sessions"))
        return AcpEngine("acp", command, home=home, clock=SystemClock())


class TestDemoAgent(EngineContract):
    prompts: ClassVar[Mapping[Act, str]] = {
        Act.ANSWER: "remember the blue door",
        Act.RECALL: "what did I say?",
        Act.HANG: "take your time 60s",
        Act.APPROVE: "run something",
        Act.FAIL: "fail",
        Act.CRASH: "crash",
    }
    remembered = "the blue door"

    def make_engine(self, home: Path) -> Engine:
        return demo_engine(home, SystemClock(), speed=0)
