"""A thread of a platform with the real Codex in it, from the message to the bill.

Run by ``make test-engines``; skipped where LANEWAY_TEST_CODEX does not name the program.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.house import House
from tests.engines.test_codex_real import person as person
from tests.engines.test_codex_real import service as service
from tests.engines.thread_scene import (
    CALLS,
    MAKES,
    TOPIC,
    Thread,
    asked_about_and_answered_aside,
    call,
)
from tests.fakes.responses_server import TOKENS_IN, TOKENS_OUT

PROGRAM = os.environ.get("LANEWAY_TEST_CODEX", "")
pytestmark = [
    pytest.mark.skipif(not PROGRAM, reason="LANEWAY_TEST_CODEX names no program"),
    pytest.mark.timeout(180),
]
OWN = "mcp__laneway/"  # the gateway's tools, as it names them


@pytest.fixture
async def thread(tmp_path: Path, person: Path) -> AsyncIterator[Thread]:
    settings = {
        "LANEWAY_ENGINE": "codex",
        "LANEWAY_CODEX_COMMAND": shlex.quote(PROGRAM),
        "LANEWAY_ENGINE_ENV": "A_KEY_OF_NOBODY",
    }
    async with House(tmp_path, times=1, **settings) as house:
        yield Thread(house)


async def test_a_turn_is_streamed_asked_about_answered_aside_and_counted(thread: Thread) -> None:
    begins = "SLOW 120 " + call("exec_command", cmd=MAKES)
    await asked_about_and_answered_aside(thread, OWN, begins)
    (used,) = await thread.usage()
    assert (used["lane"], used["turns"]) == (TOPIC, len(CALLS))
    calls = sum(CALLS)
    assert (used["tokens_in"], used["tokens_out"]) == (TOKENS_IN * calls, TOKENS_OUT * calls)
