"""What happens is told as it happens: whole at first, then what changes, and to nobody else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from core.clock import SystemClock
from core.people import Role
from gateway.web import events, hub
from gateway.web.hub import Stream
from gateway.web.room import Changed, Room
from gateway.web.visitor import Visitor
from tests.web.site import ANA, Page
from tests.web.tabs import Tab, new_lane, say

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with Page(tmp_path_factory.mktemp("page")) as running:
        yield running


async def test_a_stream_begins_with_the_whole_state(page: Page) -> None:
    ana, lane = await page.signed_in("ana@example.org"), new_lane()
    await say(ana, lane, "/say hello")
    async with Tab(ana, lane) as tab:
        assert tab.told[0][0] == "state"
        assert lane in tab.lanes
        await tab.until(lambda: tab.texts == ["/say hello", "hello"])


async def test_an_answer_grows_and_its_end_takes_the_place_of_what_was_shown(page: Page) -> None:
    ana, lane = await page.signed_in("ana@example.org"), new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "/stream 9 0.1")
        await tab.until(lambda: tab.state == "idle" and len(tab.answers) == 1)
        whole = " ".join(f"w{n}" for n in range(9))
        await tab.until(lambda: tab.answers == [whole])
        grown = [
            one["html"] for _, body in tab.told for one in body.get("entries", ()) if not one["key"]
        ]
        assert len(grown) > 1, "it was shown before it was done"
        assert all(whole.startswith(text[3:-4]) for text in grown)


async def test_two_tabs_and_a_late_one_show_the_same(page: Page) -> None:
    ana, lane = await page.signed_in("ana@example.org"), new_lane()
    async with Tab(ana, lane) as first, Tab(ana, lane) as second:
        await say(ana, lane, "/stream 8 0.1")
        await first.until(lambda: first.answers and first.answers[0].startswith("w0"))
        async with Tab(ana, lane) as late:
            assert [one[:2] for one in late.answers] == ["w0"], "the half-written answer"
            for tab in (first, second, late):
                await tab.until(partial(_said_all, tab, "w7"))
            assert first.entries == second.entries == late.entries


def _said_all(tab: Tab, word: str) -> bool:
    return tab.state == "idle" and word in tab.answers[0]


async def test_a_connection_that_breaks_in_the_middle_loses_and_doubles_nothing(
    page: Page,
) -> None:
    ana, lane = await page.signed_in("ana@example.org"), new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "/stream 10 0.1")
        await tab.until(lambda: tab.answers and "w2" in tab.answers[0])
        await tab.cut()
        await say(ana, lane, "/status")
        await tab.open()
        await tab.until(lambda: tab.state == "idle" and any("w9" in one for one in tab.answers))
        history = (await ana.get(f"/api/lanes/{lane}/history?before={1 << 49}")).json()
        assert tab.shown == history["entries"], "what was seen is what is stored"
        assert len([one for one in tab.answers if "w9" in one]) == 1


async def test_a_member_is_told_nothing_of_what_is_not_theirs(page: Page) -> None:
    ana, ben = await page.signed_in("ana@example.org"), await page.signed_in("ben@example.org")
    hers, his = new_lane(), new_lane()
    async with Tab(ben) as his_tab, Tab(ana) as her_tab:
        await say(ana, hers, "/say secret of hers")
        await say(ben, his, "/say his own")
        await her_tab.until(lambda: {hers, his} <= her_tab.lanes.keys())
        await his_tab.until(lambda: his_tab.lanes.get(his, {}).get("last"))
        assert hers not in str(his_tab.told)
        assert "secret of hers" not in str(his_tab.told)


async def test_the_thread_of_somebody_else_cannot_be_listened_to(page: Page) -> None:
    ana, ben = await page.signed_in("ana@example.org"), await page.signed_in("ben@example.org")
    lane = new_lane()
    async with Tab(ben, lane) as early:  # before it is anybody's
        assert early.status == 200
        await say(ana, lane, "/say secret of hers")
        await early.until(early.over.is_set)
        assert "secret" not in str(early.told)
    answer = await ben.get(f"/api/events?lane={lane}")
    assert (answer.status_code, answer.json()["error"]) == (404, "there is no such thread")


async def test_nobody_listens_without_signing_in(page: Page) -> None:
    assert (await page.browser().get("/api/events")).status_code == 401


async def test_a_stream_says_that_it_is_there(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    async with Tab(await page.signed_in("ben@example.org")) as tab:
        await tab.until(lambda: tab.beats > 1)


async def test_a_stream_ends_with_its_sign_in_and_no_other_does(page: Page) -> None:
    ben, other = await page.signed_in("ben@example.org"), await page.signed_in("ben@example.org")
    async with Tab(ben) as tab, Tab(other) as there:
        assert (await ben.post("/api/signout", json={})).status_code == 200
        await tab.until(tab.over.is_set, 5)
        assert not there.over.is_set()
    assert (await ben.get("/api/events")).status_code == 401


async def test_after_a_fault_streams_begin_anew(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, lane = await page.signed_in("ana@example.org"), new_lane()
    async with Tab(ana, lane) as tab:
        with monkeypatch.context() as broken:
            broken.setattr(hub, "views", None)
            await say(ana, lane, "/say told in the end")
            await tab.until(tab.over.is_set)
        await tab.open()
        await tab.until(lambda: "told in the end" in tab.answers)


class Resting(SystemClock):
    """With which the page never looks for what is new by itself: only who opens one is told."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(600.0 if seconds == hub.EVERY else seconds)


async def test_a_late_tab_costs_no_other_what_it_had_not_been_told(tmp_path: Path) -> None:
    async with Page(tmp_path, clock=Resting()) as page:
        ana, ben = await page.signed_in("ana@example.org"), await page.signed_in("ben@example.org")
        lane = "deploy"
        async with Tab(ana, lane) as first, Tab(ben, lane) as guessed:
            await say(ana, lane, "/status")
            async with Tab(ana, lane) as late:
                await first.until(lambda: first.texts == late.texts != [])
                assert all({"lanes"} <= body.keys() for _, body in first.told)
                await guessed.until(guessed.over.is_set)
                assert guessed.entries == guessed.lanes == {}, "it is somebody else's"
            # Who knows of it is told what changes as a change, not all of it anew.
            begun = [name for name, _ in first.told].count("state")
            await say(ana, lane, "/status")
            async with Tab(ana, lane) as late:
                await first.until(lambda: first.texts == late.texts)
                assert [name for name, _ in first.told].count("state") == begun
                assert first.told[-1][1].keys() == {"lanes", "entries", "removed"}


async def test_a_stream_ends_when_somebody_is_something_else_now(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    ana = await page.signed_in("ana@example.org")
    lists = page.site.parts.people.lists
    async with Tab(ana) as tab:
        moved = frozenset({"ana@example.org"})
        changed = replace(lists, admin_emails=frozenset(), member_emails=moved)
        monkeypatch.setattr(page.site.parts.people, "lists", changed)
        await tab.until(tab.over.is_set)


async def test_a_person_has_so_many_streams_and_no_more(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "PER_PERSON", 1)
    ben = await page.signed_in("ben@example.org")
    async with Tab(ben):
        answer = await ben.get("/api/events")
        assert (answer.status_code, "close some" in answer.json()["error"]) == (503, True)
    async with Tab(ben) as again:
        assert again.status == 200


async def test_who_does_not_keep_up_is_cut_off() -> None:
    stream = Stream(Visitor(ANA, "ana", Role.ADMIN, "x"), "")
    for nth in range(hub.BEHIND):
        stream.put(b"%d" % nth)
    stream.put(b"one more")
    told = [await stream.get() for _ in range(hub.BEHIND + 1)]
    assert told == [*(b"%d" % nth for nth in range(hub.BEHIND)), None]


async def test_a_burst_of_changes_is_told_in_a_few_events(page: Page) -> None:
    ana, lane = await page.signed_in("ana@example.org"), new_lane()
    async with Tab(ana, lane) as tab:
        begun = asyncio.get_running_loop().time()
        await say(ana, lane, "/stream 40 0.02")
        await tab.until(lambda: tab.state == "idle" and "w39" in tab.answers[-1])
        seconds = asyncio.get_running_loop().time() - begun
        assert len(tab.told) <= 2 + seconds / hub.EVERY


async def test_a_change_is_made_ready_once_however_many_look(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, lane = await page.signed_in("ana@example.org"), new_lane()
    tabs = [Tab(ana, lane) for _ in range(12)]
    for tab in tabs:
        await tab.open()
    asked: list[str] = []
    fetch = page.site.parts.store.fetch

    async def counted(query: str, **parameters: object) -> list[sqlite3.Row]:
        asked.append(query)
        return await fetch(query, **parameters)

    monkeypatch.setattr(page.site.parts.store, "fetch", counted)
    await say(ana, lane, "/stream 12 0.05")
    for tab in tabs:
        await tab.until(lambda tab=tab: tab.state == "idle" and "w11" in tab.texts[-1])  # type: ignore[misc]
        await tab.cut()
    assert 0 < asked.count("lane.writers_of") < len(tabs)
    assert 0 < asked.count("thread.made") < len(tabs)


async def test_a_thread_that_cannot_be_shown_costs_no_other(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, bad, good = await page.signed_in("ana@example.org"), new_lane(), new_lane()
    changes = Room.changes

    async def broken(room: Room) -> Changed:
        if room.lane == bad:
            raise ValueError("this thread breaks")
        return await changes(room)

    async with Tab(ana, good) as there:
        monkeypatch.setattr(Room, "changes", broken)
        async with Tab(ana, bad) as tab:
            await tab.until(tab.over.is_set)
        await say(ana, good, "/say fine")
        await there.until(lambda: "fine" in there.answers)


async def test_the_end_of_the_gateway_is_not_held_up_by_those_who_listen(tmp_path: Path) -> None:
    page = Page(tmp_path)
    await page.start()
    tabs = [Tab(await page.signed_in("ana@example.org")) for _ in range(5)]
    for tab in tabs:
        await tab.open()
    begun = asyncio.get_running_loop().time()
    await page.stop()
    assert asyncio.get_running_loop().time() - begun < 1.5
    for tab in tabs:
        await tab.until(tab.over.is_set)
        await tab.browser.aclose()


def notices(tab: Tab) -> list[str]:
    return [text for text in tab.answers if text.startswith("Waiting: 1")]


async def test_what_is_older_than_a_page_still_changes_where_it_is_drawn(page: Page) -> None:
    """A message that has waited long, and the notice about it, in a thread full of newer ones."""
    ana, lane = await page.signed_in("ana@example.org"), new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "/sleep 60")
        await tab.until(lambda: tab.state == "running")
        await say(ana, lane, "/say waited")
        await tab.until(lambda: notices(tab))
        for _ in range(45):
            await say(ana, lane, "/status")
        await tab.until(lambda: tab.texts.count("/status") == 45)  # however many came at once
        await say(ana, lane, "/status")
        await tab.until(lambda: tab.texts.count("/status") == 46)
        async with Tab(ana, lane) as late:
            assert not notices(late), "it is on an earlier page"
            turn = tab.lanes[lane]["waiting"][0]["turn"]
            dropped = await ana.post(f"/api/lanes/{lane}/drop", json={"turn": turn})
            assert dropped.status_code == 200
            await tab.until(lambda: not notices(tab))
            await tab.until(lambda: "dropped" in [one["receipt"] for one in tab.shown])
        await ana.post(f"/api/lanes/{lane}/stop", json={})
        await tab.until(lambda: tab.state == "idle")
        await tab.until(lambda: tab.shown[0]["receipt"] == "stopped")
