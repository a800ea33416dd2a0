"""A thread of a platform with the real Claude Code in it, from the message to the bill.

Run by ``make test-engines``; skipped where LANEWAY_TEST_CLAUDE does not name the program.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.house import House
from tests.engines.thread_scene import (
    CALLS,
    MAKES,
    TOPIC,
    Thread,
    asked_about_and_answered_aside,
    call,
)
from tests.fakes.anthropic_server import TOKENS_IN, TOKENS_OUT, AnthropicServer

PROGRAM = os.environ.get("LANEWAY_TEST_CLAUDE", "")
pytestmark = [
    pytest.mark.skipif(not PROGRAM, reason="LANEWAY_TEST_CLAUDE names no program"),
    pytest.mark.timeout(180),
]
MODEL = "claude-sonnet-4-5"  # its prices are known to every version
OWN = "mcp__laneway__"  # the gateway's tools, as it names them
CALL = 0.00375  # dollars that one call of the scripted model costs


@pytest.fixture
async def thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Thread]:
    person = tmp_path / "person"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    async with AnthropicServer() as service:
        handed = {
            "ANTHROPIC_BASE_URL": service.url,
            "ANTHROPIC_API_KEY": "a-key-of-nobody",
            "CLAUDE_CODE_MAX_RETRIES": "0",
        }
        for name, value in handed.items():
            monkeypatch.setenv(name, value)
        settings = {
            "LANEWAY_ENGINE": "claude",
            "LANEWAY_CLAUDE_COMMAND": shlex.quote(PROGRAM),
            "LANEWAY_ENGINE_ENV": ",".join(handed),
        }
        async with House(tmp_path, times=1, **settings) as house:
            yield Thread(house)


async def test_a_turn_is_streamed_asked_about_answered_aside_and_billed(thread: Thread) -> None:
    thread.mention(f"/model {MODEL}")
    await thread.shown(MODEL)
    command = call("Bash", command=MAKES, description="make the table")
    # Six seconds; a group is edited every three.
    rows = await asked_about_and_answered_aside(thread, OWN, f"SLOW 60 {command}")
    assert [row["cost_usd"] for row in rows] == pytest.approx([CALL * one for one in CALLS])
    thread.says("/usage")
    await thread.shown(f"${CALL * sum(CALLS):.2f}")
    (used,) = await thread.usage()
    assert (used["lane"], used["turns"]) == (TOPIC, len(CALLS))
    assert used["tokens_in"] == TOKENS_IN * sum(CALLS)
    assert used["tokens_out"] == TOKENS_OUT * sum(CALLS)
    assert used["cost_usd"] == pytest.approx(CALL * sum(CALLS))
