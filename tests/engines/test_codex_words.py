"""Codex's words and ours, without a process."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.engines import codex_ends as ends
from core.engines.asking import COMMAND_MOST
from core.engines.base import Approvals, Failure, FailureKind, Request, Text, ToolStarted, Usage
from core.engines.codex_hearing import OPEN_CALLS, CodexEar
from core.engines.codex_words import (
    KINDS,
    Declared,
    Model,
    answer_to,
    arguments,
    command_of,
    models,
    obeyed,
    questions,
    script,
    thread,
    title_of,
    version,
)
from core.engines.plain import NAME_MOST

HERE = Path("/srv/space")
NOW = 1_800_000_000_000
RUN = "item/commandExecution/requestApproval"
KEYS = st.sampled_from(
    [
        *("type", "item", "id", "threadId", "turnId", "changes", "command", "cwd", "diff", "kind"),
        *("tokenUsage", "total", "last", "inputTokens", "delta", "_meta", "questions", "options"),
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(KEYS, json_values, max_size=4)


# Starting it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/srv/space", "/srv/two words", '/srv/"quoted"\\', "/srv/ä😀", "/srv/line\nbreak"]
)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_it_is_started_with_can_be_read_back(path: str, read_only: bool) -> None:
    folder = Path(path)
    request = Request("lane", 1, folder, "hello", read_only=read_only)
    name, *rest = arguments(request, [Path("/home/gw")], [folder], "MARK")
    assert name == "app-server"
    assert set(rest[::2]) == {"-c"}
    read = tomllib.loads("\n".join(rest[1::2]))
    assert read["projects"][path] == {"trust_level": "untrusted"}
    assert read["permissions"]["laneway"]["filesystem"] == {"/home/gw": "deny", path: "write"}
    assert read["permissions"]["laneway"]["network"] == {"enabled": True}
    auto = Request("lane", 1, folder, "hello", approvals=Approvals.AUTO)
    _, *rest = arguments(auto, [], [folder], "MARK")
    alone = tomllib.loads("\n".join(rest[1::2]))
    assert alone["permissions"]["laneway"]["network"] == {"enabled": False}
    assert read["default_permissions"] == "laneway"
    assert read["features"]["plugins"] is False
    assert ("shell_tool" in read["features"]) is read_only
    assert "MARK" in read["shell_environment_policy"]["include_only"]


def test_what_is_asked_for_is_compared_with_what_it_says_it_did() -> None:
    main = Request("lane", 1, HERE, "hello")
    side = Request("lane", 1, HERE, "hello", read_only=True)
    profile = {"activePermissionProfile": {"id": "laneway"}, "sandbox": {"type": "workspaceWrite"}}
    assert obeyed({"approvalPolicy": "untrusted", **profile}, main)
    assert not obeyed({"approvalPolicy": "never", **profile}, main)
    assert not obeyed({"approvalPolicy": "untrusted", "sandbox": {"type": "x"}}, main)
    assert obeyed({"approvalPolicy": "never", "sandbox": {"type": "readOnly"}}, side)
    assert not obeyed({"approvalPolicy": "never", "sandbox": {"type": "workspaceWrite"}}, side)
    assert not obeyed({}, main)


def test_a_thread_is_told_everything_each_time() -> None:
    request = Request("lane", 1, HERE, "hello", model="m", approvals=Approvals.AUTO)
    assert thread(request, {"laneway": {"url": "u"}}) == {
        "cwd": str(HERE),
        "approvalPolicy": "on-request",
        "approvalsReviewer": "user",
        "config": {"mcp_servers": {"laneway": {"url": "u"}}},
        "permissions": "laneway",
        "model": "m",
    }
    side = thread(Request("lane", 1, HERE, "hello", read_only=True), {}, ["own"])
    assert (side["sandbox"], side["approvalPolicy"]) == ("read-only", "never")
    assert side["config"] == {"mcp_servers": {"own": {"enabled": False}}}


def test_models_and_efforts_are_what_it_lists() -> None:
    listed = [
        {
            "model": "big",
            "isDefault": True,
            "defaultReasoningEffort": "low",
            "supportedReasoningEfforts": [{"reasoningEffort": "low"}, {"reasoningEffort": "high"}],
        },
        {"id": "small"},
        7,
    ]
    found = models({"data": listed})
    assert found == (Model("big", ("low", "high"), "low", usual=True), Model("small"))
    told = Declared(models=found, own_effort="high")
    assert (told.model(""), told.model("own")) == ("big", "own")
    assert told.effort("", "big") == "high"
    assert told.effort("low", "big") == "low"
    assert told.effort("", "small") == ""  # it has no choice of it
    assert told.effort("", "unknown") == "high"
    assert Declared(models=found, own_model="small").model("") == "small"
    assert version({"userAgent": "laneway/0.163.0 (Debian 12; x86_64) x"}) == "0.163.0"
    assert version({}) == ""


# Tools and questions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "title"),
    [
        ({"type": "commandExecution", "command": "/bin/bash -lc 'ls -l\nrm x'"}, "ls -l"),
        ({"type": "commandExecution", "command": "ls"}, "ls"),
        ({"type": "commandExecution"}, "run a command"),
        ({"type": "fileChange", "changes": [{"path": "/srv/space/a/b"}]}, "change a/b"),
        (
            {"type": "fileChange", "changes": [{"path": f"/srv/space/{n}"} for n in range(5)]},
            "change 0, 1, 2 and 2 more",
        ),
        ({"type": "fileChange"}, "change files"),
        ({"type": "mcpToolCall", "server": "s", "tool": "t"}, "s: t"),
        (
            {"type": "dynamicToolCall", "tool": "read_file", "arguments": {"path": "a"}},
            "read file a",
        ),
        ({"type": "webSearch", "query": "tea"}, "search the web for tea"),
        ({"type": "imageView", "path": "/srv/space/a.png"}, "look at a.png"),
        ({"type": "reasoning"}, ""),
        ({"type": "novelty"}, ""),
        ({}, ""),
    ],
)
def test_a_tool_has_a_title_that_can_be_read(item: dict[str, Any], title: str) -> None:
    assert title_of(item, HERE) == title


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/bin/bash -lc 'touch a b'", "touch a b"),
        ("""/usr/bin/zsh -lc "echo 'x y'" """.strip(), "echo 'x y'"),
        ("/bin/sh -c ls", "ls"),
        ("python -c 'print()'", "python -c 'print()'"),
        ("./bash -lc ls", "./bash -lc ls"),
        ("/srv/space/bin/sh -c ls", "/srv/space/bin/sh -c ls"),
        ("bash -lc ls", "bash -lc ls"),
        ("/bin/bash -lc 'a' 'b'", "/bin/bash -lc 'a' 'b'"),
        ("/bin/bash -lc 'not closed", "/bin/bash -lc 'not closed"),
        (None, ""),
    ],
)
def test_a_command_is_shown_without_the_system_s_shell_that_is_started_for_it(
    command: object, told: str
) -> None:
    assert script(command) == told


def test_two_commands_that_do_different_things_are_never_shown_alike() -> None:
    plain = {"command": "/bin/bash -lc 'make'", "cwd": str(HERE)}
    shown = {
        command_of(RUN, asked, {}, HERE)
        for asked in (
            plain,
            {**plain, "cwd": "/elsewhere"},
            {**plain, "kind": "writeStdin"},
            {**plain, "additionalPermissions": {"network": {"enabled": True}}},
            {**plain, "networkApprovalContext": {"host": "a", "protocol": "https"}},
            {**plain, "networkApprovalContext": {"host": "b", "protocol": "https"}},
            {**plain, "novelty": 1},
        )
    }
    assert len(shown) == 7
    again = {**plain, "itemId": "9", "turnId": "8", "startedAtMs": 7, "reason": "as it wishes"}
    assert command_of(RUN, again, {}, HERE) == command_of(RUN, plain, {}, HERE)


@pytest.mark.parametrize("method", KINDS)
def test_a_no_never_grants_anything(method: str) -> None:
    asked = {"permissions": {"network": {"enabled": True}}}
    denied = answer_to(method, asked, allowed=False)
    assert denied in (
        {"decision": "decline"},
        {"action": "decline"},
        {"permissions": {}, "scope": "turn"},
    )


@given(st.sampled_from(sorted(KINDS)), objects, objects)
def test_whatever_is_asked_is_shown_as_text_that_can_be_stored_or_not_at_all(
    method: str, asked: dict[str, Any], item: dict[str, Any]
) -> None:
    told = command_of(method, asked, item, HERE)
    told.encode()
    assert "\0" not in told
    answer_to(method, asked, allowed=True)
    list(questions(asked))


# Hearing ------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(
    ["item/started", "item/completed", "item/agentMessage/delta", "thread/tokenUsage/updated",
     "item/fileChange/patchUpdated", "account/rateLimits/updated", "error", "novelty"]
), objects), max_size=6))  # fmt: skip
def test_whatever_it_says_becomes_events_that_can_be_stored(
    heard: list[tuple[str, dict[str, Any]]],
) -> None:
    ear = CodexEar(HERE, "t", "u")
    for method, told in heard:
        for event in ear.hear(method, {**told, "threadId": "t", "turnId": "u"}):
            if isinstance(event, Text):
                event.delta.encode()
            elif isinstance(event, ToolStarted):
                assert 0 < len(event.title.encode()) <= 4 * NAME_MOST
            elif isinstance(event, Usage):
                assert event.tokens_in >= 0
                assert event.tokens_out >= 0


def test_calls_without_end_fill_no_memory() -> None:
    ear = CodexEar(HERE, "t", "u")
    for number in range(OPEN_CALLS + 50):
        changes = [{"path": f"/{number}", "kind": {"type": "add"}, "diff": "x\n"}]
        item = {"type": "fileChange", "id": f"{number}", "changes": changes}
        list(ear.hear("item/started", {"threadId": "t", "turnId": "u", "item": item}))
    assert ear.about("0") == {}
    assert ear.about(f"{OPEN_CALLS + 49}")["changes"] == changes
    big = {"type": "fileChange", "id": "big", "changes": [{"diff": "x" * (COMMAND_MOST + 1)}]}
    list(ear.hear("item/started", {"threadId": "t", "turnId": "u", "item": big}))
    assert ear.about("big") == {}


def test_a_change_that_was_told_anew_is_shown_as_it_is_now() -> None:
    ear = CodexEar(HERE, "t", "u")
    ours = {"threadId": "t", "turnId": "u"}
    one = [{"path": "/a", "kind": {"type": "add"}, "diff": "1\n"}]
    item = {"type": "fileChange", "id": "c", "changes": one}
    list(ear.hear("item/started", {**ours, "item": item}))
    two = [{"path": "/b", "kind": {"type": "add"}, "diff": "2\n"}]
    list(ear.hear("item/fileChange/patchUpdated", {**ours, "itemId": "c", "changes": two}))
    method = "item/fileChange/requestApproval"
    assert command_of(method, {"itemId": "c"}, ear.about("c"), HERE) == "write /b\n+ 2"


# Ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"codexErrorInfo": "unauthorized"}, FailureKind.BROKEN),
        ({"codexErrorInfo": "contextWindowExceeded"}, FailureKind.REQUEST),
        ({"codexErrorInfo": "serverOverloaded"}, FailureKind.BUSY),
        ({"codexErrorInfo": {"httpConnectionFailed": {}}}, FailureKind.BUSY),
        ({"message": "unexpected status 429 Too Many Requests"}, FailureKind.BUSY),
        ({"codexErrorInfo": "usageLimitExceeded"}, FailureKind.LIMIT),
        ({"message": "the ink is out"}, None),
        ({}, None),
    ],
)
def test_a_failure_has_a_kind_where_it_is_certain(
    error: dict[str, Any], kind: FailureKind | None
) -> None:
    _, failure = ends.why(error, {}, "", NOW)
    assert (failure.kind if failure else None) is kind


def test_a_limit_ends_when_the_window_ends_that_is_used_up() -> None:
    soon, later = NOW // 1000 + 600, NOW // 1000 + 90_000
    limits = {
        "primary": {"usedPercent": 20, "resetsAt": soon},
        "secondary": {"usedPercent": 100, "resetsAt": later},
    }
    told, failure = ends.why({"codexErrorInfo": "usageLimitExceeded"}, limits, "", NOW)
    assert failure == Failure(FailureKind.LIMIT, later * 1000)
    assert "(in 25 h 0 min)" in told


@given(objects, objects)
def test_whatever_a_failure_says_it_is_told(error: dict[str, Any], limits: dict[str, Any]) -> None:
    told, _ = ends.why({**error, "message": "x", "codexErrorInfo": error}, limits, "m", NOW)
    told.encode()
