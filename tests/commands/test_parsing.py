"""What is a command, and what is a prompt."""

from __future__ import annotations

import pytest

from core.addressing import Spoken, command, others_command, prompt_text
from core.commands import NAMES


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("/status", Spoken("status")),
        ("!status", Spoken("status", slash=False)),
        ("/Stop", Spoken("stop")),
        ("/title  Release  notes ", Spoken("title", "Release  notes")),
        ("/btw what\nnow?", Spoken("btw", "what\nnow?")),
        ("/start", Spoken("start")),
    ],
)
@pytest.mark.parametrize("direct", [True, False])
def test_a_known_name_is_a_command(text: str, spoken: Spoken, direct: bool) -> None:
    assert command(text, NAMES, direct) == spoken


@pytest.mark.parametrize(
    "text",
    [
        "/etc/hosts is broken",
        "!!! urgent",
        "/tmp is full",
        "//compact",
        "/",
        "!",
        "/status: is it up?",
        "please /stop",
        "/STATUS2",
        "/ status",
        "",
    ],
)
@pytest.mark.parametrize("direct", [True, False])
def test_anything_else_is_a_prompt(text: str, direct: bool) -> None:
    assert command(text, NAMES, direct) is None


def test_an_unknown_single_word_is_a_mistake_in_direct_messages_only() -> None:
    assert command("/stauts", NAMES, True) == Spoken("stauts", known=False)
    assert command("!wow", NAMES, True) == Spoken("wow", slash=False, known=False)
    assert command("/stauts", NAMES, False) is None


def test_a_command_for_another_bot_is_none_of_ours() -> None:
    assert command("/status@other_bot", NAMES, False) is None
    assert others_command("/status@other_bot", NAMES)
    assert not others_command("/status", NAMES)


def test_two_slashes_hand_one_to_the_engine() -> None:
    assert prompt_text("//compact") == "/compact"
    assert prompt_text("// a comment") == "// a comment"
    assert prompt_text("/etc/hosts") == "/etc/hosts"
