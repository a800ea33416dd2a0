"""Histories as pure values: whatever a kill left, what is sent is a conversation servers take."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from core.engines.openai_http_history import (
    Said,
    fitting,
    mended,
    newer_half,
    tokens,
    turns_of,
    without_tools,
)

CURRENT = 9
IDS = st.sampled_from(["a", "b", "c"])


def wants(ids: list[str]) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [{"id": id} for id in ids]}


MESSAGES = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, st.text(max_size=300)),
    st.builds(lambda text: {"role": "assistant", "content": text}, st.text(max_size=300)),
    st.builds(wants, st.lists(IDS, min_size=1, max_size=3, unique=True)),
    st.builds(lambda id: {"role": "tool", "tool_call_id": id, "content": "x" * 500}, IDS),
)
HISTORIES = st.lists(
    st.builds(Said, st.sampled_from([1, 2, 3, CURRENT]), MESSAGES), max_size=12
).map(lambda said: sorted(said, key=lambda one: one.turn))


@settings(max_examples=40, deadline=None)
@given(HISTORIES)
def test_every_call_has_its_answer_and_no_answer_stands_alone(history: list[Said]) -> None:
    open_calls: list[str] = []
    for message in mended(history, CURRENT):
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert open_calls == []
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
    assert open_calls == []


@settings(max_examples=40, deadline=None)
@given(HISTORIES)
def test_each_turn_that_is_over_ends_with_an_answer_and_no_words_get_lost(
    history: list[Said],
) -> None:
    sent = mended(history, CURRENT)
    said = [one.message for one in history if one.message["role"] != "tool"]
    rest = iter(sent)
    assert all(any(message is one for one in rest) for message in said), "in their order"
    if history and history[-1].turn != CURRENT and sent:
        assert sent[-1]["role"] == "assistant"
    plain = without_tools(sent)
    assert all("tool_calls" not in m and m["role"] != "tool" for m in plain)
    assert all(m["content"] for m in plain if m["role"] == "assistant")


@settings(max_examples=40, deadline=None)
@given(HISTORIES, st.integers(1, 2000))
def test_what_is_left_out_are_the_oldest_turns_whole(history: list[Said], most: int) -> None:
    kept, turns = turns_of(fitting(history, most)), turns_of(history)
    assert [turn[0].turn for turn in kept] == [
        turn[0].turn for turn in turns[len(turns) - len(kept) :]
    ]
    assert kept or not turns, "the last one always stays"
    assert len(kept) <= 1 or tokens(said for turn in kept for said in turn) <= most
    assert [len(turn) for turn in kept] == [len(turn) for turn in turns[len(turns) - len(kept) :]]


@settings(max_examples=40, deadline=None)
@given(HISTORIES)
def test_the_newer_half_is_smaller_or_the_same(history: list[Said]) -> None:
    newer = newer_half(history)
    assert tokens(newer) <= tokens(history)
    if len(turns_of(history)) > 1:
        assert len(newer) < len(history)
        assert newer == history[len(history) - len(newer) :]
