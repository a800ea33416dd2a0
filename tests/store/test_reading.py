"""What is stored comes back as the same values."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.messages import Address, Button, FileKind, FileRef, Part, Quote, Style, clean
from core.store import encoding, reads, roster, rows
from core.store.errors import ReadFailed
from core.store.records import (
    ApprovalRow,
    ApprovalState,
    ButtonRow,
    Delivery,
    DeliveryKind,
    DeliveryState,
    FilePart,
    MessageRow,
    PairingRow,
    PersonRow,
    PlaceRow,
    ProcessRow,
    RuleRow,
    SettingRow,
)
from core.store.store import Store
from core.turns import Status
from tests.contracts.store_contract import ANA, LANE, lane_row, turn
from tests.examples import tried
from tests.fakes.clock import FakeClock

TEXT = st.text().map(clean)
PARTS = st.builds(Part, TEXT, TEXT)
FILES = st.builds(
    FileRef, TEXT, st.sampled_from(FileKind), TEXT, TEXT, st.none() | st.integers(0, 2**40)
)
QUOTES = st.builds(Quote, TEXT, TEXT, TEXT, st.booleans(), st.lists(FILES, max_size=2).map(tuple))
BUTTONS = st.builds(Button, TEXT, TEXT, st.sampled_from(Style))


@tried(25)
@given(PARTS | st.builds(FilePart, TEXT, TEXT, st.none() | PARTS))
def test_a_part_is_read_as_it_was_written(part: Part | FilePart) -> None:
    assert encoding.load_part(encoding.dump_part(part)) == part


@tried(25)
@given(st.lists(st.lists(BUTTONS, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple))
def test_a_keyboard_is_read_as_it_was_written(keyboard: tuple[tuple[Button, ...], ...]) -> None:
    assert encoding.load_keyboard(encoding.dump_keyboard(keyboard)) == keyboard


@tried(25)
@given(st.lists(FILES, max_size=3).map(tuple), st.none() | QUOTES, TEXT)
def test_what_a_message_carries_is_read_as_it_was_written(
    files: tuple[FileRef, ...], quote: Quote | None, album: str
) -> None:
    found = encoding.load_extra(encoding.dump_extra(files, quote, album))
    assert found == (files, quote, album)


async def test_a_message_with_all_it_carries(tmp_path: Path) -> None:
    said = MessageRow(
        1, "telegram:8:-1:41", LANE, 1, ANA, "Ana", "41", "look", 5,
        (FileRef("f", FileKind.IMAGE, "a.png", "image/png", 9),), Quote("earlier", "Bo"), "album",
    )  # fmt: skip
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane_row(), rows.turn(turn(1)), rows.message(said))
        assert await reads.messages_of(store, [1]) == [said]
        assert await reads.waiting_message(store, said.identity) == said
        assert await reads.messages_of_lane(store, LANE, 5) == [said]
        await store.save(rows.message_edit(said.identity, "look here"))
        changed = await reads.waiting_message(store, said.identity)
        assert changed is not None
        assert changed.text == "look here"


async def test_the_text_of_a_message_stays_once_its_turn_is_over(tmp_path: Path) -> None:
    said = MessageRow(1, "m1", LANE, 1, ANA, "Ana", "41", "first", 5)
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane_row(), rows.turn(turn(1, status=Status.DONE)), rows.message(said))
        await store.save(rows.message_edit("m1", "second"))
        assert await reads.waiting_message(store, "m1") is None
        assert await reads.messages_of(store, [1]) == [said]


async def test_the_turns_of_a_lane_are_found_whether_over_or_not(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane_row(), lane_row("other"))
        for id in range(1, 9):
            lane = "other" if id == 5 else LANE
            status = Status.DONE if id % 3 else Status.RUNNING
            await store.save(rows.turn(turn(id, lane, status)))
        assert [row.id for row in await reads.turns_of(store, LANE, 5)] == [8, 7, 6, 4, 3]
        assert [row.id for row in await reads.turns_of(store, None, 5)] == [8, 7, 6, 5, 4]


async def test_a_delivery_and_how_far_it_is(tmp_path: Path) -> None:
    sent = Delivery(
        1, LANE, 1, DeliveryKind.ANSWER, Part("**hi**", "{}"), 2, ((Button("b", "Stop"),),), "41",
        created_at=3,
    )  # fmt: skip
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane_row(), rows.turn(turn(1)), rows.delivery(sent))
        assert await reads.deliveries_open(store) == [sent]
        await store.save(rows.delivery_state(1, DeliveryState.IN_FLIGHT))
        await store.save(rows.delivery_state(1, DeliveryState.SENT, message_id="77", sent_at=9))
        await store.save(rows.delivery_state(1, DeliveryState.SENT))
        found = await reads.delivery(store, 1)
        assert found is not None
        assert (found.state, found.message_id, found.sent_at) == (DeliveryState.SENT, "77", 9)
        assert await reads.deliveries_open(store) == []
        assert await reads.deliveries_of(store, 1) == [found]


async def test_an_approval_is_settled_once(tmp_path: Path) -> None:
    asked = ApprovalRow(1, LANE, 1, "ref", "shell", "ls", "hash", 5, 9)
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane_row(), rows.turn(turn(1)), rows.approval(asked))
        assert await reads.approvals_open(store) == [asked]
        await store.save(rows.approval_state(1, ApprovalState.DENIED, 6, ANA))
        await store.save(rows.approval_state(1, ApprovalState.ALLOWED, 7, "telegram:2"))
        found = await reads.approval(store, 1)
        assert found is not None
        assert (found.state, found.decided_by) == (ApprovalState.DENIED, ANA)
        assert await reads.approvals_open(store) == []


async def test_a_revoked_rule_is_gone_until_it_is_made_again(tmp_path: Path) -> None:
    rule = RuleRow(1, LANE, "codex", "shell", "ls", "hash", "/srv/site", 5, ANA)
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane_row(), rows.always_rule(rule))
        assert await reads.always_rules(store) == [rule]
        await store.save(rows.revoke_rule(1, 6))
        assert await reads.always_rules(store) == []
        await store.save(rows.always_rule(rule))
        assert await reads.always_rules(store) == [rule]


async def test_people_places_and_the_gateways_own_rows(tmp_path: Path) -> None:
    ana = PersonRow(ANA, "Ana", "member", "Europe/Berlin", 5, "telegram:2")
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(
            lane_row(),
            roster.person(ana),
            roster.pairing(PairingRow("123", ANA, "Ana", 1, 2)),
            roster.pairing(PairingRow("456", ANA, "Ana", 3, 4)),
            roster.place(PlaceRow("telegram:-1", "Lab", 1, ANA)),
            roster.move("telegram:-1", "telegram:-2", 1),
            rows.setting(SettingRow("LANEWAY_PREVIEW", "off", 1, ANA)),
            rows.process(ProcessRow(7, 1.5, LANE, "mark")),
            rows.button(ButtonRow("b1", LANE, None, "stop", {"turn": 1}, 5)),
        )
        assert await roster.people(store) == [ana]
        await store.save(roster.person_zone(ANA, "UTC", 9))
        assert [person.zone for person in await roster.people(store)] == ["UTC"]
        assert [pairing.code for pairing in await roster.pairings(store)] == ["456"]
        assert await roster.places(store) == [PlaceRow("telegram:-1", "Lab", 1, ANA)]
        assert await roster.moves(store) == {"telegram:-1": "telegram:-2"}
        assert (await reads.settings(store))["LANEWAY_PREVIEW"].value == "off"
        assert await reads.processes(store) == [ProcessRow(7, 1.5, LANE, "mark")]
        assert await reads.button(store, "b1") == ButtonRow(
            "b1", LANE, None, "stop", {"turn": 1}, 5
        )
        await store.save(
            roster.remove_person(ANA), roster.remove_pairing(ANA),
            roster.remove_place("telegram:-1"),
            rows.remove_setting("LANEWAY_PREVIEW"), rows.remove_process(7, 1.5),
        )  # fmt: skip
        assert await roster.people(store) == await reads.processes(store) == []
        assert await roster.pairings(store) == await roster.places(store) == []
        assert await reads.settings(store) == {}


async def test_a_lane_moves_to_another_address(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane_row())
        await store.save(rows.lane_address(LANE, Address("telegram", "-2", "7")))
        found = await reads.lane_at(store, Address("telegram", "-2", "7"))
        assert found is not None
        assert found.id == LANE
        assert [row.id for row in await reads.lanes_of_place(store, "telegram", "-2")] == [LANE]


def test_a_lane_has_no_other_settings_than_it_has() -> None:
    with pytest.raises(ValueError, match="colour"):
        rows.lane_setting(LANE, "colour", "red")


async def test_a_read_from_a_damaged_page_says_that_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    async with Store.open(path, FakeClock()) as store:
        await store.save(lane_row())
    async with Store.open(path, FakeClock()) as store:
        content = path.read_bytes()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(bytes(len(content) - 4096))
        with pytest.raises(ReadFailed, match="damaged"):
            await reads.lane_list(store.at_once)
        path.write_bytes(content)


@contextmanager
def unreadable(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The disk reports errors to whoever reads."""

    async def failing(query: str, parameters: dict[str, object]) -> list[sqlite3.Row]:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(store, "_read", failing)
        yield


async def test_reads_wait_while_the_disk_fails_and_say_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    async with Store.open(tmp_path / "laneway.db", clock) as store, asyncio.TaskGroup() as group:
        await store.save(lane_row())
        clock.watch(lambda: store.busy)
        with unreadable(store, monkeypatch):
            waiting = [group.create_task(reads.lane(store, LANE), name=f"{n}") for n in range(5)]
            await clock.advance(60)
            assert not any(task.done() for task in waiting)
            assert "disk reports errors" in store.trouble
            assert not store.busy
        await clock.advance(5)
        assert [task.result().id for task in waiting] == [LANE] * 5
        assert store.trouble == ""
        said = [record.message for record in caplog.records if record.levelname == "ERROR"]
        assert len(said) == 1


async def test_a_read_that_is_not_wanted_any_more_leaves_no_trouble_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    async with Store.open(tmp_path / "laneway.db", clock) as store, asyncio.TaskGroup() as group:
        with unreadable(store, monkeypatch):
            waiting = group.create_task(reads.lane(store, LANE), name="waits")
            await clock.advance(1)
            assert store.trouble
            waiting.cancel()
            await clock.settle()
        assert waiting.cancelled()
        assert store.trouble == ""


async def test_who_must_not_wait_is_told_at_once_that_a_read_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        with unreadable(store, monkeypatch), pytest.raises(ReadFailed, match="reports errors"):
            await reads.seen(store.at_once, "a")


async def test_a_query_that_is_wrong_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        with pytest.raises(sqlite3.ProgrammingError):
            await store.fetch("lane.by_id")
