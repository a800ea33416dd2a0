"""Servers that call themselves compatible, and what each of them does differently."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from core.engines.base import Attachment, Finished, Text, Thought, ToolStarted, Usage
from core.turns import Result
from tests.engines.chats import Chats, tools, used
from tests.fakes.openai_server import (
    DONE,
    MODEL,
    Answer,
    Body,
    calls,
    event,
    frames,
    refuses,
    says,
    tool_call,
    usage,
    whole,
)

DONE_WELL = Finished(Result.DONE)
HEL, LO = event({"content": "Hel"}), event({"content": "lo"})
END = event(finish="stop")


def data(*lines: str, end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


# Forms of a stream ------------------------------------------------------------------------

PIECES = (
    ": keep-alive",
    'data:{"choices":[{"delta":{"content":"Hel"}}]}',
    'data: {"choices":[{"delta":{"content":"lo"}}],"usage":{"total_tokens":7}}',
    "data: [DONE]",
)
FORMS: dict[str, Sequence[bytes]] = {
    "as most write it": [data(*PIECES, end="\n\n")],
    "with CRLF": [data(*PIECES, end="\r\n\r\n")],
    "with CR alone": [data(*PIECES, end="\r\r")],
    "without blank lines": [data(*PIECES)],
    "with an empty data line": [data(*PIECES[:2], "data:", "data: ", *PIECES[2:], end="\r\n\r\n")],
    "with ids, retry and names": [
        data("retry: 3000", "id: 1", "event: message", *PIECES[:2], "", *PIECES[2:])
    ],
    "with a mark of its encoding": [b"\xef\xbb", b"\xbf" + data(*PIECES, end="\n\n")],
    "byte by byte": [bytes([one]) for one in data(*PIECES, end="\r\n\r\n")],
    "without a last line end": [data(*PIECES, end="\n\n").rstrip()],
    "with an object over two lines": [
        data(PIECES[1], 'data: {"choices":[{"delta":', 'data: {"content":"lo"}}],'
        '"usage":{"total_tokens":7}}', "", PIECES[3])
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
async def test_a_stream_is_read_in_every_form(chats: Chats, form: str) -> None:
    play = await chats.say("hello", frames(*FORMS[form]))
    assert play.text == "Hello"
    assert play.last == DONE_WELL
    assert [e for e in play.events if isinstance(e, Usage)] == [Usage(7, 0)]


async def test_one_json_object_instead_of_a_stream_is_an_answer(chats: Chats) -> None:
    said = {"role": "assistant", "content": "Hello", "reasoning_content": "hm"}
    answer = whole(
        choices=[{"message": said, "finish_reason": "stop"}],
        usage={"prompt_tokens": 5, "completion_tokens": 2},
    )
    play = await chats.say("hello", answer)
    assert play.text == "Hello"
    assert Thought("hm") in play.events
    assert used(play) == Usage(5, 2)
    assert play.last == DONE_WELL


async def test_one_json_object_may_ask_for_tools(chats: Chats) -> None:
    (chats.folder / "a.txt").write_text("apples")
    wants = [tool_call("read_file", '{"path": "a.txt"}')]
    answer = whole(choices=[{"message": {"content": None, "tool_calls": wants}}])
    play = await chats.say("look", answer, says("apples"))
    assert play.text == "apples"
    assert tools(play) == ["read a.txt"]


async def test_an_answer_that_ends_without_an_end_mark_is_whole(chats: Chats) -> None:
    play = await chats.say("hello", frames(HEL, LO, END))
    assert play.text == "Hello"
    assert play.last == DONE_WELL


async def test_an_answer_that_ends_without_a_reason_is_whole_with_an_end_mark(
    chats: Chats,
) -> None:
    play = await chats.say("hello", frames(HEL, LO, DONE))
    assert play.text == "Hello"
    assert play.last == DONE_WELL


@pytest.mark.parametrize("abort", [False, True])
async def test_a_stream_that_just_ends_keeps_its_text_and_says_so(
    chats: Chats, abort: bool
) -> None:
    play = await chats.say("hello", frames(HEL, LO, abort=abort))
    assert play.text == "Hello"
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert "cut off" in play.last.error
    assert "go on" in play.last.error
    assert len(chats.server.seen) == 1, "what was shown is not asked for again"
    again = await chats.say("go on", session=play.started.session)
    assert again.last == DONE_WELL
    assert {"role": "assistant", "content": "Hello"} in chats.last.messages


async def test_a_connection_that_stays_open_after_the_end_holds_nothing_up(chats: Chats) -> None:
    play = await chats.say("hello", frames(HEL, LO, END, usage(), DONE, hold=True))
    assert play.text == "Hello"
    assert play.last == DONE_WELL
    assert used(play) == Usage(11, 3)


async def test_a_server_that_never_ends_its_stream_holds_nothing_up(
    chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engines.openai_http_calls.AFTER_FINISH", 0.02)
    play = await chats.say("hello", frames(HEL, LO, END, hold=True))
    assert play.text == "Hello"
    assert play.last == DONE_WELL


async def test_a_connection_that_breaks_after_the_end_costs_nothing(chats: Chats) -> None:
    play = await chats.say("hello", frames(HEL, LO, END, abort=True))
    assert play.text == "Hello"
    assert play.last == DONE_WELL


async def test_an_error_in_the_stream_keeps_the_text_and_tells_it(chats: Chats) -> None:
    broken = data('data: {"error":{"message":"the card is on fire","code":500}}', "")
    play = await chats.say("hello", frames(HEL, LO, broken))
    assert play.text == "Hello"
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert "the card is on fire" in play.last.error


@pytest.mark.parametrize(
    "error",
    [
        b'event: error\ndata: {"message": "overloaded, sorry"}\n\n',
        b'data: {"error": "overloaded, sorry"}\n\n',
        b'data: {"error": {"message": "overloaded, sorry", "code": 503}}\n\n',
    ],
)
async def test_an_error_before_the_first_word_is_tried_again(chats: Chats, error: bytes) -> None:
    play = await chats.say("hello", frames(error), says("Hello"))
    assert play.text == "Hello"
    assert play.last == DONE_WELL
    assert chats.waited == [1.0]


async def test_a_stream_without_a_word_is_tried_again(chats: Chats) -> None:
    play = await chats.say("hello", frames(event({"role": "assistant"})), says("Hello"))
    assert play.text == "Hello"
    assert len(chats.server.seen) == 2


@pytest.mark.parametrize("body", [{}, {"message": "hi"}, {"choices": []}])
async def test_json_without_an_answer_ends_the_turn_with_words(chats: Chats, body: Body) -> None:
    play = await chats.say("hello", whole(**body))
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED


async def test_what_is_no_answer_at_all_ends_the_turn_with_words(chats: Chats) -> None:
    play = await chats.say("hello", frames(b"<html>Welcome to the router</html>"))
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert "neither a stream nor JSON" in play.last.error


async def test_a_piece_that_is_no_json_ends_the_turn_with_words(chats: Chats) -> None:
    play = await chats.say("hello", frames(HEL, b"data: {oops\n\n"))
    assert play.text == "Hel"
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED


@pytest.mark.parametrize(
    ("reason", "words"),
    [("length", "limit of length"), ("content_filter", "filter")],
)
async def test_an_answer_that_is_not_whole_says_why(chats: Chats, reason: str, words: str) -> None:
    play = await chats.say("hello", says("Once upon", finish=reason))
    assert play.text == "Once upon"
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert words in play.last.error


# Thoughts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
async def test_thoughts_are_no_part_of_the_answer(chats: Chats, key: str) -> None:
    play = await chats.say("hello", frames(event({key: "hm, "}), event({key: "so"}), HEL, LO, DONE))
    thoughts = [e.delta for e in play.events if isinstance(e, Thought)]
    assert thoughts == ["hm, ", "so"]
    assert play.text == "Hello"


async def test_thoughts_in_tags_at_the_head_are_no_part_of_the_answer(chats: Chats) -> None:
    pieces = [
        event({"content": c}) for c in ("\n<th", "ink>hm", " <b", "></th", "ink>\n\nHel", "lo")
    ]
    play = await chats.say("hello", frames(*pieces, DONE))
    assert play.text == "Hello"
    assert "".join(e.delta for e in play.events if isinstance(e, Thought)) == "hm <b>"


async def test_tags_inside_the_answer_stay(chats: Chats) -> None:
    play = await chats.say("hello", says("Write <think> like </think> this"))
    assert play.text == "Write <think> like </think> this"


async def test_a_content_of_parts_is_joined(chats: Chats) -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    play = await chats.say("hello", frames(event({"content": parts}), DONE))
    assert play.text == "Hello"


async def test_halves_of_characters_and_nul_become_whole_text(chats: Chats) -> None:
    odd = b'data: {"choices":[{"delta":{"content":"a\\ud83d \\u0000b"}}]}\n\n'
    play = await chats.say("hello", frames(odd, DONE))
    assert play.text == "a\ufffd b"
    assert (await chats.say("and?", session=play.started.session)).last == DONE_WELL


# Usage ------------------------------------------------------------------------------------


async def test_usage_that_grows_in_every_piece_counts_once(chats: Chats) -> None:
    pieces = [
        event({"content": w}, usage={"prompt_tokens": 9, "completion_tokens": n})
        for n, w in enumerate("abc", 1)
    ]
    play = await chats.say("hello", frames(*pieces, DONE))
    assert used(play) == Usage(9, 3)


async def test_usage_of_all_calls_of_a_turn_is_added_up(chats: Chats) -> None:
    play = await chats.say("look", calls(("list_files", {})), says("empty"))
    assert used(play) == Usage(22, 6)


async def test_usage_is_told_of_an_answer_that_was_cut_off(chats: Chats) -> None:
    play = await chats.say("hello", frames(HEL, usage(), abort=False))
    assert used(play) == Usage(11, 3)


async def test_a_server_without_usage_tells_none(chats: Chats) -> None:
    play = await chats.say("hello", frames(HEL, LO, END, DONE))
    assert not play.saw(Usage)
    assert play.last == DONE_WELL


# What some refuse -------------------------------------------------------------------------


def grumbles(option: str, message: str, status: int = 400) -> Answer:
    """Refuses each request with this option, and answers the others."""

    async def answer(request: object, body: Body) -> object:
        if option in json.dumps(body):
            return await refuses(status, message)(request, body)  # type: ignore[arg-type]
        return await says("fine")(request, body)  # type: ignore[arg-type]

    return answer  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("option", "message", "status"),
    [
        ("stream_options", "Unrecognized request argument supplied: stream_options", 400),
        ("reasoning_effort", "Unsupported parameter: 'reasoning_effort'", 400),
        ('"tools"', '"auto" tool choice requires --enable-auto-tool-choice', 400),
        ('"tools"', f"{MODEL} does not support tools", 400),
        ('"tools"', "Automatic streaming tool choice is not supported", 500),
        ('"system"', "System role not supported", 400),
    ],
)
async def test_what_a_server_refuses_is_left_out_and_remembered(
    chats: Chats, option: str, message: str, status: int
) -> None:
    stubborn = grumbles(option, message, status)
    play = await chats.say("hello", stubborn, stubborn, effort="high")
    assert play.text.endswith("fine")
    assert play.last == DONE_WELL
    assert len(chats.server.seen) == 2
    assert chats.waited == []
    again = await chats.say("hello", stubborn, effort="high", session=play.started.session)
    assert again.text == "fine"
    assert len(chats.server.seen) == 3, "it is not asked for again"


async def test_a_person_is_told_once_that_an_effort_is_not_taken(chats: Chats) -> None:
    stubborn = grumbles("xhigh", "Unsupported value: 'reasoning_effort' does not take 'xhigh'")
    play = await chats.say("hello", stubborn, stubborn, effort="xhigh")
    assert play.text.startswith(f"({MODEL} does not take the effort “xhigh”")
    assert "/effort" in play.text
    again = await chats.say("hello", stubborn, effort="xhigh")
    assert again.text == "fine"
    await chats.say("hello", effort="high")
    assert chats.last.body["reasoning_effort"] == "high", "another may well be taken"


async def test_a_picture_that_is_refused_does_not_cost_the_next_one(chats: Chats) -> None:
    (chats.folder / "a.png").write_bytes(b"png")
    picture = [Attachment(chats.folder / "a.png", "image/png")]
    await chats.say("look", refuses(400, "Invalid image data"), says("no"), attachments=picture)
    assert "image_url" not in json.dumps(chats.last.body)
    await chats.say("look", attachments=picture)
    assert "image_url" in json.dumps(chats.last.body)


async def test_another_model_is_asked_anew(chats: Chats) -> None:
    stubborn = grumbles('"tools"', f"{MODEL} does not support tools")
    await chats.say("hello", stubborn, stubborn)
    await chats.say("hello", model="large-1")
    assert "tools" in chats.last.body


async def test_a_refusal_without_a_reason_is_tried_once_with_nothing_extra(chats: Chats) -> None:
    play = await chats.say("hello", refuses(422), says("fine"), effort="low")
    assert play.text == "fine"
    assert set(chats.last.body) == {"model", "messages", "stream"}
    await chats.say("hello", effort="low")
    assert "tools" in chats.last.body, "it may have been something else"


async def test_a_refusal_of_everything_ends_with_its_words(chats: Chats) -> None:
    play = await chats.say("hello", refuses(400, "no"), refuses(400, "never"))
    assert isinstance(play.last, Finished)
    assert "never" in play.last.error
    assert len(chats.server.seen) == 2


async def test_tools_of_the_history_are_left_out_where_none_are_known(chats: Chats) -> None:
    first = await chats.say("look", calls(("list_files", {})), says("nothing there"))
    stubborn = grumbles('"tools"', "tools are not supported")
    await chats.say("and now?", stubborn, stubborn, session=first.started.session)
    assert [message["role"] for message in chats.last.messages] == [
        "system", "user", "assistant", "user"
    ]  # fmt: skip
    assert chats.last.messages[2]["content"] == "nothing there"


async def test_effort_and_model_are_those_of_the_turn(chats: Chats) -> None:
    play = await chats.say("hello", model="large-1", effort="high")
    assert play.started.model == "large-1"
    assert chats.last.body["model"] == "large-1"
    assert chats.last.body["reasoning_effort"] == "high"
    await chats.say("hello")
    assert chats.last.body["model"] == MODEL
    assert "reasoning_effort" not in chats.last.body


# Too long ---------------------------------------------------------------------------------

TOO_LONG = "This model's maximum context length is 4096 tokens; yours have 5000 (900 for tools)"


async def test_a_conversation_that_is_too_long_loses_its_older_half_and_says_so(
    chats: Chats,
) -> None:
    session = ""
    for word in ("one", "two", "three"):
        session = (await chats.say(word, session=session)).started.session
    play = await chats.say("four", refuses(400, TOO_LONG), says("Hello"), session=session)
    assert play.last == DONE_WELL
    assert "older half was left out" in play.text
    assert play.text.endswith("Hello")
    told = [m["content"] for m in chats.last.messages if m["role"] == "user"]
    assert told == ["three", "four"]
    assert "tools" in chats.last.body, "tools were not what was refused"
    await chats.say("recall", session=session)
    assert [m["content"] for m in chats.last.messages if m["role"] == "user"] == [
        "three", "four", "recall"
    ]  # fmt: skip


async def test_a_message_that_alone_is_too_long_ends_with_words(chats: Chats) -> None:
    play = await chats.say("word " * 3, refuses(400, TOO_LONG))
    assert isinstance(play.last, Finished)
    assert "Shorten the message" in play.last.error


async def test_what_is_still_too_long_is_not_cut_twice(chats: Chats) -> None:
    session = (await chats.say("one")).started.session
    play = await chats.say("two", *[refuses(400, TOO_LONG)] * 2, session=session)
    assert isinstance(play.last, Finished)
    assert "/new" in play.last.error
    assert len(chats.server.seen) == 3


# Tool calls as they come ------------------------------------------------------------------

READS = '{"path": "a.txt"}'


@pytest.mark.parametrize(
    "pieces",
    [
        [event({"tool_calls": [tool_call("read_file", READS)]}, finish="stop")],
        [
            event({"tool_calls": [tool_call("read_file", "")]}),
            event({"tool_calls": [{"index": 0, "function": {"arguments": READS[:5]}}]}),
            event({"tool_calls": [{"index": 0, "function": {"arguments": READS[5:]}}]}),
        ],
        [event({"tool_calls": [{"function": {"name": "read_file", "arguments": READS}}]})],
        [
            event({"tool_calls": [{"id": "x", "function": {"name": "read_file"}}]}),
            event({"tool_calls": [{"function": {"arguments": READS}}]}),
        ],
        [event({"tool_calls": [{"function": {"name": "read_file",
                                             "arguments": {"path": "a.txt"}}}]})],
    ],
)  # fmt: skip
async def test_a_call_is_put_together_from_any_pieces(chats: Chats, pieces: list[bytes]) -> None:
    (chats.folder / "a.txt").write_text("apples")
    play = await chats.say("look", frames(*pieces, DONE), says("done"))
    assert tools(play) == ["read a.txt"]
    assert chats.last.messages[-1]["content"] == "apples"
    assert chats.last.messages[-1]["role"] == "tool"


@pytest.mark.parametrize(
    ("index", "ids"), [({"index": 0}, ("x", "y")), ({}, ("x", "y")), ({}, ("", ""))]
)
async def test_calls_that_all_claim_to_be_the_first_stay_apart(
    chats: Chats, index: Body, ids: tuple[str, str]
) -> None:
    pieces = [
        event({"tool_calls": [{**index, "id": id, "function": {
            "name": "read_file", "arguments": json.dumps({"path": path})}}]})
        for id, path in zip(ids, ("a.txt", "b.txt"), strict=True)
    ]  # fmt: skip
    play = await chats.say("look", frames(*pieces, DONE), says("done"))
    assert tools(play) == ["read a.txt", "read b.txt"]
    answers = [m["tool_call_id"] for m in chats.last.messages if m["role"] == "tool"]
    assert len(set(answers)) == 2


async def test_a_cut_off_call_is_not_made(chats: Chats) -> None:
    half = event({"tool_calls": [tool_call("read_file", '{"pa')]})
    play = await chats.say("look", frames(event({"content": "I look."}), half, abort=True))
    assert not play.saw(ToolStarted)
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert Text("I look.") in play.events
