"""What people are told to type works where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.cli.called import called


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "checkout" / ".venv" / "bin" / "laneway"
    made.parent.mkdir(parents=True)
    made.touch(mode=0o755)
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.setenv("PATH", "/nowhere")
    return made


def test_what_no_shell_finds_is_called_by_its_path(program: Path) -> None:
    assert called(str(program)) == os.path.join(".venv", "bin", "laneway")


def test_from_another_folder_it_is_called_by_its_whole_path(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert called(str(program)) == str(program)


def test_what_a_shell_finds_is_called_by_its_name(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert called(str(program)) == "laneway"


def test_started_in_another_way_it_has_its_name() -> None:
    assert called("/usr/lib/python3/site-packages/gateway/__main__.py") == "laneway"
