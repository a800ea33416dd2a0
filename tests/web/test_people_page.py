"""The page of people over HTTP: who is listed and why, and changes that hold at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from core.messages import Address
from core.people import Role
from core.store import reads, roster, rows, web
from core.store.records import PairingRow, PersonRow, PlaceRow
from core.turns import Status
from gateway.web.naming import straight
from tests.web.hostile import HOSTILE, looked
from tests.web.site import ANA, BEN, OWNER, Page
from tests.web.tabs import Tab

pytestmark = pytest.mark.asyncio(loop_scope="module")
CARLA, DAN, EVE = "telegram:700000021", "telegram:700000022", "slack:U0EVE"
NAMED_ADMIN, NAMED = "telegram:700000001", "telegram:700000002"
PLACE = "telegram:-1001900000055"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with Page(tmp_path_factory.mktemp("people")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ana(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ana@example.org")


async def store_people(page: Page, *people: PersonRow) -> None:
    await page.site.parts.store.save(*map(roster.person, people))
    await page.site.parts.people.load(page.site.parts.store)


async def post(browser: httpx.AsyncClient, path: str, **body: Any) -> httpx.Response:
    return await browser.post(f"/api/{path}", json=body)


async def listed(browser: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    found = (await browser.get("/api/people")).json()["people"]
    return {one["person"]: one for one in found}


async def newest(page: Page) -> tuple[str, str, str]:
    (act,) = await web.acts(page.site.parts.store, 2**62, 1)
    return act.person, act.act, act.about


def role(page: Page, person: str) -> Role:
    return page.site.parts.people.role(person)


CHANGES = (
    ("people", {"person": CARLA, "role": "admin"}),
    ("people/remove", {"person": CARLA}),
    ("pairings", {"person": CARLA, "do": "let_in"}),
    ("places", {"place": PLACE}),
    ("places/remove", {"place": PLACE}),
    ("links/remove", {"identity": CARLA}),
    ("signins/end", {"person": ANA, "id": "x"}),
)


@pytest.mark.parametrize(("path", "body"), CHANGES)
async def test_only_admins_change_anything(page: Page, path: str, body: dict[str, str]) -> None:
    await store_people(page, PersonRow(CARLA, "Carla", "member"))
    ben = await page.signed_in("ben@example.org")
    assert (await page.browser().post(f"/api/{path}", json=body)).status_code == 401
    assert (await post(ben, path, **body)).status_code == 403
    assert (await ben.get("/people")).status_code == 403
    assert (await ben.get("/api/people")).status_code == 403
    assert role(page, CARLA) is Role.MEMBER


async def test_everybody_is_listed_with_the_reason_they_may_talk(
    page: Page, ana: httpx.AsyncClient
) -> None:
    await store_people(page, PersonRow(CARLA, "Carla", "member", "", 1, ANA))
    found = await listed(ana)
    assert found[NAMED_ADMIN]["why"] == ["the environment"]
    assert (found[NAMED_ADMIN]["role"], found[NAMED_ADMIN]["fixed"]) == ("admin", True)
    assert found[CARLA]["why"] == ["saved as member by ana@example.org"]
    assert not found[CARLA]["fixed"]
    mails = (await ana.get("/api/people")).json()["mails"]
    assert {"address": "ana@example.org", "role": "admin"} in mails
    text = (await ana.get("/people")).text
    assert all(one in text for one in ("Carla", NAMED, "@members.example.org"))


# Roles ---------------------------------------------------------------------------------------


async def test_somebody_added_by_id_may_talk_from_then_on(
    page: Page, ana: httpx.AsyncClient
) -> None:
    answer = await post(ana, "people", person=f" {EVE} ", role="member")
    assert answer.status_code == 200
    assert role(page, EVE) is Role.MEMBER
    assert await newest(page) == (ANA, "person.added", EVE)
    again = await post(ana, "people", person=EVE, role="member")
    assert (again.status_code, "already" in again.json()["error"]) == (409, True)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("@carla", "write channel:id"),
        ("@example.org", "LANEWAY_MEMBER_EMAILS"),
        ("telegram:carla", "user names can change hands"),
        ("telegram:-1001900000001", "that is a group"),
        ("irc:carla", "write channel:id"),
        ("", "write channel:id"),
        ("web:eve@example.org", "LANEWAY_MEMBER_EMAILS"),
        (OWNER, "write channel:id"),
    ],
)
async def test_what_is_no_id_is_refused_in_the_words_of_the_settings(
    ana: httpx.AsyncClient, typed: str, says: str
) -> None:
    answer = await post(ana, "people", person=typed, role="member")
    assert answer.status_code == 400
    assert says.lower() in answer.json()["error"].lower()


async def test_a_role_can_be_raised_and_lowered_and_keeps_name_and_zone(
    page: Page, ana: httpx.AsyncClient
) -> None:
    await store_people(page, PersonRow(CARLA, "Carla", "member", "Asia/Tokyo", 1, ANA))
    assert (await post(ana, "people", person=CARLA, role="admin")).status_code == 200
    assert role(page, CARLA) is Role.ADMIN
    assert (await post(ana, "people", person=CARLA, role="member")).status_code == 200
    assert role(page, CARLA) is Role.MEMBER
    row = next(row for row in await roster.people(page.site.parts.store) if row.id == CARLA)
    assert (row.name, row.zone, row.role) == ("Carla", "Asia/Tokyo", "member")
    assert (await post(ana, "people", person=CARLA, role="king")).status_code == 400


async def test_a_member_of_the_environment_can_be_made_an_admin_and_is_a_member_again_after(
    page: Page, ana: httpx.AsyncClient
) -> None:
    await post(ana, "people", person=NAMED, role="admin")
    assert role(page, NAMED) is Role.ADMIN
    await post(ana, "people", person=NAMED, role="member")
    assert role(page, NAMED) is Role.MEMBER


async def test_who_the_environment_names_is_not_taken_away_here(
    page: Page, ana: httpx.AsyncClient
) -> None:
    for answer in (
        await post(ana, "people", person=NAMED_ADMIN, role="member"),
        await post(ana, "people/remove", person=NAMED_ADMIN),
        await post(ana, "people/remove", person=NAMED),
    ):
        assert answer.status_code == 409
        assert "settings" in answer.json()["error"]
    assert role(page, NAMED_ADMIN) is Role.ADMIN


# Removal -------------------------------------------------------------------------------------


async def test_who_is_removed_is_nobody_at_once_and_what_is_theirs_ends(
    page: Page, ana: httpx.AsyncClient
) -> None:
    store = page.site.parts.store
    await store_people(page, PersonRow(DAN, "Dan", "member", "", 1, ANA))
    await store.save(
        web.link(DAN, BEN, 1),
        rows.new_lane("dan", Address("local", "dan"), True, "", 1, DAN),
    )
    for text in ("/ask first", "/say second"):
        await page.site.local.say("dan", DAN, "Dan", text)
    answer = await post(ana, "people/remove", person=DAN)
    assert answer.status_code == 200
    assert "1 turn that ran ended and 1 message that waited will not run" in answer.json()["said"]
    assert role(page, DAN) is Role.NONE
    assert DAN not in {one.identity for one in await web.links(store)}
    ends: set[Status] = set()
    for _ in range(500):
        ends = {turn.status for turn in await reads.turns_of(store, "dan", 10)}
        if ends <= {Status.STOPPED, Status.DROPPED}:
            break
        await page.clock.sleep(0.02)
    assert ends == {Status.STOPPED, Status.DROPPED}
    before = len(await reads.turns_of(store, "dan", 10))
    await page.site.local.say("dan", DAN, "Dan", "/say third")
    assert len(await reads.turns_of(store, "dan", 10)) == before
    assert (await post(ana, "people/remove", person=DAN)).status_code == 404


async def test_an_admin_who_would_shut_themselves_out_has_to_write_it(
    page: Page, ana: httpx.AsyncClient
) -> None:
    await store_people(page, PersonRow(CARLA, "Carla", "admin", "", 1, ANA))
    await page.site.parts.store.save(web.link(CARLA, ANA, 1))
    for path, body in (
        ("people/remove", {"person": CARLA}),
        ("people", {"person": CARLA, "role": "member"}),
    ):
        answer = await post(ana, path, **body)
        assert (answer.status_code, "Write “remove”" in answer.json()["error"]) == (409, True)
        assert role(page, CARLA) is Role.ADMIN
    assert (await listed(ana))[CARLA]["delicate"]
    assert 'data-word="remove"' in (await ana.get("/people")).text
    assert (await post(ana, "people/remove", person=CARLA, word="Remove")).status_code == 200
    assert role(page, CARLA) is Role.NONE


# Pairing -------------------------------------------------------------------------------------


async def waits(page: Page, person: str, name: str = "Mal", lasts: int = 3_600_000) -> None:
    now = page.clock.now()
    row = PairingRow(f"C{person[-7:]}", person, name, now, now + lasts)
    await page.site.parts.store.save(roster.pairing(row))


async def test_two_who_let_somebody_in_at_once_do_it_once(
    page: Page, ana: httpx.AsyncClient
) -> None:
    person = "telegram:700000039"
    await waits(page, person)
    asked = (post(ana, "pairings", person=person, do="let_in") for _ in range(5))
    answers = await asyncio.gather(*asked)
    first, *others = sorted(one.status_code for one in answers)
    assert first == 200
    assert set(others) <= {404, 409}  # known before, or only when the other was done
    done = await web.acts(page.site.parts.store, 2**62, 20, act="person.let_in")
    assert len([one for one in done if one.about == person]) == 1


async def test_who_waits_is_let_in_as_a_member(page: Page, ana: httpx.AsyncClient) -> None:
    person = "telegram:700000031"
    await waits(page, person)
    assert person in (await ana.get("/people")).text
    assert (await post(ana, "pairings", person=person, do="let_in")).status_code == 200
    assert role(page, person) is Role.MEMBER
    assert await newest(page) == (ANA, "person.let_in", person)
    row = next(row for row in await roster.people(page.site.parts.store) if row.id == person)
    assert row.added_by == ANA
    assert (await post(ana, "pairings", person=person, do="let_in")).status_code == 404


async def test_who_is_refused_waits_no_more(page: Page, ana: httpx.AsyncClient) -> None:
    person = "telegram:700000032"
    await waits(page, person)
    assert (await post(ana, "pairings", person=person, do="maybe")).status_code == 400
    assert (await post(ana, "pairings", person=person, do="refuse")).status_code == 200
    assert role(page, person) is Role.NONE
    waiting = {one.person for one in await roster.pairings(page.site.parts.store)}
    assert person not in waiting
    assert await newest(page) == (ANA, "person.refused", person)


async def test_a_request_that_is_over_is_not_shown_and_lets_nobody_in(
    page: Page, ana: httpx.AsyncClient
) -> None:
    person = "telegram:700000033"
    await waits(page, person, lasts=0)
    assert (await ana.get("/api/people")).json()["waiting"] == []
    assert (await post(ana, "pairings", person=person, do="let_in")).status_code == 404
    assert role(page, person) is Role.NONE


# Places --------------------------------------------------------------------------------------


async def test_a_place_is_allowed_and_removed(page: Page, ana: httpx.AsyncClient) -> None:
    address = Address("telegram", PLACE.partition(":")[2], "7")
    assert (await post(ana, "places", place=PLACE, title="Lab")).status_code == 200
    assert page.site.parts.people.listed(address)
    (mine,) = [o for o in (await ana.get("/api/people")).json()["groups"] if o["place"] == PLACE]
    assert mine["title"] == "Lab"
    assert mine["why"].startswith("allowed by ana@example.org")
    assert (await post(ana, "places", place=PLACE)).status_code == 409
    assert (await post(ana, "places/remove", place=PLACE)).status_code == 200
    assert not page.site.parts.people.listed(address)
    assert await newest(page) == (ANA, "place.removed", PLACE)
    assert (await post(ana, "places/remove", place=PLACE)).status_code == 404


async def test_a_place_of_the_environment_stays(page: Page, ana: httpx.AsyncClient) -> None:
    place = min(page.site.parts.people.lists.places)
    assert (await post(ana, "places/remove", place=place)).status_code == 409


@pytest.mark.parametrize("typed", ["telegram:5", "slack:#lab", "lab"])
async def test_what_is_no_place_is_refused(ana: httpx.AsyncClient, typed: str) -> None:
    assert (await post(ana, "places", place=typed)).status_code == 400


# Accounts ------------------------------------------------------------------------------------


async def test_an_admin_ends_a_sign_in_of_somebody(page: Page, ana: httpx.AsyncClient) -> None:
    ben = await page.signed_in("ben@example.org")
    assert (await ben.get("/api/account/links")).status_code == 200
    accounts = (await ana.get("/api/people")).json()["accounts"]
    (mine,) = [one for one in accounts if one["person"] == BEN]
    async with Tab(ben) as tab:
        for one in mine["signins"]:
            assert (await post(ana, "signins/end", person=BEN, id=one["id"])).status_code == 200
        await tab.until(tab.over.is_set, 5)
    assert (await ben.get("/api/account/links")).status_code == 401
    assert await newest(page) == (ANA, "signin.ended", BEN)
    assert (await post(ana, "signins/end", person=BEN, id="nothing")).status_code == 404


async def test_an_admin_takes_a_chat_out_of_an_account(page: Page, ana: httpx.AsyncClient) -> None:
    await page.site.parts.store.save(web.link(EVE, BEN, 1))
    async with Tab(await page.signed_in("ben@example.org")) as tab:
        assert (await post(ana, "links/remove", identity=EVE)).status_code == 200
        await tab.until(tab.over.is_set, 5)  # what it was told of belongs to somebody else now
    assert EVE not in {one.identity for one in await web.links(page.site.parts.store)}
    assert await newest(page) == (ANA, "link.removed", EVE)
    assert (await post(ana, "links/remove", identity=EVE)).status_code == 404


async def test_ones_own_chats_are_listed_and_only_these_can_be_unlinked_by_oneself(
    page: Page,
) -> None:
    store = page.site.parts.store
    await store.save(web.link(EVE, BEN, 1), web.link(NAMED, ANA, 1))
    ben = await page.signed_in("ben@example.org")
    chats = (await ben.get("/api/account/links")).json()["chats"]
    assert [one["identity"] for one in chats] == [EVE]
    assert (await post(ben, "account/links/remove", identity=NAMED)).status_code == 404
    assert (await post(ben, "account/links/remove", identity=EVE)).status_code == 200
    assert [one.identity for one in await web.links(store)] == [NAMED]
    await store.save(web.remove_link(NAMED))


async def test_a_code_of_the_page_is_taken_by_the_chat(page: Page) -> None:
    ben = await page.signed_in("ben@example.org")
    first = (await post(ben, "account/links/code")).json()["code"]
    second = (await post(ben, "account/links/code")).json()["code"]
    linking = page.site.parts.intake.ground.linking
    assert linking.look(first, EVE).account == ""
    assert linking.look(second, EVE).account == BEN
    assert (await page.browser().post("/api/account/links/code", json={})).status_code == 401


async def test_an_account_is_not_linked_to_itself_and_its_code_stays_good(page: Page) -> None:
    linking = page.site.parts.intake.ground.linking
    code = linking.new(BEN).code
    for person in (BEN, OWNER):
        await page.site.local.say("ben", person, "Ben", f"/link {code}")
    assert {BEN, OWNER}.isdisjoint(one.identity for one in await web.links(page.site.parts.store))
    assert linking.look(code, EVE).account == BEN


@pytest.mark.parametrize("words", HOSTILE)
async def test_names_of_others_are_text_on_the_page(
    page: Page, ana: httpx.AsyncClient, words: str
) -> None:
    await store_people(page, PersonRow(CARLA, words, "member", "", 1, ANA))
    await page.site.parts.store.save(roster.place(PlaceRow(PLACE, words, 1, ANA)))
    await waits(page, "telegram:700000034", words)
    found = looked((await ana.get("/people")).text)
    assert found.faults == []
    assert "".join(found.text).count(straight(words)) >= 3
    assert not set("\u202e\u2066") & set("".join(found.text))
