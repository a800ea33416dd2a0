"""What can be seen in a database without opening it for work; for checks, also while it is in use.

It changes nothing, not even beside the file, and takes no lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.store import integrity
from core.store.errors import StoreError, curable
from core.store.integrity import untouched
from core.store.queries import queries
from core.store.records import SettingRow


@dataclass(frozen=True, slots=True)
class Open:
    """What of a channel is not over."""

    turns: int = 0
    deliveries: int = 0


def whole(path: Path) -> bool:
    """As ``integrity.check``; raises StoreError for all that keeps it from being read."""
    try:
        return integrity.check(path)
    except sqlite3.Error as fault:
        raise StoreError(f"cannot read the database {path}: {curable(fault) or fault}") from fault


def roles(path: Path) -> Mapping[str, str]:
    """Who was let in, and as what. Raises StoreError when it cannot be read."""
    try:
        with untouched(path) as connection:
            found = connection.execute(queries()["report.roles"].sql).fetchall()
    except sqlite3.Error as fault:
        raise StoreError(f"it cannot be read just now: {fault}") from fault
    return dict(found)


def lane_engines(path: Path) -> frozenset[str]:
    """The engines that threads have of their own. Raises StoreError when it cannot be read."""
    try:
        with untouched(path) as connection:
            found = connection.execute(queries()["report.lane_engines"].sql).fetchall()
    except sqlite3.Error as fault:
        raise StoreError(f"it cannot be read just now: {fault}") from fault
    return frozenset(name for (name,) in found)


def settings(path: Path) -> Mapping[str, SettingRow]:
    """What was saved on the settings page, by name. Raises StoreError when it cannot be read."""
    try:
        with untouched(path) as connection:
            found = connection.execute(queries()["setting.list"].sql)
            columns = [column[0] for column in found.description]
            saved = [SettingRow(**dict(zip(columns, row, strict=True))) for row in found]
    except sqlite3.Error as fault:
        raise StoreError(f"it cannot be read just now: {fault}") from fault
    return {row.name: row for row in saved}


def open_by_channel(path: Path) -> Mapping[str, Open]:
    """How much waits to run or to be sent, by channel. Raises StoreError when it cannot be read."""
    try:
        with untouched(path) as connection:
            turns = dict(connection.execute(queries()["report.open_turns"].sql).fetchall())
            sends = dict(connection.execute(queries()["report.open_deliveries"].sql).fetchall())
    except sqlite3.Error as fault:
        raise StoreError(f"it cannot be read just now: {fault}") from fault
    return {name: Open(turns.get(name, 0), sends.get(name, 0)) for name in {*turns, *sends}}
