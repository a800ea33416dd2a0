"""Which engines can be chosen, from the settings and from what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines.base import Engine, Finished, Request
from core.engines.processes import NoLedger
from core.turns import Result
from gateway import config
from gateway.later import missing_here
from gateway.parts import make_engines


def engines(tmp_path: Path, **given: str) -> dict[str, Engine]:
    settings = config.load({"LANEWAY_HOME": str(tmp_path), **given}, tmp_path)
    assert not list(missing_here(settings))
    return make_engines(settings, SystemClock(), NoLedger())


@pytest.mark.parametrize(
    ("found", "given", "offered"),
    [
        ("", {}, False),
        ("/usr/bin/claude", {}, True),
        ("", {"LANEWAY_CLAUDE_COMMAND": "/opt/claude --model opus"}, True),
        ("", {"LANEWAY_ENGINE": "claude"}, True),
    ],
)
def test_claude_code_is_offered_where_it_is_found_named_or_chosen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: str,
    given: dict[str, str],
    offered: bool,
) -> None:
    monkeypatch.setattr("gateway.parts.find_program", lambda: found)
    assert ("claude" in engines(tmp_path, **given)) is offered


async def test_chosen_and_not_installed_is_told_to_who_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.parts.find_program", lambda: "")
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = engines(tmp_path, LANEWAY_ENGINE="claude")["claude"]
    run = engine.run(Request("lane", 1, tmp_path, "hello"))
    (event,) = [event async for event in run.events()]
    assert isinstance(event, Finished)
    assert event.result is Result.FAILED
    assert "The program claude was not found on PATH. Install it" in event.error
