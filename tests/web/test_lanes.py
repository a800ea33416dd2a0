"""The lanes page: what runs where, for those whose it is, and what can be done about it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import httpx
import pytest
import pytest_asyncio

from core.messages import Address
from core.store import rows, web
from tests.web.site import ANA, BEN, Page
from tests.web.tabs import Tab, new_lane, say

pytestmark = pytest.mark.asyncio(loop_scope="module")

DIRECT = Address("telegram", "700000002")
BEN_THERE = "telegram:700000002"
ELSE = "telegram:700000001"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with Page(tmp_path_factory.mktemp("page")) as running:
        await with_chats(running)
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ana(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ana@example.org")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ben(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ben@example.org")


async def with_chats(page: Page) -> None:
    """Lanes of a platform as they stand in the store, with who wrote in them."""
    store, now = page.site.parts.store, page.site.clock.now()
    group = min(page.site.parts.people.lists.places).partition(":")[2]
    written = []
    for address, direct, title, person in (
        (DIRECT, True, "", BEN_THERE),
        (Address("telegram", "700000001"), True, "", ELSE),
        (Address("telegram", group, "7"), False, "Theirs", BEN_THERE),
        (Address("telegram", group, "8"), False, "Others", ELSE),
        (Address("telegram", "-999", "9"), False, "Not allowed", BEN_THERE),
    ):
        lane = str(address)
        written += [
            rows.new_lane(lane, address, direct, title, now),
            rows.lane_setting(lane, "person", person),
            rows.wrote(lane, person),
        ]
    await store.save(*written)


async def listed(browser: httpx.AsyncClient, words: str = "") -> dict[str, dict[str, object]]:
    found = (await browser.get("/api/lanes", params={"q": words})).json()["lanes"]
    return {one["lane"]: one for one in found}


async def _running(tab: Tab) -> None:
    await tab.until(lambda: tab.state == "running")


def _state(tab: Tab, state: str) -> bool:
    return tab.state == state


# Who sees what ------------------------------------------------------------------------------


async def test_an_admin_sees_the_lanes_of_all_channels(
    page: Page, ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    his = new_lane()
    await say(ben, his, "/status")
    seen = await listed(ana)
    assert {his, str(DIRECT)} <= seen.keys()
    assert seen[his]["owner_name"] == "ben@example.org"


async def test_a_member_sees_their_direct_chats_and_the_threads_they_wrote_in_once_linked(
    page: Page, ben: httpx.AsyncClient
) -> None:
    assert all(one["local"] for one in (await listed(ben)).values())
    store = page.site.parts.store
    await store.save(web.link(BEN_THERE, BEN, page.site.clock.now()))
    try:
        seen = await listed(ben)
        titles = {one["title"] for one in seen.values()}
        assert str(DIRECT) in seen
        assert "Theirs" in titles
        assert "telegram:700000001" not in seen
        assert not titles & {"Others", "Not allowed"}
    finally:
        await store.save(web.remove_link(BEN_THERE))
    assert str(DIRECT) not in await listed(ben)


@pytest.mark.parametrize("what", ["turns", "stop", "skip", "drop", "pause", "resume", "history"])
async def test_a_member_cannot_touch_a_lane_that_is_not_theirs(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient, what: str
) -> None:
    hers = new_lane()
    await say(ana, hers, "/status")
    for lane in (hers, "telegram:700000001", "no-such-lane"):
        if what in ("turns", "history"):
            answer = await ben.get(f"/api/lanes/{lane}/{what}?before=9")
        else:
            answer = await ben.post(f"/api/lanes/{lane}/{what}", json={"turn": 1})
        assert answer.status_code == (403 if what in ("pause", "resume") else 404), lane


async def test_only_admins_pause(ben: httpx.AsyncClient) -> None:
    his = new_lane()
    await say(ben, his, "/status")
    for path in (f"/api/lanes/{his}/pause", "/api/pause", "/api/resume"):
        assert (await ben.post(path, json={})).status_code == 403


# What can be done ---------------------------------------------------------------------------


async def test_what_runs_is_shown_with_whom_it_is_for_and_what_waits(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    his = new_lane()
    async with Tab(ben, his) as tab, Tab(ana) as watching:
        await say(ben, his, "/tool Reading\n/sleep 60")
        await _running(tab)
        await say(ben, his, "and then this")
        await tab.until(lambda: len(tab.lanes[his]["waiting"]) == 1)
        one = tab.lanes[his]
        assert (one["name"], one["channel"], one["since"] is not None) == (
            "ben@example.org", "local", True,
        )  # fmt: skip
        assert one["waiting"][0]["label"] == "and then this"
        await watching.until(lambda: watching.lanes.get(his) == tab.lanes[his])
        await ben.post(f"/api/lanes/{his}/stop", json={})
        await tab.until(partial(_state, tab, "idle"))
        assert [e["receipt"] for e in tab.shown if e["key"]] == ["stopped", "dropped"]
        # No answer has named it, and it still says what it is about.
        assert tab.lanes[his]["title"] in ("/tool Reading /sleep 60", "and then this")
        assert not tab.lanes[his]["named"]


async def test_a_member_ends_and_drops_only_what_is_theirs(
    page: Page, ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    await say(ana, "shared", "/sleep 60")
    async with Tab(ana, "shared") as tab:
        await _running(tab)
        await page.site.local.say("shared", BEN, "ben@example.org", "from ben")
        await tab.until(lambda: len(tab.lanes["shared"]["waiting"]) == 1)
        turn = tab.lanes["shared"]["waiting"][0]["turn"]
        answer = await ben.post("/api/lanes/shared/drop", json={"turn": turn})
        assert answer.status_code == 404, "it is not his lane"
        assert (await ana.post("/api/lanes/shared/drop", json={"turn": turn})).status_code == 200
        await tab.until(lambda: not tab.lanes["shared"]["waiting"])
        gone = await ana.post("/api/lanes/shared/drop", json={"turn": turn})
        assert (gone.status_code, gone.json()["error"]) == (409, "it does not wait any more")
        await ana.post("/api/lanes/shared/stop", json={})
        await tab.until(partial(_state, tab, "idle"))


async def test_a_lane_is_paused_and_goes_on(ana: httpx.AsyncClient) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "/status")
        await tab.until(lambda: lane in tab.lanes)
        await ana.post(f"/api/lanes/{lane}/pause", json={})
        await tab.until(lambda: tab.lanes[lane]["paused"] == ["lane"])
        assert any("Paused" in one for one in tab.answers)
        await say(ana, lane, "/say later")
        await tab.until(lambda: tab.lanes[lane]["waiting"])
        await ana.post(f"/api/lanes/{lane}/resume", json={})
        await tab.until(lambda: "later" in tab.answers)


async def test_everything_is_paused_and_goes_on_and_both_are_audited(
    page: Page, ana: httpx.AsyncClient
) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        await ana.post("/api/pause", json={})
        await tab.until(lambda: tab.house.get("paused"))
        await say(ana, lane, "/say later")
        await tab.until(lambda: tab.lanes.get(lane, {}).get("paused") == ["all"])
        await ana.post("/api/resume", json={})
        await tab.until(lambda: "later" in tab.answers and not tab.house["paused"])
    acts = await web.acts(page.site.parts.store, 1 << 40, 10)
    assert [one.act for one in acts if one.person == ANA][:2] == ["all.resumed", "all.paused"]


async def test_a_question_where_no_admin_takes_part_is_decided_on_the_lanes_page(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    his = new_lane()
    async with Tab(ben, his) as tab, Tab(ana) as watching:
        await say(ben, his, "/approve make <b>all</b>")
        await watching.until(lambda: watching.lanes.get(his, {}).get("asking"))
        question = watching.lanes[his]["asking"][0]
        assert question["command"] == "make <b>all</b>"
        path = f"/api/approvals/{question['id']}"
        assert (await ana.post(path, json={"choice": "perhaps"})).status_code == 400
        said = (await ben.post(path, json={"choice": "allow"})).json()["said"]
        assert "approvers" in said
        assert (await ben.get(path)).json()["command"] == "make <b>all</b>"
        assert (await ana.post(path, json={"choice": "allow"})).json()["said"] == "Allowed."
        await tab.until(lambda: any("ran: make" in one for one in tab.answers))
        await watching.until(lambda: not watching.lanes[his]["asking"])


async def test_a_question_of_another_lane_is_not_there_for_a_member(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    hers = new_lane()
    async with Tab(ana, hers) as tab:
        await say(ana, hers, "/approve make")
        await tab.until(lambda: tab.lanes.get(hers, {}).get("asking"))
        ident = tab.lanes[hers]["asking"][0]["id"]
        for answer in (
            await ben.get(f"/api/approvals/{ident}"),
            await ben.post(f"/api/approvals/{ident}", json={"choice": "allow"}),
            await ben.get("/api/approvals/99999"),
            await ben.get("/api/approvals/x"),
        ):
            assert answer.status_code == 404
        await ana.post(f"/api/approvals/{ident}", json={"choice": "deny"})
        await tab.until(partial(_state, tab, "idle"))


async def test_turns_are_listed_with_how_they_ended_and_how_the_answer_stands(
    ana: httpx.AsyncClient,
) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "/say fine")
        await tab.until(lambda: tab.state == "idle" and "fine" in tab.answers)
        await say(ana, lane, "/error out of memory")
        await tab.until(lambda: (tab.lanes[lane]["last"] or {}).get("status") == "failed")
        turns = (await ana.get(f"/api/lanes/{lane}/turns")).json()["turns"]
    assert [(one["status"], one["delivery"], one["name"]) for one in turns] == [
        ("failed", "sent", "ana@example.org"),
        ("done", "sent", "ana@example.org"),
    ]


# Many ---------------------------------------------------------------------------------------


async def test_of_many_lanes_the_newest_are_shown_and_all_are_found(
    page: Page, ana: httpx.AsyncClient
) -> None:
    store = page.site.parts.store
    many = [
        rows.new_lane(f"telegram:-5:{n}", Address("telegram", "-5", str(n)), False, f"Old {n}", n)
        for n in range(5_000)
    ]
    await store.save(*many)
    seen = await listed(ana)
    assert len(seen) <= 201
    titles = {one["title"] for one in seen.values()}
    assert "Old 4999" in titles
    assert "Old 777" not in titles
    found = await listed(ana, "old 777")
    assert {one["title"] for one in found.values()} >= {"Old 777"}
    assert await listed(ana, "no such words anywhere") == {}


async def test_words_of_a_search_are_never_patterns(ana: httpx.AsyncClient) -> None:
    assert await listed(ana, "%") == {}
