"""The chat and the lanes page in a real browser: the main ways through them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect
from playwright.async_api import Page as Screen

from tests.web.chromium import PHONE, screen
from tests.web.site import Page
from tests.web.tabs import new_lane, say

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA, BEN = "ana@example.org", "ben@example.org"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    aside = {"LANEWAY_ACP_READONLY_MODE": "read-only"}
    async with Page(tmp_path_factory.mktemp("page"), **aside) as running:
        yield running


async def write(tab: Screen, text: str) -> None:
    await tab.fill("#text", text)
    await tab.press("#text", "Enter")


async def test_a_conversation_from_its_first_word_to_a_file(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("hello")
    async with screen(page, browser, ANA) as tab, screen(page, browser, ANA) as second:
        await second.goto("/lanes")
        await tab.goto("/chat")
        await expect(tab.get_by_text("What shall I do?")).to_be_visible()
        await write(tab, "/stream 12 0.05")
        await expect(tab.locator(".entry.mine .body")).to_have_text("/stream 12 0.05")
        await expect(tab.locator("#working")).to_be_visible()
        await expect(tab.locator("#entries")).to_contain_text("w11")
        await expect(tab.locator("#working")).to_be_hidden()
        await expect(tab.locator(".entry")).to_have_count(2)

        # Somebody elsewhere sees the lane as it is, and decides there.
        await write(tab, "/approve make release")
        await expect(tab.locator(".entry.card")).to_contain_text("make release")
        await write(tab, "and then?")
        await expect(tab.locator(".entry.waiting")).to_contain_text("Waiting: 1 message")
        await expect(tab.locator(".entry.mine").last).to_contain_text("Waits, next")
        await expect(second.locator("#questions")).to_contain_text("make release")
        await second.locator(".lane-head").first.click()  # opened, the lane leads to its question
        await second.get_by_role("button", name="Show it").click()
        await expect(second.locator(".question")).to_be_focused()
        await second.locator("#questions").get_by_role("button", name="Allow").click()
        await expect(tab.locator("#entries")).to_contain_text("ran: make release")
        await expect(tab.locator(".entry.card button", has_text="Deny")).to_have_count(0)
        await expect(tab.locator(".entry.waiting")).to_have_count(0)
        await expect(tab.locator("#entries")).to_contain_text("echo[2]: and then?")

        await tab.set_input_files("#file", str(notes))
        await expect(tab.locator("#attached")).to_contain_text("notes.txt")
        await expect(tab.locator("#attached progress")).to_have_count(0)
        await write(tab, "read this")
        await expect(tab.locator(".entry.mine .files a").last).to_have_text("📎 notes.txt (5 B)")
        await expect(tab.locator(".entry.mine").last).to_contain_text("Answered")

        before = await tab.locator("#entries").inner_text()
        await tab.reload()
        await expect(tab.locator(".entry.mine .files a")).to_be_visible()
        assert await tab.locator("#entries").inner_text() == before


async def test_a_message_that_waits_is_answered_on_the_side(page: Page, browser: Browser) -> None:
    async with screen(page, browser, ANA) as tab:
        await tab.goto("/chat")
        await write(tab, "/sleep 60")
        await expect(tab.locator("#working")).to_be_visible()
        await write(tab, "/say beside it")
        await tab.get_by_role("button", name="Answer on the side").click()
        await expect(tab.locator("#entries")).to_contain_text("beside it")
        await expect(tab.locator(".entry.mine").last).to_contain_text("Answered")
        await expect(tab.locator(".entry.waiting")).to_have_count(0)
        await write(tab, "/say dropped")
        await tab.locator(".entry.waiting").get_by_role("button", name="Drop").click()
        await expect(tab.locator(".entry.mine").last).to_contain_text("Taken out")
        await tab.locator("#stop").click()
        await expect(tab.locator(".entry.mine").first).to_contain_text("Stopped")


async def test_nothing_that_is_written_does_anything(page: Page, browser: Browser) -> None:
    ana, lane = await page.signed_in(ANA), new_lane()
    hostile = """<img src=x onerror="document.title='hit'"><script>document.title='hit'</script>"""
    file = await ana.post("/api/files", files={"file": (f"{hostile}.html", b"<script>1</script>")})
    await say(ana, lane, f"/title {hostile}")
    await say(ana, lane, f"/say {hostile}\n/tool {hostile}\n/sleep 60", files=[file.json()["id"]])
    async with screen(page, browser, ANA) as tab:
        for path, shown in ((f"/chat/{lane}", "#entries"), ("/lanes", "#lanes")):
            await tab.goto(path)
            await expect(tab.locator(shown)).to_contain_text("<img src=x")
            if path == "/lanes":
                await tab.locator(".lane-head", has_text="<img src=x").first.click()
                await expect(tab.locator(".details td").first).to_be_visible()
            assert await tab.locator("img[src=x], #content script").count() == 0
            assert "hit" not in (await tab.title()).replace(hostile, "")
        await ana.post(f"/api/lanes/{lane}/stop", json={})
        await tab.goto(f"/chat/{lane}")
        await expect(tab.locator(".entry.mine").last).to_contain_text("Stopped")


async def test_who_is_signed_out_elsewhere_is_led_to_the_sign_in(
    page: Page, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.web.events.HEARTBEAT", 0.1)
    async with screen(page, browser, BEN) as tab:
        await tab.goto("/lanes")
        await expect(tab.locator("#count")).to_contain_text("running")
        await page.site.accounts.close_others(f"web:{BEN}", but="")
        await tab.wait_for_url("**/signin?next=%2Flanes")


async def test_files_are_dropped_and_pasted_and_taken_out_again(
    page: Page, browser: Browser
) -> None:
    async with screen(page, browser, BEN) as tab:
        await tab.goto("/chat")
        for place, kind in (("#chat", "drop"), ("#text", "paste")):
            await tab.evaluate(
                """([place, kind]) => {
                    const data = new DataTransfer();
                    data.items.add(new File(["hello"], `${kind}.txt`, {type: "text/plain"}));
                    const how = {bubbles: true, cancelable: true};
                    const drop = () => new DragEvent(kind, {...how, dataTransfer: data});
                    const paste = () => new ClipboardEvent(kind, {...how, clipboardData: data});
                    const event = kind === "drop" ? drop() : paste();
                    document.querySelector(place).dispatchEvent(event);
                }""",
                [place, kind],
            )
            await expect(tab.locator("#attached")).to_contain_text(f"{kind}.txt")
        await expect(tab.locator("#attached progress")).to_have_count(0)
        await tab.get_by_label("Remove drop.txt").click()
        await tab.reload()
        await expect(tab.locator("#attached li")).to_have_count(1)
        await tab.get_by_role("button", name="Send").click()
        await expect(tab.locator(".entry.mine .files")).to_have_text("📎 paste.txt (5 B)")


async def test_all_of_it_can_be_done_with_the_keyboard(page: Page, browser: Browser) -> None:
    async with screen(page, browser, ANA) as tab:
        await tab.goto("/chat")
        await expect(tab.locator("#text")).to_be_focused()
        await tab.keyboard.type("one")
        await tab.keyboard.press("Shift+Enter")
        await tab.keyboard.type("two")
        await expect(tab.locator("#text")).to_have_value("one\ntwo")
        await tab.fill("#text", "")
        await tab.keyboard.type("/stat")
        await expect(tab.locator("#suggestions")).to_contain_text("/status")
        await tab.keyboard.press("ArrowDown")
        await tab.keyboard.press("Enter")
        await expect(tab.locator("#text")).to_have_value("/status")
        await tab.keyboard.press("Enter")
        await expect(tab.locator(".entry.command")).to_contain_text("State: idle")
        await tab.keyboard.type("/sleep 60")
        await tab.keyboard.press("Enter")
        await expect(tab.locator("#stop")).to_be_visible()
        await tab.keyboard.press("Escape")
        await expect(tab.locator(".entry.mine").last).to_contain_text("Stopped")
        await tab.keyboard.type("/approve make")
        await tab.keyboard.press("Enter")
        allow = tab.locator(".entry.card").get_by_role("button", name="Allow")
        await expect(allow).to_be_visible()
        for _ in range(20):
            await tab.keyboard.press("Shift+Tab")
            if await allow.evaluate("(button) => button === document.activeElement"):
                break
        await expect(allow).to_be_focused()
        await tab.keyboard.press("Enter")
        await expect(tab.locator("#entries")).to_contain_text("ran: make")
        await expect(tab.locator("#log")).to_be_focused()  # not lost with the button
        await tab.fill("#text", "/status")
        await tab.click("#send")
        await expect(tab.locator("#text")).to_be_focused()
        pressed = (
            "new KeyboardEvent('keydown', {altKey: true, key: 'Dead', code: 'KeyN', bubbles: true})"
        )
        await tab.evaluate(f"document.body.dispatchEvent({pressed})")
        await tab.wait_for_url("**/chat?new")


async def test_what_was_not_sent_is_kept_and_sent_once(page: Page, browser: Browser) -> None:
    async with screen(page, browser, BEN) as tab:
        await tab.goto("/chat")
        await write(tab, "/say first")
        await expect(tab.locator("#entries")).to_contain_text("first")
        await expect(tab.locator(".entry.mine")).to_contain_text("Answered")
        await tab.route("**/say", _refused)
        await write(tab, "/say second")
        await expect(tab.locator(".entry.mine").last).to_contain_text("Kept")
        await tab.reload()
        await expect(tab.locator(".entry.mine").last).to_contain_text("Kept")
        await tab.unroute("**/say")
        await expect(tab.locator(".entry.mine").last).to_contain_text("Answered")
        await tab.route("**/say", _lost)
        await write(tab, "/say third")
        await expect(tab.locator(".entry.mine").last).to_contain_text("Answered")
        await tab.unroute("**/say")
        await tab.reload()
        await expect(tab.locator("#entries")).to_contain_text("third")
        await expect(tab.locator(".entry")).to_have_count(6)

        await tab.fill("#text", "half a thought")
        await tab.reload()
        await expect(tab.locator("#text")).to_have_value("half a thought")


async def _refused(route: Route) -> None:
    """The gateway cannot be reached."""
    await route.abort()


async def _lost(route: Route) -> None:
    """The gateway takes it, and its answer never comes."""
    await route.fetch()
    await route.abort()


async def test_a_tab_that_was_away_long_has_no_gap(page: Page, browser: Browser) -> None:
    """More came meanwhile than one page of a thread holds: none of it is out of reach."""
    ana, lane = await page.signed_in(ANA), new_lane()
    for number in range(3):
        await say(ana, lane, f"/title early {number}")
    async with screen(page, browser, ANA) as reads, screen(page, browser, ANA) as follows:
        for tab in (reads, follows):
            await tab.set_viewport_size({"width": 900, "height": 400})
            await tab.goto(f"/chat/{lane}")
            await expect(tab.locator(".entry.mine")).to_have_count(3)
        await reads.locator("#log").evaluate("(log) => { log.scrollTop = 0; }")
        await expect(reads.locator("#newest")).to_be_hidden()
        for tab in (reads, follows):
            await tab.evaluate("dispatchEvent(new Event('pagehide'))")
        for number in range(45):
            await say(ana, lane, f"/title late {number}")
        for tab in (reads, follows):
            await tab.evaluate("dispatchEvent(new Event('pageshow'))")
        await expect(reads.locator(".entry.mine")).to_have_count(48)
        await expect(reads.locator(".entry.mine .body").first).to_have_text("/title early 0")
        await expect(follows.locator(".entry.mine .body").last).to_have_text("/title late 44")
        await follows.locator("#log").evaluate("(log) => { log.scrollTop = 0; }")
        await expect(follows.locator(".entry.mine")).to_have_count(48)
        shown = await follows.locator(".entry.mine .body").all_inner_texts()
        assert shown == [f"/title early {n}" for n in range(3)] + [
            f"/title late {n}" for n in range(45)
        ]


async def test_a_phone_has_room_for_everything(page: Page, browser: Browser) -> None:
    async with screen(page, browser, "new@members.example.org", PHONE) as tab:
        await tab.goto("/chat")
        await expect(tab.locator("#text")).to_be_visible()  # nothing to list: it begins at once
        await tab.get_by_label("All threads").click()
        await tab.get_by_role("link", name="Begin one").click()
        await expect(tab.locator("#text")).to_be_visible()
    ana, lane = await page.signed_in(ANA), new_lane()
    await say(ana, lane, "/say " + "a very long word: " + "x" * 300)
    async with screen(page, browser, ANA, {"width": 360, "height": 740}, dark=True) as tab:
        for path in (f"/chat/{lane}", "/chat", "/lanes"):
            await tab.goto(path)
            first = tab.locator("#entries > li, #threads > li, #lanes > li").first
            await expect(first).to_be_attached()
            wide = await tab.evaluate("document.documentElement.scrollWidth")
            assert wide <= 360, path
        await tab.goto("/chat")
        await tab.locator("#threads a").first.click()
        await expect(tab.locator("#text")).to_be_visible()
        await expect(tab.locator(".threads")).to_be_hidden()
        await tab.get_by_label("All threads").click()
        await expect(tab.locator("#threads")).to_be_visible()
