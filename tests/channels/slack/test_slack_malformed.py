"""Payloads that do not have the shape Slack promises: read, or named as malformed, never more."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from channels.slack.assistant import Assistant
from channels.slack.events import Read, payload, unreadable
from channels.slack.fields import Malformed
from tests.channels.slack.test_slack_events import CHILD, ME, READING, TS, said
from tests.examples import tried

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    *("type", "subtype", "user", "text", "ts", "thread_ts", "channel", "channel_type", "files"),
    *("attachments", "bot_id", "edited", "message", "previous_message", "user_profile"),
    *("bot_profile", "username", "actions", "container", "command", "trigger_id", "event"),
    *("response_url", "channel_id", "user_id", "assistant_thread", "tokens"),
)
FILE = {"id": "F1", "name": "a.txt", "mimetype": "text/plain", "size": 3}
GOOD: list[dict[str, Any]] = [
    {"type": "event_callback", "event": said(files=[FILE], thread_ts=TS)},
    {
        "type": "event_callback",
        "event": said(
            subtype="message_changed",
            message=said(text="new", edited={"user": "U0ANA", "ts": CHILD}),
            previous_message=said(),
        ),
    },
    {
        "type": "block_actions", "user": {"id": "U0ANA"}, "channel": {"id": "C0LAB"},
        "container": {"type": "message", "message_ts": CHILD}, "message": {"thread_ts": TS},
        "actions": [{"type": "button", "value": "b", "action_ts": CHILD}],
    },
    {"command": "/laneway", "text": "x", "channel_id": "C1", "user_id": "U1", "trigger_id": "1"},
    {"type": "event_callback", "event": {"type": "tokens_revoked", "tokens": {"bot": ["U1"]}}},
]  # fmt: skip


def replaced(whole: Any, changes: list[tuple[int, Any]]) -> Any:
    """The payload with some of its values exchanged, wherever they stand."""
    for number, value in changes:
        places: list[tuple[Any, Any]] = []

        def walk(part: Any, places: list[tuple[Any, Any]] = places) -> None:
            items = part.items() if isinstance(part, dict) else enumerate(part)
            for key, inner in list(items):
                places.append((part, key))
                if isinstance(inner, dict | list):
                    walk(inner)

        walk(whole)
        part, key = places[number % len(places)]
        part[key] = value
    return whole


def survives(body: Any) -> None:
    try:
        assert isinstance(payload(body, READING), Read | None)
    except Malformed as error:
        aside = unreadable(body, ME, error)
        assert aside.error
        assert len(aside.raw) <= 20_000
        aside.raw.encode()
    Assistant(None, None).told(body)  # type: ignore[arg-type]  # none of these is whole


@tried(75)
@given(st.integers(0, len(GOOD) - 1), st.lists(st.tuples(st.integers(0, 99), ANYTHING), max_size=3))
def test_a_payload_with_anything_in_it_is_read_or_malformed(
    number: int, changes: list[tuple[int, Any]]
) -> None:
    survives(replaced(json.loads(json.dumps(GOOD[number])), changes))


@tried(40)
@given(ANYTHING, st.dictionaries(st.sampled_from(FIELDS), ANYTHING))
def test_anything_at_all_is_read_or_malformed(body: Any, fields: dict[str, Any]) -> None:
    survives(body)
    survives({"type": "event_callback", "event": fields})
    survives(fields)
