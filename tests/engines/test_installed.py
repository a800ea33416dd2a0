"""Where programs of agents are looked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.engines import claude_program, codex_program


@pytest.mark.parametrize(
    ("find", "name", "inner"),
    [
        (claude_program.find_program, "claude", "claude_agent_sdk/_bundled/claude"),
        (codex_program.find_program, "codex", "codex_cli_bin/bin/codex"),
    ],
)
def test_a_program_is_looked_for_on_the_path_then_in_its_package(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    find: Callable[[str], str],
    name: str,
    inner: str,
) -> None:
    bundled = tmp_path / inner
    bundled.parent.mkdir(parents=True)
    (tmp_path / inner.partition("/")[0] / "__init__.py").write_text("raise RuntimeError('x')")
    bundled.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    empty = tmp_path / "empty"
    empty.mkdir()
    assert find(str(empty)) == ""  # it cannot be run
    bundled.chmod(0o700)
    assert find(str(empty)) == str(bundled)
    (empty / name).write_text("#!/bin/sh\n")
    (empty / name).chmod(0o700)
    assert find(str(empty)) == str(empty / name)
    monkeypatch.setattr(sys, "path", [])
    assert find(str(tmp_path)) == ""
