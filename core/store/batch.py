"""A connection that executes many statements in one call.

Each call of aiosqlite is a way to its thread and back, which costs more than most statements do.
sqlite3 lets a connection be of one's own class, so a whole transaction can make that way once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, cast

from core.store.queries import Statement

BATCH = "-- the statements are the parameters"


class BatchConnection(sqlite3.Connection):
    """``executemany(BATCH, statements)`` executes them all, as one transaction, and commits."""

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        if sql is not BATCH:
            return super().executemany(sql, parameters)
        if not self.in_transaction:
            self.execute("BEGIN IMMEDIATE")
        cursor = self.cursor()
        for text, values, many in cast("Iterable[Statement]", parameters):
            if many:
                cursor.executemany(text, cast("Iterable[Any]", values))
            else:
                cursor.execute(text, values)
        self.commit()
        return cursor
