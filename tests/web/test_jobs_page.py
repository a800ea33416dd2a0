"""The page of jobs over HTTP: what is shown to whom, and what can be set up and changed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
import pytest_asyncio

from core.job_rules import Job, JobKind, JobState
from core.messages import Address
from core.store import jobs as stored
from core.store import roster, rows, web
from gateway.web.jobs import ENDED, GOING
from tests.web.hostile import HOSTILE, looked
from tests.web.site import ANA, BEN, Page

pytestmark = pytest.mark.asyncio(loop_scope="module")
CARLA, DAN = "telegram:700000011", "telegram:700000012"
GROUP = "telegram:-1001900000001"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """Ben's are the lane `ben` and, as Carla in a chat, her direct chat and a thread of a group."""
    made = Page(
        tmp_path_factory.mktemp("jobs"), LANEWAY_MEMBERS=f"{CARLA},{DAN}", LANEWAY_PLACES=GROUP,
        LANEWAY_TIMEZONE="Europe/Berlin", LANEWAY_JOBS_PER_PERSON="40",
    )  # fmt: skip
    async with made as running:
        running.site.parts.here.add("telegram")  # set up, as far as threads and jobs go
        store = running.site.parts.store
        await store.save(
            rows.new_lane("local:ben", Address("local", "ben"), True, "Ben's thread", 1, BEN),
            rows.new_lane("local:ana", Address("local", "ana"), True, "Ana's thread", 1, ANA),
            rows.new_lane(CARLA, Address("telegram", "700000011"), True, "Carla", 1, CARLA),
            rows.new_lane(DAN, Address("telegram", "700000012"), True, "Dan", 1, DAN),
            rows.new_lane(GROUP, Address("telegram", GROUP[9:], "7"), False, "Releases", 1),
            rows.wrote(CARLA, CARLA),
            rows.wrote(DAN, DAN),
            rows.wrote(GROUP, CARLA),
            web.link(CARLA, BEN, 1),
        )
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ana(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ana@example.org")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ben(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ben@example.org")


async def made(browser: httpx.AsyncClient, lane: str = "local:ben", **more: Any) -> dict[str, Any]:
    body = {"lane": lane, "when": "every day at 09:00", "prompt": "what is new?", **more}
    answer = await browser.post("/api/jobs", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def change(browser: httpx.AsyncClient, job: int, verb: str) -> httpx.Response:
    return await browser.post(f"/api/jobs/{job}", json={"do": verb})


async def listed(browser: httpx.AsyncClient) -> set[int]:
    return {job["id"] for job in (await browser.get("/api/jobs")).json()["jobs"]}


# For whom ------------------------------------------------------------------------------------


async def test_nobody_sees_or_makes_jobs_without_being_signed_in(page: Page) -> None:
    nobody = page.browser()
    assert (await nobody.get("/jobs")).status_code == 303
    assert (await nobody.get("/jobs/1")).status_code == 303
    assert (await nobody.get("/api/jobs")).status_code == 401
    assert (await nobody.post("/api/jobs", json={})).status_code == 401
    assert (await nobody.post("/api/when", json={"when": "in 5m"})).status_code == 401
    assert (await change(nobody, 1, "cancel")).status_code == 401


async def test_a_member_sees_and_changes_their_own_jobs_only(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    mine, theirs = (await made(ben))["id"], (await made(ana, "local:ana"))["id"]
    assert mine in await listed(ben)
    assert theirs not in await listed(ben)
    assert f"/jobs/{theirs}" not in (await ben.get("/jobs")).text
    assert (await ben.get(f"/api/jobs/{theirs}")).status_code == 404
    assert (await ben.get(f"/jobs/{theirs}")).status_code == 404
    assert (await change(ben, theirs, "cancel")).status_code == 404
    assert {mine, theirs} <= await listed(ana)


async def test_a_job_of_a_linked_chat_is_ones_own(page: Page, ben: httpx.AsyncClient) -> None:
    job = await made(ben, CARLA)
    assert (job["person"], job["mine"]) == (CARLA, True)
    assert job["id"] in await listed(ben)
    assert (await change(ben, job["id"], "pause")).status_code == 200


@pytest.mark.parametrize("lane", ["local:ana", DAN, "local:nowhere", ""])
async def test_a_member_sets_up_nothing_in_a_thread_that_is_not_theirs(
    ben: httpx.AsyncClient, lane: str
) -> None:
    body = {"lane": lane, "when": "every day at 09:00", "prompt": "x"}
    answer = await ben.post("/api/jobs", json=body)
    assert answer.status_code == 404
    assert "Choose one of the list" in answer.json()["error"]


async def test_only_threads_that_one_may_use_are_offered(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    text = (await ben.get("/jobs")).text
    offered = {
        lane for lane in ("local:ben", "local:ana", CARLA, DAN, GROUP) if f'value="{lane}"' in text
    }
    assert offered == {"local:ben", CARLA, GROUP}
    assert f'value="{DAN}"' in (await ana.get("/jobs")).text


async def test_what_an_admin_does_to_a_job_of_somebody_else_is_recorded(
    page: Page, ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    job = (await made(ben))["id"]
    await change(ben, job, "pause")
    await change(ana, job, "resume")
    acts = await web.acts(page.site.parts.store, 2**62, 100)
    found = [(one.person, one.act, one.detail) for one in acts if one.about == f"job {job}"]
    assert found == [(ANA, "job.resume", f"of {BEN} in local:ben")]


# What is shown -------------------------------------------------------------------------------


async def test_a_job_shows_its_words_and_its_next_times_on_the_clocks_of_who_looks(
    page: Page, ben: httpx.AsyncClient
) -> None:
    job = await made(ben, when="every day at 09:00")
    assert job["when"] == "every day at 09:00"
    assert len(job["coming"]) == 3
    assert all(one["at"].endswith(("09:00:00+01:00", "09:00:00+02:00")) for one in job["coming"])
    await page.site.parts.store.save(roster.person_zone(BEN, "Asia/Tokyo", 1))
    await page.site.parts.people.load(page.site.parts.store)
    try:
        again = (await ben.get(f"/api/jobs/{job['id']}")).json()
        assert all(one["at"].endswith(":00:00+09:00") for one in again["coming"])
        assert "Asia/Tokyo" in (await ben.get("/jobs")).text
    finally:
        await page.site.parts.store.save(roster.remove_person(BEN))
        await page.site.parts.people.load(page.site.parts.store)


async def test_the_history_says_how_each_firing_went(page: Page, ben: httpx.AsyncClient) -> None:
    job = (await made(ben))["id"]
    results = ["on time", "late by 4 min", "skipped because the thread was busy"]
    firings = [
        {
            "job": job,
            "due": due,
            "at": due,
            "state": "done",
            "turn": None,
            "missed": 0,
            "result": one,
        }
        for due, one in enumerate(results, 1_700_000_000_000)
    ]
    await page.site.parts.store.save(*(("firing.new", one) for one in firings))
    found = (await ben.get(f"/api/jobs/{job}")).json()["firings"]
    assert [one["result"] for one in found] == results[::-1]
    assert [one["tone"] for one in found] == ["warn", "warn", "good"]
    text = (await ben.get(f"/jobs/{job}")).text
    assert all(one in text for one in results)


@pytest.mark.parametrize("words", HOSTILE)
async def test_what_people_write_is_text_on_the_page(
    page: Page, ben: httpx.AsyncClient, words: str
) -> None:
    await page.site.parts.store.save(rows.lane_setting("local:ben", "title", words))
    job = await made(ben, prompt=words)
    for path in ("/jobs", f"/jobs/{job['id']}"):
        found = looked((await ben.get(path)).text)
        assert found.faults == []
        assert words in "".join(found.text)
    await change(ben, job["id"], "cancel")


# New ones ------------------------------------------------------------------------------------


async def test_a_when_is_explained_by_the_parser_of_the_chats(ben: httpx.AsyncClient) -> None:
    found = (await ben.post("/api/when", json={"when": "every weekday at 8:30"})).json()
    assert len(found["coming"]) == 3
    assert not found["once"]
    once = (await ben.post("/api/when", json={"when": "in 20m"})).json()
    assert (len(once["coming"]), once["once"]) == (1, True)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"when": "every fortnite"}, "fortnite"),
        ({"when": ""}, ""),
        ({"when": "every 1s"}, "at least"),
        ({"when": "every day at 09:00", "budget": "lots"}, "US dollars"),
        ({"when": "every day at 09:00", "if_busy": "cry"}, "if busy queue"),
        ({"when": "every day at 09:00", "catch_up": "1h if busy skip", "if_busy": "skip"}, "twice"),
        ({"watch": "url https://example.org/ changed", "when": ""}, "How often"),
        ({"watch": "url ftp://example.org/ changed", "when": "every 5m"}, "https://"),
        ({"watch": "url http://127.0.0.1/ changed", "when": "every 5m"}, "private address"),
        ({"watch": "url https://example.org/ changed", "when": "in 5m"}, "again and again"),
        ({"watch": 'run "make" exit 0', "when": "every 5m"}, "Only admins"),
        ({"watch": "file a.csv changed", "when": "every 5m"}, "Only admins"),
        ({"when": 5}, "no text"),
        ({"when": "in 5m", "each_time": "yes"}, "true or false"),
    ],
)
async def test_what_means_nothing_is_refused_with_the_reason_and_nothing_is_stored(
    ben: httpx.AsyncClient, body: dict[str, Any], says: str
) -> None:
    before = await listed(ben)
    checked = await ben.post("/api/when", json=body)
    answer = await ben.post("/api/jobs", json={"lane": "local:ben", "prompt": "x", **body})
    assert (checked.status_code, answer.status_code) == (400, 400)
    assert says in answer.json()["error"]
    assert checked.json() == answer.json()
    assert await listed(ben) == before


async def test_options_are_those_of_the_chats(page: Page, ben: httpx.AsyncClient) -> None:
    job = await made(ben, catch_up="skip", if_busy="skip", budget="0.50")
    row = await stored.job(page.site.parts.store, job["id"])
    assert row is not None
    assert (row.catch_up, row.if_busy, row.budget, row.person) == (0, "skip", 0.5, BEN)
    assert "Missed runs are skipped" in (await ben.get(f"/jobs/{job['id']}")).text


async def test_a_watch_is_made_of_the_words_of_watch(page: Page, ben: httpx.AsyncClient) -> None:
    words = 'url https://example.org/ contains "sold out"'
    job = await made(ben, watch=words, when="every 5m", until="2d", each_time=True)
    assert (job["kind"], job["watch"], job["each_time"]) == ("watch", words, True)
    row = await stored.job(page.site.parts.store, job["id"])
    assert row is not None
    assert row.until == row.anchor + 2 * 86_400_000


async def test_an_admin_watches_a_command(ana: httpx.AsyncClient) -> None:
    job = await made(ana, "local:ana", watch='run "true" exit 0', when="every 5m")
    assert job["kind"] == "watch"


async def test_nobody_has_more_jobs_than_a_person_may(page: Page, ben: httpx.AsyncClient) -> None:
    """Those of a linked chat count as well."""
    store = page.site.parts.store
    plan = Job(0, CARLA, CARLA, JobKind.WAKEUP, "in 5d", "UTC", 1, "x", 1, next_at=2**50)
    many = [replace(plan, id=store.ids.job()) for _ in range(40)]
    await store.save(*map(stored.new, many))
    answer = await ben.post("/api/jobs", json={"lane": "local:ben", "when": "in 5m", "prompt": "x"})
    assert answer.status_code == 400
    assert "as many as a person may have" in answer.json()["error"]
    await store.save(*(stored.state(job.id, JobState.CANCELLED, 1) for job in many))


# Changes -------------------------------------------------------------------------------------


async def test_a_job_is_paused_resumed_and_cancelled(ben: httpx.AsyncClient) -> None:
    job = (await made(ben))["id"]
    paused = (await change(ben, job, "pause")).json()
    assert (paused["job"]["state"], paused["job"]["coming"]) == ("paused", [])
    assert paused["job"]["verbs"] == ["resume", "run", "cancel"]
    assert (await change(ben, job, "pause")).status_code == 409
    resumed = (await change(ben, job, "resume")).json()
    assert (resumed["job"]["state"], len(resumed["job"]["coming"])) == ("active", 3)
    cancelled = (await change(ben, job, "cancel")).json()
    assert (cancelled["job"]["state"], cancelled["job"]["verbs"]) == ("cancelled", [])
    assert (await change(ben, job, "run")).status_code == 409
    assert "cancelled" in (await ben.get("/jobs")).text


async def test_a_job_that_is_run_now_runs(page: Page, ben: httpx.AsyncClient) -> None:
    job = await made(ben, prompt="/say hello")
    assert (await change(ben, job["id"], "run")).status_code == 200
    firings: list[dict[str, Any]] = []
    for _ in range(400):
        firings = (await ben.get(f"/api/jobs/{job['id']}")).json()["firings"]
        if firings and firings[0]["state"] == "done":
            break
        await page.clock.sleep(0.02)
    assert [one["result"] for one in firings] == ["asked for"]


async def test_a_verb_that_is_none_is_refused(ben: httpx.AsyncClient) -> None:
    job = (await made(ben))["id"]
    assert (await change(ben, job, "delete")).status_code == 400


async def test_a_change_from_elsewhere_is_refused(page: Page, ben: httpx.AsyncClient) -> None:
    job = (await made(ben))["id"]
    answer = await ben.post(
        f"/api/jobs/{job}", json={"do": "cancel"}, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 403
    assert job in await listed(ben)


async def test_many_jobs_at_once_are_no_more_than_one_after_the_other(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(page.site.settings, jobs_per_person=3)
    monkeypatch.setattr(page.site, "settings", few)
    eve = await page.signed_in("eve@members.example.org")
    lane = Address("local", "eve")
    new = rows.new_lane("local:eve", lane, True, "Eve's", 1, "web:eve@members.example.org")
    await page.site.parts.store.save(new)
    body = {"lane": "local:eve", "when": "every day at 09:00", "prompt": "what is new?"}
    answers = await asyncio.gather(*(eve.post("/api/jobs", json=body) for _ in range(8)))
    assert sorted(one.status_code for one in answers) == [201] * 3 + [400] * 5


async def test_a_long_list_has_pages_the_soonest_first(page: Page, ana: httpx.AsyncClient) -> None:
    store = page.site.parts.store
    plan = Job(0, "local:ana", "gateway", JobKind.WAKEUP, "in 5d", "UTC", 1, "x", 1)
    many = [replace(plan, id=store.ids.job(), next_at=2**45 - number) for number in range(130)]
    await store.save(*map(stored.new, many))
    try:
        seen: list[int] = []
        for number in (1, 2, 3, 99):
            text = (await ana.get("/jobs", params={"page": number})).text
            found = [int(one) for one in re.findall(r'<li class="card job" id="job-(\d+)"', text)]
            assert len(found) <= GOING + ENDED
            seen += [one for one in found if one >= many[0].id and one not in seen]
        assert seen == [job.id for job in many][::-1]
        assert (await ana.get("/jobs", params={"page": "x"})).status_code == 400
    finally:
        await store.save(*(stored.state(job.id, JobState.CANCELLED, 1) for job in many))
