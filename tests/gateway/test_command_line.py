"""The ``laneway`` command as a shell sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.cli.table import COMMANDS

ROOT = Path(__file__).parents[2]


def laneway(*words: str, text: str = "", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LC_ALL": "C"}
    return subprocess.run(
        [sys.executable, "-m", "gateway", *words],
        input=text,
        capture_output=True,
        encoding="utf-8",
        env=environ,
        cwd=cwd,
        timeout=30,
        check=False,
    )


def test_render_prints_the_messages_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "answer.md"
    file.write_text("**Grüße** 😀", encoding="utf-8")
    done = laneway("render", "--to", "telegram", str(file))
    assert done.returncode == 0
    assert not done.stderr
    assert json.loads(done.stdout) == [
        {"text": "Grüße 😀", "entities": [{"type": "bold", "offset": 0, "length": 5}]}
    ]


@pytest.mark.parametrize(
    ("platform", "message"),
    [
        (
            "slack",
            {
                "text": "*Grüße* &lt;!here&gt;",
                "blocks": [
                    {
                        "type": "rich_text",
                        "elements": [
                            {
                                "type": "rich_text_section",
                                "elements": [
                                    {"type": "text", "text": "Grüße", "style": {"bold": True}},
                                    {"type": "text", "text": " <\u200b!here>"},
                                ],
                            }
                        ],
                    }
                ],
            },
        ),
        ("discord", {"content": "**Grüße** <!here>"}),
    ],
)
def test_render_shows_what_each_platform_would_be_sent(
    platform: str, message: object, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "answer.md"
    file.write_text("**Grüße** <!here>", encoding="utf-8")
    assert main(["render", "--to", platform, str(file)]) == 0
    assert json.loads(capfdbinary.readouterr().out) == [message]


@pytest.mark.parametrize(("platform", "key"), [("slack", "text"), ("discord", "content")])
def test_a_limit_is_exact_on_every_platform(
    platform: str, key: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "answer.md"
    file.write_text("k" * 5000)
    assert main(["render", "--to", platform, "--limit", "2000", str(file)]) == 0
    parts = json.loads(capfdbinary.readouterr().out)
    assert [len(part[key]) for part in parts] == [2000, 2000, 1000]


@pytest.mark.parametrize("platform", ["slack", "discord"])
def test_a_limit_without_room_for_markup_is_refused(
    platform: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answer.md"
    file.write_text("```\ncode\n```\n")
    assert main(["render", "--to", platform, "--limit", "10", str(file)]) == 1
    assert "--limit must be at least" in capsys.readouterr().err


def test_render_reads_standard_input_and_takes_a_limit() -> None:
    done = laneway("render", "--to", "telegram", "--limit", "2000", "-", text="k" * 5000)
    assert [len(part["text"]) for part in json.loads(done.stdout)] == [2000, 2000, 1000]


@pytest.mark.parametrize(
    "words",
    [
        ["render", "--to", "pigeon", "-"],
        ["render", "--to", "telegram", "--limit", "1", "-"],
        ["render", "--to", "telegram", "--limit", "1000001", "-"],
        ["render", "-"],
        ["fly"],
        [],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_ends_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_what_cannot_be_done_is_said_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--to", "telegram", "/nowhere/answer.md"]) == 1
    assert capsys.readouterr().err == (
        "laneway render: /nowhere/answer.md cannot be read: No such file or directory\n"
    )


def test_wrong_settings_are_listed_and_end_with_2(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LANEWAY_MAX_TURNS=many\nLANEWAY_MAX_TURN=8\n")
    done = laneway("lanes", cwd=tmp_path)
    assert done.returncode == 2
    first, *problems = done.stderr.splitlines()
    assert first == "laneway lanes: the settings cannot be used:"
    assert len(problems) == 2
    assert all(line.startswith("  - LANEWAY_MAX_TURN") for line in problems)


def test_every_command_has_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main([command.name, "--help"])
        assert caught.value.code == 0
        assert command.help in capsys.readouterr().out


def test_the_command_line_imports_nothing_slow() -> None:
    code = "import gateway.__main__, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", cwd=ROOT, check=True
    )
    slow = {"asyncio", "telegram", "acp", "pyromark", "starlette", "dotenv", "sqlite3"}
    assert not slow & set(done.stdout.split())
