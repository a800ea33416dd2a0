"""While a turn runs, what waits is handed over, answered beside it, dropped or stopped: from the
page, and from two tabs at the same moment."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.end_to_end.starting import ROOT
from tests.web.chromium import PHONE, browser, screen
from tests.web.site import Page
from tests.web.tabs import Json, Tab, new_lane, say

__all__ = ["browser"]

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = "ana@example.org"
AGENT = ROOT / "tests" / "fakes" / "claude_agent.py"
WORKS = "/sleep 60\n/say over"
LOOKS = "/sleep 0.2\n/tool Read {}\n" * 100  # after each tool it reads what was handed over


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    folder = tmp_path_factory.mktemp("midrun")
    command = f"{sys.executable} -I -S {AGENT} --state {folder / 'agent'}"
    settings = {"LANEWAY_ENGINE": "claude", "LANEWAY_CLAUDE_COMMAND": command}
    async with Page(folder, **settings) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def ana(page: Page) -> httpx.AsyncClient:
    return await page.signed_in(ANA)


@asynccontextmanager
async def two_tabs(ana: httpx.AsyncClient, script: str = WORKS) -> AsyncIterator[tuple[Tab, Tab]]:
    """Two tabs of one thread in which a turn runs; it is ended afterwards."""
    lane = new_lane()
    async with Tab(ana, lane) as one, Tab(ana, lane) as other:
        await say(ana, lane, script)
        await one.until(lambda: one.state in ("running", "asking"))
        yield one, other
        await asyncio.gather(*(ana.post(f"/api/lanes/{lane}/stop", json={}) for _ in (one, other)))
        await one.until(lambda: one.state == "idle")
        await other.until(lambda: other.texts == one.texts)
        assert len([text for text in one.answers if text.startswith("Stopped")]) <= 1


def button(tab: Tab, label: str) -> Json | None:
    """What a press on it sends."""
    for entry in tab.shown:
        for one in (one for row in entry["buttons"] for one in row):
            if one["label"] == label:
                return {"lane": tab.lane, "button": one["id"], "message_id": entry["id"]}
    return None


async def press_in_both(tabs: tuple[Tab, Tab], label: str) -> list[str]:
    """The same button at the same moment; what each is told."""
    for tab in tabs:
        await tab.until(lambda tab=tab: button(tab, label))  # type: ignore[misc]
    pressed = [tab.browser.post("/api/press", json=button(tab, label)) for tab in tabs]
    answers = await asyncio.gather(*pressed)
    assert {one.status_code for one in answers} <= {200, 404}, [one.text for one in answers]
    return [one.json().get("said") or one.json().get("error", "") for one in answers]


def receipts(tab: Tab) -> list[str]:
    return [one["receipt"] for one in tab.shown if one["key"]]


async def test_a_message_is_handed_to_the_running_turn_once(ana: httpx.AsyncClient) -> None:
    async with two_tabs(ana, LOOKS) as tabs:
        one, other = tabs
        await one.until(lambda: one.state == "running")
        await say(ana, one.lane, "and be quick")
        await press_in_both(tabs, "Hand to the running turn")
        await one.until(lambda: any("steered: and be quick" in text for text in one.answers))
        await one.until(lambda: not one.lanes[one.lane]["waiting"])
        await other.until(lambda: other.texts == one.texts)
        steered = [text for text in one.answers if "steered: and be quick" in text]
        assert [text.count("steered") for text in steered] == [1], one.answers
        await one.until(lambda: not any(text.startswith("Waiting") for text in one.answers))
        await one.until(lambda: receipts(one) == ["running", "running"])  # a part of what runs


async def test_while_the_agent_asks_nothing_is_offered_to_be_handed_over(
    ana: httpx.AsyncClient,
) -> None:
    async with two_tabs(ana, "/run make tea\n/sleep 60") as (one, _):
        await one.until(lambda: button(one, "Allow"))
        await say(ana, one.lane, "and be quick")
        await one.until(lambda: button(one, "Drop"))
        assert button(one, "Hand to the running turn") is None
        assert (await ana.post("/api/press", json=button(one, "Allow"))).status_code == 200
        await one.until(lambda: button(one, "Hand to the running turn"))


async def test_a_message_is_answered_beside_the_running_turn_once(ana: httpx.AsyncClient) -> None:
    async with two_tabs(ana) as tabs:
        one, _ = tabs
        await say(ana, one.lane, "/say beside")
        await press_in_both(tabs, "Answer on the side")
        await one.until(lambda: any("beside" in text for text in one.answers))
        await one.until(lambda: not one.lanes[one.lane]["sides"])
        await one.until(lambda: not one.lanes[one.lane]["waiting"])
        assert one.state == "running"
        assert len([text for text in one.answers if text.startswith("beside")]) == 1, one.answers


async def test_what_waits_is_dropped_once_and_the_other_tab_is_told(
    ana: httpx.AsyncClient,
) -> None:
    async with two_tabs(ana) as tabs:
        one, other = tabs
        for word in ("second", "third"):
            await say(ana, one.lane, f"/say {word}")
        await one.until(lambda: len(one.lanes[one.lane]["waiting"]) == 2)
        first = {"turn": one.lanes[one.lane]["waiting"][0]["turn"]}
        drops = [ana.post(f"/api/lanes/{one.lane}/drop", json=first) for _ in tabs]
        assert {answer.status_code for answer in await asyncio.gather(*drops)} <= {200, 409}
        await other.until(lambda: receipts(other)[1:] == ["dropped", "waiting"])
        assert (await ana.post(f"/api/lanes/{one.lane}/drop", json=first)).status_code == 409
        await one.until(lambda: len(one.lanes[one.lane]["waiting"]) == 1)
        skips = [ana.post(f"/api/lanes/{one.lane}/skip", json={"turn": 10**9}) for _ in tabs]
        assert {answer.status_code for answer in await asyncio.gather(*skips)} == {200}
        assert one.state == "running", "a turn that is not there costs no other"


async def test_a_stop_from_both_ends_what_runs_and_takes_out_what_waits_once(
    ana: httpx.AsyncClient,
) -> None:
    async with two_tabs(ana) as (one, other):
        await say(ana, one.lane, "/say second")
        await one.until(lambda: len(one.lanes[one.lane]["waiting"]) == 1)
        stops = [ana.post(f"/api/lanes/{one.lane}/stop", json={}) for _ in (one, other)]
        assert {answer.status_code for answer in await asyncio.gather(*stops)} == {200}
        await other.until(lambda: receipts(other) == ["stopped", "dropped"])
        assert "over" not in other.answers
        await say(ana, one.lane, "/say third")
        await other.until(lambda: other.answers[-1:] == ["third"])


async def test_handing_over_in_a_real_browser_on_a_phone(page: Page, browser: Browser) -> None:
    async with screen(page, browser, ANA, PHONE) as tab, screen(page, browser, ANA) as second:
        await tab.goto("/chat?new")
        await tab.fill("#text", LOOKS)
        await tab.click("#send")
        await expect(tab.locator("#working")).to_be_visible()
        await second.goto(f"/chat/{tab.url.rpartition('/')[2]}")
        await second.fill("#text", "and be quick")
        await second.press("#text", "Enter")
        hand = tab.get_by_role("button", name="Hand to the running turn")
        await expect(hand).to_be_in_viewport()
        await hand.click()
        for one in (tab, second):
            await expect(one.locator("#entries")).to_contain_text("steered: and be quick")
            await expect(one.locator(".entry.waiting")).to_have_count(0)
            await expect(one.locator(".entry.mine")).to_have_count(2)
        await tab.click("#stop")
        await expect(second.locator("#working")).to_be_hidden()
