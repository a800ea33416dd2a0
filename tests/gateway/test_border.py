"""What agents and strangers wrote is printed as text, never obeyed by a terminal."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.engines.base import Finding
from gateway import logs, terminal
from gateway.__main__ import main
from gateway.choices import LogFormat
from gateway.cli import doctor, listing
from gateway.cli.border import as_json, harmless, one_line, plain
from gateway.cli.columns import table
from gateway.cli.say import Screen
from tests.examples import tried

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31mred\x7f"


def test_control_characters_stand_as_escapes() -> None:
    assert harmless(EVIL) == r"\x1b]0;owned\x07\x1b[2J\x9b31mred\x7f"
    assert harmless("a\tb\r\nc\rd\n") == "a\tb\nc\nd\n"
    assert harmless("Grüße 😀 ✔️") == "Grüße 😀 ✔️"
    harmless("half \ud83d").encode()


# What could steer a terminal or disguise words, among what people write.
SIGNS = (
    *"ab1 .\t\n\r\0\x07\x08\x1b\x7f\x85\x9b\x9d|/שלםعربيكषمی漢😀👍❤️🏴",
    *"\u061c\u115f\u200b\u200c\u200d\u200e\u200f\u2028\u202a\u202b\u202c\u202d\u202e",
    *"\u2060\u2066\u2067\u2068\u2069\u206a\u2800\u3164\ufe0f\ufeff\ud83d\ude00",
    *("\U0001f3fd", "\U000e0067", "\U000e007f", "\x1b]52;c;aGk=\x07", "\x1b[2J", "\u2067a\u2069"),
)
words = st.lists(st.sampled_from(SIGNS), max_size=30).map("".join) | st.text(max_size=30)
UNSEEN = set("\u061c\u115f\u200b\u200e\u200f\u2060\u206a\u2800\u3164\ufeff")
FORCED = set("\u202d\u202e")
OPENED = {
    **dict.fromkeys("\u202a\u202b", "\u202c"),
    **dict.fromkeys("\u2066\u2067\u2068", "\u2069"),
}


def steers(text: str) -> bool:
    """Whether a terminal is told anything but signs, tabs and line ends."""
    return any(ord(one) < 32 or 127 <= ord(one) < 160 for one in text if one not in "\n\t")


def turns(line: str) -> bool:
    """Whether a line is turned by force, or goes on being turned behind its end."""
    begun: list[str] = []
    for sign in line:
        if sign in OPENED:
            begun.append(OPENED[sign])
        elif sign in OPENED.values() and (not begun or begun.pop() != sign):
            return True
    return bool(begun) or bool(FORCED & set(line))


@tried(50)
@given(words)
def test_no_text_steers_a_terminal_or_turns_what_stands_behind_it(text: str) -> None:
    shown = harmless(text)
    assert not steers(shown)
    assert not any(turns(line) for line in shown.split("\n"))
    assert harmless(shown) == shown
    shown.encode()


@tried(50)
@given(words)
def test_a_name_a_row_and_json_hide_nothing(text: str) -> None:
    row, scripted = one_line(text), as_json([text])
    assert "\n" not in row
    for shown in (row, plain(text), scripted):
        assert not steers(shown)
        assert not set(shown) & (UNSEEN | FORCED | OPENED.keys() | set(OPENED.values()))
        shown.encode()
    assert json.loads(scripted) == json.loads(json.dumps([text]))


@tried(50)
@given(words, words)
def test_what_grows_is_printed_once(begun: str, more: str) -> None:
    """A text that comes piece by piece only gets longer, unless it was a disguise."""
    before = harmless(begun, growing=True)
    if not turns(before.rpartition("\n")[2]) and not begun.endswith("\r"):
        assert harmless(begun + more, growing=True).startswith(before)


@pytest.mark.parametrize(
    "text",
    ["שלום עולם (1)", "مرحبا", "می‌خواهم", "क्‍ष", "👨‍👩‍👧 ❤️ 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "漢字かな交じり", "Grüße ©️"],
)
def test_what_a_language_needs_stays(text: str) -> None:
    assert one_line(text) == plain(text) == harmless(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gpj\u202eexe", r"gpj\u202eexe"),
        ("a\u2067b", r"a\u2067b"),
        ("a\u2069b", r"a\u2069b"),
        ("a\u2067b\u2069c", "a\u2067b\u2069c"),
        ("a\u2067b\nc\u2069", "a\\u2067b\nc\\u2069"),
    ],
)
def test_a_direction_ends_in_its_line_or_stands_as_an_escape(text: str, shown: str) -> None:
    assert harmless(text) == shown
    assert "\u2067" not in plain(text), "a name has no use for it"


@pytest.mark.parametrize(
    "text", ["ad\u200bmin", "ad\u200cmin", "admin\u2060", "admin\U000e0041", "a\ufe0f"]
)
def test_two_names_that_differ_look_different(text: str) -> None:
    assert plain(text).isascii()


def test_a_code_and_the_log_are_printed_as_harmlessly(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.tell(f"for {EVIL}", LogFormat.TEXT)
    for form in (logs.TextFormat(), logs.JsonFormat()):
        try:
            raise ValueError(f"{EVIL}\u202e")
        except ValueError:
            fault = sys.exc_info()
        words = f"{EVIL}\u202e\ud83d"
        line = form.format(logging.LogRecord("a", logging.INFO, "", 1, words, (), fault))
        line.encode()
        assert not steers(line)
        assert not FORCED & set(line)
    assert not steers(capsys.readouterr().out)


def test_no_listing_and_no_trouble_passes_on_what_steers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil = f"{EVIL}\u202e\u2067\u200b"
    for what, columns in listing._COLUMNS.items():
        for scripted in (False, True):
            listing._show(what, [dict.fromkeys(columns, evil)], scripted)
    doctor._show([Finding(evil, False, evil, evil)])
    assert main(["render", "--to", "slack", f"/nowhere/{evil[1:]}"]) == 1
    out, err = capsys.readouterr()
    for shown in (out, err):
        assert not steers(shown)
        assert not set(shown) & set("\u202e\u2067\u200b")


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
