"""The engine for chat-completions servers keeps the contract of the port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from core.clock import SystemClock
from core.engines.base import Engine
from core.engines.openai_http import ChatEngine
from tests.contracts.engine_contract import Act, EngineContract
from tests.fakes.openai_server import MODEL, ChatServer


class TestChatCompletions(EngineContract):
    prompts: ClassVar[Mapping[Act, str]] = {
        Act.ANSWER: "remember the blue door",
        Act.RECALL: "recall",
        Act.HANG: "hang",
        Act.FAIL: "fail",
        Act.CRASH: "crash",
    }
    remembered = "the blue door"

    @pytest.fixture(autouse=True)
    async def server(self) -> AsyncIterator[None]:
        async with ChatServer() as self.running:
            yield

    def make_engine(self, home: Path) -> Engine:
        url = self.running.base_url
        return ChatEngine("openai", url, home=home, clock=SystemClock(), model=MODEL)
