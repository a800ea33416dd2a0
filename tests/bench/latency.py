"""How long a person waits: message to prompt, message to final text, and a long answer's edits."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from tests.bench.house import Calls, Server, gateway, quantile, server, show, text_of
from tests.end_to_end.house import ROOT
from tests.fakes.telegram import ANA, TOKEN

MESSAGES = 100
PAUSE = 0.05  # seconds
LONG = 60  # seconds


def _chat(number: int) -> int:
    """A person of their own for each message: no chat meets its rate limit."""
    return 700_100_000 + number


def answered(text: str) -> Callable[[Calls], bool]:
    return lambda calls: any(text_of(call) == f"answer to {text}" for call in reversed(calls))


async def _ask(bot: Server, text: str, chat: int) -> tuple[float, float]:
    """When the message was about to be there, and when its answer was sent."""
    began = time.monotonic()
    await bot.say(text, user=chat, chat=chat)
    calls = await bot.until("sendMessage", answered(text))
    return began, next(c["at"] for c in reversed(calls) if text_of(c) == f"answer to {text}")


async def _round(bot: Server, name: str) -> dict[str, tuple[float, float]]:
    """One message after the other, slower than the 30 a second that Telegram lets a bot send."""
    times = {}
    for number in range(MESSAGES):
        times[f"{name}{number}"] = await _ask(bot, f"{name}{number}", _chat(number))
        await asyncio.sleep(PAUSE)
    return times


def _ms(values: list[float]) -> str:
    return f"{quantile(values, 0.5) * 1000:.1f} / {quantile(values, 0.95) * 1000:.1f} ms"


async def message_to_answer() -> None:
    people = ",".join(f"telegram:{_chat(number)}" for number in range(MESSAGES))
    with tempfile.TemporaryDirectory() as folder:
        async with (
            server() as bot,
            gateway(Path(folder) / "home", bot.url, LANEWAY_MEMBERS=people) as engine,
        ):
            await _round(bot, "first")  # the lanes are known after this
            times = await _round(bot, "m")
        finals = [final - began for began, final in times.values()]
        prompts = [engine.prompted[text] - began for text, (began, _) in times.items()]
        async with server() as bot:
            floor = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.bench.floor", bot.url, TOKEN,
                str(Path(folder) / "floor.db"), cwd=ROOT,
            )  # fmt: skip
            try:
                await _round(bot, "first")
                least = [final - began for began, final in (await _round(bot, "f")).values()]
            finally:
                floor.kill()
                await floor.wait()
    good = quantile(finals, 0.5) < 0.010 and quantile(finals, 0.95) < 0.020
    show("message to prompt, p50 / p95", _ms(prompts), "", None)
    show("message to final text sent, p50 / p95", _ms(finals), "10 / 20 ms", good)
    show("  the floor: poll, one commit, answer, send", _ms(least), "", None)


async def long_answer() -> None:
    prompt = f"stream {LONG} 0.1"  # stays within one message
    with tempfile.TemporaryDirectory() as folder:
        async with server() as bot, gateway(Path(folder) / "home", bot.url) as engine:
            await bot.say(prompt, user=ANA)
            await asyncio.sleep(LONG)
            edits = await bot.until("editMessageText", lambda calls: _final(calls, prompt))
            sent = bot.calls["sendMessage"]
        shown = [call["at"] for call in (*sent, *edits)]
    gap = max(later - earlier for earlier, later in pairwise(shown))
    last = edits[-1]["at"] - engine.finished[prompt]
    show(f"a {LONG} s answer: edits", str(len(edits)), "at most 60", len(edits) <= 60)
    show("  largest gap between two", f"{gap:.2f} s", "1.3 s", gap <= 1.3)
    show("  last token to final text", f"{last * 1000:.0f} ms", "50 ms", last <= 0.05)


def _final(calls: Calls, prompt: str) -> bool:
    return bool(calls) and text_of(calls[-1]).endswith(f"answer to {prompt}")
