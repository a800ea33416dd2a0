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
from tests.end_to_end.looking import in_state, refused
from tests.engines.test_codex_real import person as person
from tests.engines.test_codex_real import service as service
from tests.engines.thread_scene import TOPIC, Thread, call, then
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
    fake = thread.house.fake
    thread.mention("remember the blue door")
    await thread.shown("You said: remember the blue door")
    await thread.over(1)

    steps = (
        "SLOW 120 " + call("exec_command", cmd="printf 'a,b' > made.csv"),
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

    calls = 1 + 4 + 2 + 1  # of the model
    (used,) = await thread.usage()
    assert (used["lane"], used["turns"]) == (TOPIC, 4)
    assert (used["tokens_in"], used["tokens_out"]) == (TOKENS_IN * calls, TOKENS_OUT * calls)
