"""Is the file whole? Looked at before anything opens it for writing, so that it stays as it is."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import aiosqlite

from core.store.errors import Damaged, StoreError
from core.store.migrate import refuse_newer, version

LARGE = 200_000_000  # bytes; checking more than this would hold up the start
EXAMINE = "PRAGMA quick_check(1)"
SOUND = "ok"
OLDEST = (3, 37, 0)
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def refuse_old_sqlite(found: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    if found < OLDEST:
        raise StoreError(
            f"this Python uses SQLite {'.'.join(map(str, found))}; Laneway needs 3.37 or newer. "
            "Use a newer Python build, or update the system's SQLite library."
        )


def check(path: Path, large: int = LARGE) -> bool:
    """Raise Damaged unless the file is whole. False: so large that only its schema was read."""
    small = path.stat().st_size <= large
    with untouched(path) as connection:
        if not version(connection):
            raise Damaged(str(path), "it is not a database of Laneway")
        refuse_newer(connection, str(path))
        _refuse_cut(connection, path)
        if small:
            finding = connection.execute(EXAMINE).fetchone()[0]
            if finding != SOUND:
                raise Damaged(str(path), finding.splitlines()[-1])
    return small


def _refuse_cut(connection: sqlite3.Connection, path: Path) -> None:
    """SQLite reads a page of which the end is missing as if there were zeros."""
    size = int(connection.execute("PRAGMA page_size").fetchone()[0])
    if path.stat().st_size % size and not _left_by_kill(path):
        raise Damaged(str(path), "the end of its last page is missing")


def _left_by_kill(path: Path) -> bool:
    """Whether a log is beside it that has what a page still lacks."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


@contextmanager
def untouched(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that leaves the file and what is beside it as they are.

    Without a write-ahead log the file is opened as immutable, so that SQLite makes no file beside
    it. With one, which a kill leaves, its committed pages count and are read through it. Only for
    files that nobody writes meanwhile.
    """
    shared = Path(f"{path}-shm")
    left_by_kill = _left_by_kill(path)
    shared_before = shared.exists()
    mode = "mode=ro" if left_by_kill else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise Damaged(str(path), str(error)) from error
        raise
    finally:
        if left_by_kill and not shared_before:
            shared.unlink(missing_ok=True)


def is_damage(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE


async def examine(path: Path) -> str:
    """The check of a large file while it is in use: what is wrong with it, or nothing."""
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA query_only = ON")
        try:
            found = await connection.execute_fetchall(EXAMINE)
        except sqlite3.DatabaseError as error:
            return str(error) if is_damage(error) else ""
        except asyncio.CancelledError:
            await connection.interrupt()  # else closing would wait for the check's end
            raise
        finding = str(next(iter(found))[0])
        return "" if finding == SOUND else finding.splitlines()[-1]
