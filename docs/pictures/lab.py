"""A gateway as it stands after some weeks in a small lab, for pictures of its page.

What happens now is played with the real parts: topics on a fake Telegram, threads of the page, jobs
that are set up over HTTP. What happened in the weeks before is written into the store as those
parts would have left it, the same each time. It must not know how a picture is taken.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import httpx

from core.budget_words import day_of
from core.job_rules import FiringState
from core.store import jobs, roster, web
from core.store.jobs import FiringRow
from core.store.records import PersonRow
from core.store.rows import Row
from tests.end_to_end.house import until
from tests.fakes.telegram import ANA, BEN, FORUM, MAL, TOKEN, FakeTelegram
from tests.web.site import Page
from tests.web.tabs import new_lane, say

ADMIN, MEMBER = "ana@example.org", "ben@example.org"
ZONE = "Europe/Berlin"
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
WEEKS = 6
PEOPLE = (f"web:{ADMIN}", f"web:{MEMBER}", f"telegram:{BEN}", f"telegram:{ANA}")
# engine, model, how often it is asked, what a turn costs at most, tokens of one at most
ENGINES = (
    ("claude", "opus", 5, 0.45, 9000),
    ("codex", "gpt-5", 3, 0.20, 7000),
    ("openai", "local", 2, None, 4000),
)
PRICES = '[demo."*"]\nin = 3\nout = 15\n'  # without one, no turn runs under a cap
FIRST = 100_000  # the number of the first turn of the past; those that are played are below
JOBS = (
    (
        "every weekday at 8:30",
        "What happened in the repository since yesterday? Five lines at most.",
    ),
    ("every friday at 16:00", "Sum up the week for the newsletter."),
    ("every 2h", "Is the disk of the build machine filling up? Say nothing if not."),
)
ACTS = (
    (9 * DAY, "setting.saved", "LANEWAY_BUDGET_DAY", "20"),
    (8 * DAY, "person.let_in", f"telegram:{BEN}", "Ben"),
    (6 * DAY, "place.allowed", f"telegram:{FORUM}", "Lab"),
    (2 * DAY, "engine.paused", "codex", ""),
    (2 * DAY - HOUR, "engine.resumed", "codex", ""),
    (5 * HOUR, "approval.denied", "", "turn 212, command 5f1c09b2ad77"),
)


@asynccontextmanager
async def lab() -> AsyncIterator[tuple[Page, str]]:
    """The gateway at work, and the thread of the page that is shown; half a minute until then."""
    with TemporaryDirectory() as folder:
        fake = FakeTelegram()
        fake.me.update(first_name="Laneway", username="laneway_bot")
        await fake.start()
        page = Page(
            Path(folder),
            LANEWAY_ENGINE="demo",
            LANEWAY_LOG_LEVEL="error",
            LANEWAY_TELEGRAM_TOKEN=TOKEN,
            LANEWAY_TELEGRAM_API_BASE=fake.url,
            LANEWAY_TIMEZONE=ZONE,
            LANEWAY_BUDGET_DAY="20",
            LANEWAY_BUDGET_PERSON_DAY="8",
            LANEWAY_DRAIN_TIMEOUT="1s",
        )
        page.home.mkdir()
        (page.home / "prices.toml").write_text(PRICES, encoding="utf-8")
        try:
            async with page:
                browser = await page.signed_in(ADMIN)
                await _people(page)
                _weeks(page)
                await _jobs(page, browser)
                yield page, await _now(page, fake, browser)
        finally:
            await fake.stop()


async def _people(page: Page) -> None:
    """Who came in, from where, and what an admin did in the last days."""
    store, now = page.site.parts.store, page.clock.now()
    named = ((f"telegram:{ANA}", "Ana"), (f"telegram:{BEN}", "Ben"))
    await store.save(
        *(roster.person(PersonRow(one, name, "", "", now - 30 * DAY)) for one, name in named),
        roster.person(PersonRow("slack:U0CARLA", "Carla", "member", "", now - 8 * DAY, PEOPLE[0])),
        web.link(f"telegram:{ANA}", PEOPLE[0], now - 7 * DAY),
        *(web.act(now - ago, PEOPLE[0], act, about, more) for ago, act, about, more in ACTS),
    )
    await page.site.parts.people.load(store)


def _weeks(page: Page) -> None:
    """Turns of some weeks: more on working days than on others, and a few without a price."""
    now, chance = page.clock.now(), random.Random(7)
    with closing(sqlite3.connect(page.home / "laneway.db")) as base:
        base.execute(
            "INSERT INTO lanes (id, channel, chat, thread, title, person, owner, created_at,"
            " ended_at) VALUES ('telegram:700000001', 'telegram', '700000001', '',"
            " 'Notes to myself', 'telegram:700000001', '', ?, ?)",
            (now - WEEKS * 7 * DAY, now - 3 * HOUR),
        )
        numbers = count(FIRST)
        for day in range(1, WEEKS * 7):
            for _ in range(
                chance.randint(5, 14) if day % 7 not in (2, 3) else chance.randint(0, 2)
            ):
                base.execute(_TURN, (next(numbers), *_turn(chance, now - day * DAY)))
        today = day_of(now, ZoneInfo(ZONE))
        for hours in range(1, 6):
            turn = (next(numbers), *_turn(chance, now - hours * HOUR // 2))
            base.execute(_TURN, turn)
            base.execute("INSERT INTO spent VALUES (?, ?, ?, ?)", (turn[0], today, turn[1], 0.9))
        base.commit()


_TURN = (
    "INSERT INTO turns (id, lane, kind, origin, person, status, rank, received_at, started_at,"
    " prompted_at, ended_at, engine, model, tokens_in, tokens_out, cost) VALUES"
    " (?, 'telegram:700000001', 'main', 'person', ?, 'done', 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _turn(chance: random.Random, at: int) -> tuple[object, ...]:
    often = [one[2] for one in ENGINES]
    engine, model, _, most, tokens = chance.choices(ENGINES, often)[0]
    size = 0.1 + 0.9 * chance.random()
    cost = None if most is None else round(most * size, 4)
    person = chance.choices(PEOPLE, (6, 3, 2, 2))[0]
    read = int(tokens * size)
    return person, at, at, at, at + MINUTE, engine, model, read, read // 9, cost


async def _jobs(page: Page, browser: httpx.AsyncClient) -> None:
    """Schedules and a watch, with how they went before."""
    lane = new_lane()
    await say(browser, lane, "Hello, this thread is for what comes by the clock")
    await _idle(page, lane)
    await say(browser, lane, "/title Routine")
    for when, prompt in JOBS:
        body = {"lane": lane, "when": when, "prompt": prompt}
        assert (await browser.post("/api/jobs", json=body)).status_code == 201
    now = page.clock.now()
    past: list[Row] = [
        jobs.firing(FiringRow(1, now - days * DAY, now - days * DAY, state, None, 0, said))
        for days, state, said in (
            (1, FiringState.DONE, "on time"),
            (2, FiringState.DONE, "late by 4 min, the gateway was down"),
            (3, FiringState.SKIPPED, "skipped, its thread was busy"),
            (4, FiringState.DONE, "on time"),
        )
    ]
    await page.site.parts.store.save(*past)


async def _now(page: Page, fake: FakeTelegram, browser: httpx.AsyncClient) -> str:
    """What stands on the page at once: work, questions and waiting on two platforms."""
    numbers = fake.topic(FORUM, "Week in numbers")
    notes = fake.topic(FORUM, "Release notes")
    fake.user_says("@laneway_bot take your time 300s", chat=FORUM, thread=numbers, user=ANA)
    fake.user_says("@laneway_bot take your time 280s", chat=FORUM, thread=notes, user=BEN)
    fake.user_says("@laneway_bot And the notes of last week?", chat=FORUM, thread=notes, user=BEN)
    fake.user_says("/whoami", user=MAL)
    await say(browser, new_lane(), "Tell me a story")
    lane = new_lane()
    await say(browser, lane, "Who are you, and what can you do?")
    await _idle(page, lane)
    await say(browser, lane, "/title A first look")
    await say(browser, lane, "Make a table of this week")
    await until(lambda: _asks(page, lane))
    await say(browser, lane, "And what did I say before?")
    (await browser.post("/api/signout", json={})).raise_for_status()
    return lane


def _asks(page: Page, lane: str) -> bool:
    view = page.site.parts.runner.view(lane)
    return view is not None and view.phase is not None and view.phase.value == "asking"


async def _idle(page: Page, lane: str) -> None:
    runner = page.site.parts.runner
    await until(lambda: runner.view(lane) is not None)
    await until(lambda: (view := runner.view(lane)) is None or view.main is None)
