"""Claude Code's words and ours, without a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.engines import claude_ends as ends
from core.engines.base import Failure, FailureKind, SteerSettled, Text, ToolStarted
from core.engines.claude_hearing import OPEN_CALLS, ClaudeEar
from core.engines.claude_offers import Offers
from core.engines.claude_words import command_of, declared, questions, title_of, unmentioned
from core.engines.plain import NAME_MOST

HERE = Path("/srv/space")
NOW = 1_800_000_000_000
KEYS = st.sampled_from(["type", "text", "id", "content", "delta", "usage", "costUSD", "command"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)


# Tools --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "call", "title"),
    [
        ("Bash", {"command": "ls -l\nrm x", "description": "List files"}, "List files"),
        ("Bash", {"command": "ls -l\nrm x"}, "ls -l"),
        ("Read", {"file_path": "/srv/space/a/b.txt"}, "read a/b.txt"),
        ("Write", {"file_path": "/etc/passwd"}, "write /etc/passwd"),
        ("Grep", {"pattern": "blue", "path": "/srv"}, "search for blue"),
        ("WebFetch", {"url": "https://example.org/x"}, "fetch https://example.org/x"),
        ("WebSearch", {"query": "tea"}, "search the web for tea"),
        ("Task", {"description": "look around"}, "delegate: look around"),
        ("mcp__laneway__send_file", {}, "laneway: send_file"),
        ("Novelty", {}, "Novelty"),
        ("", {}, "tool"),
    ],
)
def test_a_tool_has_a_title_that_can_be_read(tool: str, call: dict[str, Any], title: str) -> None:
    assert title_of(tool, call, HERE) == title


@pytest.mark.parametrize(
    ("tool", "call", "command"),
    [
        ("Bash", {"command": "rm -r x", "description": "tidy"}, "rm -r x"),
        (
            "Bash",
            {"command": "rm x", "dangerouslyDisableSandbox": True},
            'rm x\n{\n "dangerouslyDisableSandbox": true\n}',
        ),
        ("Write", {"file_path": "/a", "content": "one\ntwo"}, "write /a\n+ one\n+ two"),
        (
            "Edit",
            {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": True},
            "write /a\n- x\n+ y\n(wherever it occurs)",
        ),
        ("WebFetch", {"url": "u"}, 'WebFetch\n{\n "url": "u"\n}'),
        ("Write", {"file_path": 7}, 'Write\n{\n "file_path": 7\n}'),
        ("Novelty", {}, "Novelty"),
    ],
)
def test_a_person_is_shown_all_of_what_will_be_done(
    tool: str, call: dict[str, Any], command: str
) -> None:
    assert command_of(tool, call, HERE) == command


@settings(max_examples=40)
@given(st.sampled_from(["Bash", "Write", "Edit", "Read", "x"]), st.dictionaries(
    st.sampled_from(["command", "file_path", "content", "old_string", "more"]), json_values
))  # fmt: skip
def test_any_input_can_be_shown(tool: str, call: dict[str, Any]) -> None:
    assert command_of(tool, call, HERE)
    assert 0 < len(title_of(tool, call, HERE)) <= NAME_MOST
    assert "\0" not in command_of(tool, call, HERE)


def test_a_form_is_written_out() -> None:
    form = {
        "questions": [
            {"question": "A?", "options": [{"label": "x", "description": "y"}]},
            {"question": "B?", "options": [], "multiSelect": True},
        ]
    }
    assert list(questions(form)) == [
        "**A?**\n1. x – y",
        "**B?**\n(More than one can be chosen.)",
    ]
    assert list(questions({"questions": 7})) == []


# The hand-shake -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("account", "signed_in"),
    [
        ({"tokenSource": "none", "apiKeySource": "none", "apiProvider": "firstParty"}, False),
        ({"tokenSource": "none", "apiProvider": "firstParty"}, False),
        ({"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY"}, True),
        ({"tokenSource": "claude.ai", "email": "ana@example.org"}, True),
        ({"tokenSource": "none", "apiProvider": "bedrock"}, True),
        ({}, True),
        (None, True),
        (7, True),
    ],
)
def test_who_is_not_signed_in_is_known_only_when_it_says_so(
    account: object, signed_in: bool
) -> None:
    assert declared({"account": account}).signed_in is signed_in


def test_a_hand_shake_without_models_offers_the_usual_efforts() -> None:
    found = declared({"models": "none"})
    assert found.model("") == ""
    assert found.model("opus") == "opus"
    assert "high" in found.efforts("opus")
    assert declared({"models": [{"value": "tiny"}]}).efforts("tiny") == ()


@pytest.mark.parametrize(
    ("version", "current"),
    [("2.1.332", True), ("2.2.0", True), ("3.0.0-beta", True), ("2.1.331", False), ("", False)],
)
def test_a_version_is_current_or_not(version: str, current: bool) -> None:
    assert declared({"claude_code_version": version}).current is current


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("@/etc/x", "@ /etc/x"),
        ('a @"b c" @~/d', 'a @ "b c" @ ~/d'),
        ("a\n@b", "a\n@ b"),
        ("ana@example.org @ x", "ana@example.org @ x"),
    ],
)
def test_names_of_files_can_be_made_harmless(text: str, harmless: str) -> None:
    assert unmentioned(text) == harmless


# Ends ---------------------------------------------------------------------------------------


def ended(
    text: str = "", limits: dict[str, Any] | None = None, **result: Any
) -> tuple[str, Failure | None]:
    told = {"is_error": True, "result": text, **result}
    return ends.why(told, limits or {}, "opus", ("default", "opus"), NOW)


def why(text: str = "", limits: dict[str, Any] | None = None, **result: Any) -> str:
    return ended(text, limits, **result)[0]


@pytest.mark.parametrize(
    ("text", "result", "words"),
    [
        ("Not logged in · Please run /login", {}, "not signed in"),
        ("Invalid API key · Fix external API key", {}, "not signed in"),
        ("Failed to authenticate.", {"api_error_status": 401}, "not signed in"),
        ("Credit balance is too low", {"api_error_status": 400}, "no credit left"),
        ("Prompt is too long", {"api_error_status": 400}, "/compact"),
        ("API Error: 500", {"api_error_status": 500}, "(500)"),
        ("x", {"api_error_status": 404}, "it offers: default, opus"),
        ("", {"subtype": "error_max_turns"}, "limit of steps"),
        ("", {"subtype": "error_max_budget_usd"}, "spending limit"),
        ("", {"terminal_reason": "aborted_streaming"}, "by itself"),
        ("You've hit your limit · resets 3pm (Europe/Berlin)", {}, "resets 3pm (Europe/Berlin)"),
        ("Claude AI usage limit reached|1800003600", {}, "2027-01-15 09:00 UTC (in 1 h 0 min)"),
        ("Claude AI usage limit reached|99", {}, "when it is over"),
        ("5-hour limit reached ∙ resets 8pm", {}, "resets 8pm"),
        ("something else", {}, ""),
        ("something else", {"api_error_status": "401", "errors": [7]}, ""),
    ],
)
def test_a_failure_has_a_next_step(text: str, result: dict[str, Any], words: str) -> None:
    assert words in why(text, **result)
    assert bool(words) == bool(why(text, **result))


def test_the_end_of_a_limit_is_told_from_what_was_said_before() -> None:
    limits = {"status": "rejected", "resetsAt": NOW // 1000 + 600}
    assert "until 2027-01-15 08:10 UTC (in 11 min)" in why("no", limits)
    assert why("no", {"status": "allowed", "resetsAt": NOW // 1000 + 600}) == ""


@pytest.mark.parametrize(
    ("text", "result", "failure"),
    [
        ("x", {"api_error_status": 529}, Failure(FailureKind.BUSY, tried=True)),
        ("x", {"api_error_status": 429}, Failure(FailureKind.BUSY, tried=True)),
        ("x", {"api_error_status": 401}, Failure(FailureKind.BROKEN)),
        ("x", {"api_error_status": 404}, Failure(FailureKind.REQUEST)),
        ("Prompt is too long", {}, Failure(FailureKind.REQUEST)),
        ("usage limit reached|1800003600", {}, Failure(FailureKind.LIMIT, 1_800_003_600_000)),
        ("usage limit reached|99", {}, Failure(FailureKind.LIMIT)),
        ("x", {}, None),
    ],
)
def test_what_a_failure_means_for_the_next_turn(
    text: str, result: dict[str, Any], failure: Failure | None
) -> None:
    assert ended(text, **result)[1] == failure


def test_what_it_said_of_itself_for_its_makers_is_no_reason() -> None:
    assert ends.said({"errors": ["[ede_diagnostic] x", "a", {"message": "b"}]}) == "a; b"


# Hearing ------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(
                    ["assistant", "user", "system", "stream_event", "result", "x"]
                )
            },
            optional={
                "message": json_values
                | st.fixed_dictionaries(
                    {
                        "content": json_values
                        | st.lists(st.dictionaries(KEYS, json_values), max_size=2)
                    }
                ),
                "event": json_values,
                "subtype": json_values,
                "usage": json_values,
                "total_cost_usd": json_values,
                "model_usage_since_last_result": json_values,
            },
        ),
        max_size=4,
    )
)
def test_whatever_it_sends_can_be_heard(messages: list[dict[str, Any]]) -> None:
    ear = ClaudeEar(HERE)
    for message in messages:
        for event in ear.hear(message):
            if isinstance(event, Text):
                event.delta.encode()
    usage = ear.usage()
    assert usage.tokens_in >= 0
    assert usage.cost is None or usage.cost >= 0


def test_open_calls_are_remembered_up_to_a_bound() -> None:
    ear = ClaudeEar(HERE)
    for number in range(OPEN_CALLS * 2):
        block = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}
        (event,) = ear.hear({"type": "assistant", "message": {"content": [block]}})
        assert isinstance(event, ToolStarted)
    assert len(ear._calls) == OPEN_CALLS


# Offers -------------------------------------------------------------------------------------


def lifecycle(number: str, state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": number, "state": state}


def test_a_message_put_in_is_over_with_the_result_that_names_it() -> None:
    offers = Offers()
    offers.begin("p")
    offers.offer(7, "a")
    offers.hear(lifecycle("a", "started"))
    assert list(offers.settled()) == [SteerSettled(7, taken=True)]
    assert offers.covered({"user_message_uuids": ["p", "a"]})
    assert offers.over


def test_a_message_put_in_is_over_when_it_is_said_to_be() -> None:
    offers = Offers()
    offers.begin("p")
    offers.offer(7, "a")
    offers.hear(lifecycle("a", "started"))
    offers.hear(lifecycle("a", "completed"))
    assert offers.covered({"user_message_uuids": ["p"]})
    assert offers.over


def test_a_result_that_answers_nobody_of_ours_is_not_ours() -> None:
    offers = Offers()
    offers.begin("p")
    assert not offers.covered({"user_message_uuids": ["other"]})
    assert offers.covered({})
    assert offers.over


def test_a_message_that_was_taken_back_is_not_taken() -> None:
    offers = Offers()
    offers.begin("p")
    offers.offer(7, "a")
    offers.offer(8, "")
    offers.hear(lifecycle("a", "queued"))
    offers.hear(lifecycle("a", "cancelled"))
    settled = list(offers.settled())
    assert settled == [SteerSettled(8, taken=False), SteerSettled(7, taken=False)]
