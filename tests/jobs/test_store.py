"""Jobs in the database: claimed once, read back whole, held after a restore, tidied with age."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from core.job_rules import FiringState, IfBusy, Job, JobKind
from core.messages import Address
from core.store import copies, housekeeping, reads, rows
from core.store import jobs as stored
from core.store.errors import Poisoned
from core.store.jobs import FiringRow
from core.store.store import Store, Unit
from core.turns import Kind, Origin, Turn
from tests.fakes.clock import FakeClock
from tests.jobs.scene import jobs_in

JOB = Job(
    1, "main", "local:ana", JobKind.SCHEDULE, "every 1h", "UTC", 5, "look", 5,
    catch_up=0, if_busy=IfBusy.SKIP, budget=0.5, made_by="agent", request="r", next_at=3_600_005,
    settled_at=5,
)  # fmt: skip


def lane() -> rows.Row:
    return rows.new_lane("main", Address("local", "main"), True, "", 1)


def claim(store: Store, due: int) -> Unit:
    turn = store.ids.turn()
    made = Turn(turn, "main", "local:ana", Origin.SCHEDULE, Kind.MAIN, due)
    firing = FiringRow(1, due, due, FiringState.OPEN, turn)
    written = [
        rows.turn(made),
        stored.firing(firing),
        stored.settled(replace(JOB, turn=turn), JOB.next_at, None),
    ]
    return Unit(None, lambda: written)


async def test_a_job_reads_back_as_it_was_stored(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane(), stored.new(JOB))
        assert await stored.job(store, 1) == JOB
        assert await stored.requested(store, "main", "r") == JOB
        assert await stored.count(store, "local:ana") == 1
        assert await stored.first(store) == 3_600_005
        assert await stored.due(store, 3_600_004, 10) == []
        assert await stored.due(store, 3_600_005, 10) == [JOB]
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        assert store.ids.job() == 2


async def test_an_instant_is_claimed_once_whatever_stands_in_between(tmp_path: Path) -> None:
    """Also by another process, after a crash between the claim and the start of its turn."""
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane(), stored.new(JOB))
        assert await store.commit(claim(store, 7)) == [True]
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        with pytest.raises(Poisoned):
            await store.commit(claim(store, 7))
        assert len(await reads.open_turns(store)) == 1
        assert await store.commit(claim(store, 8)) == [True]


async def test_of_two_claims_in_one_batch_one_counts(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        await store.save(lane(), stored.new(JOB))
        with pytest.raises(Poisoned) as caught:
            await store.commit(claim(store, 7), claim(store, 7))
        assert caught.value.accepted == [True, False]
        assert len(await reads.open_turns(store)) == 1


async def test_what_was_claimed_elsewhere_is_gone_behind(tmp_path: Path) -> None:
    """The claim is there and the job's row does not know of it."""
    clock = FakeClock()
    async with jobs_in(tmp_path, clock) as house:
        job = await house.made("/every 1h : look")
        assert job.next_at is not None
        firing = FiringRow(job.id, job.next_at, job.next_at, FiringState.DONE)
        await house.store.save(stored.firing(firing))
        await clock.advance(3601)
        assert await house.turns() == []
        await clock.advance(3601)
        assert await house.states() == ["done", "done"]
        assert len(await house.turns()) == 1


async def test_old_firings_are_tidied_and_open_ones_stay(tmp_path: Path) -> None:
    clock = FakeClock()
    async with Store.open(tmp_path / "laneway.db", clock) as store:
        await store.save(lane(), stored.new(JOB))
        now = clock.now()
        await store.commit(claim(store, now))
        await store.save(stored.firing(FiringRow(1, now + 1, now, FiringState.SKIPPED)))
        clock.jump(31 * 86400)
        await store.save(*housekeeping.tidy(clock.now()))
        assert [one.state for one in await stored.firings(store, 1, 9)] == [FiringState.OPEN]


async def test_a_restored_backup_fires_nothing_it_cannot_know(tmp_path: Path) -> None:
    clock, backup = FakeClock(), tmp_path / "backup.db"
    async with jobs_in(tmp_path, clock) as house:
        await house.made("/every 1h : look")
        await house.made("/every 1d : look")
        await house.store.backup(backup)
        await clock.advance(3601)
        assert await house.states(1) == ["done"]
    copies.restore(backup, tmp_path / "laneway.db", clock.now(), force=True)
    async with jobs_in(tmp_path, clock, tick=600) as house:
        await clock.settle()
        assert await house.turns() == []
        assert await house.states(1) == ["missed"]
        (told,) = house.said
        assert "a backup was restored, and I cannot tell whether it ran" in told
        await clock.advance(3600)
        assert await house.states(1) == ["missed", "done"]
        await clock.advance(86400)
        assert await house.states(2) == ["done"]


async def test_a_run_that_waited_in_a_backup_keeps_its_job_from_nothing(tmp_path: Path) -> None:
    clock, backup = FakeClock(), tmp_path / "backup.db"
    async with jobs_in(tmp_path, clock, runs=False) as house:
        await house.made("/every 1h : look")
        await clock.advance(3601)
        await house.store.backup(backup)
    copies.restore(backup, tmp_path / "laneway.db", clock.now(), force=True)
    with closing(sqlite3.connect(tmp_path / "laneway.db")) as connection:
        assert connection.execute("SELECT turn, restored FROM jobs").fetchall() == [(None, 1)]
    async with jobs_in(tmp_path, clock) as house:
        await clock.advance(3601)
        assert await house.states() == ["open", "done"]
