"""The protocol's words and ours, without a process."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.course import has_effect
from core.engines.acp_hearing import (
    FILES_MOST,
    OPEN_CALLS,
    THOUGHT_MOST,
    TOO_MANY_FILES,
    Ear,
    Picture,
)
from core.engines.acp_words import (
    Choice,
    asks_nobody,
    choices,
    command_of,
    declared,
    mode_for,
    outcome,
)
from core.engines.asking import COMMAND_MOST
from core.engines.base import (
    Abilities,
    Approvals,
    Decision,
    FileMade,
    Text,
    ToolEnded,
    ToolStarted,
    Usage,
)
from core.engines.plain import NAME_MOST, session_id
from core.engines.rpc import Ask, Note, Response, parse
from core.engines.speech import ANSWER_MOST, CUT
from tests.examples import tried

HERE = Path("/srv/space")


def hear(*updates: dict[str, Any]) -> list[Any]:
    ear = Ear()
    return [event for update in updates for event in ear.hear(update)]


def chunk(**content: Any) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": content}


# Modes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "approvals", "chosen"),
    [
        (("auto", "default", "acceptEdits", "plan", "bypassPermissions"), "ask", "default"),
        (("auto", "default", "acceptEdits", "plan", "bypassPermissions"), "auto", "default"),
        (("auto", "default", "bypassPermissions"), "full", "bypassPermissions"),
        (("read-only", "workspace-write", "agent", "agent-full-access"), "ask", "workspace-write"),
        (("read-only", "agent", "agent-full-access"), "full", "agent-full-access"),
        (("build", "plan"), "ask", "build"),
        (("default", "autoEdit", "yolo"), "ask", "default"),
        (("ask", "code"), "full", "ask"),
        (("something", "else"), "ask", ""),
    ],
)
def test_the_mode_that_asks_is_chosen(
    offered: tuple[str, ...], approvals: str, chosen: str
) -> None:
    assert mode_for(Choice("", offered, offered[0]), Approvals(approvals)) == chosen


def test_no_modes_no_choice() -> None:
    assert mode_for(None, Approvals.ASK) == ""
    assert not asks_nobody(None, "")


@pytest.mark.parametrize("current", ["auto", "yolo", "acceptEdits", "agent"])
def test_staying_in_a_mode_that_approves_by_itself_is_noticed(current: str) -> None:
    assert asks_nobody(Choice("", (current,), current), "")
    assert not asks_nobody(Choice("", (current, "default"), current), "default")


def test_options_come_before_modes_and_groups_are_opened() -> None:
    found = choices(
        {
            "modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}]},
            "configOptions": [
                {
                    "id": "m", "category": "mode", "type": "select", "currentValue": "x",
                    "options": [{"value": "x", "name": "X"}, {"value": "y", "name": "Y"}],
                },
                {
                    "id": "llm", "category": "model", "type": "select", "currentValue": "big",
                    "options": [{"group": "g", "name": "G", "options": [{"value": "big"}]}],
                },
                {"id": "other", "category": "something", "currentValue": True},
                "nonsense",
            ],
        }
    )  # fmt: skip
    assert found.mode == Choice("m", ("x", "y"), "x")
    assert found.model == Choice("llm", ("big",), "big")
    assert found.effort is None


@pytest.mark.parametrize("result", [{}, {"agentCapabilities": None}, {"agentCapabilities": []}])
def test_an_agent_that_declares_nothing_can_nothing(result: dict[str, Any]) -> None:
    able = declared(result).abilities(read_only=True, cost=False)
    assert able == Abilities()


# Approvals ------------------------------------------------------------------------------------

ALL = [
    {"optionId": "1", "kind": "allow_always"},
    {"optionId": "2", "kind": "allow_once"},
    {"optionId": "3", "kind": "reject_always"},
    {"optionId": "4", "kind": "reject_once"},
]


@pytest.mark.parametrize(
    ("options", "decision", "chosen"),
    [
        (ALL, Decision.ALLOW, "2"),
        (ALL, Decision.DENY, "4"),
        (ALL, Decision.CANCEL, None),
        (ALL[:1], Decision.ALLOW, None),
        (ALL[:3], Decision.DENY, "3"),
        (ALL[:2], Decision.DENY, None),
        ([], Decision.ALLOW, None),
    ],
)
def test_a_decision_is_one_of_the_offered_options(
    options: list[dict[str, str]], decision: Decision, chosen: str | None
) -> None:
    told = outcome(options, decision)["outcome"]
    assert told.get("optionId") == chosen
    assert told["outcome"] == ("selected" if chosen else "cancelled")


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ({"rawInput": {"command": "rm -r a", "description": "clean"}}, "rm -r a"),
        ({"rawInput": {"command": ["rm", "a b"]}}, "rm 'a b'"),
        ({"rawInput": {"command": "ls", "cwd": "/srv/space"}}, "ls"),
        ({"rawInput": {"command": "ls", "cwd": "/etc"}}, "ls\n(in /etc)"),
        ({"rawInput": {"command": "ls", "cwd": None}}, "ls"),
        ({"rawInput": {"command": "ls", "cmd": "rm a"}}, 'ls\n{\n "cmd": "rm a"\n}'),
        (
            {"rawInput": {"cmd": "ls", "cwd": "/etc", "workdir": "/srv"}},
            'ls\n(in /etc)\n{\n "workdir": "/srv"\n}',
        ),
        ({"rawInput": {"command": "ls", "cwd": 7}}, 'ls\n{\n "cwd": 7\n}'),
        ({"rawInput": {"command": "ls", "env": {"A": "1"}}}, 'ls\n{\n "env": {\n  "A": "1"\n }\n}'),
        ({"rawInput": {"url": "https://a.example"}}, '{\n "url": "https://a.example"\n}'),
        ({"rawInput": "make tea"}, "make tea"),
        (
            {"content": [{"type": "diff", "path": "/a", "oldText": None, "newText": "x\ny"}]},
            "write /a\n+ x\n+ y",
        ),
        ({"locations": [{"path": "/a"}, {"path": "/b"}], "title": "Edit"}, "/a\n/b"),
        ({"title": "Something"}, "Something"),
        ({}, "(not told)"),
    ],
)
def test_a_command_is_shown_in_full(call: dict[str, Any], shown: str) -> None:
    assert command_of(call, HERE) == shown


def test_no_command_can_be_written_so_that_it_passes_for_another_one() -> None:
    elsewhere = {"rawInput": {"command": "rm -r a", "cwd": "/etc"}}
    alike = {"rawInput": {"command": "rm -r a\n(in /etc)"}}
    more = {"rawInput": {"command": "rm -r a", "env": {"A": "1"}}}
    shown = [command_of(call, HERE) for call in (elsewhere, alike, more)]
    shown.append(command_of({"rawInput": {"command": shown[2]}}, HERE))
    assert len(set(shown)) == 4
    assert shown[1] == "rm -r a\n(in /etc)\n(in /srv/space)"


def test_lines_of_a_file_are_those_that_a_program_reads() -> None:
    diff = {"type": "diff", "path": "/a", "oldText": "", "newText": "# not\x0brun\u2028()\r\n\nb\n"}
    assert command_of({"content": [diff]}, HERE) == "write /a\n+ # not\x0brun\u2028()\r\n+ \n+ b"


def test_a_question_is_completed_by_what_was_told_before() -> None:
    ear = Ear()
    long = "x" * 200_000
    diff = {"type": "diff", "path": "/a", "newText": long}
    noise = {"type": "content", "content": {"type": "text", "text": long}}
    started = {
        "sessionUpdate": "tool_call", "toolCallId": "1", "title": "Edit",
        "content": [diff, noise], "rawOutput": long,
    }  # fmt: skip
    list(ear.hear(started))
    about = ear.about({"toolCallId": "1", "title": None})
    assert about["title"] == "Edit"
    assert command_of(about, HERE) == f"write /a\n+ {long}"
    assert "rawOutput" not in about


# Updates --------------------------------------------------------------------------------------


def test_a_tool_starts_once_and_ends_once() -> None:
    call = {"toolCallId": "1"}
    assert hear(
        {"sessionUpdate": "tool_call", **call, "title": "Read", "status": "pending"},
        {"sessionUpdate": "tool_call_update", **call, "status": "in_progress"},
        {"sessionUpdate": "tool_call_update", **call, "title": "Read a", "status": "failed"},
        {"sessionUpdate": "tool_call_update", **call, "status": "failed"},
    ) == [ToolStarted("1", "Read"), ToolEnded("1", "Read a", failed=True)]


def test_a_tool_first_told_of_in_a_question_starts_there() -> None:
    ear = Ear()
    asked = {"toolCallId": "1", "title": "Run", "rawInput": {"command": "ls"}}
    assert list(ear.mention(asked)) == [ToolStarted("1", "Run")]
    assert list(ear.mention(asked)) == []
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}
    assert list(ear.hear(done)) == [ToolEnded("1", "Run")]


def test_a_tool_that_is_over_at_once() -> None:
    update = {"sessionUpdate": "tool_call", "toolCallId": "1", "kind": "read"}
    events = hear({**update, "status": "completed"})
    assert events == [ToolStarted("1", "read"), ToolEnded("1", "read")]


def test_a_tool_that_is_told_of_only_when_it_is_over_was_at_work() -> None:
    """And what is said of it once more is no second one."""
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "title": "Write a"}
    events = hear(
        {**update, "status": "completed"},
        {**update, "status": "completed", "title": "Wrote a"},
        {**update, "toolCallId": "2", "status": "failed"},
    )
    assert events == [
        ToolStarted("1", "Write a"),
        ToolEnded("1", "Write a"),
        ToolStarted("2", "Write a"),
        ToolEnded("2", "Write a", failed=True),
    ]
    assert all(map(has_effect, events))


def test_tools_that_ended_do_not_fill_the_memory() -> None:
    ear = Ear()
    done = {"sessionUpdate": "tool_call_update", "status": "completed"}
    for number in range(OPEN_CALLS * 2):
        list(ear.hear({**done, "toolCallId": str(number)}))
    assert len(ear._ended) == OPEN_CALLS
    assert ear.calls == {}


def test_tools_that_never_end_do_not_fill_the_memory() -> None:
    ear = Ear()
    for number in range(OPEN_CALLS * 2):
        list(ear.hear({"sessionUpdate": "tool_call", "toolCallId": str(number), "title": "t"}))
    assert len(ear.calls) == OPEN_CALLS


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c.txt", "/a/b c.txt"),
        ("file://localhost/a", "/a"),
        ("file://elsewhere/a", None),
        ("https://a.example/b", None),
        ("", None),
    ],
)
def test_only_files_of_this_machine_are_files(uri: str, path: str | None) -> None:
    events = hear(chunk(type="resource_link", uri=uri, name="n"))
    assert events == ([FileMade(Path(path), "n")] if path else [])


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a.txt", "a.txt"),
        ("ö" * 300 + ".tar.gz", "ö" * 196 + "….gz"),
        ("x" * 300, "x" * 199 + "…"),
        (None, "b.txt"),
    ],
)
def test_a_long_name_of_a_file_keeps_its_ending(said: object, shown: str) -> None:
    assert hear(chunk(type="resource_link", uri="file:///b.txt", name=said)) == [
        FileMade(Path("/b.txt"), shown)
    ]


def test_a_picture_that_is_none_is_passed_over() -> None:
    good = base64.b64encode(b"x").decode()
    assert hear(chunk(type="image", data=good, mimeType="image/png")) == [
        Picture(b"x", "image/png")
    ]
    assert hear(chunk(type="image", data="%%%", mimeType="image/png")) == []


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"sessionUpdate": None},
        {"sessionUpdate": "plan", "entries": []},
        {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "agent_message_chunk", "content": "text"},
        {"sessionUpdate": "usage_update", "cost": {"amount": 1, "currency": "EUR"}},
        {"sessionUpdate": "usage_update", "used": 3},
        {"sessionUpdate": "tool_call_update", "status": "completed"},
    ],
)
def test_what_says_nothing_is_no_event(update: dict[str, Any]) -> None:
    assert hear(update) == []


def test_a_paragraph_only_where_a_tool_was_between_words() -> None:
    tool = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "t", "status": "completed"}
    texts = [
        event.delta
        for event in hear(
            tool, chunk(type="text", text="a"), chunk(type="text", text="b"), tool,
            chunk(type="text", text="c\n"), tool, chunk(type="text", text="d"),
        )
        if isinstance(event, Text)
    ]  # fmt: skip
    assert texts == ["a", "b", "\n\nc\n", "d"]


# Bounds ---------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
    | st.sampled_from(["\0", "\ud83d", "\ude00", 10**400, "USD", "text", "file:///a", "diff"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "text", "uri", "name", "amount", "currency", "title", "path"]),
        inner, max_size=4,
    ),
    max_leaves=8,
)  # fmt: skip
UPDATES = st.dictionaries(
    st.sampled_from(["content", "toolCallId", "title", "kind", "status", "cost", "rawInput"]), JSON
)
KINDS = st.sampled_from(
    ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "usage_update"]
)


@tried(30)
@given(st.lists(st.tuples(KINDS, UPDATES), max_size=6), JSON)
def test_whatever_an_agent_says_can_be_stored(said: list[Any], usage: Any) -> None:
    ear = Ear()
    for kind, update in said:
        for event in ear.hear({**update, "sessionUpdate": kind}):
            for value in event_values(event):
                assert storable(value)
        assert storable(command_of(ear.about(update), HERE))
    ear.count_tokens({"usage": {"inputTokens": usage, "outputTokens": usage}})
    assert all(map(storable, event_values(ear.usage())))


def event_values(event: Any) -> list[Any]:
    return [getattr(event, name) for name in event.__slots__]


def storable(value: Any) -> bool:
    match value:
        case None | bytes() | bool():
            return True
        case int() | float():
            return 0 <= value <= 2**53
        case _:
            return "\0" not in str(value) and bool(str(value).encode() or True)


@pytest.mark.parametrize("pieces", [["\ud83d", "\ude00"], ["a\ud83d", "\ude00b"], ["\ud83d"]])
def test_a_character_that_was_cut_in_two_is_joined(pieces: list[str]) -> None:
    events = hear(*(chunk(type="text", text=piece) for piece in pieces))
    whole = "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    assert "".join(event.delta for event in events) == whole


def test_halves_that_do_not_fit_become_a_sign_that_something_is_missing() -> None:
    assert hear(chunk(type="text", text="\ude00a\0b")) == [Text("\ufffdab")]


def test_an_answer_ends_somewhere_and_says_so() -> None:
    piece = chunk(type="text", text="x" * (ANSWER_MOST - 1))
    events = hear(piece, piece, piece)
    assert len(events) == 2
    assert events[-1].delta == "x" + CUT


def test_files_without_end_are_not_all_sent() -> None:
    made = chunk(type="resource_link", uri="file:///a", name="a")
    events = hear(*[made] * (FILES_MOST + 5))
    assert len(events) == FILES_MOST + 1
    assert events[-1] == Text(TOO_MANY_FILES)


def test_names_titles_and_thoughts_are_short() -> None:
    long = "word\n" * 100_000
    (started, ended) = hear(
        {"sessionUpdate": "tool_call", "toolCallId": long, "title": long, "status": "failed"}
    )
    assert len(started.id) == len(ended.title) == NAME_MOST
    assert "\n" not in ended.title
    (thought,) = hear({"sessionUpdate": "agent_thought_chunk", "content": {"text": long}})
    assert len(thought.delta) == THOUGHT_MOST
    assert len(declared({"agentInfo": {"name": long}}).agent) == NAME_MOST


@pytest.mark.parametrize("number", [10**30, -1, True, 1.5, "3", None])
def test_a_count_that_is_none_counts_nothing(number: Any) -> None:
    ear = Ear()
    assert not ear.count_tokens({"usage": {"inputTokens": number, "outputTokens": 1}})
    assert ear.usage() == Usage()


@pytest.mark.parametrize("amount", [10**400, float("nan"), float("inf"), -1, True, "3"])
def test_a_price_that_is_none_costs_nothing(amount: Any) -> None:
    assert (
        hear({"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}}) == []
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [("s-1", "s-1"), ("s\0", ""), ("\ud83d", ""), ("x" * 10_000, ""), (7, ""), (None, "")],
)
def test_a_session_without_a_usable_id_has_none(given: Any, kept: str) -> None:
    assert session_id({"sessionId": given}) == kept


def test_a_command_is_shown_in_full_or_not_at_all() -> None:
    assert command_of({"rawInput": {"command": "rm\0 \ud83d"}}, HERE) == "rm␀ \ufffd"
    assert command_of({"rawInput": {"command": "x" * (COMMAND_MOST + 1)}}, HERE) == ""
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert command_of({"rawInput": deep}, HERE) == ""


@pytest.mark.parametrize("uri", ["file:///a%00b", "file:///\ud83d", "file://[x", "file:///%ff\0"])
def test_a_link_to_no_possible_file_is_passed_over(uri: str) -> None:
    assert hear(chunk(type="resource_link", uri=uri, name="n")) == []


# Framing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"", b"\xff", b"null", b"[]", b"3", b"{", b'"x"', b"{}", b'{"id": null}', b'{"id": []}',
        b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_line_that_is_no_message(line: bytes) -> None:
    assert parse(line) is None


def test_the_three_kinds_of_messages() -> None:
    assert parse(b'{"method":"a","params":{"x":1}}') == Note("a", {"x": 1})
    assert parse(b'{"id":"q","method":"a"}') == Ask("q", "a", {})
    assert parse(b'{"id":1,"result":null}') == Response(1, {})
    failed = parse(b'{"id":1,"error":{"code":-32000,"message":"Authentication required"}}')
    assert isinstance(failed, Response)
    assert failed.error is not None
    assert failed.error.sign_in
