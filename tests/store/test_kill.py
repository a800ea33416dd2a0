"""What was acknowledged is there after kill -9, whole, and the file is sound."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from core.store.store import Store
from tests.fakes.clock import FakeClock

KILLS = 5
WHOLE = """SELECT identity FROM seen
WHERE identity IN (SELECT text FROM messages JOIN turns ON turns.id = messages.turn)"""


def killed_under_load(database: Path, first: int, after: float) -> set[str]:
    """The names of what the process saw acknowledged before it was killed."""
    command = [sys.executable, "-m", "tests.store.load", str(database), str(first)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        timer = threading.Timer(after, child.kill)
        timer.start()
        lines = child.stdout.read().splitlines(keepends=True)
        timer.join()
    return {line.strip() for line in lines if line.endswith("\n")}


async def test_no_acknowledged_row_is_lost_or_half_there_after_kills_under_load(
    tmp_path: Path,
) -> None:
    database = tmp_path / "laneway.db"
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for first in range(KILLS):
        acknowledged |= killed_under_load(database, first, chance.uniform(0.05, 0.6))
        async with Store.open(database, FakeClock()) as store:
            assert store.trouble == ""
        with closing(sqlite3.connect(database)) as connection:
            whole = {row[0] for row in connection.execute(WHOLE)}
            assert acknowledged <= whole
            for table in ("seen", "turns", "messages"):
                count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                assert count == (len(whole),)
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert len(acknowledged) > KILLS
