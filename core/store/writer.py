"""Group commit: everything that waits is stored as one transaction, in the order it came.

The one place that writes. It knows units and rows, and nothing of what they mean. A fault of the
disk is waited out with the batch kept; a fault of one unit costs that unit alone.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import aiosqlite

from core.clock import Clock
from core.messages import clean
from core.store.batch import BATCH
from core.store.errors import Closed, Poisoned, curable, full
from core.store.queries import Query, Values, queries
from core.store.rows import Row
from core.tallies import Spread

log = logging.getLogger(__name__)

PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between tries while the disk fails
AT_ONCE = 4096  # units of one transaction, unless a single call brings more
IDENTITIES_AT_ONCE = 1000
COMMIT_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


def nothing() -> None:
    """For a unit that changes no memory."""


@dataclass(slots=True)
class Unit:
    """One indivisible step.

    ``identity`` is claimed first; when it was there already the unit is skipped. ``decide`` is
    called inside the transaction, and again after an ``undo``. ``undo`` takes back what ``decide``
    changed in memory, also when ``decide`` raised half-way. ``done`` is called right after the
    commit, in order, before the task that waits goes on. None of them awaits.
    """

    identity: str | None
    decide: Callable[[], Sequence[Row]]
    undo: Callable[[], None] = nothing
    done: Callable[[], None] = nothing


@dataclass(slots=True)
class Call:
    """The units of one ``commit`` and what came of them."""

    units: Sequence[Unit]
    future: asyncio.Future[list[bool]]
    accepted: list[bool] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)  # by the unit's place

    def settle(self) -> None:
        if self.future.done():
            return  # who waited was cancelled; what was stored stays stored
        if self.errors:
            self.future.set_exception(Poisoned(self.errors, self.accepted))
        else:
            self.future.set_result(self.accepted)


class Writer:
    """Owns the queue and the writing connection. ``run`` is its only task."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        clock: Clock,
        make_room: Callable[[], bool],
    ) -> None:
        self.trouble = ""
        self.commits = Spread(COMMIT_SECONDS)
        self._connection = connection
        self._clock = clock
        self._make_room = make_room  # deletes the ballast; False: there was none
        self._queries = queries()
        self._waiting: list[Call] = []
        self._batch: list[Call] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._pausing = False

    def queue(self, units: Sequence[Unit]) -> asyncio.Future[list[bool]]:
        """Put units into the next batch; from here on cancelling does not take them back."""
        if self._closing:
            raise Closed("the gateway is shutting down; nothing more is stored")
        call = Call(units, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        self._wake.set()
        return call.future

    @property
    def busy(self) -> bool:
        """Whether something is being stored; a pause while the disk fails is not."""
        return not self._pausing and bool(self._batch or self._waiting)

    def close(self) -> None:
        """What is queued is still stored, then ``run`` returns."""
        self._closing = True
        self._wake.set()

    async def run(self) -> None:
        try:
            while True:
                await self._wake.wait()
                while self._waiting:
                    self._batch = self._next_batch()
                    await self._write(self._batch)
                    self._batch = []
                self._wake.clear()
                if self._closing:
                    return
        except Closed:
            return
        finally:
            for call in (*self._batch, *self._waiting):
                if not call.future.done():
                    call.future.set_exception(Closed(f"not stored: {self.trouble or 'stopped'}"))

    def _next_batch(self) -> list[Call]:
        count = 0
        for place, call in enumerate(self._waiting, start=1):
            count += len(call.units)
            if count >= AT_ONCE:
                batch = self._waiting[:place]
                del self._waiting[:place]
                return batch
        batch, self._waiting = self._waiting, []
        return batch

    async def _write(self, batch: list[Call]) -> None:
        units = [unit for call in batch for unit in call.units]
        try:
            accepted = await self._persist(units)
        except Closed:
            raise
        except Exception as error:  # noqa: BLE001 - one unit's, whatever it is; found below
            log.warning("a batch of %d failed (%s); storing its parts singly", len(units), error)
            await self._write_singly(batch)
        else:
            at = 0
            for call in batch:
                call.accepted = accepted[at : at + len(call.units)]
                at += len(call.units)
                call.settle()

    async def _write_singly(self, batch: list[Call]) -> None:
        for call in batch:
            for unit in call.units:
                try:
                    call.accepted += await self._persist([unit])
                except Closed:
                    raise
                except Exception as error:  # noqa: BLE001 - whatever it is, it is this unit's
                    call.errors[len(call.accepted)] = await self._set_aside(unit, error)
                    call.accepted.append(False)
            call.settle()

    async def _set_aside(self, unit: Unit, error: Exception) -> str:
        """Keep the identity of what cannot be stored, so that it is never tried again."""
        text = clean(f"{type(error).__name__}: {error}")[:2000]
        identity = clean(unit.identity) if isinstance(unit.identity, str) else None
        log.error("set aside %s: %s", identity or "a change of the gateway's own", text)
        if identity is not None:
            row = {"identity": identity, "at": self._clock.now(), "error": text}
            await self._persist([Unit(None, lambda: [("seen.set_aside", row)])])
        return text

    async def _persist(self, units: Sequence[Unit]) -> list[bool]:
        """Store units as one transaction, waiting as long as the disk fails."""
        tries = 0
        while True:
            began = self._clock.monotonic()
            try:
                accepted = await self._transaction(units)
            except sqlite3.DatabaseError as error:
                words = curable(error)
                if not words:
                    raise
                if full(error) and self._make_room():
                    continue
                self._troubled(words, error)
                if self._closing:
                    raise Closed(f"not stored: {words}") from error
                self._pausing = True
                await self._clock.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                self._pausing = False
                tries += 1
            else:
                self.commits.see(self._clock.monotonic() - began)
                self._recovered()
                return accepted

    async def _transaction(self, units: Sequence[Unit]) -> list[bool]:
        connection = self._connection
        decided: list[Unit] = []
        if connection.in_transaction:  # the disk kept even the roll-back of the last try from it
            await connection.rollback()
        try:
            accepted = await self._claim(units)
            rows: list[Row] = []
            for unit, new in zip(units, accepted, strict=True):
                if new:
                    decided.append(unit)
                    rows += unit.decide()
            statements = [
                statement
                for query, values in self._ordered(rows)
                for statement in query.statements(values)
            ]
            await connection.executemany(BATCH, statements)
        except BaseException:
            try:
                for unit in reversed(decided):
                    unit.undo()
            finally:
                await connection.rollback()
            raise
        for unit in decided:
            try:
                unit.done()
            except Exception:  # it is stored; one broken callback ends nothing
                log.exception("a callback failed after its commit")
        return accepted

    async def _claim(self, units: Sequence[Unit]) -> list[bool]:
        """Insert all identities, if there are any. True where the unit is new or has none."""
        identities = [unit.identity for unit in units if unit.identity is not None]
        if not identities:
            return [True] * len(units)
        now = self._clock.now()
        new: set[str] = set()
        for start in range(0, len(identities), IDENTITIES_AT_ONCE):
            some = identities[start : start + IDENTITIES_AT_ONCE]
            returned = await self._connection.execute_fetchall(
                "INSERT INTO seen (identity, at) VALUES "
                + ",".join(["(?,?)"] * len(some))
                + " ON CONFLICT DO NOTHING RETURNING identity",
                [value for identity in some for value in (identity, now)],
            )
            new.update(row[0] for row in returned)
        accepted = []
        for unit in units:
            if unit.identity is None:
                accepted.append(True)
            elif unit.identity in new:
                new.remove(unit.identity)  # of two in one batch the first wins
                accepted.append(True)
            else:
                accepted.append(False)
        return accepted

    def _ordered(self, rows: Iterable[Row]) -> Iterator[tuple[Query, list[Values]]]:
        """Rows grouped by query, by phase; a strict query comes after all rows before it."""
        waves: list[dict[str, list[Values]]] = [{}]
        for name, values in rows:
            wave = waves[-1]
            if name in wave:
                wave[name].append(values)
            elif not self._queries[name].strict:
                wave[name] = [values]
            elif not wave and len(waves) > 1 and name in waves[-2]:
                waves[-2][name].append(values)
            else:
                waves += [{name: [values]}, {}]
        for wave in waves:
            for name in sorted(wave, key=lambda name: self._queries[name].phase):
                yield self._queries[name], wave[name]

    def _troubled(self, words: str, error: sqlite3.DatabaseError) -> None:
        if self.trouble != words:
            self.trouble = words
            log.error("cannot store: %s (%s); trying again until it works", words, error)

    def _recovered(self) -> None:
        if self.trouble:
            log.warning("storing works again")
            self.trouble = ""
