"""Many chats: side by side, in order, and none held up by another's flood."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.bench.house import SHOWN, Calls, gateway, server, show, text_of
from tests.bench.latency import answered

PEOPLE = ",".join(f"telegram:{700_100_000 + number}" for number in range(100))


def _person(number: int) -> int:
    return 700_100_000 + number


async def many_chats_at_once() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = {"LANEWAY_MEMBERS": PEOPLE, "LANEWAY_MAX_TURNS": "24"}
        async with server() as bot, gateway(Path(folder) / "home", bot.url, **settings):
            began = time.monotonic()
            await asyncio.gather(
                *(bot.say(f"work 5 {n}", user=_person(n), chat=_person(n)) for n in range(24))
            )
            calls = await bot.until(SHOWN, lambda calls: _answers(calls) >= 24)
            took = max(call["at"] for call in calls if _answers([call])) - began
    show("24 chats at once, each 5 s of work, cap 24", f"{took:.2f} s", "5.2 s", took <= 5.2)


def _answers(calls: Calls) -> int:
    return sum(text_of(call).startswith("answer to") for call in calls)


async def many_messages() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "LANEWAY_MEMBERS": PEOPLE,
            "LANEWAY_MAX_TURNS": "50",
            "LANEWAY_QUEUE_LIMIT": "100",
        }
        home = Path(folder) / "home"
        async with server() as bot:
            for number in range(200):  # all there before the gateway starts to poll
                who = _person(number % 50)
                await bot.say(f"n{number}", user=who, chat=who)
            async with gateway(home, bot.url, **settings) as engine:
                calls = await bot.until("sendMessage", lambda calls: _answers(calls) >= 200)
                first = min(engine.prompted.values())
                took = max(engine.finished.values()) - first
                sent = max(call["at"] for call in calls) - first
    order: dict[str, list[int]] = defaultdict(list)
    for call in calls:
        if text_of(call).startswith("answer to n"):
            order[str(call["fields"]["chat_id"])].append(int(text_of(call).rpartition("n")[2]))
    kept = all(numbers == sorted(numbers) for numbers in order.values())
    count = sum(map(len, order.values()))
    figure = f"{took:.2f} s, {count} turns"
    show("200 messages over 50 chats, order kept", figure, "0.5 s", took <= 0.5 and kept)
    show("  until the last answer left, at Telegram's 30 a second", f"{sent:.2f} s", "", None)


async def behind_a_flood() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "LANEWAY_MEMBERS": PEOPLE,
            "LANEWAY_MAX_TURNS": "1",
            "LANEWAY_QUEUE_LIMIT": "100",
        }
        async with server() as bot, gateway(Path(folder) / "home", bot.url, **settings):
            for number in range(40):
                await bot.say(f"work 0.5 {number}", user=_person(0), chat=_person(0))
            began = time.monotonic()
            await bot.say("quick", user=_person(1), chat=_person(1))
            calls = await bot.until("sendMessage", answered("quick"))
            took = next(c["at"] for c in calls if text_of(c) == "answer to quick") - began
    show(
        "one chat behind another's 40 messages, cap 1",
        f"{took:.2f} s",
        "one turn (0.5 s)",
        took <= 0.6,
    )
