"""What several modules of tests of the page share; a module's own fixture of the same name wins.

They live in the loop of the whole run, because a browser is started once for each process of it:
their tests need ``pytest.mark.asyncio(loop_scope="session")``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fakes.telegram import FakeTelegram
from tests.web.chromium import browser
from tests.web.site import Page

__all__ = ["browser"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(tmp_path_factory: pytest.TempPathFactory, fake: FakeTelegram) -> AsyncIterator[Page]:
    """A gateway to which Telegram can be connected on its settings page."""
    home = tmp_path_factory.mktemp("page")
    async with Page(home, LANEWAY_TELEGRAM_API_BASE=fake.url) as running:
        yield running
