"""*Test now* on the settings page: real calls, with what is typed, in bounded time."""

from __future__ import annotations

import asyncio
import io
import logging
from typing import Any

import httpx
import pytest
import pytest_asyncio

from core.clock import SystemClock
from core.engines.processes import NoLedger
from gateway import logs
from gateway.choices import LogFormat
from gateway.settings_table import Settings
from gateway.web import trying
from tests.fakes.mail_server import MailServer
from tests.fakes.telegram import TOKEN, FakeTelegram
from tests.web.site import OWNER, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")
API = "/api/settings/test"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ana(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ana@example.org")


async def findings(browser: httpx.AsyncClient, what: str, **typed: str) -> list[dict[str, Any]]:
    changes = {f"LANEWAY_{name}": value for name, value in typed.items()}
    answer = await browser.post(API, json={"what": what, "changes": changes}, timeout=30)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["findings"]
    return found


async def test_a_token_is_tried_before_it_is_saved(
    page: Page, ana: httpx.AsyncClient, fake: FakeTelegram
) -> None:
    found = await findings(ana, "telegram", TELEGRAM_TOKEN=TOKEN)
    assert all(one["ok"] for one in found), found
    assert fake.called("getMe")
    assert not page.site.settings.telegram_token


async def test_a_wrong_token_is_said_to_be_wrong_and_appears_nowhere(
    ana: httpx.AsyncClient,
) -> None:
    wrong = "800000001:WRONGtokenWRONGtokenWRONGtokenWRONGto"
    written = io.StringIO()
    handler = logs.SafeHandler(written, LogFormat.TEXT, logs.Redactor())
    library = logging.getLogger("httpx")
    level = library.level
    logging.getLogger().addHandler(handler)
    library.setLevel(logging.INFO)
    try:
        found = await findings(ana, "telegram", TELEGRAM_TOKEN=wrong)
    finally:
        library.setLevel(level)
        logging.getLogger().removeHandler(handler)
    assert any(not one["ok"] and one["fix"] for one in found)
    assert wrong not in str(found)
    assert "/bot[secret]/getMe" in written.getvalue()
    assert wrong not in written.getvalue()


async def test_what_is_not_set_up_is_told_with_the_next_step(ana: httpx.AsyncClient) -> None:
    for what in ("slack", "discord", "openai", "mail", "transcription"):
        (found,) = await findings(ana, what)
        assert not found["ok"], what
        assert found["fix"], what


async def test_an_engine_is_started_and_asked(ana: httpx.AsyncClient) -> None:
    found = await findings(ana, "acp")
    assert found
    assert all(one["ok"] for one in found), found


async def test_a_mail_server_is_connected_to_and_a_mail_goes_to_oneself(
    page: Page, ana: httpx.AsyncClient
) -> None:
    async with MailServer() as server:
        (found,) = await findings(ana, "mail", SMTP_URL=server.url)
        assert found["ok"], found
        assert server.mails == []
        (found,) = await findings(ana, "letter", SMTP_URL=server.url, MAIL_FROM="bot@example.org")
        assert found["ok"], found
        mail = await server.mail(0)
        assert (mail["To"], mail["From"]) == ("ana@example.org", "bot@example.org")


async def test_a_test_mail_needs_an_address_of_ones_own(page: Page) -> None:
    async def status(who: str) -> int:
        browser = await page.signed_in(who)
        return (await browser.post(API, json={"what": "letter"})).status_code

    assert await status(OWNER) == 401  # nobody here: an admin has an address


async def test_what_is_no_test_and_what_cannot_be_read_is_refused(ana: httpx.AsyncClient) -> None:
    assert (await ana.post(API, json={"what": "everything"})).status_code == 404
    body = {"what": "telegram", "changes": {"LANEWAY_TELEGRAM_TOKEN": "no token"}}
    answer = await ana.post(API, json=body)
    assert answer.status_code == 422
    assert "BotFather" in answer.json()["wrong"]["LANEWAY_TELEGRAM_TOKEN"]


async def test_a_test_that_takes_too_long_or_breaks_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hangs(*_: object) -> list[Any]:
        await asyncio.Event().wait()
        return []

    async def breaks(*_: object) -> list[Any]:
        raise ArithmeticError("beyond all promises")

    clock, ledger = SystemClock(), NoLedger()
    monkeypatch.setattr(trying, "_channel", hangs)
    (found,) = await trying.tried("slack", Settings(), clock, ledger, limit=0.01)
    assert "no answer within" in found.detail
    monkeypatch.setattr(trying, "_channel", breaks)
    (found,) = await trying.tried("slack", Settings(), clock, ledger)
    assert "ArithmeticError" in found.detail
