"""What people see after a drill, held against what was said. Shared by all drills.

Every message asks for ``answer N.`` with a number of its own, so that whatever stands anywhere
names what it answers.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.paths import DATABASE
from tests.drills.platforms import Place, Platform
from tests.end_to_end.house import ask

ANSWER = re.compile(r"answer (\d+)\.")
OVER = {"done", "failed", "stopped", "interrupted", "dropped"}
CUT_OFF, WAITING = "cut off", "Waiting:"
STANDSTILL = 40.0  # seconds in which nothing comes to an end
CAN_TELL = {"slack", "discord"}  # where it can be found out what arrived

Turn = dict[str, Any]


@dataclass(slots=True)
class Found:
    """What was counted; ``check`` has made sure of the rest."""

    messages: int = 0
    unseen: int = 0  # done, and not shown; told as uncertain
    states: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.messages} messages: {dict(self.states)}, {dict(self.deliveries)}"


async def settled(
    home: Path, platforms: Sequence[Platform], said: Mapping[int, Place]
) -> list[Turn]:
    """Wait until every message has come to an end, and nothing is said to wait."""
    before, end = None, 0.0
    while True:
        turns: list[Turn] = await ask(home, "turns", limit=100_000)
        asked = [turn for turn in turns if turn["origin"] == "person"]
        open_ = [turn for turn in asked if turn["status"] not in OVER]
        unsent = [turn for turn in asked if turn["answer"] and turn["delivery"] == "pending"]
        numbers = {int(found[1]) for turn in asked if (found := ANSWER.search(turn["text"]))}
        missing = {n: str(place) for n, place in said.items() if n not in numbers}
        left = (missing, open_, unsent, _waiting(home, platforms))
        if not any(left):
            return asked
        if left != before:
            before, end = left, time.monotonic() + STANDSTILL
        assert time.monotonic() < end, f"not settled, and nothing happens any more: {left}"
        await asyncio.sleep(0.1)


def _waiting(home: Path, platforms: Sequence[Platform]) -> list[str]:
    """Waiting notices still on the screen; where nothing waits there is none.

    Except those that a platform got without our hearing which message it made of them, and that
    cannot be found there: nobody can take them away.
    """
    left: list[str] = []
    for platform in platforms:
        shown = [text for text in platform.everything() if text.startswith(WAITING)]
        left += shown[_without_number(home, platform) :]
    return left


def _without_number(home: Path, platform: Platform) -> int:
    if platform.name in CAN_TELL:
        return 0
    with closing(sqlite3.connect(home / DATABASE)) as database:
        (count,) = database.execute(
            "SELECT count(*) FROM deliveries"
            " WHERE kind = 'waiting' AND target = '' AND message_id = '' AND lane LIKE ?",
            (f"{platform.name}:%",),
        ).fetchone()
    return int(count)


def check(
    platforms: Sequence[Platform], said: Mapping[int, Place], turns: Sequence[Turn]
) -> dict[str, Found]:
    """Nothing lost, doubled, reordered or elsewhere; what was counted, by platform."""
    by_number: dict[int, Turn] = {}
    for turn in turns:
        found = ANSWER.search(turn["text"])
        assert found, turn
        number = int(found[1])
        assert number not in by_number, f"message {number} became two turns"
        by_number[number] = turn
    assert set(by_number) == set(said), "messages were lost"
    return {one.name: _check(one, said, by_number) for one in platforms}


def _said(texts: Sequence[str]) -> list[str]:
    """Without the notices that quote what is waited for."""
    return [text for text in texts if not text.startswith(WAITING)]


def _check(platform: Platform, said: Mapping[int, Place], by_number: Mapping[int, Turn]) -> Found:
    shown: dict[Place, list[int]] = defaultdict(list)
    notices: Counter[int] = Counter()
    for place in platform.places:
        for text in _said(platform.texts(place)):
            numbers = [int(number) for number in ANSWER.findall(text)]
            if CUT_OFF in text:
                notices.update(numbers)
            else:
                shown[place] += numbers

    for place, numbers in shown.items():
        whole = [number for number in numbers if by_number[number]["status"] == "done"]
        assert whole == sorted(whole), f"answers out of order in {place}: {whole}"
        assert len(set(numbers)) == len(numbers), f"answered twice in {place}: {numbers}"
        assert all(said[number] == place for number in numbers), f"answered elsewhere: {place}"
    everywhere = sum(len(ANSWER.findall(text)) for text in _said(platform.everything()))
    there = sum(map(len, shown.values())) + notices.total()
    assert everywhere == there, f"{everywhere - there} answers stand outside of every thread"

    found = Found()
    answered = {number for numbers in shown.values() for number in numbers}
    for number, place in said.items():
        if place.platform != platform.name:
            continue
        turn = by_number[number]
        found.messages += 1
        found.states[turn["status"]] += 1
        # failed: cut off three times before the prompt left, and told
        assert turn["status"] in ("done", "interrupted", "failed"), (number, turn)
        if turn["status"] == "done":
            found.deliveries[turn["delivery"]] += 1
            certain = turn["delivery"] == "sent"
            doubtful = turn["delivery"] == "uncertain" and platform.name not in CAN_TELL
            assert certain or doubtful, (number, turn)
            found.unseen += number not in answered
            assert not certain or number in answered, f"{number} is said to be sent and is not"
        else:
            assert notices[number] <= 1, f"{number} was told more than once"
    return found
