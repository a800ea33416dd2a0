"""What agents and strangers wrote is printed as text, never obeyed by a terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.border import as_json, harmless
from gateway.cli.client import table
from gateway.cli.say import Screen

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31mred\x7f"


def test_control_characters_stand_as_escapes() -> None:
    assert harmless(EVIL) == r"\x1b]0;owned\x07\x1b[2J\x9b31mred\x7f"
    assert harmless("a\tb\r\nc\rd\n") == "a\tb\nc\nd\n"
    assert harmless("Grüße 😀 ✔️") == "Grüße 😀 ✔️"
    harmless("half \ud83d").encode()


def test_json_means_the_same_and_holds_no_control_character() -> None:
    rows = [{"text": EVIL, "half": "\ud83d", "name": "Grüße 😀"}]
    printed = as_json(rows)
    assert json.loads(printed) == rows
    assert "Grüße 😀" in printed
    assert not any(char in printed for char in EVIL if not char.isprintable())
    printed.encode()


def test_no_message_and_no_cell_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    for text in (EVIL[:3], EVIL, f"{EVIL}\r\nmore"):
        screen.show({"kind": "revised", "message_id": "1", "text": text, "path": ""})
    screen.show({"kind": "file", "message_id": "2", "text": "a.txt", "path": f"/tmp/{EVIL}"})
    screen.end()
    print(table([{"text": EVIL}], {"text": "TEXT"}))
    printed = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in printed)
    assert printed.startswith(r"\x1b]0;owned\x07")


def test_a_terminal_that_lacks_a_sign_shows_another_one(tmp_path: Path) -> None:
    script = "from gateway.__main__ import main; import sys; main(['lanes']); print('😀 Grüße')"
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1", "LANEWAY_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, check=False,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.decode("latin-1") == "(none)\n? Grüße\n"
