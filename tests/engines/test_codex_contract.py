"""The Codex adapter on the scripted program keeps the contract of the port."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from core.engines.base import Engine
from tests.contracts.engine_contract import Act, EngineContract
from tests.engines import codex_scenes


class TestScriptedCodex(EngineContract):
    prompts: ClassVar[Mapping[Act, str]] = {
        Act.ANSWER: "remember the blue door",
        Act.RECALL: "/turns",
        Act.HANG: "/say working\n/hang",
        Act.APPROVE: "/run make tea",
        Act.FAIL: "/error badRequest no more paper",
        Act.CRASH: "/crash 9",
    }
    remembered = "1"

    def make_engine(self, home: Path) -> Engine:
        return codex_scenes.engine(home)
