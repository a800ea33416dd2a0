"""Which engines can be chosen, from the settings and from what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines.base import Engine, Finished, Request
from core.engines.processes import NoLedger
from core.turns import Result
from gateway import config
from gateway.engine_parts import make_engines

FINDERS = {"claude": "find_program", "codex": "find_codex"}


def engines(tmp_path: Path, **given: str) -> dict[str, Engine]:
    settings = config.load({"LANEWAY_HOME": str(tmp_path), **given}, tmp_path)
    return make_engines(settings, SystemClock(), NoLedger())


@pytest.mark.parametrize(
    ("found", "given", "offered"),
    [
        ("", {}, False),
        ("/usr/bin/{name}", {}, True),
        ("", {"LANEWAY_{NAME}_COMMAND": "/opt/{name} --model opus"}, True),
        ("", {"LANEWAY_ENGINE": "{name}"}, True),
        ("", {"LANEWAY_FALLBACK_ENGINE": "{name}"}, True),
    ],
)
@pytest.mark.parametrize("name", FINDERS)
def test_a_program_is_offered_where_it_is_found_named_or_chosen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    found: str,
    given: dict[str, str],
    offered: bool,
) -> None:
    def named(text: str) -> str:
        return text.replace("{name}", name).replace("{NAME}", name.upper())

    monkeypatch.setattr(f"gateway.engine_parts.{FINDERS[name]}", lambda: named(found))
    settings = {named(key): named(value) for key, value in given.items()}
    assert (name in engines(tmp_path, **settings)) is offered


@pytest.mark.parametrize("name", FINDERS)
async def test_chosen_and_not_installed_is_told_to_who_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(f"gateway.engine_parts.{FINDERS[name]}", lambda: "")
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = engines(tmp_path, LANEWAY_ENGINE=name)[name]
    run = engine.run(Request("lane", 1, tmp_path, "hello"))
    (event,) = [event async for event in run.events()]
    assert isinstance(event, Finished)
    assert event.result is Result.FAILED
    assert f"The program {name} was not found on PATH. Install it" in event.error
    (found,) = await engine.check()
    assert found.detail == f"The program {name} was not found on PATH"
    assert found.fix.startswith("Install ")
    assert "laneway doctor" not in found.fix, "that is who says it"
