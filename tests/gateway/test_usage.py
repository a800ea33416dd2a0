"""``laneway usage``: by lane and person, beside a running gateway and without one."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.messages import Address
from core.people import Lists, People
from core.store import rows
from core.store.store import Store
from core.turns import Kind, Origin, Status, Turn
from gateway import reports
from gateway.cli import usage
from gateway.paths import DATABASE
from gateway.trouble import Trouble

HOUR = 3_600_000


async def fill(store: Store) -> None:
    """Two lanes, two people, one turn of unknown cost and one of three hours ago."""
    now = store.clock.now()
    for lane in ("a", "b"):
        await store.save(rows.new_lane(lane, Address("local", lane), True, "", now))
    for lane, person, tokens, cost, ago in (
        ("a", "local:ana", 100, 0.1, 0),
        ("a", "local:ana", 100, 0.2, 3 * HOUR),
        ("a", "local:ben", 10, None, 0),
        ("b", "local:ana", 1, 0.0, 0),
    ):
        id, at = store.ids.turn(), now - ago
        turn = Turn(id, lane, person, Origin.PERSON, Kind.MAIN, at, status=Status.DONE)
        await store.save(
            rows.turn(turn),
            rows.turn_started(id, at, "openai", "m"),
            rows.turn_prompted(id, at, "s", "m"),
            rows.turn_result(id, at, "done", ""),
            rows.usage(id, tokens, tokens, cost),
        )


class Nothing:
    """A runner of which nothing is asked."""


async def nothing() -> None:
    """Nothing was held back."""


async def test_each_lane_and_person_has_a_line(tmp_path: Path) -> None:
    async with Store.open(tmp_path / DATABASE, SystemClock()) as store:
        await fill(store)
        known = People(Lists())
        asks = reports.Reports(store, "demo", Nothing(), known, nothing).asks()  # type: ignore[arg-type]
        found = await asks["usage"]({"do": "usage"})
        assert found == [
            {
                "lane": lane, "person": person, "turns": turns, "tokens_in": tokens,
                "tokens_out": tokens, "cost_usd": cost, "unpriced_turns": unpriced,
            }
            for lane, person, turns, tokens, cost, unpriced in (
                ("a", "local:ana", 2, 200, 0.3, 0),
                ("a", "local:ben", 1, 10, None, 1),
                ("b", "local:ana", 1, 1, 0.0, 0),
            )
        ]  # fmt: skip
        recent = await asks["usage"]({"within": "2h"})
        assert [row["turns"] for row in recent] == [1, 1, 1]
        with pytest.raises(LookupError, match="no time span"):
            await asks["usage"]({"within": "soon"})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with something in it, and no gateway that runs."""

    async def made() -> None:
        async with Store.open(tmp_path / DATABASE, SystemClock()) as store:
            await fill(store)

    asyncio.run(made())
    monkeypatch.setenv("LANEWAY_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*typed: str) -> int:
    parser = argparse.ArgumentParser()
    usage.arguments(parser)
    return usage.main(parser.parse_args(typed))


@pytest.mark.usefixtures("home")
def test_people_read_a_table_with_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("all") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["LANE", "PERSON", "TURNS", "TOKENS", "IN", "TOKENS", "OUT", "COST"]
    assert lines[1].split() == ["a", "local:ana", "2", "200", "200", "$0.30"]
    assert lines[2].endswith("cost not known")
    assert lines[-1].startswith("all")
    assert lines[-1].endswith("$0.30 and 1 turn whose cost is not known")


@pytest.mark.usefixtures("home")
def test_scripts_read_an_array(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("2h", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["cost_usd"] for row in rows] == [0.1, None, 0.0]


@pytest.mark.usefixtures("home")
def test_a_span_that_is_none_is_a_wrong_command_line() -> None:
    with pytest.raises(Trouble, match="write it like 7d") as trouble:
        run("7x")
    assert trouble.value.status == 2


def test_nothing_used_is_an_empty_table() -> None:
    assert usage.shown([]) == "(none)"
