"""What every store promises, whatever database is below it.

A store takes part by subclassing ``StoreContract`` and saying how it is opened and how its disk is
made to fail. Real databases, no doubles.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from core.messages import Address
from core.store import housekeeping, reads, rows
from core.store.errors import Closed, Poisoned
from core.store.records import LaneRow, MessageRow
from core.store.rows import Row
from core.store.store import Store, Unit
from core.turns import Kind, Origin, Status, Turn
from tests.fakes.clock import FakeClock

LANE = "telegram-1"
ANA = "telegram:700000001"


def lane_row(lane: str = LANE) -> Row:
    return rows.new_lane(lane, Address("telegram", lane), direct=True, title="Ana", at=1)


def turn(id: int, lane: str = LANE, status: Status = Status.WAITING) -> Turn:
    return Turn(id, lane, ANA, Origin.PERSON, Kind.MAIN, 1_000 + id, "first words", status)


def message(seq: int, turn: int | None, lane: str = LANE, text: str = "hello") -> MessageRow:
    return MessageRow(seq, f"m{seq}", lane, turn, ANA, "Ana", str(seq), text, 1_000 + seq)


@dataclass
class Memory:
    """What a unit changes in memory, and the order in which it was asked to."""

    events: list[str] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)

    def unit(self, store: Store, name: str, *more: Row, fault: str = "") -> Unit:
        """Saves a turn of its own; ``more`` rows come after it."""

        def decide() -> list[Row]:
            self.events.append(f"decide {name}")
            id = store.ids.turn()
            self.turns.append(id)
            if fault:
                raise RuntimeError(fault)
            return [rows.turn(turn(id)), *more]

        def undo() -> None:
            self.events.append(f"undo {name}")
            self.turns.pop()

        return Unit(name, decide, undo, lambda: self.events.append(f"done {name}"))


BAD: Row = ("lane.facts", {"id": LANE, "ended": "soon", "epoch": 0, "paused": 0})


class StoreContract:
    """Subclass it as ``Test…``; the two methods below are all that a store has to add."""

    def opened(self, home: Path, clock: FakeClock) -> AbstractAsyncContextManager[Store]:
        raise NotImplementedError

    def failing(self, store: Store) -> AbstractAsyncContextManager[None]:
        """While the block lasts, nothing that takes space can be stored."""
        raise NotImplementedError

    @asynccontextmanager
    async def ready(self, home: Path, clock: FakeClock | None = None) -> AsyncIterator[Store]:
        clock = clock or FakeClock()
        async with self.opened(home, clock) as store:
            clock.watch(lambda: store.busy)
            await store.save(lane_row())
            yield store

    # Identities

    async def test_a_new_identity_is_accepted_once(self, tmp_path: Path) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:
            assert await store.commit(memory.unit(store, "a")) == [True]
            assert await store.commit(memory.unit(store, "a")) == [False]
            assert memory.events == ["decide a", "done a"]
            assert len(await reads.open_turns(store)) == 1

    async def test_of_two_in_one_batch_the_first_wins(self, tmp_path: Path) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:
            one, two = memory.unit(store, "a"), memory.unit(store, "a")
            assert await store.commit(one, two, memory.unit(store, "b")) == [True, False, True]
            assert memory.events == ["decide a", "decide b", "done a", "done b"]

    async def test_an_identity_is_known_after_a_restart(self, tmp_path: Path) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:
            await store.commit(memory.unit(store, "a"))
        async with self.ready(tmp_path) as store:
            assert await store.commit(memory.unit(store, "a")) == [False]
            assert store.ids.turn() == 2

    async def test_thousands_of_units_in_one_call_are_stored(self, tmp_path: Path) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:
            units = [memory.unit(store, f"u{n % 4000}") for n in range(5000)]
            accepted = await store.commit(*units)
            assert accepted == [True] * 4000 + [False] * 1000
            assert len(await reads.open_turns(store)) == 4000

    async def test_identities_older_than_thirty_days_are_deleted(self, tmp_path: Path) -> None:
        clock, memory = FakeClock(), Memory()
        async with self.ready(tmp_path, clock) as store:
            await store.commit(memory.unit(store, "old"))
            clock.jump(29 * 86_400)
            await store.commit(memory.unit(store, "young"))
            clock.jump(2 * 86_400)
            await store.save(*housekeeping.tidy(clock.now()))
            assert not await reads.seen(store, "old")
            assert await reads.seen(store, "young")

    # Order and grouping

    async def test_done_is_called_in_order_before_the_waiting_task_goes_on(
        self, tmp_path: Path
    ) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:

            async def commit(name: str) -> None:
                await store.commit(memory.unit(store, name))
                memory.events.append(f"back {name}")

            async with asyncio.TaskGroup() as group:
                for name in ("a", "b", "c"):
                    group.create_task(commit(name), name=name)
            done = [event for event in memory.events if not event.startswith("decide")]
            assert done == ["done a", "done b", "done c", "back a", "back b", "back c"]

    async def test_what_is_referred_to_is_stored_before_what_refers_to_it(
        self, tmp_path: Path
    ) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(
                rows.message(message(1, 7, "new")), rows.turn(turn(7, "new")), lane_row("new")
            )
            assert [m.text for m in await reads.messages_of(store, [7])] == ["hello"]

    async def test_of_two_saves_of_one_turn_the_last_counts(self, tmp_path: Path) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(
                rows.turn(turn(1)), rows.turn(turn(2)), rows.turn(turn(1, status=Status.DROPPED))
            )
            assert [row.id for row in await reads.open_turns(store)] == [2]

    async def test_what_is_removed_and_saved_again_in_one_commit_stays(
        self, tmp_path: Path
    ) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(
                rows.pause("all", "a", 1), rows.resume("all"), rows.pause("all", "b", 2)
            )
            assert [pause.reason for pause in await reads.pauses(store)] == ["b"]
            await store.save(rows.pause("all", "c", 3), rows.resume("all"))
            assert await reads.pauses(store) == []

    async def test_a_merged_message_may_name_a_turn_that_is_never_saved(
        self, tmp_path: Path
    ) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(rows.turn(turn(1)), rows.message(message(1, 1)))
            await store.save(rows.message(message(2, 2)), rows.messages_join(2, 1))
            assert [m.seq for m in await reads.messages_of(store, [1])] == [1, 2]

    # Failures

    async def test_a_unit_that_cannot_be_stored_is_set_aside_and_costs_no_other(
        self, tmp_path: Path
    ) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:
            async with asyncio.TaskGroup() as group:
                good = group.create_task(store.commit(memory.unit(store, "good")), name="good")
                bad = group.create_task(self._poisoned(store, memory, "bad", BAD), name="bad")
                more = group.create_task(store.commit(memory.unit(store, "more")), name="more")
            assert good.result() == more.result() == [True]
            assert bad.result().accepted == [False]
            assert len(memory.turns) == len(await reads.open_turns(store)) == 2
            assert [aside[0] for aside in await reads.set_aside(store, 10)] == ["bad"]
            assert await store.commit(memory.unit(store, "bad")) == [False]

    async def _poisoned(self, store: Store, memory: Memory, name: str, *more: Row) -> Poisoned:
        with pytest.raises(Poisoned) as caught:
            await store.commit(memory.unit(store, name, *more))
        return caught.value

    async def test_a_failed_batch_is_undone_in_reverse_order(self, tmp_path: Path) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:
            with pytest.raises(Poisoned):
                await store.commit(memory.unit(store, "a"), memory.unit(store, "b", BAD))
            assert memory.events == [
                "decide a", "decide b", "undo b", "undo a",
                "decide a", "done a", "decide b", "undo b",
            ]  # fmt: skip

    async def test_a_decision_that_raises_is_undone_and_set_aside(self, tmp_path: Path) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:
            with pytest.raises(Poisoned, match="RuntimeError: no such thing"):
                await store.commit(
                    memory.unit(store, "a"),
                    memory.unit(store, "b", fault="no such thing"),
                    memory.unit(store, "c"),
                )
            assert len(memory.turns) == 2
            assert len(await reads.open_turns(store)) == 2

    @pytest.mark.parametrize("text", ["lone \ud800 surrogate", 2**70])
    async def test_a_value_that_no_database_takes_is_set_aside(
        self, tmp_path: Path, text: object
    ) -> None:
        async with self.ready(tmp_path) as store:
            row = ("lane.set_title", {"id": LANE, "value": text})
            with pytest.raises(Poisoned):
                await store.commit(Unit("a", lambda: [row]))
            assert await reads.seen(store, "a")

    async def test_an_identity_that_no_database_takes_is_set_aside(self, tmp_path: Path) -> None:
        async with self.ready(tmp_path) as store:
            with pytest.raises(Poisoned):
                await store.commit(Unit("lone \ud800", list))
            assert await store.commit(Unit("next", list)) == [True]

    async def test_a_callback_that_raises_after_the_commit_ends_nothing(
        self, tmp_path: Path
    ) -> None:
        def broken() -> None:
            raise RuntimeError("a bug")

        async with self.ready(tmp_path) as store:
            assert await store.commit(Unit("a", list, done=broken)) == [True]
            assert await store.commit(Unit("b", list)) == [True]

    async def test_while_the_disk_fails_nothing_is_acknowledged_and_then_all_is_stored(
        self, tmp_path: Path
    ) -> None:
        clock, memory = FakeClock(), Memory()
        async with self.ready(tmp_path, clock) as store, asyncio.TaskGroup() as group:
            async with self.failing(store):
                waiting = [
                    group.create_task(
                        store.commit(memory.unit(store, f"u{n}", *_bulk(store))), name=f"u{n}"
                    )
                    for n in range(10)
                ]
                await clock.advance(60)
                assert store.trouble
                assert not any(task.done() for task in waiting)
                assert memory.turns == []
            await clock.until(lambda: all(task.done() for task in waiting))
            assert [task.result() for task in waiting] == [[True]] * 10
            assert await reads.set_aside(store, 10) == []
            assert len(await reads.open_turns(store)) == len(memory.turns) == 10
            await clock.until(lambda: not store.trouble)

    async def test_what_cannot_be_stored_before_the_end_is_not_acknowledged(
        self, tmp_path: Path
    ) -> None:
        clock, memory = FakeClock(), Memory()
        async with asyncio.TaskGroup() as group, self.ready(tmp_path, clock) as store:
            failing = self.failing(store)
            await failing.__aenter__()  # and it still fails when the store is closed
            task = group.create_task(self._closed(store, memory), name="waits")
            await clock.advance(1)
            assert not task.done()
        assert task.result() == "closed"
        assert memory.turns == []

    async def _closed(self, store: Store, memory: Memory) -> str:
        with pytest.raises(Closed):
            await store.commit(memory.unit(store, "late", *_bulk(store)))
        return "closed"

    # Cancelling, closing

    async def test_cancelling_the_wait_takes_nothing_back(self, tmp_path: Path) -> None:
        memory = Memory()
        async with self.ready(tmp_path) as store:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(store.commit(memory.unit(store, name)), name=name)
                    for name in ("a", "b", "c")
                ]
                await asyncio.sleep(0)
                tasks[1].cancel()
            assert tasks[1].cancelled()
            assert tasks[0].result() == tasks[2].result() == [True]
            assert len(await reads.open_turns(store)) == 3
            assert memory.events[-3:] == ["done a", "done b", "done c"]

    async def test_what_is_queued_at_the_end_is_stored_before_it_closes(
        self, tmp_path: Path
    ) -> None:
        memory = Memory()
        async with asyncio.TaskGroup() as group:
            async with self.ready(tmp_path) as store:
                group.create_task(store.commit(memory.unit(store, "a")), name="a")
                await asyncio.sleep(0)
            with pytest.raises(Closed):
                await store.commit(memory.unit(store, "b"))
        async with self.ready(tmp_path) as store:
            assert await reads.seen(store, "a")

    async def test_an_error_inside_the_block_comes_out_as_it_is(self, tmp_path: Path) -> None:
        with pytest.raises(LookupError, match="mine"):
            async with self.ready(tmp_path):
                raise LookupError("mine")

    # Reading back

    async def test_a_lane_reads_back_as_it_was_stored(self, tmp_path: Path) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(rows.lane_setting(LANE, "engine", "codex"))
            await store.save(rows.lane_engaged(LANE, 5))
            assert await reads.lane(store, LANE) == LaneRow(
                LANE, Address("telegram", LANE), direct=True, title="Ana", created_at=1,
                engaged_at=5, engine="codex",
            )  # fmt: skip
            found = await reads.lane_at(store, Address("telegram", LANE))
            assert found is not None
            assert found.id == LANE
            assert await reads.lane_at(store, Address("x", "y")) is None

    async def test_a_turn_reads_back_as_the_lane_rules_know_it(self, tmp_path: Path) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(rows.turn(turn(3)))
            row = await reads.turn(store, 3)
            assert row is not None
            assert row.turn() == turn(3)

    async def test_saving_a_turn_again_leaves_its_answer_alone(self, tmp_path: Path) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(rows.turn(turn(1)), rows.turn_result(1, 9, "the answer", ""))
            await store.save(rows.turn(turn(1, status=Status.DONE)))
            row = await reads.turn(store, 1)
            assert row is not None
            assert (row.status, row.answer, row.ended_at) == (Status.DONE, "the answer", 9)

    async def test_an_older_epochs_session_never_replaces_a_newer_one(self, tmp_path: Path) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(rows.session(LANE, "demo", 2, "new", 1))
            await store.save(rows.session(LANE, "demo", 1, "old", 2))
            found = (await reads.sessions(store, LANE)).get("demo")
            assert found is not None
            assert found.session == "new"

    async def test_a_quarantined_session_is_not_made_good_by_saving_it_again(
        self, tmp_path: Path
    ) -> None:
        async with self.ready(tmp_path) as store:
            await store.save(rows.session(LANE, "demo", 1, "bad", 1))
            await store.save(rows.quarantine(LANE, "demo", "bad", "its process survived"))
            await store.save(rows.session(LANE, "demo", 1, "bad", 2))
            found = (await reads.sessions(store, LANE)).get("demo")
            assert found is not None
            assert found.quarantined
            await store.save(rows.session(LANE, "demo", 1, "fresh", 3))
            found = (await reads.sessions(store, LANE)).get("demo")
            assert found is not None
            assert not found.quarantined


def _bulk(store: Store) -> Iterator[Row]:
    """Rows that take space on the disk."""
    for _ in range(5):
        seq = store.ids.message()
        yield rows.message(message(seq, None, text="x" * 20_000))
