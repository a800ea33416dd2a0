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
from tests.end_to_end.looking import in_state, refused
from tests.engines.thread_scene import TOPIC, Thread, call, then
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
    fake = thread.house.fake
    thread.mention(f"/model {MODEL}")
    await thread.shown(MODEL)
    thread.mention("remember the blue door")
    await thread.shown("You said: remember the blue door")
    await thread.over(1)

    command = call("Bash", command="printf 'a,b' > made.csv", description="make the table")
    steps = (
        f"SLOW 60 {command}",  # six seconds; a group is edited every three
        call(f"{OWN}send_file", path="made.csv", name="table.csv"),
        call(f"{OWN}ask_person", question="Which **colour**?", options=["red", "blue"]),
    )
    thread.mention(then(*steps))
    card = await thread.card()
    assert "printf 'a,b' > made.csv" in card["text"]
    assert thread.edits("w1 "), "what it said first grew in the thread"
    fake.press("Allow", message=card)
    assert await thread.document() == ("table.csv", b"a,b")

    question = await thread.shown("Which colour?")
    await in_state(thread.house, TOPIC, "asking")
    handed_over = call(f"{OWN}queue_for_main", request="RECALL now")
    thread.says("/btw " + then(handed_over, "RECALL"))
    await thread.shown("From the side answer, for the main conversation:")
    await thread.shown("remember the blue door | ")
    assert question in thread.texts(), "the main turn waits for its answer all the while"

    fake.press("blue")
    await thread.shown("blue, said Ana")
    rows = await thread.over(4)
    assert [row["kind"] for row in rows] == ["main", "main", "side", "main"]
    assert {row["status"] for row in rows} == {"done"}
    assert "blue" in str(rows[1]["answer"])
    assert "remember the blue door" in str(rows[3]["answer"])
    assert thread.cards_sent() == 1, "the gateway's own tools are not asked about"
    assert refused(fake) == []

    calls = [1, 4, 2, 1]  # of the model, in each turn
    assert [row["cost_usd"] for row in rows] == pytest.approx([CALL * one for one in calls])
    thread.says("/usage")
    await thread.shown(f"${CALL * sum(calls):.2f}")
    (used,) = await thread.usage()
    assert (used["lane"], used["turns"]) == (TOPIC, len(calls))
    assert used["tokens_in"] == TOKENS_IN * sum(calls)
    assert used["tokens_out"] == TOKENS_OUT * sum(calls)
    assert used["cost_usd"] == pytest.approx(CALL * sum(calls))
