"""Steps of signing in, as tests take them, and a gateway whose mails can be read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest_asyncio

from core.clock import SystemClock
from core.store import web
from tests.fakes.mail_server import MailServer
from tests.web.site import Page

ANA = "ana@example.org"
OFF = "code=900/15m,network=900/1h,failure=900/10m"


class Ahead(SystemClock):
    """The real clock, moved by ``ahead`` ms."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


@pytest_asyncio.fixture
async def server() -> AsyncIterator[MailServer]:
    async with MailServer() as running:
        yield running


@pytest_asyncio.fixture
async def page(tmp_path: Path, server: MailServer) -> AsyncIterator[Page]:
    """Behind a proxy on this machine, so that tests can come from anywhere."""
    async with Page(
        tmp_path,
        clock=Ahead(),
        LANEWAY_SMTP_URL=server.url,
        LANEWAY_TRUSTED_PROXIES="127.0.0.1",
    ) as running:
        yield running


def at(page: Page, address: str) -> httpx.AsyncClient:
    """A browser somewhere on the network."""
    return page.browser(**{"X-Forwarded-For": address})


async def start(browser: httpx.AsyncClient, address: str = ANA) -> httpx.Response:
    return await browser.post("/api/signin/start", json={"email": address})


async def verify(browser: httpx.AsyncClient, code: str, address: str = ANA) -> httpx.Response:
    return await browser.post("/api/signin/verify", json={"email": address, "code": code})


async def signed_in(browser: httpx.AsyncClient) -> bool:
    return (await browser.get("/api/session")).status_code == 200


async def acts(page: Page, act: str) -> list[web.Act]:
    return [one for one in await web.acts(page.site.parts.store, 2**62, 100) if one.act == act]


def shift(page: Page, seconds: float) -> None:
    assert isinstance(page.clock, Ahead)
    page.clock.ahead += round(seconds * 1000)
