"""Roles, pairing, places, and chats that move."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.messages import Address, Moved, Part
from core.people import Allowance, Knocks, Lists, People, Role
from core.store import reads, roster, rows
from core.store.records import (
    Delivery,
    DeliveryKind,
    DeliveryState,
    PersonRow,
    PlaceRow,
    revises,
)
from core.turns import Status
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, BEN, LAB, MAL, Scene, opened

OLD, NEW = "-900000077", "-1001900000077"


async def test_stored_people_and_places_add_to_those_of_the_environment(scene: Scene) -> None:
    await scene.store.save(
        roster.person(PersonRow(MAL, "Mal", "member", "", 1, ANA)),
        roster.place(PlaceRow("telegram:-5", "Five", 1, ANA)),
    )
    await scene.ground.people.load(scene.store)
    people = scene.ground.people
    assert [people.role(one) for one in (ANA, BEN, MAL)] == [Role.ADMIN, Role.MEMBER, Role.MEMBER]
    assert people.listed(Address("telegram", "-5", "7"))
    assert people.listed(Address("telegram", LAB))
    assert not people.listed(Address("telegram", "-6"))


async def test_a_stored_role_never_lowers_that_of_the_environment(scene: Scene) -> None:
    await scene.store.save(roster.person(PersonRow(ANA, "Ana", "member", "", 1, "")))
    await scene.ground.people.load(scene.store)
    assert scene.ground.people.role(ANA) is Role.ADMIN
    assert scene.ground.people.admins() == (ANA,)


async def test_somebody_unknown_gets_a_pairing_code_once_an_hour(scene: Scene) -> None:
    await scene.say("/whoami", MAL)
    await scene.say("/start", MAL)
    (text,) = scene.said
    (pairing,) = await roster.pairings(scene.store)
    assert MAL in text
    assert f"`laneway pair {pairing.code}`" in text
    assert "on my page" in text
    assert pairing.expires_at - pairing.asked_at == 3_600_000
    await scene.clock.advance(3601)
    await scene.say("/whoami", MAL)
    assert len(scene.said) == 2


async def test_somebody_unknown_gets_no_code_in_a_group_and_for_no_other_command(
    scene: Scene,
) -> None:
    await scene.mention("/whoami", MAL)
    await scene.say("/help", MAL)
    await scene.say("/whoami now", MAL, from_bot=True)
    assert scene.said == []
    assert await roster.pairings(scene.store) == []


async def test_start_is_help_for_those_who_are_known(scene: Scene) -> None:
    await scene.say("/start", BEN)
    assert "/status" in scene.said[0]


async def test_whoami_tells_id_and_role(scene: Scene) -> None:
    await scene.say("/whoami", BEN)
    assert scene.said == [f"You are `{BEN}`, member."]


async def test_a_moved_chat_keeps_its_lanes_and_its_permission(
    tmp_path: Path, clock: FakeClock
) -> None:
    lists = Lists(admins=frozenset({ANA}), places=frozenset({f"telegram:{OLD}"}))
    async with opened(tmp_path, clock, lists=lists) as scene:
        await scene.say("before", chat=OLD, addressed=True)
        await scene.intake.accept([Moved("m1", "telegram", OLD, NEW)])
        await scene.intake.accept([Moved("m2", "telegram", OLD, NEW)])
        await scene.say("after", chat=NEW, addressed=True)
        await scene.say("late", chat=OLD, addressed=True)
        turns = await scene.turns()
        assert {turn.lane for turn in turns} == {f"telegram:{OLD}"}
        assert len(turns) == 3
        lane = await reads.lane(scene.store, f"telegram:{OLD}")
        assert lane is not None
        assert lane.address == Address("telegram", NEW)


async def test_the_old_id_counts_for_the_new_one_after_a_restart(
    tmp_path: Path, clock: FakeClock
) -> None:
    lists = Lists(admins=frozenset({ANA}), places=frozenset({f"telegram:{OLD}"}))
    async with opened(tmp_path, clock, lists=lists) as scene:
        await scene.say("before", chat=OLD, addressed=True)
        await scene.intake.moved(Address("telegram", OLD), NEW)
    async with opened(tmp_path, clock, lists=lists) as scene:
        await scene.say("after", chat=NEW, addressed=True)
        assert {turn.lane for turn in await scene.turns()} == {f"telegram:{OLD}"}


async def test_a_move_marks_what_stays_behind_in_the_same_commit(
    tmp_path: Path, clock: FakeClock
) -> None:
    lists = Lists(admins=frozenset({ANA}), places=frozenset({f"telegram:{OLD}"}))
    async with opened(tmp_path, clock, lists=lists) as scene:
        await scene.say("runs", chat=OLD, addressed=True)
        lane = f"telegram:{OLD}"
        card = Delivery(
            scene.store.ids.delivery(), lane, None, DeliveryKind.CARD, Part("Allow?"),
            message_id="12", state=DeliveryState.SENT,
        )  # fmt: skip
        edits = [
            replace(card, id=scene.store.ids.delivery(), target=target, message_id="")
            for target in ("12", revises(card.id))
        ]
        await scene.store.save(*map(rows.delivery, (card, *edits)))
        for _ in range(2):
            await scene.intake.moved(Address("telegram", OLD), NEW)
        found = [await reads.delivery(scene.store, each.id) for each in (card, *edits)]
        assert [(each.message_id, each.target) for each in found if each is not None] == [
            ("left:12", ""),
            ("", "left:12"),
            ("", revises(card.id)),
        ]
        said = await reads.messages_of_lane(scene.store, lane, 9)
        assert [one.message_id for one in said] == [""]


async def test_a_message_of_the_new_chat_right_behind_the_move_counts(
    tmp_path: Path, clock: FakeClock
) -> None:
    lists = Lists(admins=frozenset({ANA}), places=frozenset({f"telegram:{OLD}"}))
    async with opened(tmp_path, clock, lists=lists) as scene:
        after = scene.message("after", chat=NEW, addressed=True)
        await scene.intake.accept([Moved("m1", "telegram", OLD, NEW), after])
        assert len(await scene.turns()) == 1


async def test_a_lane_begun_at_the_new_address_makes_way_for_the_older_one(
    tmp_path: Path, clock: FakeClock
) -> None:
    places = frozenset({f"telegram:{OLD}", f"telegram:{NEW}"})
    lists = Lists(admins=frozenset({ANA}), places=places)
    async with opened(tmp_path, clock, lists=lists) as scene:
        await scene.say("runs", chat=OLD, addressed=True)
        await scene.say("waits", chat=OLD, addressed=True)
        await scene.say("young", chat=NEW, addressed=True)
        for number in range(2):
            await scene.intake.accept([Moved(f"m{number}", "telegram", OLD, NEW)])
        await scene.say("after", chat=NEW, addressed=True)
        old_lane = [t for t in await scene.turns() if t.lane == f"telegram:{OLD}"]
        assert [turn.label for turn in old_lane] == ["runs", "waits", "after"]
        assert all(turn.status is not Status.DROPPED for turn in await scene.turns())


def test_moves_that_lead_in_a_circle_end() -> None:
    people = People(Lists())
    people._moves = {"telegram:-1": "telegram:-2", "telegram:-2": "telegram:-1"}
    assert people.now_at(Address("telegram", "-1")).chat in ("-1", "-2")


def test_strangers_cannot_fill_the_memory() -> None:
    knocks = Knocks()
    for number in range(5000):
        knocks.knock(f"telegram:{number}", "telegram:1", 0)
    assert len(knocks._known) <= 4096


def test_an_allowance_slides() -> None:
    allowance = Allowance()
    taken = [allowance.take("bot", float(at), 2, 10.0) for at in (0, 1, 2, 3, 11)]
    assert taken == [(True, False), (True, False), (False, True), (False, False), (True, False)]
