"""What end-to-end tests look at, in words: where calls went, what was refused, what is running."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.end_to_end.house import House, ask
from tests.fakes.clock import QuickClock
from tests.fakes.telegram import FakeTelegram
from tests.fakes.telegram_faults import Call
from tests.fakes.telegram_rules import Json

TALK = ("send", "edit", "delete")


def quick(folder: Path, times: float = 4, /, **settings: str) -> House:
    """A gateway whose seconds are short, so that no pause or rate is waited for long."""
    house = House(folder, **{"LANEWAY_STOP_GRACE": "1s", **settings})
    house.clock = QuickClock(times)
    return house


def talk(fake: FakeTelegram, chat: int) -> list[Call]:
    """Every call to a chat that people see: messages, edits, files, typing."""
    return [call for call in fake.calls if call.chat == chat and call.method.startswith(TALK)]


def sends(fake: FakeTelegram, chat: int | None = None) -> list[Call]:
    """The calls that make a new message, in order."""
    return [
        call
        for call in fake.calls
        if call.method.startswith("send")
        and call.method not in ("sendChatAction", "sendMessageDraft")
        and chat in (None, call.chat)
    ]


def refused(fake: FakeTelegram) -> list[tuple[str, int, str]]:
    """What the platform did not take."""
    return [(c.method, c.status, c.description) for c in fake.calls if c.status >= 400]


def cards(fake: FakeTelegram, chat: int, thread: int | None = None) -> list[Json]:
    """Messages under which something can be allowed."""
    return [one for one in fake.shown(chat, thread) if "Allow" in fake.buttons(one)]


def typing(fake: FakeTelegram, chat: int) -> list[float]:
    """When typing was shown in a chat."""
    return [call.at for call in fake.called("sendChatAction", chat)]


async def quiet(seconds: float) -> None:
    """A real time in which nothing may happen; only for what would come late or not at all."""
    await asyncio.sleep(seconds)


async def turns(house: House, lane: str | None = None) -> list[dict[str, object]]:
    """The turns of a lane or of all, oldest first."""
    rows: list[dict[str, object]] = await house.ask("turns", **({"lane": lane} if lane else {}))
    return sorted(rows, key=lambda row: int(str(row["id"])))


async def statuses(home: Path) -> list[str]:
    """How every turn of a running gateway stands, oldest first."""
    rows = await ask(home, "turns")
    return [str(row["status"]) for row in sorted(rows, key=lambda row: int(row["id"]))]


async def state(house: House, lane: str) -> str:
    """What ``laneway lanes`` says about a lane."""
    for row in await house.ask("lanes"):
        if row["lane"] == lane:
            return str(row["state"])
    return "unknown"


async def in_state(house: House, lane: str, wanted: str, within: float = 30.0) -> None:
    """Wait until a lane is in a state."""
    end = time.monotonic() + within
    while (found := await state(house, lane)) != wanted:
        assert time.monotonic() < end, f"{lane} is {found}, not {wanted}"
        await asyncio.sleep(0.01)


def said(fake: FakeTelegram, chat: int, words: str, thread: int | None = None) -> int:
    """How many messages of the bot hold these words now."""
    return sum(words in text for text in fake.texts(chat, thread))
