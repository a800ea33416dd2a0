"""The page of one's own account: where one is signed in, ending that, and the time zone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.web.signing import acts, signed_in
from tests.web.site import ANA, Page


@pytest_asyncio.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with Page(tmp_path) as running:
        yield running


async def test_a_member_sees_where_they_are_signed_in_and_nobody_elses(page: Page) -> None:
    accounts = page.site.accounts
    ben = await page.signed_in("ben@example.org")
    await accounts.open("web:ben@example.org", "Safari on iPhone", "2001:db8::7")
    await accounts.open(ANA, "Edge on Windows", "198.51.100.7")
    text = (await ben.get("/account")).text
    assert "Safari on iPhone" in text
    assert "2001:db8::7" in text
    assert "Edge" not in text
    assert text.count("this one") == 1
    assert (await page.browser().get("/account")).headers["location"] == "/signin?next=/account"


async def test_one_sign_in_can_be_ended_and_only_ones_own(page: Page) -> None:
    ben, other = await page.signed_in("ben@example.org"), await page.signed_in("ben@example.org")
    ana = await page.signed_in("ana@example.org")
    rows = await page.site.accounts.listed("web:ben@example.org")
    mine = await page.site.accounts.visitor(other.cookies["laneway"])
    assert mine is not None
    ended = next(row.id for row in rows if row.id == mine.signin)[:16]
    assert (await ana.post("/api/account/end", json={"id": ended})).status_code == 404
    assert await signed_in(other)
    assert (await ben.post("/api/account/end", json={"id": ended})).status_code == 200
    assert not await signed_in(other)
    assert await signed_in(ben)
    assert (await ben.post("/api/account/end", json={"id": ended})).status_code == 404
    for wrong in ({}, {"id": ""}, {"id": "%"}, {"id": "x" * 100}):
        assert (await ben.post("/api/account/end", json=wrong)).status_code in (400, 404)
    (act,) = await acts(page, "signin.closed")
    assert act.person == "web:ben@example.org"


async def test_all_others_can_be_ended_at_once(page: Page) -> None:
    ben, *others = [await page.signed_in("ben@example.org") for _ in range(3)]
    ana = await page.signed_in("ana@example.org")
    assert (await ben.post("/api/account/end-others", json={})).json() == {"ended": 2}
    assert await signed_in(ben)
    assert await signed_in(ana)
    assert not any([await signed_in(other) for other in others])
    assert (await ben.post("/api/account/end-others", json={})).json() == {"ended": 0}


async def test_the_time_zone_is_the_one_of_the_zone_command(page: Page) -> None:
    ben, people = await page.signed_in("ben@example.org"), page.site.parts.people
    person = "web:ben@example.org"
    assert (await ben.post("/api/account/zone", json={"zone": "Europe/Berlin"})).status_code == 200
    assert people.person(person, "").zone == "Europe/Berlin"
    answer = await ben.post("/api/account/zone", json={"zone": "europe/rome"})
    assert answer.json() == {"zone": "Europe/Rome"}
    answer = await ben.post("/api/account/zone", json={"zone": "Berlin"})
    assert "Did you mean Europe/Berlin?" in answer.text
    assert (await ben.post("/api/account/zone", json={"zone": "Europe/Berlin"})).status_code == 200
    assert 'value="Europe/Berlin"' in (await ben.get("/account")).text
    for wrong in ("Mars/Base", "../../etc/passwd", "europe", " UTC"):
        answer = await ben.post("/api/account/zone", json={"zone": wrong})
        assert answer.status_code == 400
    assert (await ben.post("/api/account/zone", json={"zone": ""})).status_code == 200
    assert people.person(person, "").zone == ""
    assert people.role(person) == "member"


async def test_nothing_of_an_account_changes_without_its_sign_in_and_its_own_page(
    page: Page,
) -> None:
    ben = await page.signed_in("ben@example.org")
    for path in ("end", "end-others", "zone"):
        where = f"/api/account/{path}"
        assert (await page.browser().post(where, json={})).status_code == 401
        foreign = await ben.post(where, json={}, headers={"Origin": "https://evil.test"})
        assert foreign.status_code == 403
    assert (await page.browser().post("/api/signout", json={})).status_code == 401
