"""Numbered migrations: each .sql file once, in its own transaction, recorded with its number.

Uses a plain connection that nobody else has yet.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from core.store.errors import Newer

TABLE = """CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, at INTEGER NOT NULL) STRICT"""


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Number, name and text of every migration, in order."""
    found = []
    for file in files("core.store").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, file.read_text("utf-8")))
    found.sort()
    return tuple(found)


def version(connection: sqlite3.Connection) -> int:
    """The number of the newest migration in the file; 0 for an empty one."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
    if known is None:
        return 0
    row = connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
    return int(row[0])


def refuse_newer(connection: sqlite3.Connection, file: str) -> None:
    newest = migrations()[-1][0]
    found = version(connection)
    if found > newest:
        raise Newer(
            f"{file} was written by a newer Laneway (its format is {found}, this version knows "
            f"{newest}). Install the newer version, or restore an older backup."
        )


def migrate(connection: sqlite3.Connection, now: int) -> None:
    """Bring the file to the newest format. The connection commits by itself (no isolation)."""
    connection.execute(TABLE)
    done = version(connection)
    for number, name, text in migrations():
        if number <= done:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements(text):
                connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, name, now))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def statements(text: str) -> Iterator[str]:
    """The statements of a script one by one; `executescript` would commit in between."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
