"""The store: opens the database of a home, and is what the rest of core writes and reads with.

It knows nothing of lanes or turns; rows.py and reads.py do. SQLite's own dialect stays in here and
in the migrations.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Protocol

import aiosqlite

from core.clock import Clock
from core.store import copies, home, integrity
from core.store.batch import BatchConnection
from core.store.errors import Closed, Damaged, ReadFailed, StoreError, curable
from core.store.migrate import migrate
from core.store.queries import queries
from core.store.rows import Row
from core.store.writer import PAUSES, Unit, Writer
from core.tallies import Spread

__all__ = ["Ids", "Reader", "Store", "Unit"]

log = logging.getLogger(__name__)

BUSY_SECONDS = 5.0
LOG_PAGES = 4000  # of the write-ahead log, 16 MB: pages written again and again are copied once
ROOM_SECONDS = 5.0  # how often it is looked whether a full disk has room again
LOW = "the disk is almost full; free some space"


class Ids:
    """The next number of each kind. In memory, as this process is the only writer."""

    def __init__(self, last: Mapping[str, int]) -> None:
        self._last = dict(last)

    def _next(self, kind: str) -> int:
        self._last[kind] += 1
        return self._last[kind]

    def turn(self) -> int:
        return self._next("turn")

    def message(self) -> int:
        return self._next("message")

    def delivery(self) -> int:
        return self._next("delivery")

    def approval(self) -> int:
        return self._next("approval")

    def rule(self) -> int:
        return self._next("rule")

    def job(self) -> int:
        return self._next("job")

    def budget(self) -> int:
        return self._next("budget")


class Reader(Protocol):
    """Finds what is committed, by the name of a query."""

    async def fetch(self, query: str, **parameters: object) -> list[sqlite3.Row]: ...


class _AtOnce:
    """Reads for those who must not wait for the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def fetch(self, query: str, **parameters: object) -> list[sqlite3.Row]:
        return await self._store.fetch_now(query, **parameters)


class Store:
    """One database, one writer. Made by ``Store.open``."""

    def __init__(
        self, path: Path, clock: Clock, writing: aiosqlite.Connection, reading: aiosqlite.Connection
    ) -> None:
        self.path = path
        self.clock = clock
        self.ids = Ids({})
        self._ballast = home.Ballast(path.parent)
        self._low = asyncio.Event()
        self._damage = ""
        self._unreadable = ""  # why reads wait
        self._stuck = 0  # reads that wait for the disk
        self._fetching = 0
        self._writer = Writer(writing, clock, self._make_room)
        self._reading = reading
        self.at_once: Reader = _AtOnce(self)  # raises ReadFailed instead of waiting

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, clock: Clock) -> AsyncIterator[Store]:
        """Lock the home, check the file, bring it up to date, and write until the block ends."""
        integrity.refuse_old_sqlite()
        with home.locked(path.parent):
            checked = _prepare(path, clock.now())
            async with (
                aiosqlite.connect(
                    path, isolation_level="IMMEDIATE", timeout=BUSY_SECONDS, factory=BatchConnection
                ) as writing,
                aiosqlite.connect(path, isolation_level=None, timeout=BUSY_SECONDS) as reading,
            ):
                await writing.execute("PRAGMA synchronous = FULL")
                await writing.execute("PRAGMA foreign_keys = ON")
                await writing.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
                await reading.execute("PRAGMA query_only = ON")
                reading.row_factory = sqlite3.Row
                store = cls(path, clock, writing, reading)
                try:
                    await store._count_ids()
                except sqlite3.DatabaseError as error:
                    raise _told(path, error) from error
                if not store._ballast.make():
                    store._low.set()
                failure: Exception | None = None
                async with asyncio.TaskGroup() as group:
                    writer = group.create_task(store._writer.run(), name="store writer")
                    beside = [group.create_task(store._keep_ballast(), name="store ballast")]
                    if not checked:
                        beside.append(group.create_task(store._examine(), name="store check"))
                    try:
                        yield store
                    except Exception as error:  # noqa: BLE001 - raised below, unwrapped
                        failure = error
                    finally:
                        for task in beside:
                            task.cancel()
                        store._writer.close()
                        if store._writer.trouble:
                            writer.cancel()  # it would wait for the disk; nothing is acknowledged
                        await asyncio.wait([writer])
                if failure is not None:
                    raise failure

    @property
    def trouble(self) -> str:
        """Empty while all is well; else, in plain words, why nothing can be stored or read."""
        found = self._writer.trouble or self._unreadable or self._damage
        return found or (LOW if self._low.is_set() else "")

    async def commit(self, *units: Unit) -> list[bool]:
        """Store units with everything else that waits. True where one was new.

        Returns when they are durable; waits as long as the disk fails. Cancelling the wait takes
        nothing back. Raises Poisoned when some can never be stored; the others then are.
        """
        if not units:
            return []
        return await self._writer.queue(units)

    async def save(self, *rows: Row) -> None:
        """Store rows that have no identity, all or none."""
        if rows:
            await self._writer.queue((Unit(None, lambda: rows),))

    def save_later(self, *rows: Row) -> None:
        """Store rows with the next batch, without waiting; lost if the gateway ends before."""
        with contextlib.suppress(Closed):
            future = self._writer.queue((Unit(None, lambda: rows),))
            future.add_done_callback(_unasked)

    async def fetch(self, query: str, **parameters: object) -> list[sqlite3.Row]:
        """What a named query finds in what is committed; waits as long as the disk fails."""
        try:
            return await self.fetch_now(query, **parameters)
        except ReadFailed as fault:
            self._troubled(fault)
        self._stuck += 1
        try:
            tries = 0
            while True:
                await self.clock.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                try:
                    return await self.fetch_now(query, **parameters)
                except ReadFailed as fault:
                    self._troubled(fault)
                    tries += 1
        finally:
            self._stuck -= 1
            if not self._stuck:  # a page that can be read says nothing about the others
                log.warning("no read waits for the disk any more")
                self._unreadable = ""

    async def fetch_now(self, query: str, **parameters: object) -> list[sqlite3.Row]:
        """The same without waiting. Raises ReadFailed while the disk fails."""
        self._fetching += 1
        try:
            return await self._read(query, parameters)
        except sqlite3.DatabaseError as error:
            if words := curable(error):
                raise ReadFailed(words) from error
            raise
        finally:
            self._fetching -= 1

    def _troubled(self, fault: ReadFailed) -> None:
        if self._unreadable != str(fault):
            self._unreadable = str(fault)
            log.error("cannot read: %s (%s); trying again until it works", fault, fault.__cause__)

    async def _read(self, query: str, parameters: dict[str, object]) -> list[sqlite3.Row]:
        sql = queries()[query].sql
        return list(await self._reading.execute_fetchall(sql, parameters))

    @property
    def commits(self) -> Spread:
        """Seconds that commits took which worked."""
        return self._writer.commits

    @property
    def busy(self) -> bool:
        """Whether something is being stored or read at this moment."""
        return self._fetching > 0 or self._writer.busy

    async def backup(self, target: Path) -> None:
        """Copy the database as it is at this moment; writing goes on meanwhile."""
        await asyncio.to_thread(copies.backup, self.path, target)

    async def _count_ids(self) -> None:
        last = {}
        for kind in ("turn", "message", "delivery", "approval", "rule", "job", "budget"):
            last[kind] = (await self._read(f"last.{kind}", {}))[0]["last"]
        self.ids = Ids(last)

    def _make_room(self) -> bool:
        if not self._ballast.drop():
            return False
        log.error("the disk is full: gave up the reserve of 16 MiB to settle what runs")
        self._low.set()
        return True

    async def _keep_ballast(self) -> None:
        """Make the reserve again once there is room for it."""
        while True:
            await self._low.wait()
            await self.clock.sleep(ROOM_SECONDS)
            if self._ballast.make():
                log.warning("the disk has room again")
                self._low.clear()

    async def _examine(self) -> None:
        """The check of a large file, beside everything else."""
        reason = await integrity.examine(self.path)
        if reason:
            self._damage = str(Damaged(str(self.path), reason))
            log.error("%s", self._damage)


def _unasked(stored: asyncio.Future[list[bool]]) -> None:
    """Nobody waits for it; what set it aside has said so in the log."""
    if not stored.cancelled():
        stored.exception()


def _prepare(path: Path, now: int) -> bool:
    """Check or create the file and migrate it. False: the check has to go on beside."""
    checked = True
    try:
        _refuse_elsewhere(path)
        if path.exists():
            checked = integrity.check(path)
            path.chmod(0o600)
            _write_ready(path, now)
        else:
            _refuse_orphan(path)
            # Made under another name, so that it is there whole or not at all.
            new = path.with_name(path.name + ".new")
            for leftover in (new, *(Path(f"{new}-{end}") for end in ("wal", "shm", "journal"))):
                leftover.unlink(missing_ok=True)
            home.make_private(new)
            _write_ready(new, now)
            home.put_in_place(new, path)
    except (OSError, sqlite3.DatabaseError) as error:
        raise _told(path, error) from error
    return checked


def _told(path: Path, error: OSError | sqlite3.DatabaseError) -> StoreError:
    """The error in words that say what to do."""
    if isinstance(error, sqlite3.DatabaseError) and integrity.is_damage(error):
        return Damaged(str(path), str(error))
    return StoreError(f"cannot open the database {path}: {curable(error) or error}")


def _refuse_elsewhere(path: Path) -> None:
    """A link to a disk that is not there is no empty start, and a folder is no file."""
    if path.is_symlink() and not path.exists():
        raise StoreError(
            f"{path} is a link to {path.readlink()}, which is not there. "
            "Bring that disk or file back, or remove the link to start empty."
        )
    if path.exists() and not path.is_file():
        raise StoreError(f"{path} is no file. Move it away to start empty.")


def _refuse_orphan(path: Path) -> None:
    """A log without its database holds what was stored last; a new file would not fit it."""
    wal = Path(f"{path}-wal")
    if wal.exists() and wal.stat().st_size:
        raise StoreError(
            f"{path} is missing, but {wal.name} is there. Put the database back beside it, "
            f"restore a backup with `laneway restore --force FILE`, or move {wal.name} away too."
        )


def _write_ready(path: Path, now: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection, now)
