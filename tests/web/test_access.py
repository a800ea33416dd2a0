"""Who gets in where: every route says for whom it is, and what it does not say is for admins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from starlette.responses import Response
from starlette.routing import Route

from gateway.web import access, app
from gateway.web.access import Who, rule_of
from tests.web.site import Page


@pytest_asyncio.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with Page(tmp_path) as running:
        yield running


async def test_a_page_asks_who_is_not_signed_in_to_sign_in(page: Page) -> None:
    answer = await page.browser().get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/signin?next=/")


async def test_every_answer_says_how_little_a_browser_may_do_with_it(page: Page) -> None:
    for path in ("/healthz", "/", "/no/such/page"):
        headers = (await page.browser().get(path)).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"


def test_a_route_that_says_nothing_is_for_admins() -> None:
    async def handler(*_: object) -> Response:
        return Response()

    assert rule_of(access.page("/x", handler)).who is Who.ADMINS
    assert rule_of(access.api("/x", handler)).who is Who.ADMINS


async def test_a_route_without_a_rule_is_not_served(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(_: object) -> Response:
        return Response()

    monkeypatch.setattr(app, "AREAS", (lambda: [Route("/x", handler)],))
    with pytest.raises(AttributeError):
        app.application(page.site)
