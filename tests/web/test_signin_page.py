"""Signing in with a real browser: by keyboard, by pasting, with a link, and out again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.fakes.mail_server import MailServer
from tests.web.chromium import PHONE, screen
from tests.web.site import Page

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[MailServer]:
    async with MailServer() as running:
        yield running


async def test_a_code_is_typed_pasted_and_led_on(
    tmp_path: Path,
    server: MailServer,
    browser: Browser,
) -> None:
    async with (
        Page(tmp_path, LANEWAY_SMTP_URL=server.url) as page,
        screen(page, browser, size=PHONE) as tab,
    ):
        await tab.goto("/account")  # asks to sign in, and leads back
        await expect(tab.get_by_label("Your mail address")).to_be_focused()
        await tab.keyboard.type("ana")
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("alert")).to_contain_text("ana@example.org")
        await tab.keyboard.type("@example.org")
        await tab.get_by_role("button", name="Send me a code").click()  # as a thumb does
        code = tab.get_by_label("Code")
        await expect(code).to_be_focused()
        sent = server.code(await server.mail(0))
        wrong = f"{(int(sent) + 1) % 10**8:08}"
        await tab.keyboard.type(wrong)
        await tab.get_by_role("button", name="Sign in").click()
        await expect(tab.get_by_role("alert")).to_contain_text("not right")
        await tab.reload()  # a phone forgets the page while the mail is read
        await expect(code).to_be_focused()
        width = await tab.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"]
        await tab.keyboard.insert_text(f" {sent[:4]} {sent[4:]} ")  # pasted: nothing to press
        await tab.wait_for_url("**/account")
        await tab.get_by_role("button", name="Sign out").click()
        await tab.wait_for_url("**/signin")


async def test_a_link_signs_in_with_its_button_and_leaves_no_trace_in_the_address(
    tmp_path: Path,
    browser: Browser,
) -> None:
    async with (
        Page(tmp_path, LANEWAY_ADMIN_EMAILS="") as page,
        screen(page, browser) as tab,
    ):
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        token = page.gateway.owner_token
        await tab.goto(f"/signin/link#token={token}")
        assert tab.url.endswith("/signin/link")
        await tab.keyboard.press("Enter")
        await tab.wait_for_url("**/chat*")
        assert not any(token in url for url in asked if "#" not in url)
        await tab.goto(f"/signin/link#token={token}")
        await tab.get_by_role("button", name="Sign in here").click()
        await expect(tab.get_by_role("alert")).to_contain_text("used already")
        await tab.goto("/account")
        await page.site.accounts.open("local:owner", "Safari on iPhone", "2001:db8::7")
        await tab.reload()
        await tab.get_by_role("button", name="End the sign-in of Safari on iPhone").click()
        await expect(tab.get_by_text("Safari on iPhone")).to_have_count(0)
        assert len(await page.site.accounts.listed("local:owner")) == 1
        await tab.get_by_label("For everything you schedule").fill("Mars/Base")
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("alert")).to_contain_text("no time zone Mars/Base")
