"""What the listings say, and what they cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from sqlite3 import Row
from typing import Any

import pytest

from core.clock import SystemClock
from core.items import Item
from core.lanes import Hold, LaneView
from core.messages import Address, Part
from core.people import Lists, People, Role
from core.store import glance, reads, roster, rows
from core.store.errors import StoreError
from core.store.records import (
    Delivery,
    DeliveryKind,
    DeliveryState,
    MessageRow,
    PairingRow,
    PersonRow,
)
from core.store.store import Store
from core.turns import Kind, LaneFacts, Origin, Status, Turn
from gateway import reports

LANES = 50


class Counting:
    """A store that counts what is asked of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    async def fetch(self, query: str, **parameters: object) -> list[Row]:
        self.asked[query] += 1
        return await self._store.fetch(query, **parameters)


async def turn(store: Store, lane: str, status: Status, *made: tuple[str, str]) -> int:
    """A turn of two messages, and the deliveries there were for it: kind and state."""
    ids, now = store.ids, store.clock.now()
    one = Turn(ids.turn(), lane, "local:ana", Origin.PERSON, Kind.MAIN, now, status=status)
    written = [rows.turn(one)]
    for text in ("first", "second"):
        seq = ids.message()
        said = MessageRow(seq, f"m:{seq}", lane, one.id, "local:ana", "Ana", "", text, at=now)
        written.append(rows.message(said))
    for kind, state in made:
        what, stands = DeliveryKind(kind), DeliveryState(state)
        shown = Delivery(
            ids.delivery(), lane, one.id, what, Part("x"), state=stands, created_at=now
        )
        written.append(rows.delivery(shown))
    await store.save(*written)
    return one.id


async def new_lane(store: Store, lane: str, channel: str = "local") -> None:
    await store.save(rows.new_lane(lane, Address(channel, lane), True, "", store.clock.now()))


async def test_a_listing_is_a_handful_of_queries_however_long_it_is(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        for number in range(LANES):
            await new_lane(store, f"lane-{number}")
            await turn(store, f"lane-{number}", Status.DONE, ("answer", "sent"))
        counting = Counting(store)
        listed = await reports.turns(counting, None)
        assert len(listed) == LANES
        assert {row["text"] for row in listed} == {"first\n\nsecond"}
        assert len(await reports.turns(counting, "lane-7")) == 1
        assert len(await reports.lanes(counting, "demo", None)) == LANES
        assert counting.asked.total() <= 11


async def test_a_lane_whose_chat_moved_is_found_by_where_it_lives_and_by_its_id(
    tmp_path: Path,
) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        old, now = Address("telegram", "-77", "36"), Address("telegram", "-10077", "36")
        await store.save(rows.new_lane(str(old), old, False, "", 1))
        asked = await turn(store, str(old), Status.DONE)
        await store.save(rows.lane_address(str(old), now))
        for name in (str(old), str(now)):
            assert [row["id"] for row in await reports.turns(store, name)] == [asked]
        with pytest.raises(LookupError, match="telegram:-10077"):
            await reports.turns(store, "telegram:-10077")


@pytest.mark.parametrize(
    ("status", "made", "delivery"),
    [
        (Status.DONE, [("answer", "sent"), ("answer", "failed")], "failed"),
        (Status.DONE, [("answer", "sent"), ("answer", "uncertain")], "uncertain"),
        (Status.DONE, [("answer", "in_flight")], "pending"),
        (Status.DONE, [("answer", "held")], "pending"),
        (Status.DONE, [("preview", "failed"), ("answer", "sent"), ("notice", "failed")], "sent"),
        (Status.STOPPED, [("notice", "sent"), ("card", "failed")], "sent"),
        (Status.DONE, [("file", "uncertain"), ("answer", "sent")], "uncertain"),
        (Status.DONE, [("file", "pending")], "pending"),
        (Status.RUNNING, [("file", "sent")], "pending"),
        (Status.RUNNING, [("notice", "sent")], "pending"),
        (Status.DROPPED, [], "sent"),
        (Status.WAITING, [], "pending"),
    ],
)
async def test_the_worst_of_an_answer_is_how_it_stands(
    tmp_path: Path, status: Status, made: list[tuple[str, str]], delivery: str
) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        await new_lane(store, "main")
        await turn(store, "main", status, *made)
        (row,) = await reports.turns(store, None)
        assert row["delivery"] == delivery


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (Status.RUNNING, "waiting"),
        (Status.STARTING, "waiting"),
        (Status.WAITING, "waiting"),
        (Status.DONE, "idle"),
    ],
)
async def test_while_the_gateway_is_down_a_lane_with_an_open_turn_is_not_idle(
    tmp_path: Path, status: Status, state: str
) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        await new_lane(store, "main")
        await turn(store, "main", status)
        (row,) = await reports.lanes(store, "demo", None)
        assert (row["state"], row["waiting"]) == (state, int(status is Status.WAITING))


@pytest.mark.parametrize(
    ("scope", "state"),
    [("all", "paused"), ("engine:demo", "paused"), ("engine:acp", "idle"), ("", "idle")],
)
async def test_a_lane_in_which_nothing_starts_is_paused_as_its_status_says(
    tmp_path: Path, scope: str, state: str
) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        await new_lane(store, "main")
        if scope:
            await store.save(rows.pause(scope, "an admin wished it", 1))
        (row,) = await reports.lanes(store, "demo", None)
        assert row["state"] == state


@pytest.mark.parametrize(
    ("held", "state"),
    [
        ((), "waiting"),
        ((Hold.PERSON_SPENT,), "waiting"),
        ((Hold.ALL_SPENT,), "waiting"),
        ((Hold.LANE,), "paused"),
        ((Hold.ENGINE,), "paused"),
        ((Hold.ALL, Hold.ALL_SPENT), "paused"),
    ],
)
def test_who_has_spent_the_day_waits_and_only_a_pause_is_called_one(
    held: tuple[Hold, ...], state: str
) -> None:
    told = Turn(1, "main", "local:ana", Origin.PERSON, Kind.MAIN, 1)
    view = LaneView("main", LaneFacts(), None, None, (), (told,), (), held, 0)
    assert reports.state_of(view, halted=False) == state


async def test_who_was_let_in_is_seen_beside_a_running_gateway(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    async with Store.open(path, SystemClock()) as store:
        await store.save(
            roster.person(PersonRow("telegram:1", "Ana", "admin")),
            roster.person(PersonRow("telegram:2", "Ben", "member")),
        )
        assert glance.roles(path) == {"telegram:1": "admin", "telegram:2": "member"}


async def test_what_waits_for_each_channel_is_seen_beside_a_running_gateway(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    async with Store.open(path, SystemClock()) as store:
        await new_lane(store, "main")
        await new_lane(store, "telegram:1", "telegram")
        await turn(store, "main", Status.DONE, ("answer", "sent"))
        await turn(store, "telegram:1", Status.WAITING)
        await turn(store, "telegram:1", Status.DONE, ("answer", "pending"), ("notice", "pending"))
        seen: Any = glance.open_by_channel(path)
        assert seen == {"telegram": glance.Open(turns=1, deliveries=2)}
    assert glance.open_by_channel(path) == seen
    (tmp_path / "other.db").write_text("this is no database, and long enough to be looked at")
    with pytest.raises(StoreError):
        glance.open_by_channel(tmp_path / "other.db")


ZOE = "telegram:700000009"


async def waiting(store: Store, chat: bool = True) -> People:
    """Zoe was given a code, in her chat with the bot."""
    now = store.clock.now()
    await store.save(roster.pairing(PairingRow("ABCD2345", ZOE, "Zoe", now, now + 60_000)))
    if chat:
        lane = "telegram:700000009"
        address = Address("telegram", "700000009")
        await store.save(
            rows.new_lane(lane, address, True, "", now), rows.lane_setting(lane, "person", ZOE)
        )
    people = People(Lists())
    await people.load(store)
    return people


async def test_who_is_let_in_is_told_in_the_same_commit(tmp_path: Path) -> None:
    taken: list[Item] = []

    async def take(*items: Item) -> list[bool]:
        taken.extend(items)
        return [True]

    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        people = await waiting(store)
        let_in = await reports.pair(store, people, " abcd2345", take)
        assert let_in == {"person": ZOE, "name": "Zoe", "role": "member"}
        assert people.role(ZOE) is Role.MEMBER
        (item,) = taken
        (told,) = item.deliveries
        assert isinstance(told.part, Part)
        assert told.part.text.startswith("You are in")
        assert told.lane == "telegram:700000009"
        written = [query for query, _ in item.rows]
        assert written == ["person.save", "pairing.remove", "audit.save"]


async def test_who_is_let_in_while_the_gateway_is_down_is_told_by_the_next_start(
    tmp_path: Path,
) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        await reports.pair(store, await waiting(store), "ABCD2345")
        (told,) = await reads.deliveries_open(store)
        assert told.state is DeliveryState.PENDING
        assert [row.id for row in await roster.people(store)] == [ZOE]
        assert await roster.pairings(store) == []


async def test_who_is_let_in_without_a_chat_we_know_is_let_in_all_the_same(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        people = await waiting(store, chat=False)
        await reports.pair(store, people, "ABCD2345")
        assert people.role(ZOE) is Role.MEMBER
        assert await reads.deliveries_open(store) == []


async def test_a_code_that_is_wrong_or_old_lets_nobody_in(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", SystemClock()) as store:
        people = await waiting(store)
        await store.save(roster.pairing(PairingRow("WXYZ2345", "telegram:8", "Old", 1, 2)))
        for code in ("", "ABCD2346", "WXYZ2345"):
            with pytest.raises(LookupError, match="nobody waits"):
                await reports.pair(store, people, code)
        assert await roster.people(store) == []
