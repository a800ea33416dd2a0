"""Many lanes at once, with the command line beside them."""

import asyncio
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from gateway.cli.client import talk
from tests.end_to_end.house import ask, process
from tests.end_to_end.shell import Shell

LANES, TURNS = 20, 2


async def converse(home: Path, lane: str) -> None:
    """Say one thing after another in a lane, each answered before the next."""
    for number in range(TURNS):
        shown = ""
        async with talk(home) as gateway:
            assert gateway is not None
            gateway.send({"do": "say", "lane": lane, "text": f"/say {lane} {number}"})
            async for answer in gateway.answers():
                shown = answer.get("shown", {}).get("text", shown)
                if "end" in answer:
                    assert answer["end"] == "done"
        assert shown == f"{lane} {number}"


async def test_many_lanes_and_the_command_line_never_get_in_each_others_way(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    caps = {"LANEWAY_MAX_TURNS": str(LANES), "LANEWAY_MAX_TURNS_PER_PERSON": str(LANES)}
    async with process(home, None, **caps) as gateway:
        shell = Shell(home)
        async with asyncio.TaskGroup() as group:
            talks = [group.create_task(converse(home, f"lane-{n}")) for n in range(LANES)]
            copies = 0
            while not all(task.done() for task in talks):
                copies += 1
                made = await shell("backup", str(tmp_path / f"copy-{copies}.db"))
                assert (made.status, made.err) == (0, "")
                assert (await shell("turns", "--json")).status == 0
        rows = await ask(home, "turns")
        assert Counter(row["status"] for row in rows) == {"done": LANES * TURNS}
        assert Counter(row["lane"] for row in rows) == {f"lane-{n}": TURNS for n in range(LANES)}
        assert await gateway.end(signal.SIGTERM) == 0
    log = "".join(gateway.lines)
    assert "locked" not in log
    assert '"level":"error"' not in log
    for path in (home / "laneway.db", *tmp_path.glob("copy-*.db")):
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
