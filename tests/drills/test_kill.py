"""The kill drill: SIGKILL at random moments under load, again and again, on one home.

Promised: no accepted message is lost, none runs out of order in its lane, none is answered twice.
The short drill is part of the suite; ``make drill`` sets LANEWAY_DRILL_KILLS for the long one and
LANEWAY_DRILL_SEED to repeat one.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.house import Process, ask
from tests.fakes.telegram import FakeTelegram

KILLS = int(os.environ.get("LANEWAY_DRILL_KILLS", "4"))
SEED = int(os.environ.get("LANEWAY_DRILL_SEED", "0")) or random.randrange(1, 10**9)
# Many chats, each slow enough for what a platform lets a bot send into one.
PEOPLE = range(700_200_000, 700_200_030)
FORUMS = range(-1_001_900_100_010, -1_001_900_100_000)
THREADS = (
    *((person, None) for person in PEOPLE),
    *((f, topic) for f in FORUMS for topic in (11, 12)),
)
ANSWER = re.compile(r"answer (\d+)\.")
OVER = {"done", "failed", "stopped", "interrupted", "dropped"}


class Drill:
    """People who write all the time, and a gateway that is killed."""

    def __init__(self, home: Path, fake: FakeTelegram, chance: random.Random) -> None:
        self.fake = fake
        self.chance = chance
        self.gateway = Process(
            home,
            fake,
            anew=True,
            LANEWAY_WEB_PORT="0",  # a fixed one may be taken by a connection between two lives
            LANEWAY_MAX_TURNS="4",
            LANEWAY_QUEUE_LIMIT="1000",
            LANEWAY_MEMBERS=",".join(f"telegram:{person}" for person in PEOPLE),
            LANEWAY_PLACES=",".join(f"telegram:{forum}" for forum in FORUMS),
        )
        self.home = home
        self.said: dict[int, tuple[int, int | None]] = {}
        self.kills = 0

    async def people(self) -> None:
        """One message every few hundredths of a second, somewhere."""
        while True:
            chat, thread = self.chance.choice(THREADS)
            number = len(self.said) + 1
            self.said[number] = (chat, thread)
            pace = self.chance.choice(("0", "0.02", "0.1"))
            mention = "@gw_bot " if chat in FORUMS else ""
            text = f"{mention}/stream 2 {pace}\n/say answer {number}."
            user = chat if chat in PEOPLE else self.chance.choice(PEOPLE)
            self.fake.user_says(text, chat=chat, user=user, thread=thread)
            await asyncio.sleep(self.chance.uniform(0.05, 0.25))

    async def killer(self) -> None:
        for _ in range(KILLS):
            await self.gateway.start()
            await asyncio.sleep(self.chance.uniform(0.0, 1.5))
            await self.gateway.end(signal.SIGKILL)
            self.kills += 1

    def notices(self) -> list[str]:
        """Waiting notices still on the screen; where nothing waits there is none."""
        shown = (text for place in THREADS for text in self.fake.texts(*place))
        return [text for text in shown if text.startswith("Waiting:")]

    async def settled(self) -> list[dict[str, Any]]:
        """Start once more, and wait until every message has come to an end."""
        await self.gateway.start()
        end = time.monotonic() + 60 + len(self.said)
        while True:
            turns = await ask(self.home, "turns", limit=100_000)
            asked = [turn for turn in turns if turn["origin"] == "person"]
            open_ = [turn for turn in asked if turn["status"] not in OVER]
            unsent = [turn for turn in asked if turn["answer"] and turn["delivery"] == "pending"]
            missing = len(self.said) - len(asked)
            left = (missing, open_, unsent, self.notices())
            if not any(left):
                return asked
            assert time.monotonic() < end, f"still not settled: {left}"
            await asyncio.sleep(0.1)


@pytest.mark.timeout(120 + 20 * KILLS)
async def test_nothing_is_lost_doubled_or_reordered_when_the_gateway_is_killed(
    tmp_path: Path,
) -> None:
    print(f"seed {SEED}, {KILLS} kills")
    async with FakeTelegram() as fake:
        drill = Drill(tmp_path / "home", fake, random.Random(SEED))
        talking = asyncio.create_task(drill.people(), name="people")
        try:
            await drill.killer()
            talking.cancel()
            turns = await drill.settled()
            assert await drill.gateway.end(signal.SIGTERM) == 0
        finally:
            talking.cancel()
            with suppress(ProcessLookupError):
                drill.gateway.child.kill()
        check(drill, turns)


def check(drill: Drill, turns: list[dict[str, Any]]) -> None:
    """What people see against what was said."""
    by_number = {}
    for turn in turns:
        found = ANSWER.search(turn["text"])
        assert found, turn
        number = int(found[1])
        assert number not in by_number, f"message {number} became two turns"
        by_number[number] = turn
    assert set(by_number) == set(drill.said), "messages were lost"

    shown: dict[tuple[int, int | None], list[int]] = defaultdict(list)
    notices = Counter()
    for place in set(drill.said.values()):
        for text in drill.fake.texts(*place):
            answered = [int(number) for number in ANSWER.findall(text) if "cut off" not in text]
            shown[place] += answered
            notices.update(int(n) for n in ANSWER.findall(text) if "cut off" in text)

    for place, numbers in shown.items():
        whole = [number for number in numbers if by_number[number]["status"] == "done"]
        assert whole == sorted(whole), f"answers out of order in {place}: {whole}"
        assert len(set(numbers)) == len(numbers), f"answered twice in {place}: {numbers}"
        assert all(drill.said[number] == place for number in numbers), "answered elsewhere"
    everywhere = {number for numbers in shown.values() for number in numbers}
    for number, turn in by_number.items():
        # failed: cut off three times before the prompt left, and told
        assert turn["status"] in ("done", "interrupted", "failed"), (number, turn)
        if turn["status"] == "done":
            certain = turn["delivery"] == "sent"
            assert certain or turn["delivery"] == "uncertain", (number, turn)
            assert not certain or number in everywhere, f"{number} is said to be sent and is not"
        else:
            assert notices[number] <= 1, f"{number} was told more than once"

    states = Counter(turn["status"] for turn in turns)
    deliveries = Counter(turn["delivery"] for turn in turns if turn["status"] == "done")
    print(f"{len(turns)} messages, {drill.kills} kills: {dict(states)}, {dict(deliveries)}")
