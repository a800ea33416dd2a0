"""Pictures of the page: each place of it on a desktop and on a phone, by day and by night.

The pages are those of a gateway at work (``lab``) in a real browser; what is taken there is set
side by side by the same browser. It must not know what the pages are about.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, Page, ViewportSize, async_playwright

from docs.pictures.lab import ADMIN, lab
from gateway.web.access import cookie_name
from tests.web.site import Page as Gateway

DESKTOP = ViewportSize(width=1120, height=780)
PHONE = ViewportSize(width=390, height=780)
BROWSERS = {False: "Firefox on Windows", True: "Safari on iPhone"}
HIGH = 520  # of the screens in a picture, in its pixels
SCALE = 2  # of a screen when it is taken; in a picture it is smaller


@dataclass(frozen=True, slots=True)
class Place:
    """A page: where it is, how it is opened, and what has to be there before it is taken."""

    name: str
    path: str
    there: str


def places(lane: str) -> tuple[Place, ...]:
    return (
        Place("chat", f"/chat/{lane}", ".entry.card button"),
        Place("lanes", "/lanes", ".lane"),
        Place("jobs", "/jobs", ".job"),
        Place("job", "/jobs/1", "table"),
        Place("usage", "/usage", ".plot"),
        Place("people", "/people", ".waits"),
        Place("settings", "/settings", ".setting"),
        Place("audit", "/audit", "tbody tr"),
        Place("account", "/account", "#chat-list li"),
        Place("signin", "/signin", "#email"),
    )


async def take(program: str, images: Path) -> None:
    """Every page into ``images/web-NAME.png``; a minute or so."""
    async with lab() as (gateway, lane), async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            shown = places(lane)
            screens = {}
            for phone in (False, True):
                token = await gateway.site.accounts.open(f"web:{ADMIN}", BROWSERS[phone])
                for dark in (False, True):
                    taken = await _screens(gateway, browser, shown, token, phone, dark)
                    screens[phone, dark] = taken
            for place in shown:
                rows = [
                    [screens[False, dark][place.name], screens[True, not dark][place.name]]
                    for dark in (False, True)
                ]
                await _together(browser, rows, images / f"web-{place.name}.png")
            pair = [screens[False, False]["chat"], screens[True, True]["lanes"]]
            await _together(browser, [pair], images / "web.png")
        finally:
            await browser.close()


async def _screens(
    gateway: Gateway,
    browser: Browser,
    shown: tuple[Place, ...],
    token: str,
    phone: bool,
    dark: bool,
) -> dict[str, bytes]:
    """The pages as they stand now, by name."""
    context = await browser.new_context(
        base_url=gateway.url, viewport=PHONE if phone else DESKTOP, device_scale_factor=SCALE,
        color_scheme="dark" if dark else "light", locale="en-GB", has_touch=phone,
        timezone_id="Europe/Berlin", reduced_motion="reduce",
    )  # fmt: skip
    tab = await context.new_page()
    taken: dict[str, bytes] = {}
    name = cookie_name(gateway.site.https)
    for place in shown:
        await context.clear_cookies()
        if place.name != "signin":
            await context.add_cookies([{"name": name, "value": token, "url": gateway.url}])
        taken[place.name] = await _screen(tab, place)
    await context.close()
    return taken


async def _screen(tab: Page, place: Place) -> bytes:
    await tab.goto(place.path)
    await tab.locator(place.there).first.wait_for()
    await tab.evaluate("document.fonts.ready")
    await tab.wait_for_timeout(300)  # what a page asks for once it is there
    return await tab.screenshot(caret="hide")


async def _together(browser: Browser, rows: list[list[bytes]], picture: Path) -> None:
    """Rows of screens as one picture with a ground that is nobody's."""
    drawn = "".join(
        '<div class="row">'
        + "".join(
            f'<img src="data:image/png;base64,{base64.b64encode(one).decode()}">' for one in row
        )
        + "</div>"
        for row in rows
    )
    tab = await browser.new_page(device_scale_factor=1)
    await tab.set_content(
        "<!doctype html><style>body { margin: 0 } main { display: inline-grid; gap: 16px;"
        " padding: 4px } .row { display: flex; gap: 16px } img { display: block; border-radius:"
        f" 10px; height: {HIGH}px; outline: 1px solid #9aa6a1 }}</style><main>{drawn}</main>"
    )
    await tab.locator("main").screenshot(path=picture, omit_background=True)
    await tab.close()
