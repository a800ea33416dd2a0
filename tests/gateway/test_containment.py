"""What engines get of the gateway: what is named for them, and none of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines.agents import AgentEngine
from core.engines.processes import NoLedger
from gateway import config
from gateway.engine_parts import make_engines

OWN = ("LANEWAY_TELEGRAM_TOKEN", "LANEWAY_OPENAI_API_KEY", "LANEWAY_TRANSCRIBE_API_KEY")


async def test_every_agent_gets_what_is_named_for_it_and_nothing_of_the_gateways_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*OWN, "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "secret-4711")
    monkeypatch.setenv("AGENT_KEY", "for the agent")
    given = {
        "LANEWAY_HOME": str(tmp_path),
        "LANEWAY_ENGINE_ENV": "AGENT_KEY",
        "LANEWAY_ACP_COMMAND": "some-agent --acp",
        "LANEWAY_CLAUDE_COMMAND": "claude",
        "LANEWAY_CODEX_COMMAND": "codex",
    }
    engines = make_engines(config.load(given, cwd=tmp_path), SystemClock(), NoLedger())
    programs = [engine for engine in engines.values() if isinstance(engine, AgentEngine)]
    assert {engine.name for engine in programs} == {"demo", "acp", "claude", "codex"}
    for engine in programs:
        env = engine._environment("mark", tmp_path / "tmp")
        assert env["AGENT_KEY"] == "for the agent", engine.name
        assert "secret-4711" not in env.values(), engine.name
        assert not any(name.startswith("LANEWAY_") and name in OWN for name in env)
        assert env["TMPDIR"] == str(tmp_path / "tmp")


@pytest.mark.parametrize("name", ["LANEWAY_TELEGRAM_TOKEN", "LANEWAY_OPENAI_API_KEY"])
def test_no_setting_of_the_gateway_can_be_named_for_engines(tmp_path: Path, name: str) -> None:
    with pytest.raises(config.BadSettings) as wrong:
        config.load({"LANEWAY_HOME": str(tmp_path), "LANEWAY_ENGINE_ENV": name}, cwd=tmp_path)
    assert "not handed to engines" in str(wrong.value.problems)
