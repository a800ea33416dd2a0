"""A thread of the fake Telegram with a real agent in it: what people write there and see.

The whole gateway runs, with its listener for tools; only the platform and the model are ours.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from tests.end_to_end.house import House
from tests.end_to_end.looking import cards, turns
from tests.end_to_end.shell import Shell
from tests.fakes.telegram import FORUM

THREAD = 36
TOPIC = f"telegram:{FORUM}:{THREAD}"
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
