"""/link: a chat identity becomes part of an account of the page, by a code that the page shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.people import Role
from core.store import web
from tests.intake.scene import ANA, BEN, MAL, Scene

ACCOUNT, OTHER = "web:ben@example.org", "web:other@example.org"


@pytest.fixture(autouse=True)
def accounts(scene: Scene) -> None:
    mails = frozenset({"ben@example.org", "other@example.org"})
    scene.ground.people.lists = replace(scene.ground.people.lists, member_emails=mails)


async def links(scene: Scene) -> dict[str, str]:
    return {one.identity: one.account for one in await web.links(scene.store)}


async def test_a_code_of_the_page_ties_this_chat_to_the_account(scene: Scene) -> None:
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.say(f"/link {code}", BEN)
    assert await links(scene) == {BEN: ACCOUNT}
    assert "`ben@example.org` now" in scene.said[-1]
    (act,) = await web.acts(scene.store, 1_000, 10)
    assert (act.person, act.act, act.about, act.detail) == (BEN, "link.made", BEN, ACCOUNT)


@pytest.mark.parametrize("typed", ["{a}-{b}", "{a} {b}", "{a}{b} ", "  {a}-{b}"])
async def test_a_code_is_read_however_it_is_typed(scene: Scene, typed: str) -> None:
    code = scene.ground.linking.new(ACCOUNT).code.lower()
    await scene.say(f"/link {typed.format(a=code[:4], b=code[4:])}", BEN)
    assert await links(scene) == {BEN: ACCOUNT}


async def test_a_code_works_once(scene: Scene) -> None:
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.say(f"/link {code}", BEN)
    await scene.say(f"/link {code}", ANA)
    assert await links(scene) == {BEN: ACCOUNT}
    assert "expired or was used" in scene.said[-1]


async def test_a_code_is_good_for_ten_minutes(scene: Scene) -> None:
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.clock.advance(601)
    await scene.say(f"/link {code}", BEN)
    assert await links(scene) == {}
    assert "expired" in scene.said[-1]


async def test_a_newer_code_of_the_account_ends_the_older(scene: Scene) -> None:
    old = scene.ground.linking.new(ACCOUNT).code
    scene.ground.linking.new(ACCOUNT)
    await scene.say(f"/link {old}", BEN)
    assert await links(scene) == {}


async def test_guessing_ends_after_five_wrong_codes_and_begins_again_later(scene: Scene) -> None:
    code = scene.ground.linking.new(ACCOUNT).code
    for _ in range(5):
        await scene.say("/link WRONGONE", BEN)
        assert "no code of mine" in scene.said[-1]
    await scene.say(f"/link {code}", BEN)
    assert await links(scene) == {}
    assert "too many wrong codes" in scene.said[-1]
    await scene.clock.advance(601)
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.say(f"/link {code}", BEN)
    assert await links(scene) == {BEN: ACCOUNT}


async def test_one_who_guesses_does_not_keep_others_from_linking(scene: Scene) -> None:
    for _ in range(6):
        await scene.say("/link WRONGONE", ANA)
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.say(f"/link {code}", BEN)
    assert await links(scene) == {BEN: ACCOUNT}


async def test_somebody_without_a_role_links_nothing_and_learns_nothing(scene: Scene) -> None:
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.say(f"/link {code}", MAL)
    assert (await links(scene), scene.said) == ({}, [])


async def test_a_link_raises_no_role_on_either_side(scene: Scene) -> None:
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.say(f"/link {code}", ANA)
    people = scene.ground.people
    assert (people.role(ACCOUNT), people.role(ANA)) == (Role.MEMBER, Role.ADMIN)


async def test_an_account_that_lost_its_rights_takes_no_chat(scene: Scene) -> None:
    code = scene.ground.linking.new("web:gone@example.org").code
    await scene.say(f"/link {code}", BEN)
    assert await links(scene) == {}


async def test_a_code_in_a_group_is_not_taken_and_worth_nothing_any_more(scene: Scene) -> None:
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.mention(f"/link {code}", BEN)
    assert "others read this thread" in scene.said[-1]
    await scene.say(f"/link {code}", ANA)
    assert await links(scene) == {}


async def test_a_chat_that_belongs_to_another_account_moves_only_after_that_was_said(
    scene: Scene,
) -> None:
    await scene.store.save(web.link(BEN, OTHER, 1))
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.say(f"/link {code}", BEN)
    assert "belongs to the account `other@example.org`" in scene.said[-1]
    assert await links(scene) == {BEN: OTHER}
    assert await scene.press(scene.buttons()["Move it"], BEN) == "Saved."
    assert await links(scene) == {BEN: ACCOUNT}
    assert "not to `other@example.org` any more" in scene.said[-1]
    (act,) = await web.acts(scene.store, 1_000, 10)
    assert (act.act, act.detail) == ("link.moved", ACCOUNT)


async def test_moving_can_be_typed(scene: Scene) -> None:
    await scene.store.save(web.link(BEN, OTHER, 1))
    code = scene.ground.linking.new(ACCOUNT).code
    await scene.say(f"/link {code[:4]} {code[4:]} Move", BEN)
    assert await links(scene) == {BEN: ACCOUNT}


async def test_without_a_code_it_says_how_and_whose_the_chat_is(scene: Scene) -> None:
    await scene.say("/link", BEN)
    assert "/link ABCD-EFGH" in scene.said[-1]
    await scene.store.save(web.link(BEN, ACCOUNT, 1))
    await scene.say("/link", BEN)
    assert "belongs to the account `ben@example.org`" in scene.said[-1]


async def test_a_redelivered_link_changes_nothing_and_says_nothing_again(scene: Scene) -> None:
    code = scene.ground.linking.new(ACCOUNT).code
    message = await scene.say(f"/link {code}", BEN)
    said = len(scene.said)
    await scene.intake.accept([message])
    assert len(scene.said) == said
    assert len(await web.acts(scene.store, 1_000, 10)) == 1
