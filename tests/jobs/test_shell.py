"""``laneway jobs`` and ``laneway job`` while the gateway is down."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.clock import SystemClock
from core.store import web
from core.store.store import Store
from gateway.__main__ import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def make() -> None:
        async with Store.open(tmp_path / "laneway.db", SystemClock()):
            pass

    asyncio.run(make())
    monkeypatch.setenv("LANEWAY_HOME", str(tmp_path))
    monkeypatch.setenv("LANEWAY_TIMEZONE", "Asia/Kolkata")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def add(when: str, lane: str = "main") -> int:
    return main(["job", "add", "--lane", lane, when, "look", "at", "it"])


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["jobs", "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_a_job_is_made_listed_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert add("every day at 09:00 catch up 1h if busy skip") == 0
    said = capsys.readouterr().out
    assert said.startswith("Job 1 is set in main: every day at 09:00. Next:\n")
    assert said.count("T09:00:00+05:30\n") == 3
    (job,) = listed(capsys)
    assert job["next"].endswith("03:30:00.000+00:00")
    assert {name: job[name] for name in ("id", "kind", "lane", "when", "prompt", "state")} == {
        "id": 1, "kind": "schedule", "lane": "main", "when": "every day at 09:00",
        "prompt": "look at it", "state": "active",
    }  # fmt: skip
    assert (job["last"], job["last_result"], job["person"]) == (None, "", "local:owner")
    assert (job["catch_up_s"], job["if_busy"]) == (3600, "skip")
    assert main(["job", "1", "pause"]) == 0
    (job,) = listed(capsys)
    assert (job["state"], job["next"]) == ("paused", None)
    assert main(["job", "1", "run"]) == 0
    assert "The gateway is down: it runs at the next start." in capsys.readouterr().out
    assert main(["job", "1", "cancel"]) == 0
    (job,) = listed(capsys)
    assert job["state"] == "cancelled"
    assert main(["jobs"]) == 0
    assert "cancelled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("when", "word"),
    [
        ("* * * *", "five fields"),
        ("60 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("5-1 * * * *", "minute"),
        ("", "When?"),
        ("every day at 09:00 Mars/Base", "Mars/Base"),
        ("in -5 minutes", "has passed"),
        ("2020-01-01 10:00", "has passed"),
        ("every 1s", "at least 10 s"),
    ],
)
def test_a_bad_time_is_refused_and_the_listing_stays_as_it_was(
    capsys: pytest.CaptureFixture[str], when: str, word: str
) -> None:
    assert add(when) != 0
    assert word in capsys.readouterr().err
    assert listed(capsys) == []


def test_a_lane_of_a_platform_must_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert add("in 20m", "telegram:-1001:7") != 0
    assert "there is no lane 'telegram:-1001:7'" in capsys.readouterr().err
    assert add("in 20m", "two words") != 0
    assert "cannot name a lane" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["9", "run"], ["1", "dance"], ["x", "run"], [], ["1"]])
def test_what_cannot_be_done_has_a_status(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    try:
        status = main(["job", *words])
    except SystemExit as end:
        status = int(end.code or 0)
    assert status != 0
    assert capsys.readouterr().err


def test_a_job_of_somebody_else_that_the_owner_changes_is_an_act(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add("every day at 09:00")

    with closing(sqlite3.connect(home / "laneway.db")) as base:
        base.execute("UPDATE jobs SET person = 'telegram:700000002'")
        base.commit()
    assert main(["job", "1", "pause"]) == 0

    async def acts() -> list[web.Act]:
        async with Store.open(home / "laneway.db", SystemClock()) as store:
            return await web.acts(store, 2**62, 10)

    (act,) = asyncio.run(acts())
    assert (act.person, act.act, act.about) == ("local:owner", "job.pause", "job 1")
    assert act.detail == "of telegram:700000002 in main"
