"""A thread of the fake Telegram with a real agent in it: what people write there and see.

The whole gateway runs, with its listener for tools; only the platform and the model are ours.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from tests.end_to_end.house import House
from tests.end_to_end.looking import cards, in_state, refused, turns
from tests.end_to_end.shell import Shell
from tests.fakes.telegram import FORUM

THREAD = 36
TOPIC = f"telegram:{FORUM}:{THREAD}"
MAKES = "printf 'a,b' > made.csv"
CALLS = (1, 4, 2, 1)  # of the model, in each turn of ``asked_about_and_answered_aside``
WITHIN = 30.0  # seconds any one thing may take


@dataclass(frozen=True, slots=True)
class Thread:
    """A topic of a forum; ``mention`` speaks to the bot before it was engaged there."""

    house: House

    def says(self, text: str) -> None:
        self.house.fake.user_says(text, chat=FORUM, thread=THREAD)

    def mention(self, text: str) -> None:
        self.says(f"@gw_bot {text}")

    def texts(self) -> list[str]:
        return self.house.fake.texts(FORUM, THREAD)

    async def shown(self, words: str) -> str:
        """The newest message with these words, as soon as it is there."""
        loop = asyncio.get_running_loop()
        end = loop.time() + WITHIN
        while True:
            texts = self.texts()
            if found := [text for text in texts if words in text]:
                return found[-1]
            assert loop.time() < end, f"{words!r} is not among {texts}"
            await asyncio.sleep(0.02)

    async def card(self) -> dict[str, Any]:
        """The only question for permission, as soon as it is shown."""
        await self.house.fake.until(lambda: cards(self.house.fake, FORUM, THREAD))
        (card,) = cards(self.house.fake, FORUM, THREAD)
        return card

    def cards_sent(self) -> int:
        """How many questions for permission there ever were."""
        sent = self.house.fake.called("sendMessage", FORUM)
        return sum("Allow" in str(call.fields) for call in sent)

    def edits(self, words: str) -> int:
        """How often a message was edited to one with these words."""
        calls = self.house.fake.called("editMessageText", FORUM)
        return sum(words in call.fields["text"] for call in calls)

    async def document(self) -> tuple[str, bytes]:
        """Name and content of the only file that was sent, as soon as it was."""
        await self.house.fake.until(lambda: self.house.fake.called("sendDocument", FORUM))
        (call,) = self.house.fake.called("sendDocument", FORUM)
        (file,) = call.files.values()
        return file

    async def over(self, count: int) -> list[dict[str, Any]]:
        """The turns so far, once there are so many and all of them have ended."""
        async with asyncio.timeout(WITHIN):
            while True:
                rows = await turns(self.house, TOPIC)
                if len(rows) >= count and all(row["ended_at"] for row in rows):
                    return rows
                await asyncio.sleep(0.05)

    async def usage(self) -> list[dict[str, Any]]:
        """``laneway usage --json``, as a person runs it."""
        done = await Shell(self.house.home, self.house.fake, **self.house.settings)(
            "usage", "--json"
        )
        found: list[dict[str, Any]] = done.json()
        return found


def call(tool: str, **given: Any) -> str:
    """The model's script for a call of a tool."""
    return f"TOOL {tool} {json.dumps(given)}"


def then(*steps: str) -> str:
    return "\nTHEN ".join(steps)


async def asked_about_and_answered_aside(
    thread: Thread, own: str, begins: str
) -> list[dict[str, Any]]:
    """From a first message to four turns that are over: streamed, allowed, sent, asked, beside it.

    ``own``: what the program puts before the names of the gateway's tools. ``begins``: the model's
    script for a slow command that makes ``made.csv``. Returns the turns.
    """
    fake = thread.house.fake
    thread.mention("remember the blue door")
    await thread.shown("You said: remember the blue door")
    await thread.over(1)

    steps = (
        begins,
        call(f"{own}send_file", path="made.csv", name="table.csv"),
        call(f"{own}ask_person", question="Which **colour**?", options=["red", "blue"]),
    )
    thread.mention(then(*steps))
    card = await thread.card()
    assert MAKES in card["text"]
    assert thread.edits("w1 "), "what it said first grew in the thread"
    fake.press("Allow", message=card)
    assert await thread.document() == ("table.csv", b"a,b")

    question = await thread.shown("Which colour?")
    await in_state(thread.house, TOPIC, "asking")
    handed_over = call(f"{own}queue_for_main", request="RECALL now")
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
    return rows
