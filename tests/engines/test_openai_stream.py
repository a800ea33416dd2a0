"""Reading a stream, as a pure function of its bytes: however they are cut, whatever they hold."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.engines.base import Text, Thought
from core.engines.openai_http_stream import LINES_MOST, MOST, Frames, Malformed, Reply
from core.engines.openai_http_words import Refused, refused, secrets_in, wait
from tests.fakes.openai_server import DONE, event, tool_call, usage

STREAM = b"".join(
    (
        b": hello\r\n\r\n",
        event({"content": "<think>h"}),
        event({"content": "m</think> Zo\u00eb \U0001f701"}),
        b"event: message\r\rdata:\r\n",
        event({"tool_calls": [tool_call("read_file", '{"path"')]}),
        event({"tool_calls": [{"index": 0, "function": {"arguments": ': "a"}'}}]}),
        usage(prompt_tokens=4, completion_tokens=2),
        DONE,
    )
)


def read(*pieces: bytes) -> tuple[Frames, Reply, list[Text | Thought]]:
    frames, reply, said = Frames(), Reply(), []
    for piece in pieces:
        for chunk in frames.feed(piece):
            said += reply.take(chunk)
    for chunk in frames.close():
        said += reply.take(chunk)
    said += reply.rest()
    return frames, reply, said


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_where_the_bytes_are_cut_makes_no_difference(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    frames, reply, said = read(*(STREAM[a:b] for a, b in itertools.pairwise(edges)))
    assert frames.done
    assert reply.text == "Zoë 🜁"
    assert "".join(one.delta for one in said if isinstance(one, Thought)) == "hm"
    assert [(call.name, call.arguments) for call in reply.calls] == [("read_file", '{"path": "a"}')]
    assert reply.spent() == (4, 2)
    assert reply.spent() == (0, 0)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=8))
def test_bytes_of_any_kind_are_read_or_refused(pieces: list[bytes]) -> None:
    try:
        _, reply, _ = read(*pieces)
    except Malformed:
        return
    assert reply.text == "".join(reply.text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "message", "content", "tool_calls", "function", "name", "id",
             "index", "arguments", "usage", "error", "finish_reason", "prompt_tokens", "text"]
        ), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["choices", "usage", "error"]), JSON))
def test_objects_of_any_shape_are_read(chunk: dict[str, object]) -> None:
    reply = Reply()
    said = list(reply.take(json.loads(json.dumps(chunk))))
    assert all(isinstance(one.delta, str) for one in said)
    if reply.error is not None:
        assert isinstance(refused(0, {"error": reply.error}, {}, 0).said, str)


def test_what_has_no_end_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(Malformed, match="too large"):
        read(*[b"x" * 1_000_000] * (MOST // 1_000_000 + 2))


def test_many_lines_that_are_no_events_are_refused_as_soon() -> None:
    line = b"x" * 99 + b"\n" + b"y" * 999_899 + b"\n"
    with pytest.raises(Malformed, match="too large"):
        read(*[line] * (MOST // 1_000_000 + 2))


def test_an_object_that_never_ends_is_refused() -> None:
    with pytest.raises(Malformed, match="not JSON"):
        read(b'data: {"a":\n' * (LINES_MOST + 1))


def test_calls_without_bounds_are_refused() -> None:
    many = [tool_call("read_file", "{}", f"id-{n}", n) for n in range(100)]
    with pytest.raises(Malformed, match="more tools"):
        read(event({"tool_calls": many}))
    with pytest.raises(Malformed, match="more tools"):
        read(event({"tool_calls": [tool_call("read_file", "x" * 1_000_001)]}))


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"\xff", b'{"error": null}', b"<html>"])
def test_a_refusal_of_any_body_has_a_status(body: bytes) -> None:
    fault = refused(503, body, {}, 0)
    assert (fault.status, fault.transient) == (503, True)
    assert "<" not in fault.said


def test_a_server_that_repeats_the_key_does_not_have_it_repeated() -> None:
    body = json.dumps({"error": {"message": "bad key sk-1234", "code": "sk-1234"}}).encode()
    fault = refused(401, body, {}, 0, "sk-1234")
    assert "1234" not in f"{fault.said}{fault.code}{fault}"


def test_nor_the_password_of_its_address_in_the_form_it_was_handed_over() -> None:
    kept = secrets_in("https://ana:p%40ss@example.org/v1", "sk-1234")
    told = "sk-1234, p@ss, Basic YW5hOnBAc3M="
    assert refused(401, {"error": told}, {}, 0, *kept).said == "…, …, Basic …="
    assert secrets_in("https://example.org/v1", "sk-1234") == ("sk-1234",)


def test_nor_a_token_that_stands_alone_before_its_host() -> None:
    kept = secrets_in("https://hf_token@example.org/v1", "")
    told = "no such key: hf_token, Basic aGZfdG9rZW46"
    assert refused(401, {"error": told}, {}, 0, *kept).said == "no such key: …, Basic …"


def test_a_servers_words_are_short_and_in_one_line() -> None:
    said = refused(400, {"error": {"message": "a\n\tb\0 " + "x" * 5000}}, {}, 0).said
    assert said.startswith("a b x")
    assert len(said) == 300


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after": "99999999999999999999"}, None),
        ({"retry-after-ms": "nan", "retry-after": "5"}, 5.0),
        ({}, None),
    ],
)
def test_a_wait_is_read_as_a_number_or_a_date(told: dict[str, str], seconds: float | None) -> None:
    assert wait(told, 60_000) == seconds


def test_spent_money_is_no_reason_to_try_again() -> None:
    assert not Refused(429, "You exceeded your current quota").transient
    assert Refused(429, "slow down").transient
