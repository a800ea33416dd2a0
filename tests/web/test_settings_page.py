"""The settings page in a real browser: changing, saving, what goes wrong, and by keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, Dialog, expect
from playwright.async_api import Page as Tab

from gateway.living import Change
from gateway.settings_table import table
from tests.fakes.telegram import TOKEN
from tests.web.chromium import PHONE, screen
from tests.web.site import OWNER, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")
LATER = "web:cleo@example.org"


async def opened(tab: Tab) -> None:
    await tab.goto("/settings")
    await tab.wait_for_selector("#row-laneway_log_level")


async def test_values_are_changed_by_keyboard_saved_and_said(page: Page, browser: Browser) -> None:
    async with screen(page, browser, "ana@example.org") as tab:
        await opened(tab)
        assert await tab.locator(".setting").count() == len(list(table()))
        await tab.get_by_label("Queue limit").fill("7")
        await tab.get_by_label("Live previews").press("Space")
        await tab.get_by_label("Approval mode").select_option("full")
        await tab.get_by_label("Other bots").fill("telegram:800000002\ntelegram:800000003")
        await expect(tab.locator("#count")).to_have_text("4 unsaved changes")
        await tab.keyboard.press("Control+s")
        await expect(tab.locator("#notes")).to_contain_text("Saved.")
        await expect(tab.locator("#pending")).to_be_hidden()
        now = page.site.settings
        assert (now.queue_limit, now.preview, now.approvals) == (7, False, "full")
        assert now.bots == {"telegram:800000002", "telegram:800000003"}
        row = tab.locator("#row-laneway_queue_limit")
        await expect(row).to_contain_text("saved by ana@example.org")
        await row.get_by_role("button", name="Use the default").click()
        await tab.get_by_role("button", name="Save").click()
        await expect(row).to_contain_text("default")
        assert page.site.settings.queue_limit == 20


async def test_what_is_wrong_is_said_beside_its_field_which_gets_the_focus(
    page: Page, browser: Browser
) -> None:
    async with screen(page, browser, "ana@example.org", PHONE) as tab:
        await opened(tab)
        await tab.get_by_label("Longest turn").fill("for ever")
        await tab.get_by_role("button", name="Save").click()
        row = tab.locator("#row-laneway_turn_timeout")
        await expect(row.locator(".wrong")).to_contain_text("Must be a duration")
        await expect(tab.get_by_label("Longest turn")).to_be_focused()
        assert await tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_a_secret_is_written_and_never_shown_again(page: Page, browser: Browser) -> None:
    async with screen(page, browser, "ana@example.org") as tab:
        await opened(tab)
        row = tab.locator("#row-laneway_metrics_token")
        await row.get_by_label("Token for metrics").fill("kept-to-myself")
        await tab.get_by_role("button", name="Save").click()
        await expect(row).to_contain_text("Set; entered by ana@example.org")
        assert "kept-to-myself" not in await tab.content()
        await row.get_by_role("button", name="Replace").click()
        await row.get_by_label("Token for metrics").fill("another-one")
        await tab.get_by_role("button", name="Save").click()
        await expect(tab.locator("#pending")).to_be_hidden()
        assert page.site.settings.metrics_token.reveal() == "another-one"
        await row.get_by_role("button", name="Remove").click()
        await tab.get_by_role("button", name="Save").click()
        await expect(row).to_contain_text("not set")
        assert not page.site.settings.metrics_token


async def test_of_two_admins_the_later_one_sees_what_the_earlier_one_did(
    page: Page, browser: Browser
) -> None:
    async with screen(page, browser, "ana@example.org") as tab:
        await opened(tab)
        await tab.get_by_label("Jobs per person").fill("7")
        await page.site.living.save({"LANEWAY_JOBS_PER_PERSON": Change("9")}, LATER)
        await tab.get_by_role("button", name="Save").click()
        row = tab.locator("#row-laneway_jobs_per_person")
        await expect(row.locator(".clash")).to_contain_text("cleo@example.org set it to 9")
        assert page.site.settings.jobs_per_person == 9
        await row.get_by_role("button", name="Keep mine").click()
        await tab.get_by_role("button", name="Save").click()
        await expect(tab.locator("#pending")).to_be_hidden()
        assert page.site.settings.jobs_per_person == 7


async def test_leaving_with_unsaved_changes_is_asked_about_and_search_finds(
    page: Page, browser: Browser
) -> None:
    async with screen(page, browser, "ana@example.org") as tab:
        await opened(tab)
        await tab.get_by_label("Search settings").fill("smtp")
        await expect(tab.locator(".setting:visible")).to_have_count(1)
        await tab.get_by_label("Search settings").fill("")
        asked: list[str] = []

        async def answered(dialog: Dialog) -> None:
            asked.append(dialog.type)
            await dialog.accept()

        tab.on("dialog", answered)
        await tab.get_by_label("Queue limit").fill("7")
        await tab.reload()
        assert asked == ["beforeunload"]


async def test_who_would_lock_themself_out_is_asked_before_it_is_saved(
    tmp_path: Path, browser: Browser
) -> None:
    async with (
        Page(tmp_path, LANEWAY_ADMIN_EMAILS="") as page,
        screen(page, browser, OWNER) as tab,
    ):
        await opened(tab)
        await tab.get_by_label("Admins’ mail addresses").fill("dora@example.org")
        await tab.get_by_role("button", name="Save").click()
        await expect(tab.get_by_role("dialog")).to_contain_text("built-in owner is signed out")
        await tab.get_by_role("button", name="Go back").click()
        assert page.site.settings.admin_emails == frozenset()


async def test_a_test_uses_what_is_typed_and_not_saved(page: Page, browser: Browser) -> None:
    async with screen(page, browser, "ana@example.org") as tab:
        await opened(tab)
        group = tab.locator(".group").filter(has=tab.get_by_role("heading", name="Telegram"))
        await group.get_by_role("button", name="Test now").click()
        await expect(group.locator(".results")).to_contain_text("it is not set up")
        await group.get_by_label("Bot token").fill(TOKEN)
        await group.get_by_role("button", name="Test now").click()
        await expect(group.locator(".results")).to_contain_text("gw_bot")
        await expect(group.locator(".results")).to_contain_text("with what is not saved yet")
        assert not page.site.settings.telegram_token
