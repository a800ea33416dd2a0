"""The pages of jobs, people, usage and the audit in a real browser: by keyboard, and on a phone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ViewportSize, expect

from core.messages import Address
from core.store import jobs as stored
from core.store import roster, rows, web
from core.store.records import PersonRow
from tests.web.chromium import screen
from tests.web.hostile import HOSTILE
from tests.web.site import ANA, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")
EVE, NAME = "telegram:700000041", " ".join(HOSTILE[:4])
NARROW = ViewportSize(width=320, height=640)
MOST = 100_000  # bytes of a page with its sheets and scripts


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with Page(tmp_path_factory.mktemp("chromium"), LANEWAY_BUDGET_DAY="5") as running:
        store = running.site.parts.store
        await store.save(
            rows.new_lane("ana", Address("local", "ana"), True, NAME, 1, ANA),
            roster.person(PersonRow(EVE, NAME, "member", "", 1, ANA)),
            web.act(1, ANA, "person.added", EVE, "a-word-without-any-blank" * 20),
        )
        await running.site.parts.people.load(store)
        yield running


async def test_a_job_is_made_and_cancelled_with_the_keyboard_alone(
    page: Page, browser: Browser
) -> None:
    async with screen(page, browser, "ana@example.org") as tab:
        await tab.goto("/jobs")
        await tab.locator("#new > summary").focus()
        await tab.keyboard.press("Enter")
        await tab.locator("#when").focus()
        await tab.keyboard.type("every fortnite")
        await expect(tab.locator("#when-said .wrong")).to_be_visible()
        await expect(tab.locator("#when")).to_have_attribute("aria-invalid", "true")
        await tab.locator("#when").fill("")
        await tab.keyboard.type("every day at 9:00")
        await expect(tab.locator("#when-said time")).to_have_count(3)
        await tab.keyboard.press("Tab")
        await tab.keyboard.type(NAME)
        await tab.locator("#make [type=submit]").press("Enter")
        await expect(tab.locator("#notes")).to_contain_text("is set")
        await expect(tab.locator(".job .prompt")).to_have_text(NAME)
        await expect(tab.locator(".job h2 a")).to_be_focused()
        await tab.get_by_role("button", name="Pause job 1").press("Enter")
        await expect(tab.get_by_role("button", name="Resume job 1")).to_be_focused()
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("button", name="Pause job 1")).to_be_focused()
        await tab.get_by_role("button", name="Cancel job 1").press("Enter")
        await expect(tab.get_by_role("button", name="No, leave it")).to_be_focused()
        await tab.keyboard.press("Escape")
        await expect(tab.get_by_role("dialog")).to_have_count(0)
        assert await _state(page) == "active"
        await tab.get_by_role("button", name="Cancel job 1").press("Enter")
        await expect(tab.get_by_role("button", name="No, leave it")).to_be_focused()
        await tab.keyboard.press("Shift+Tab")
        await tab.keyboard.press("Enter")
        await expect(tab.locator("#ended")).to_contain_text("every day at 9:00")
        assert await _state(page) == "cancelled"


async def _state(page: Page) -> str:
    job = await stored.job(page.site.parts.store, 1)
    assert job is not None
    return job.state.value


async def test_a_watch_is_put_together_in_the_words_of_the_chat(
    page: Page, browser: Browser
) -> None:
    async with screen(page, browser, "ana@example.org") as tab:
        await tab.goto("/jobs")
        await tab.locator("#new > summary").press("Enter")
        await tab.get_by_label("Something I watch for you").check()
        await tab.locator("#target").fill("https://example.org/")
        await tab.locator("#condition").select_option("contains")
        await tab.locator("#value").fill('the "last" one')
        await tab.locator("#when").fill("5m")
        await expect(tab.locator("#composed")).to_contain_text(
            '/watch url https://example.org/ contains “the "last" one” every 5m'
        )
        await tab.locator("#prompt").fill("tell me")
        await tab.locator("#make [type=submit]").press("Enter")
        await expect(tab.locator("#live .watched")).to_contain_text('contains “the "last" one”')


async def test_a_person_whose_name_is_markup_is_removed_after_a_question(
    page: Page, browser: Browser
) -> None:
    async with screen(page, browser, "ana@example.org") as tab:
        asked: list[str] = []
        tab.on("dialog", lambda dialog: asked.append(dialog.message))
        await tab.goto("/people")
        await tab.get_by_role("button", name=f"Remove {NAME}").press("Enter")
        await expect(tab.locator("dialog .question")).to_contain_text(f"Remove {NAME}?")
        await tab.locator("dialog .danger").press("Enter")
        await expect(tab.locator("#notes")).to_contain_text("is removed")
        await expect(tab.get_by_text(EVE)).to_have_count(0)
        assert asked == []


LOOK = """() => {
    const parts = [...performance.getEntriesByType("navigation"),
        ...performance.getEntriesByType("resource").filter((one) => one.name.includes("/static/"))];
    const shown = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 1;
    const touched = [...document.querySelectorAll("button, summary, nav a, select, .button")];
    return {
        wide: document.documentElement.scrollWidth,
        weight: parts.reduce((sum, one) => sum + one.decodedBodySize, 0),
        parts: parts.length,
        headings: document.querySelectorAll("h1").length,
        small: touched.filter((one) => shown(one) && one.getBoundingClientRect().height < 39.5)
            .map((one) => one.outerHTML.slice(0, 90)),
        places: [...document.querySelectorAll(".top a[href]")].filter(shown).filter((one) => {
            const {left, right} = one.getBoundingClientRect();
            return left >= 0 && right <= innerWidth;
        }).map((one) => one.getAttribute("href")),
    };
}"""
PLACES = ["/chat", "/lanes", "/jobs", "/usage", "/people", "/settings", "/audit", "/account"]


async def test_every_page_is_light_fits_a_narrow_phone_and_asks_nobody_else(
    page: Page, browser: Browser
) -> None:
    await page.site.parts.store.save(roster.person(PersonRow(EVE, NAME, "member", "", 1, ANA)))
    await page.site.parts.people.load(page.site.parts.store)
    async with screen(page, browser, "ana@example.org", NARROW, dark=True) as tab:
        asked: set[str] = set()
        tab.on("request", lambda request: asked.add(request.url))
        titles = set()
        found = (await (await page.signed_in("ana@example.org")).get("/api/jobs")).json()["jobs"]
        jobs = [f"/jobs/{one['id']}" for one in found[:1]]  # where the tests before made one
        for path in (*PLACES, "/chat?new", "/usage?period=7d", *jobs):
            await tab.goto(path)
            if path == "/settings":
                await expect(tab.locator(".setting").first).to_be_visible()
            seen = await tab.evaluate(LOOK)
            titles.add(await tab.title())
            assert (path, seen["wide"]) == (path, NARROW["width"])
            assert (path, seen["headings"], seen["small"]) == (path, 1, [])
            assert seen["places"] == PLACES, path
            assert seen["parts"] > 2, path
            assert 2_000 < seen["weight"] < MOST, path
        assert len(titles) >= len(PLACES)
        assert all(url.startswith((page.url, "data:", "blob:")) for url in asked)
