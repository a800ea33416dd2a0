"""Is the file whole? Looked at before anything opens it for writing, so that it stays as it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from core.store.errors import Damaged, StoreError
from core.store.migrate import refuse_newer, version

LARGE = 200_000_000  # bytes; checking more than this would hold up the start
OLDEST = (3, 37, 0)
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def refuse_old_sqlite(found: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    if found < OLDEST:
        raise StoreError(
            f"this Python uses SQLite {'.'.join(map(str, found))}; Laneway needs 3.37 or newer. "
            "Use a newer Python build, or update the system's SQLite library."
        )


def check(path: Path, large: int = LARGE) -> bool:
    """Raise Damaged unless the file is whole. False: so large that only its schema was read.

    Without a write-ahead log the file is opened as immutable, so that SQLite makes no file beside
    it. With one, which a kill leaves, its committed pages count and are read through it.
    """
    log = path.with_name(path.name + "-wal")
    shared = path.with_name(path.name + "-shm")
    left_by_kill = log.exists() and log.stat().st_size > 0
    shared_before = shared.exists()
    small = path.stat().st_size <= large
    mode = "mode=ro" if left_by_kill else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as connection:
            if not version(connection):
                raise damaged(path, "it is not a database of Laneway")
            refuse_newer(connection, str(path))
            if small:
                examine(connection)
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in DAMAGE:
            raise damaged(path, str(error)) from error
        raise
    finally:
        if left_by_kill and not shared_before:
            shared.unlink(missing_ok=True)
    return small


def examine(connection: sqlite3.Connection) -> None:
    """SQLite's own quick check; raises its DatabaseError with the first finding."""
    finding = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if finding != "ok":
        raise sqlite3.DatabaseError(finding.splitlines()[-1])


def damaged(path: Path, reason: str) -> Damaged:
    return Damaged(
        f"the database {path} is damaged ({reason}). It was left as it is. "
        "Go back to a backup with `laneway restore --force FILE`, or move the file and those "
        "beside it (-wal, -shm) away to start empty."
    )
