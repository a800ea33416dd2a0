"""A real browser for tests of the page: one for each process of tests, with a clean profile a test.

    pytestmark = pytest.mark.asyncio(loop_scope="session")

    async def test_...(page: Page, browser: Browser) -> None:
        async with screen(page, browser, "ana@example.org") as tab:
            await tab.goto(f"{page.url}/chat")

A machine without Chromium skips these tests and says so; where CI runs them, it is a failure.
``LANEWAY_TEST_CHROMIUM`` names another program.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    CDPSession,
    ViewportSize,
    async_playwright,
)
from playwright.async_api import Page as Tab

from gateway.web.access import cookie_name
from tests.web.site import Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
DESKTOP = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=844)
Profile = tuple[BrowserContext, CDPSession]
# What no test uses now, by the gateway and whether it is dark. A new profile costs a second.
_IDLE: WeakKeyDictionary[Browser, dict[tuple[str, bool], list[Profile]]] = WeakKeyDictionary()
PATIENCE = 10_000.0  # ms for anything a test waits for


def program() -> str:
    """The browser's program; without one the test is skipped, and in CI it fails."""
    named = os.environ.get("LANEWAY_TEST_CHROMIUM", "")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    why = "no Chromium here: install chromium, or name its program in LANEWAY_TEST_CHROMIUM"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Its tests need ``pytest.mark.asyncio(loop_scope="session")``."""
    path = program()
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=path,
            args=[
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--disable-gpu",
                "--in-process-gpu",
                "--no-zygote",
                "--renderer-process-limit=1",
            ],
        )
        try:
            yield running
        finally:
            await running.close()


@asynccontextmanager
async def screen(
    page: Page,
    browser: Browser,
    who: str = "",
    size: ViewportSize = DESKTOP,
    dark: bool = False,
) -> AsyncIterator[Tab]:
    """A tab of a clean profile, of somebody signed in; a fault of its scripts fails the test."""
    idle = _IDLE.setdefault(browser, {}).setdefault((page.url, dark), [])
    context, cleaning = idle.pop() if idle else await _profile(page, browser, dark)
    faults: list[str] = []
    if who:
        person = who if ":" in who else f"web:{who}"
        token = await page.site.accounts.open(person, "a test")
        name = cookie_name(page.site.https)
        await context.add_cookies([{"name": name, "value": token, "url": page.url}])
    tab = await context.new_page()
    await tab.set_viewport_size(size)
    tab.on("pageerror", lambda fault: faults.append(str(fault)))
    tab.on("console", lambda said: _heard(faults, said.type, said.text))
    try:
        yield tab
    finally:
        await tab.close()
        await context.clear_cookies()
        origin = {"origin": page.url, "storageTypes": "all"}
        await cleaning.send("Storage.clearDataForOrigin", origin)
        idle.append((context, cleaning))
    assert not faults, faults


async def _profile(page: Page, browser: Browser, dark: bool) -> Profile:
    """A new one, with a tab that stays, so that the next one finds its process there."""
    context = await browser.new_context(
        base_url=page.url,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",  # nothing is painted again and again while a test waits
    )
    context.set_default_timeout(PATIENCE)
    return context, await context.new_cdp_session(await context.new_page())


def _heard(faults: list[str], kind: str, text: str) -> None:
    """What a page may not do is told on its console, and is a fault of ours."""
    if kind == "error" and "Content Security Policy" in text:
        faults.append(text)
