"""Thousands of guesses from thousands of networks: nobody gets in, and nobody known is locked out.

``make drill`` guesses ten thousand times and holds the times of known and unknown addresses against
each other; the suite does a few, and checks elsewhere that the same work is done for both.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections import Counter
from email.message import EmailMessage
from pathlib import Path

import httpx
import pytest

from tests.fakes.mail_server import MailServer
from tests.web.site import Page

GUESSES = int(os.environ.get("LANEWAY_DRILL_GUESSES", "150"))
LONG = "LANEWAY_DRILL_GUESSES" in os.environ
AT_ONCE = 8
TRIES = 20
PAUSE_MOST = 0.1  # seconds between the medians of known and unknown
ANA = "ana@example.org"


async def post(browser: httpx.AsyncClient, step: str, network: str, **body: str) -> httpx.Response:
    return await browser.post(
        f"/api/signin/{step}", json=body, headers={"X-Forwarded-For": network}
    )


async def attack(page: Page, number: int, dice: random.Random, seen: Counter[int]) -> None:
    """One browser that moves from network to network: it asks now and then, and guesses."""
    browser = page.browser()
    for n in range(GUESSES // AT_ONCE):
        network = f"10.{number}.{dice.randrange(40)}.{dice.randrange(4)}"
        if n % 5 == 0:
            await post(browser, "start", network, email=ANA)
        guess = f"{dice.randrange(10**8):08}"
        answer = await post(browser, "verify", network, email=ANA, code=guess)
        seen[answer.status_code] += 1


@pytest.mark.timeout(900)
async def test_guessing_finds_nothing_and_locks_nobody_known_out(tmp_path: Path) -> None:
    async with (
        MailServer() as server,
        Page(
            tmp_path,
            LANEWAY_SMTP_URL=server.url,
            LANEWAY_TRUSTED_PROXIES="127.0.0.1",
            LANEWAY_LOG_LEVEL="error",
            LANEWAY_SIGNIN_LIMITS="code=3/15m,network=20/1h,mail=100/1h,failure=10/10m",
        ) as page,
    ):
        mine, home = page.browser(), "192.0.2.7"
        await post(mine, "start", home, email=ANA)
        first = server.code(await server.mail(0))
        assert (await post(mine, "verify", home, email=ANA, code=first)).status_code == 200
        await mine.post("/api/signout", json={})

        seen: Counter[int] = Counter()
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(
                    attack(page, number, random.Random(number), seen), name=f"attacker {number}"
                )
        took = time.monotonic() - begun
        assert set(seen) <= {401, 429}, "each guess is right once in 100 million"
        for n in range(25):  # and somebody at home used up what home may
            await post(page.browser(), "start", home, email=f"x{n}@example.org")
            await post(page.browser(), "verify", home, email=f"x{n}@example.org", code="00000000")
        stranger = await post(page.browser(), "start", home, email=ANA)
        assert stranger.status_code == 429

        assert (await post(mine, "start", home, email=ANA)).status_code == 200
        code = server.code(await _asked_from(server, home))
        assert (await post(mine, "verify", home, email=ANA, code=code)).status_code == 200
        store = page.site.parts.store
        kept = [len(await store.fetch(query)) for query in ("asking.list", "tries.list")]
        print(
            f"\n{sum(seen.values())} guesses in {took:.1f} s: {dict(seen)},"
            f" {len(server.mails)} mails, {kept[0]} askings and {kept[1]} counts stored"
        )
        assert len(server.mails) <= 102


async def _asked_from(server: MailServer, network: str) -> EmailMessage:
    """The newest mail that was asked for there; those of the attack may still come."""
    number = 1
    while True:
        mail = await server.mail(number)
        if network in mail.get_content():
            return mail
        number += 1


@pytest.mark.skipif(not LONG, reason="times of a busy machine say little; make drill measures")
async def test_known_and_unknown_take_the_same_time(tmp_path: Path) -> None:
    never = asyncio.Event()
    off = "code=900/15m,network=900/1h,failure=900/10m"
    async with (
        MailServer(before=never.wait) as server,
        Page(
            tmp_path,
            LANEWAY_SMTP_URL=server.url,
            LANEWAY_SIGNIN_LIMITS=off,
            LANEWAY_LOG_LEVEL="error",
        ) as page,
    ):
        times: dict[str, list[float]] = {}
        for _ in range(TRIES):
            for who in (ANA, "nobody@example.org"):
                browser = page.browser()
                for step, body in (("start", {}), ("verify", {"code": "00000000"})):
                    begun = time.perf_counter()
                    await post(browser, step, "127.0.0.1", email=who, **body)
                    times.setdefault(f"{step} {who}", []).append(time.perf_counter() - begun)
        medians = {name: statistics.median(some) for name, some in times.items()}
        print("\n" + ", ".join(f"{name}: {1000 * at:.1f} ms" for name, at in medians.items()))
        for step in ("start", "verify"):
            apart = abs(medians[f"{step} {ANA}"] - medians[f"{step} nobody@example.org"])
            assert apart < PAUSE_MOST
        never.set()
