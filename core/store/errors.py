"""What can go wrong with the store, in words that say what to do next."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

# Results of SQLite that a retry can cure, by the low byte of the extended code. A damaged file is
# among them on purpose: it is no fault of what was to be stored, so nothing may be set aside.
CURABLE = {
    sqlite3.SQLITE_BUSY: "another process holds the database locked",
    sqlite3.SQLITE_LOCKED: "the database is locked",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
    sqlite3.SQLITE_READONLY: "the database is read-only; check the permissions of its folder",
    sqlite3.SQLITE_IOERR: "the disk reports errors",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged; stop and restore a backup",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_CANTOPEN: "the database cannot be opened; check its folder and permissions",
    sqlite3.SQLITE_PROTOCOL: "the database is locked",
    sqlite3.SQLITE_PERM: "the database may not be opened; check the permissions of its folder",
    sqlite3.SQLITE_NOTADB: "the database file is damaged; stop and restore a backup",
}


class StoreError(Exception):
    """The store cannot be used; the message says why and what to do."""


class Locked(StoreError):
    """Another process uses this home."""


class Damaged(StoreError):
    """The database file is damaged. It was left exactly as it is."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(
            f"the database {file} is damaged ({reason}). It was left as it is. Go back to a "
            "backup with `laneway restore --force FILE`, or move the file and those beside it "
            "(-wal, -shm) away to start empty."
        )
        self.reason = reason


class Newer(StoreError):
    """The database was written by a newer version."""


class Closed(StoreError):
    """The store was closed before this could be stored."""


class ReadFailed(StoreError):
    """Nothing could be read just now; the message says why. Trying again may help."""


class Poisoned(StoreError):
    """Units that fail by themselves, whatever else is stored with them; they were set aside.

    ``accepted`` has one entry a unit of the call: True stored, False duplicate or set aside.
    ``errors`` says of each that was set aside, by its place in the call, why.
    """

    def __init__(self, errors: Mapping[int, str], accepted: list[bool]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = dict(errors)
        self.accepted = accepted


def curable(error: BaseException) -> str:
    """The words for a fault of disk or lock, which a retry can cure; empty for any other."""
    if not isinstance(error, sqlite3.DatabaseError):
        return ""
    return CURABLE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")


def full(error: BaseException) -> bool:
    """Whether space may be what is missing; a quota or a limit shows as a failed write."""
    return isinstance(error, sqlite3.DatabaseError) and getattr(error, "sqlite_errorcode", 0) in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
    )
