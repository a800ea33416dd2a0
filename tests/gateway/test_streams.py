"""A command ends in words and with the right status whatever its input and output are."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import logs
from gateway.__main__ import main
from gateway.cli import streams
from gateway.config import Settings

ROOT = Path(__file__).parents[2]
FULL = Path("/dev/full")


def shell(line: str, home: Path) -> subprocess.CompletedProcess[str]:
    """What a shell says to this line; ``laneway`` in it is the program."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANEWAY_HOME": str(home)}
    return subprocess.run(
        ["sh", "-c", line.replace("laneway", f"{sys.executable} -m gateway")],
        capture_output=True, encoding="utf-8", env=environ, cwd=home, timeout=30, check=False,
    )  # fmt: skip


def test_a_closed_output_is_nothing_and_no_file_takes_its_place(tmp_path: Path) -> None:
    code = (
        "from gateway.cli import streams; streams.prepare(); "
        "file = open('seen', 'w'); print('words', flush=True)"
    )
    done = shell(f'{sys.executable} -c "{code}" <&- >&-; echo $?', tmp_path)
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert not (tmp_path / "seen").read_text()


@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
def test_an_output_that_takes_nothing_is_said_in_words(tmp_path: Path) -> None:
    done = shell('laneway when "every 15m" --tz UTC >/dev/full; echo $?', tmp_path)
    assert done.stdout == "1\n"
    assert done.stderr == ("laneway when: the output cannot be written: No space left on device\n")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
def test_a_gateway_whose_output_takes_nothing_is_ready_all_the_same() -> None:
    full = FULL.open("w")
    logs.ready(Settings(), full)
    with pytest.raises(OSError, match="No space left"):
        full.close()


def test_whoever_has_read_enough_closes_the_pipe(tmp_path: Path) -> None:
    done = shell('laneway when "every 15m" --tz UTC --count 10000 | head -n 1', tmp_path)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("raw", "encoding", "text"),
    [
        ("Grüße 😀".encode(), "ascii", "Grüße 😀"),
        ("Grüße".encode("latin-1"), "latin-1", "Grüße"),
        ("Grüße".encode("latin-1"), "utf-8", "Gr\ufffd\ufffde"),
    ],
)
def test_what_is_piped_in_is_read_in_any_encoding(
    raw: bytes, encoding: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding))
    assert streams.typed() == text


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lane"], "there is no command 'lane'; did you mean lanes?"),
        (["Usage"], "did you mean usage?"),
        (["xyzzy"], "there is no command 'xyzzy'\n"),
        ([], "print the answer as it comes"),
        (["say", "hello", "world"], "See: laneway --help"),
        (["say"], "See: laneway say --help"),
        (["job", "3", "jump"], "See: laneway job --help"),
        (["job", "add", "every 1h", "hello"], "See: laneway job add --help"),
        (["when", "--count", "0", "every 1h"], "from 1 to 10000"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_a_wrong_command_line_names_the_way_to_the_right_one(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(words, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--help"], "laneway COMMAND --help"),
        (["say", "--help"], "Ctrl-C leaves, and the turn goes on."),
        (["job", "--help"], "catch up 1h"),
        (["job", "add", "--help"], "every weekday at 9:00"),
        (["when", "--help"], "every month on 1 at 08:00"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_help_says_what_one_needs_to_begin(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert said in shown
    assert all(len(line) <= 100 for line in shown.splitlines())


def test_every_time_that_help_names_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    from gateway.cli.when import NOTES

    named = NOTES.partition("WHEN is one of: ")[2].partition("an ISO time")[0]
    for one in named.replace("\n", " ").replace("a cron line (", "").replace(")", "").split(";"):
        if one := one.strip():
            assert main(["when", "--tz", "UTC", "--from", "2026-01-01T00:00:00Z", one]) == 0
    assert capsys.readouterr().err == ""
