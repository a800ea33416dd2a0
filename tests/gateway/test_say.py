"""What somebody types at a terminal presses what they have read, whatever comes meanwhile."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, cast

import pytest

from gateway.cli import say
from gateway.cli.client import Talk
from gateway.cli.say import Questions, Screen, Unattended


class Gateway:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


class Person:
    """At a terminal."""

    def __init__(self, kind: type[Questions] = Questions) -> None:
        self.gateway, self.screen = Gateway(), Screen()
        self.questions = kind(cast(Talk, self.gateway), self.screen)

    def sees(self, ident: str, text: str, *labels: str) -> None:
        buttons = [[{"id": f"{ident}-{label}", "label": label} for label in labels]]
        shown = {"kind": "sent", "message_id": ident, "text": text, "buttons": buttons, "path": ""}
        self.screen.show(shown)
        self.questions.see(shown)

    def types(self, line: str) -> None:
        self.questions._choose(line)

    @property
    def pressed(self) -> list[str]:
        return [one["press"] for one in self.gateway.sent]


def test_a_number_is_about_the_question_that_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    person = Person()
    person.sees("a", "make clean?", "Allow", "Deny")
    person.sees("b", "rm -rf /?", "Allow", "Deny")  # while the number is being typed
    person.types("1")
    assert person.pressed == ["a-Allow"]
    person.types("1")  # twice by mistake
    assert person.pressed == ["a-Allow"]
    person.types("4")
    assert person.pressed == ["a-Allow", "b-Deny"]
    shown = capsys.readouterr().out
    assert "[1 Allow, 2 Deny]" in shown
    assert "[3 Allow, 4 Deny]" in shown
    assert "a number from 3 to 4" in shown


def test_a_question_that_somebody_else_answered_takes_no_number() -> None:
    person = Person()
    person.sees("a", "make clean?", "Allow", "Deny")
    person.sees("a", "make clean? Denied by Ana")
    person.types("1")
    person.sees("b", "make all?", "Allow", "Deny")
    person.types("1")
    assert person.pressed == []
    person.types("3")
    assert person.pressed == ["b-Allow"]


def test_a_question_that_is_left_is_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    person = Person()
    person.sees("a", "make clean?", "Allow", "Deny")
    person.sees("b", "make all?", "Allow", "Deny")
    capsys.readouterr()
    person.types("3")
    assert capsys.readouterr().out == "\nmake clean?\n[1 Allow, 2 Deny] "
    for nonsense in ("", "x", "-1", "0", "9" * 5000, "٣"):
        person.types(nonsense)
    assert person.pressed == ["b-Allow"]


def test_a_script_says_no_to_its_own_question_only() -> None:
    person = Person(Unattended)
    person.sees("a", "make?", "Allow", "Always here", "Deny")
    person.sees("b", "Waiting", "Drop")
    assert person.gateway.sent == [{"nobody": "a-Deny"}]


async def test_what_is_typed_while_a_shell_has_us_behind_is_for_the_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behind = [True, True]  # then it is brought to the front
    monkeypatch.setattr(say, "_behind", lambda: bool(behind and behind.pop()))
    monkeypatch.setattr(say, "AWAY", 0.001)
    person = Person()
    person.sees("a", "make clean?", "Allow", "Deny")
    reading, writing = os.pipe()
    with os.fdopen(reading) as typed, os.fdopen(writing, "wb", buffering=0) as keyboard:
        monkeypatch.setattr(sys, "stdin", typed)
        person.questions.listen()
        keyboard.write(b"2\n")
        async with asyncio.timeout(10):
            while not person.pressed:
                assert person.questions._typed == b"", "nothing is read from behind"
                await asyncio.sleep(0)
        person.questions.leave()
    assert (person.pressed, behind) == (["a-Deny"], [])
