"""The audit: what admins did, in chats, on the command line and on the page; who, what and when."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

import gateway
from core.store import housekeeping, web
from gateway.web.audit import SHOWN, WORDS
from tests.web.hostile import HOSTILE, looked
from tests.web.site import ANA, OWNER, Page

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with Page(tmp_path_factory.mktemp("audit")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ana(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ana@example.org")


async def acts(browser: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await browser.get("/api/audit", params=query)).json()["acts"]
    return found


async def test_only_admins_read_it(page: Page) -> None:
    ben = await page.signed_in("ben@example.org")
    assert (await page.browser().get("/audit")).status_code == 303
    assert (await page.browser().get("/api/audit")).status_code == 401
    assert (await ben.get("/audit")).status_code == 403
    assert (await ben.get("/api/audit")).status_code == 403


@pytest.mark.parametrize(
    ("said", "act", "about", "detail"),
    [
        ("/pause", "thread.paused", "main", ""),
        ("/resume", "thread.resumed", "main", ""),
        ("/pause all", "all.paused", "", ""),
        ("/resume all", "all.resumed", "", ""),
        ("/pause acp", "engine.paused", "acp", ""),
        ("/resume acp", "engine.resumed", "acp", ""),
        ("/engine demo", "engine.chosen", "main", "demo"),
        ("/approvals full", "approvals.set", "main", "full"),
        ("/workspace default", "workspace.chosen", "main", "default"),
    ],
)
async def test_what_an_admin_does_by_a_command_is_kept(
    page: Page, ana: httpx.AsyncClient, said: str, act: str, about: str, detail: str
) -> None:
    if said.startswith("/resume"):  # what is not paused cannot go on
        await page.site.local.say("main", OWNER, "Owner", said.replace("resume", "pause"))
    await page.site.local.say("main", OWNER, "Owner", said)
    newest = (await acts(ana))[0]
    found = newest["person"], newest["act"], newest["about"], newest["detail"]
    assert found == (OWNER, act, about, detail)
    assert newest["name"] == "Owner"
    assert newest["words"] != act, "people read words"


async def test_what_changes_nothing_is_no_act(page: Page, ana: httpx.AsyncClient) -> None:
    before = await acts(ana)
    for said in ("/engine nonsense", "/engine", "/approvals", "/pause nonsense", "/status"):
        await page.site.local.say("main", OWNER, "Owner", said)
    assert await acts(ana) == before


async def test_a_place_is_named_by_its_title_also_once_it_is_removed(
    page: Page, ana: httpx.AsyncClient
) -> None:
    body = {"place": "telegram:-1001900100000", "title": "The lab"}
    assert (await ana.post("/api/places", json=body)).status_code == 200
    assert (await ana.post("/api/places/remove", json=body)).status_code == 200
    removed, allowed = (await acts(ana))[:2]
    for one in (removed, allowed):
        assert (one["about_name"], one["detail"]) == ("The lab", body["place"])
    await page.site.parts.store.save(
        web.act(page.site.clock.now(), ANA, "place.removed", "slack:C1")
    )
    assert (await acts(ana))[0]["about_name"] == "slack:C1"


async def test_it_is_filtered_by_person_and_kind(page: Page, ana: httpx.AsyncClient) -> None:
    await page.site.parts.store.save(
        web.act(1, ANA, "setting.saved", "LANEWAY_ENGINE", "demo"),
        web.act(2, "telegram:700000001", "setting.saved", "LANEWAY_ENGINE", "acp"),
    )
    assert {one["act"] for one in await acts(ana, act="setting.saved")} == {"setting.saved"}
    assert {one["person"] for one in await acts(ana, person=ANA)} == {ANA}
    (one,) = await acts(ana, person=ANA, act="setting.saved")
    assert one["detail"] == "demo"
    text = (await ana.get("/audit", params={"act": "setting.saved"})).text
    assert "changed a setting" in text
    assert '<option value="setting.saved" selected>' in text


async def test_older_acts_are_on_further_pages_and_none_is_lost(
    page: Page, ana: httpx.AsyncClient
) -> None:
    many = [web.act(3, "gateway", "test.many", str(number)) for number in range(2 * SHOWN + 5)]
    await page.site.parts.store.save(*many)
    seen, before = [], ""
    while True:
        query = {"act": "test.many", "before": before}
        found = (await ana.get("/api/audit", params=query)).json()
        seen += [int(one["about"]) for one in found["acts"]]
        if found["older"] is None:
            break
        before = str(found["older"])
    assert seen == list(range(2 * SHOWN + 5))[::-1]
    assert "before=" in (await ana.get("/audit", params={"act": "test.many"})).text
    assert (await ana.get("/api/audit", params={"before": "x"})).status_code == 400


async def test_acts_are_kept_for_a_year(page: Page, ana: httpx.AsyncClient) -> None:
    now, day = page.clock.now(), 86_400_000
    store = page.site.parts.store
    await store.save(
        web.act(now - 366 * day, ANA, "test.old"), web.act(now - 364 * day, ANA, "test.kept")
    )
    await store.save(*housekeeping.tidy(now))
    assert await acts(ana, act="test.old") == []
    assert len(await acts(ana, act="test.kept")) == 1


@pytest.mark.parametrize("words", HOSTILE)
async def test_what_is_recorded_is_text_on_the_page(
    page: Page, ana: httpx.AsyncClient, words: str
) -> None:
    await page.site.parts.store.save(web.act(4, words, words, words, words))
    for query in ({}, {"person": words, "act": words}):
        found = looked((await ana.get("/audit", params=query)).text)
        assert found.faults == []
        assert words in "".join(found.text)


async def test_every_act_has_words_that_people_read() -> None:
    root = Path(gateway.__file__).parent.parent
    found = {
        act
        for folder in ("core", "gateway")
        for file in (root / folder).rglob("*.py")
        for act in re.findall(
            r'\b(?:web\.act|Act)\([^"()]*(?:\(\)[^"()]*)?"(\w+\.\w+)"', file.read_text()
        )
    }
    assert {"engine.paused", "all.paused", "place.allowed", "signin.opened"} <= found
    assert found <= set(WORDS)
