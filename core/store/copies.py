"""Backups: a consistent copy of the database while it is in use, and the way back.

What a restored backup had waiting, running or unsent may have happened since it was made. So all
of it is held: open turns and messages that were being gathered carry ``held = 1`` and no reader of
open work returns them; pending deliveries are in the state ``held``, and what was in flight counts
as uncertain. ``rows.release()`` lets everything go. What an engine had asked is expired, and what
waits is told anew: the cards and notices that stand in the chats may be gone, or say more. Where
messages are read again from a platform, those sent before the restore are not run at all.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from core.store import home, integrity
from core.store.errors import Damaged, StoreError, curable
from core.store.migrate import migrate
from core.store.queries import queries

HOLD = (
    "hold.turns",
    "hold.messages",
    "hold.deliveries",
    "hold.approvals",
    "hold.notices",
    "hold.processes",
    "hold.reached",
    "hold.jobs",
)


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore held back, and where the database is that it replaced."""

    turns: int
    messages: int
    deliveries: int
    replaced: Path | None


def backup(database: Path, target: Path) -> None:
    """Copy the database, also while it is in use. An older backup of that name is replaced."""
    if not database.exists():
        raise StoreError(f"there is no database at {database} yet; nothing to back up")
    if target.is_dir():
        raise StoreError(f"{target} is a folder; name a file in it for the backup")
    if target.exists() and target.samefile(database):
        raise StoreError("the backup cannot be the database itself; name another file")
    if target.exists() and not _ours(target):
        raise StoreError(f"{target} is there and is no backup of Laneway; name another file")
    part = Path(f"{target}.part")
    try:
        part.unlink(missing_ok=True)
        home.make_private(part)
        with closing(
            sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
        ) as source:
            source.execute("VACUUM INTO ?", (str(part),))
        _settle(part)
        home.put_in_place(part, target)
    except sqlite3.DatabaseError as error:
        if integrity.is_damage(error):
            raise Damaged(str(database), str(error)) from error
        raise StoreError(f"no backup was made: {curable(error) or error}") from error
    except OSError as error:
        raise StoreError(f"no backup was made at {target}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _ours(path: Path) -> bool:
    """Whether it is a database of Laneway, or empty: nothing else may be written over."""
    if not path.is_file():
        return False
    if not path.stat().st_size:
        return True
    try:
        integrity.check(path, large=0)
    except (StoreError, sqlite3.DatabaseError, OSError):
        return False
    return True


def restore(source: Path, database: Path, now: int, *, force: bool = False) -> Restored:
    """Make the backup the database of this home; refused while a gateway runs in it.

    The database that was there is kept beside it, as it was.
    """
    with home.locked(database.parent):
        there = [path for path in _family(database) if path.exists()]
        if there and not force:
            raise StoreError(
                f"{there[0]} is there already. Use `laneway restore --force FILE` to replace it; "
                "the old one is kept beside it."
            )
        new = Path(f"{database}.new")
        for leftover in _family(new):
            leftover.unlink(missing_ok=True)
        try:
            _copy(source, new)
            with closing(sqlite3.connect(new, isolation_level=None)) as connection:
                counts = _hold(connection, now)
            _settle(new)
            replaced = _put_aside(database)
            home.put_in_place(new, database)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"nothing was restored: {curable(error) or error}") from error
        except OSError as error:
            raise StoreError(f"nothing was restored: {error.strerror}") from error
        finally:
            for leftover in _family(new):
                leftover.unlink(missing_ok=True)
        turns, messages, deliveries = counts
        return Restored(turns, messages, deliveries, replaced)


def _copy(source: Path, new: Path) -> None:
    """A whole copy of a whole backup, or none."""
    if not source.is_file():
        raise StoreError(f"there is no file {source}; nothing was changed")
    try:
        integrity.check(source, large=source.stat().st_size)
        home.make_private(new)
        with integrity.untouched(source) as connection:
            connection.execute("VACUUM INTO ?", (str(new),))
    except Damaged as damaged:
        raise StoreError(
            f"{source} cannot be restored: {damaged.reason}. Nothing was changed; "
            "choose another backup."
        ) from damaged


def _hold(connection: sqlite3.Connection, now: int) -> list[int]:
    """Bring the copy up to date and hold what is open in it; how many of each."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    migrate(connection, now)
    connection.execute("BEGIN IMMEDIATE")
    at = {"at": now}
    counts = [connection.execute(queries()[name].sql, at).rowcount for name in HOLD]
    connection.execute("COMMIT")
    return counts[:3]


def _put_aside(database: Path) -> Path | None:
    """Move the database and its log away together. The database goes first: a log alone is refused
    at the next start, where a database without its log would be believed."""
    aside = Path(f"{database}.replaced")
    if not any(path.exists() for path in _family(database)):
        return None
    for old in _family(aside):
        old.unlink(missing_ok=True)
    for path, kept in zip(_family(database), _family(aside), strict=True):
        if path.exists():
            path.rename(kept)
    return aside


def _family(database: Path) -> tuple[Path, ...]:
    """The file and those that SQLite keeps beside it."""
    return (database, *(Path(f"{database}-{end}") for end in ("wal", "shm", "journal")))


def _settle(path: Path) -> None:
    """Make what was written durable."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
