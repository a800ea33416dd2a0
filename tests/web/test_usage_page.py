"""The page of usage: what is drawn, the same numbers as a table, and for whom."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
import pytest_asyncio

from core import usage
from core.budget_words import day_of
from core.store.store import Reader
from core.usage import Source, Spent
from tests.web.hostile import HOSTILE, looked
from tests.web.site import BEN, Page

pytestmark = pytest.mark.asyncio(loop_scope="module")
CARLA = "telegram:700000001"
ZONE = ZoneInfo("Europe/Berlin")
DAY = 86_400_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    made = Page(
        tmp_path_factory.mktemp("usage"), LANEWAY_TIMEZONE="Europe/Berlin",
        LANEWAY_BUDGET_DAY="10", LANEWAY_BUDGET_PERSON_DAY="$2",
    )  # fmt: skip
    async with made as running:
        now = running.clock.now()
        with closing(sqlite3.connect(running.home / "laneway.db")) as base:
            base.execute(
                "INSERT INTO lanes (id, channel, chat, thread, created_at)"
                " VALUES ('local:x', 'local', 'x', '', 1)"
            )
            fill(base, now, CARLA, "claude", 1.5, 1000)
            fill(base, now - DAY, CARLA, "claude", 0.5, 200)
            fill(base, now - DAY, BEN, "codex", 0.25, 100)
            fill(base, now - 20 * DAY, BEN, "codex", 0.75, 300)
            fill(base, now - 20 * DAY, BEN, "acp", None, 40)
            today = day_of(now, ZONE)
            base.execute("INSERT INTO spent VALUES (1, ?, ?, 1.5)", (today, CARLA))
            base.commit()
        yield running


def fill(
    base: sqlite3.Connection, at: int, person: str, engine: str, cost: float | None, tokens: int,
    over: bool = True,
) -> None:  # fmt: skip
    """A turn that began at ``at``."""
    base.execute(
        "INSERT INTO turns (lane, kind, origin, person, status, rank, received_at, started_at,"
        " prompted_at, ended_at, engine, model, tokens_in, tokens_out, cost)"
        " VALUES ('local:x', 'main', 'person', ?, ?, 0, ?, ?, ?, ?, ?, 'm', ?, 10, ?)",
        (person, "done" if over else "running", at, at, at, at + 1 if over else None, engine,
         tokens, cost),
    )  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ana(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ana@example.org")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ben(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ben@example.org")


async def api(browser: httpx.AsyncClient, period: str = "30d") -> dict[str, Any]:
    found: dict[str, Any] = (await browser.get("/api/usage", params={"period": period})).json()
    return found


async def test_nobody_reads_it_without_being_signed_in(page: Page) -> None:
    assert (await page.browser().get("/usage")).status_code == 303
    assert (await page.browser().get("/api/usage")).status_code == 401


async def test_an_admin_sees_all_by_day_engine_and_person(ana: httpx.AsyncClient) -> None:
    found = await api(ana)
    assert (found["total"]["turns"], found["total"]["cost_usd"]) == (5, 3.0)
    assert found["total"]["unpriced_turns"] == 1
    assert [day["turns"] for day in found["days"][-2:]] == [2, 1]
    assert len(found["days"]) == 30
    engines = {one["engine"]: one["cost"] for one in found["engines"]}
    assert engines == {"claude": "$2.00", "codex": "$1.00", "acp": "not known"}
    assert [(one["name"], one["cost_usd"]) for one in found["people"]] == [
        (CARLA, 2.0), ("ben@example.org", 1.0)
    ]  # fmt: skip
    assert found["today"] == {"spent_usd": 1.5, "cap_usd": 10.0}
    (carla,) = [one for one in found["people"] if one["person"] == CARLA]
    assert carla["share"] == 75.0


async def test_a_member_sees_their_own_only(ben: httpx.AsyncClient) -> None:
    found = await api(ben)
    assert (found["total"]["turns"], found["total"]["cost_usd"]) == (3, 1.0)
    assert found["people"] == []
    assert found["today"] == {"spent_usd": 0.0, "cap_usd": 2.0}
    text = (await ben.get("/usage")).text
    assert "Your usage" in text
    assert CARLA not in text


async def test_a_period_is_so_many_days_up_to_today(ana: httpx.AsyncClient) -> None:
    week = await api(ana, "7d")
    assert (len(week["days"]), week["total"]["turns"]) == (7, 3)
    assert len((await api(ana, "90d"))["days"]) == 90
    assert (await ana.get("/api/usage", params={"period": "5y"})).status_code == 400
    assert (await ana.get("/usage", params={"show": "hats"})).status_code == 400


async def test_the_table_has_the_numbers_of_the_plot(ana: httpx.AsyncClient) -> None:
    text = (await ana.get("/usage", params={"period": "7d"})).text
    drawn = re.findall(r"<g><title>[^:]+: ([^<]+)</title>", text)
    told = re.findall(r'data-label="Cost">([^<]+)</td>', text)[:7]
    assert drawn == told[::-1]
    assert "$0.75" in told
    assert "style=" not in text


async def test_the_plot_says_in_words_what_it_is_and_draws_the_cap(ana: httpx.AsyncClient) -> None:
    text = (await ana.get("/usage")).text
    assert 'role="img"' in text
    assert "the table below has the same numbers" in text
    assert "All together may spend $10.00 a day" in text
    assert "1 of 1" not in text
    assert "whose engine told no cost" in text
    assert "No price is known for <code>m</code> of acp" in text
    tokens = (await ana.get("/usage", params={"show": "tokens"})).text
    assert "1,000 tokens in, 10 out" in tokens
    assert "may spend $10.00 a day" not in tokens


@pytest.mark.parametrize("words", HOSTILE)
async def test_names_and_models_are_text_on_the_page(
    page: Page, ana: httpx.AsyncClient, words: str
) -> None:
    with closing(sqlite3.connect(page.home / "laneway.db")) as base:
        fill(base, page.clock.now(), words, words, None, 1)
        base.commit()
    try:
        found = looked((await ana.get("/usage", params={"period": "7d"})).text)
        assert found.faults == []
        assert words in "".join(found.text)
    finally:
        with closing(sqlite3.connect(page.home / "laneway.db")) as base:
            base.execute("DELETE FROM turns WHERE engine = ?", (words,))
            base.commit()


# Days ----------------------------------------------------------------------------------------


def at(*when: int, zone: ZoneInfo = ZONE) -> int:
    return int(datetime(*when, tzinfo=zone).timestamp() * 1000)  # type: ignore[misc, arg-type]


async def test_a_turn_counts_for_the_local_day_on_which_it_began(page: Page) -> None:
    now = at(2020, 10, 26, 12)
    edge = at(2020, 10, 25)  # the first instant of a day of 25 hours
    with closing(sqlite3.connect(page.home / "laneway.db")) as base:
        for instant in (edge - 1, edge, edge + 25 * 3_600_000 - 1, edge + 25 * 3_600_000):
            fill(base, instant, BEN, "claude", 1.0, 1)
        base.commit()
    found = await Spent().on(page.site.parts.store, usage.days(ZONE, now, 3), now)
    assert [sum(used.turns for used in day.values()) for day in found] == [1, 2, 1]


class Counting:
    """Counts what is read."""

    def __init__(self, store: Reader) -> None:
        self.store = store
        self.reads = 0

    async def fetch(self, query: str, **parameters: object) -> list[sqlite3.Row]:
        self.reads += 1
        return await self.store.fetch(query, **parameters)


async def test_the_first_look_at_three_months_takes_a_handful_of_reads(page: Page) -> None:
    now = at(2018, 5, 10, 12)
    days, spent = usage.days(ZONE, now, 90), Spent()
    reading = Counting(page.site.parts.store)
    with closing(sqlite3.connect(page.home / "laneway.db")) as base:
        for nth in (0, 9, 10, 89):
            fill(base, days[nth].start, BEN, "claude", 1.0, 1)
        base.commit()
    found = await spent.on(reading, days, now)
    assert [nth for nth, sums in enumerate(found) if sums] == [0, 9, 10, 89]
    assert reading.reads <= 10
    reading.reads = 0
    assert await spent.on(reading, days, now) == found
    assert reading.reads == 2, "what runs, and today"


async def test_days_that_are_over_are_read_once_and_running_turns_are_not_forgotten(
    page: Page,
) -> None:
    now = at(2019, 5, 10, 12)
    days, spent, store = usage.days(ZONE, now, 3), Spent(), page.site.parts.store
    with closing(sqlite3.connect(page.home / "laneway.db")) as base:
        fill(base, days[0].start, BEN, "claude", 1.0, 1)
        fill(base, days[1].start, BEN, "claude", 1.0, 1, over=False)
        base.commit()
        key = Source(BEN, "claude", "m")
        first = await spent.on(store, days, now)
        assert [day[key].turns if key in day else 0 for day in first] == [1, 1, 0]
        base.execute(
            "UPDATE turns SET status = 'done', ended_at = ?, cost = 5 WHERE started_at = ?",
            (now, days[1].start),
        )
        base.commit()
        second = await spent.on(store, days, now)
        assert second[1][key].cost == 5.0
        base.execute("DELETE FROM turns WHERE started_at = ?", (days[0].start,))
        base.commit()
    third = await spent.on(store, days, now)
    assert third[0] == first[0], "what is over is not read again"
