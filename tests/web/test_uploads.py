"""Files that come up at once, or never to an end: what they may take, and what is left of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from gateway.paths import FILES
from gateway.web import files
from tests.web import wire
from tests.web.site import Page


@pytest_asyncio.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with Page(tmp_path) as running:
        yield running


async def upload(browser: httpx.AsyncClient, content: bytes) -> httpx.Response:
    return await browser.post("/api/files", files={"file": ("x.txt", content)})


async def test_many_files_at_once_are_no_more_than_one_after_the_other(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "UNUSED_MOST", 3)
    eve = await page.signed_in("eve@members.example.org")
    answers = await asyncio.gather(*(upload(eve, b"x") for _ in range(9)))
    assert sorted(one.status_code for one in answers) == [200] * 3 + [429] * 6
    large = await page.signed_in("large@members.example.org")
    monkeypatch.setattr(files, "UNUSED_BYTES", 1000)
    answers = await asyncio.gather(*(upload(large, b"x" * 500) for _ in range(3)))
    assert [one.status_code for one in answers].count(200) == 1


async def test_a_file_that_does_not_go_on_coming_leaves_nothing(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await page.signed_in("ana@example.org")
    monkeypatch.setattr(files, "SILENT_MOST", 0.05)
    begun = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nhe'
    cookie = "; ".join(f"{name}={value}" for name, value in ana.cookies.items())
    asked = wire.request(
        "POST",
        "/api/files",
        "Sec-Fetch-Site: same-origin",
        f"Cookie: {cookie}",
        "Content-Type: multipart/form-data; boundary=b",
        "Content-Length: 5000",
        body=begun,
    )
    assert (await wire.say(page.gateway.web_port, asked)).status == 408
    assert not list((page.home / FILES).iterdir())
