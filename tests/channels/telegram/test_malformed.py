"""Updates that do not have the shape Telegram promises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.fields import Malformed
from channels.telegram.updates import read, unreadable
from tests.channels.telegram.test_updates import (
    ANA,
    FORUM,
    ME,
    NOW,
    TALK,
    Json,
    mention,
    update,
)
from tests.examples import tried

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = """chat from text entities photo document reply_to_message quote date message_id
    sender_chat forward_origin external_reply message_thread_id is_topic_message location poll
    sticker forum_topic_created migrate_to_chat_id caption caption_entities direct_messages_topic
    """
GOOD: Json = update(FORUM, text="hello", reply_to_message=update()["message"])["message"]

BROKEN = [
    None,
    7,
    "text",
    [],
    {"message": {}},
    {"update_id": "230", "message": update()["message"]},
    {"update_id": 230, "message": {"message_id": 1, "date": 1798000000, "text": "no chat"}},
    {"update_id": 230, "message": "text"},
    update(text="x", message_id="41"),
    update(text="x", message_id=True),
    update(text="x", message_id=2**70),
    update(text="x", date="today"),
    update(text="x", date=2**60),
    update({"id": "-100", "type": "supergroup"}, text="x"),
    update({"type": "private"}, text="x"),
    update(text="x", **{"from": None}),
    update(text="x", **{"from": {"first_name": "Ana"}}),
    update(text=["x"]),
    update(text="x", entities="bold"),
    update(TALK, text="x", entities=mention(5)),
    update(TALK, text="x", entities=[{"type": "mention"}]),
    update(photo=[{"width": 1}]),
    update(document={"file_id": 5}),
    update(text="x", reply_to_message=3),
    update(kind="edited_message", text="x", edit_date="later"),
    {"update_id": 1, "callback_query": {"data": "x", "message": update()["message"], "from": ANA}},
    {"update_id": 1, "callback_query": {"id": "c", "data": "x", "message": {"chat": TALK}}},
]


class TestMalformed:
    @pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
    def test_a_malformed_update_is_named_as_such(self, broken: object) -> None:
        with pytest.raises(Malformed) as caught:
            read(broken, ME, NOW)
        aside = unreadable(broken, ME, caught.value)
        assert aside.error
        assert json.loads(aside.raw) == broken

    def test_what_is_set_aside_is_known_by_its_number(self) -> None:
        aside = unreadable({"update_id": 230}, ME, Malformed("chat is missing"))
        assert aside.identity == "telegram:800000001:u230"
        other = unreadable([1], ME, Malformed("the update is no object"))
        assert other.identity != unreadable([2], ME, Malformed("")).identity

    @tried(75)
    @given(
        st.sampled_from(["message", "edited_message"]),
        st.dictionaries(st.sampled_from(FIELDS.split()), ANYTHING, min_size=1),
    )
    def test_whatever_stands_in_a_message_it_is_read_or_malformed(
        self, kind: str, fields: dict[str, Any]
    ) -> None:
        try:
            read({"update_id": 1, kind: {**GOOD, **fields}}, ME, NOW)
        except Malformed as error:
            said = str(error)
        else:
            said = "read"
        assert said
