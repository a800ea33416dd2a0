"""Signing in with a code by mail: who gets one, what it is good for, and what nobody can tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from tests.fakes.mail_server import MailServer
from tests.web.site import Page

ANA = "ana@example.org"


@pytest_asyncio.fixture
async def server() -> AsyncIterator[MailServer]:
    async with MailServer() as running:
        yield running


@pytest_asyncio.fixture
async def page(tmp_path: Path, server: MailServer) -> AsyncIterator[Page]:
    async with Page(tmp_path, LANEWAY_SMTP_URL=server.url) as running:
        yield running


async def start(browser: httpx.AsyncClient, address: str = ANA) -> httpx.Response:
    return await browser.post("/api/signin/start", json={"email": address})


async def verify(browser: httpx.AsyncClient, code: str, address: str = ANA) -> httpx.Response:
    return await browser.post("/api/signin/verify", json={"email": address, "code": code})


async def test_a_code_by_mail_signs_in_and_signing_out_ends_it(
    page: Page, server: MailServer
) -> None:
    browser = page.browser()
    assert (await browser.get("/api/session")).status_code == 401
    assert (await start(browser)).status_code == 200
    code = server.code(await server.mail(0))
    answer = await verify(browser, code)
    assert (answer.status_code, answer.json()["email"]) == (200, ANA)
    session = (await browser.get("/api/session")).json()
    assert (session["person"], session["role"]) == ("web:ana@example.org", "admin")
    assert (await browser.post("/api/signout", json={})).status_code == 200
    assert (await browser.get("/api/session")).status_code == 401
