"""What each update of the Bot API becomes."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from channels.telegram.content import Me
from channels.telegram.updates import read
from core.messages import Edit, FileKind, Message, Moved, Press, Quote, Titled

ME = Me(800000001, "gw_bot", "Gateway")
NOW = 1_798_000_123_456
Json = dict[str, Any]
ANA = {"id": 700000001, "is_bot": False, "first_name": "Ana", "username": "ana_t"}
BEN = {"id": 700000002, "is_bot": False, "first_name": "Ben", "last_name": "Berg"}
BOT = {"id": 800000001, "is_bot": True, "first_name": "Gateway", "username": "gw_bot"}
PRIVATE = {"id": 700000001, "type": "private", "first_name": "Ana"}
FORUM = {"id": -1001900000001, "type": "supergroup", "is_forum": True, "title": "Lab"}
TALK = {"id": -1001900000002, "type": "supergroup", "title": "Talk"}


def update(chat: Json = PRIVATE, kind: str = "message", **fields: Any) -> Json:
    message = {"message_id": 41, "date": 1798000000, "chat": chat, "from": ANA, **fields}
    return {"update_id": 101, kind: {k: v for k, v in message.items() if v is not None}}


def message(chat: Json = PRIVATE, **fields: Any) -> Message:
    became = read(update(chat, **fields), ME, NOW)
    assert isinstance(became, Message)
    return became


def mention(offset: int, length: int = 7) -> list[Json]:
    return [{"type": "mention", "offset": offset, "length": length}]


class TestWhere:
    def test_a_private_chat_is_a_lane_of_its_own_and_needs_no_mention(self) -> None:
        got = message(text="hi")
        assert str(got.address) == "telegram:700000001"
        assert got.direct
        assert got.identity == "telegram:800000001:700000001:41"
        assert (got.at, got.sender, got.sender_name) == (1798000000000, "telegram:700000001", "Ana")

    def test_a_topic_of_a_private_chat_keeps_its_thread(self) -> None:
        got = message(text="hi", message_thread_id=9, is_topic_message=True)
        assert (got.address.thread, got.direct, got.engages) == ("9", True, False)

    def test_a_message_in_general_has_thread_1_and_does_not_engage(self) -> None:
        got = message(FORUM, text="hello general")
        assert (got.address.thread, got.engages, got.title) == ("1", False, "Lab")

    def test_a_reply_chain_inside_general_stays_in_general(self) -> None:
        assert message(FORUM, text="x", message_thread_id=30).address.thread == "1"

    def test_a_forum_topic_engages(self) -> None:
        got = message(FORUM, text="work", message_thread_id=36, is_topic_message=True)
        assert (got.address.thread, got.engages, got.direct) == ("36", True, False)

    def test_a_reply_chain_of_an_ordinary_supergroup_is_the_chats_lane(self) -> None:
        plain, chained = message(TALK, text="one"), message(TALK, text="two", message_thread_id=55)
        assert plain.address == chained.address
        assert plain.address.thread == ""

    def test_a_persons_topic_in_channel_direct_messages_is_a_lane(self) -> None:
        chat = {**TALK, "is_direct_messages": True}
        assert message(chat, text="x", direct_messages_topic={"topic_id": 7}).address.thread == (
            "dm:7"
        )

    def test_a_message_without_a_date_counts_as_said_now(self) -> None:
        assert message(text="hi", date=0).at == NOW


class TestAddressed:
    def test_a_mention_after_emoji_is_found_by_utf16_offsets_and_taken_out(self) -> None:
        got = message(TALK, text="👍👍 @gw_bot status", entities=mention(5))
        assert (got.addressed, got.text) == (True, "👍👍 status")

    @pytest.mark.parametrize(
        ("text", "offset", "left"),
        [
            ("@gw_bot do it", 0, "do it"),
            ("@gw_bot, do it", 0, "do it"),
            ("@gw_bot: /status", 0, "/status"),
            ("ask @gw_bot about it", 4, "ask about it"),
            ("please @gw_bot", 7, "please"),
            ("@gw_bot", 0, ""),
            ("@GW_Bot\nfirst", 0, "first"),
        ],
    )
    def test_our_mention_leaves_the_rest_of_the_text(
        self, text: str, offset: int, left: str
    ) -> None:
        got = message(TALK, text=text, entities=mention(offset))
        assert (got.addressed, got.text) == (True, left)

    def test_a_mention_of_somebody_else_stays(self) -> None:
        got = message(TALK, text="@gw_bots hi", entities=mention(0, 8))
        assert (got.addressed, got.text) == (False, "@gw_bots hi")

    def test_a_mention_by_name_counts_by_its_id(self) -> None:
        entity = {"type": "text_mention", "offset": 0, "length": 7, "user": BOT}
        got = message(TALK, text="Gateway go", entities=[entity])
        assert (got.addressed, got.text) == (True, "go")

    def test_a_mention_in_a_caption_counts(self) -> None:
        photo = [{"file_id": "F", "width": 9, "height": 9}]
        got = message(TALK, photo=photo, caption="@gw_bot see", caption_entities=mention(0))
        assert (got.addressed, got.text) == (True, "see")

    def test_a_reply_to_us_addresses_us_and_to_others_does_not(self) -> None:
        ours = {"message_id": 40, "date": 1, "chat": TALK, "from": BOT, "text": "answer"}
        assert message(TALK, text="and?", reply_to_message=ours).addressed
        assert not message(TALK, text="and?", reply_to_message={**ours, "from": BEN}).addressed

    def test_the_beginning_of_a_topic_that_we_opened_is_no_reply_to_us(self) -> None:
        begun = {"message_id": 36, "from": BOT, "forum_topic_created": {"name": "Builds"}}
        got = message(
            FORUM, text="hi", message_thread_id=36, is_topic_message=True, reply_to_message=begun
        )
        assert (got.addressed, got.quote, got.title) == (False, None, "Builds")

    def test_a_command_with_our_name_is_for_us_and_loses_the_name(self) -> None:
        entity = [{"type": "bot_command", "offset": 0, "length": 14}]
        got = message(TALK, text="/status@GW_bot now", entities=entity)
        assert (got.addressed, got.text) == (True, "/status now")

    @pytest.mark.parametrize(
        "entities", [None, [{"type": "bot_command", "offset": 0, "length": 9}]]
    )
    def test_a_command_with_another_bots_name_is_not_for_us(self, entities: Any) -> None:
        assert read(update(TALK, text="/stop@other_bot", entities=entities), ME, NOW) is None

    def test_in_a_direct_chat_it_is_text_since_no_other_bot_is_there(self) -> None:
        got = message(text="/stop@other_bot")
        assert (got.direct, got.text) == (True, "/stop@other_bot")

    def test_an_edit_of_it_is_read_there_as_well(self) -> None:
        found = read(update(kind="edited_message", text="/stop@other_bot"), ME, NOW)
        assert isinstance(found, Edit)
        assert found.text == "/stop@other_bot"

    def test_a_path_with_an_at_sign_is_text(self) -> None:
        assert message(text="/etc@home is odd").text == "/etc@home is odd"


class TestWho:
    def test_another_bot_is_marked_as_one(self) -> None:
        other = {"id": 5, "is_bot": True, "first_name": "Other"}
        assert message(TALK, text="hi", **{"from": other}).from_bot

    def test_we_do_not_hear_ourselves(self) -> None:
        assert read(update(TALK, text="hi", **{"from": BOT}), ME, NOW) is None

    @pytest.mark.parametrize("author", [1087968824, 136817688, 777000])
    def test_who_writes_in_the_name_of_a_chat_is_that_chat(self, author: int) -> None:
        user = {"id": author, "is_bot": True, "first_name": "Group"}
        got = message(TALK, text="hi", sender_chat=TALK, **{"from": user})
        assert (got.sender, got.sender_name) == ("telegram:-1001900000002", "Talk")

    def test_a_channel_post_has_no_person(self) -> None:
        channel = {"id": -1001900000555, "type": "channel", "title": "News"}
        got = message(TALK, text="post", sender_chat=channel, is_automatic_forward=True)
        assert got.sender == "telegram:-1001900000555"
        nobody = message(TALK, text="post", sender_chat=channel, **{"from": None})
        assert nobody.sender == "telegram:-1001900000555"

    def test_an_anonymous_admin_without_a_sender_chat_is_the_group(self) -> None:
        user = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
        assert message(TALK, text="hi", **{"from": user}).sender == "telegram:-1001900000002"


class TestContent:
    def test_text_is_cleaned_of_what_stores_refuse(self) -> None:
        assert message(text="a\0b\ud83d").text == "ab\ufffd"

    def test_a_hidden_link_is_written_out(self) -> None:
        entity = {"type": "text_link", "offset": 4, "length": 4, "url": "https://example.org/a_b"}
        got = message(text="see here!", entities=[entity])
        assert got.text == "see [here](https://example.org/a_b)!"

    def test_of_a_photo_the_largest_size_is_taken(self) -> None:
        sizes = [
            {"file_id": "S", "width": 90, "height": 90},
            {"file_id": "L", "width": 800, "height": 600, "file_size": 5},
            {"file_id": "M", "width": 320, "height": 240},
        ]
        (file,) = message(photo=sizes, caption="before").files
        assert (file.ref, file.kind, file.size) == ("L", FileKind.IMAGE, 5)
        assert file.name == "photo_41.jpg"

    @pytest.mark.parametrize(
        ("field", "kind", "name"),
        [
            ("document", FileKind.DOCUMENT, "document_41"),
            ("voice", FileKind.VOICE, "voice_41.ogg"),
            ("audio", FileKind.AUDIO, "audio_41.mp3"),
            ("video", FileKind.VIDEO, "video_41.mp4"),
            ("video_note", FileKind.VIDEO, "video_note_41.mp4"),
            ("sticker", FileKind.IMAGE, "sticker_41.webp"),
        ],
    )
    def test_every_form_of_a_file_is_one(self, field: str, kind: FileKind, name: str) -> None:
        (file,) = message(**{field: {"file_id": "F"}}).files
        assert (file.ref, file.kind, file.name) == ("F", kind, name)

    def test_an_animation_is_one_file_though_it_comes_as_two(self) -> None:
        carried = {"file_id": "F", "file_name": "cat.mp4"}
        (file,) = message(animation=carried, document=carried).files
        assert (file.kind, file.name) == (FileKind.VIDEO, "cat.mp4")

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ("../../etc/passwd", "passwd"),
            ("C:\\temp\\a.txt", "a.txt"),
            ("..", "document_41"),
            ("a\n\0b.txt", "ab.txt"),
            ("x" * 300 + ".pdf", "x" * 116 + ".pdf"),
        ],
    )
    def test_a_file_name_is_one_harmless_step_of_a_path(self, given: str, kept: str) -> None:
        assert message(document={"file_id": "F", "file_name": given}).files[0].name == kept

    def test_pieces_of_an_album_carry_its_id(self) -> None:
        got = message(photo=[{"file_id": "F51"}], media_group_id="alb1", caption="before")
        assert (got.album, got.text) == ("alb1", "before")

    @pytest.mark.parametrize(
        ("fields", "line"),
        [
            ({"location": {"latitude": 52.5, "longitude": 13}}, "Location: 52.500000, 13.000000"),
            ({"contact": {"phone_number": "+49 1", "first_name": "Eva"}}, "Contact: Eva, +49 1"),
            ({"dice": {"emoji": "🎲", "value": 4}}, "Dice: 🎲 4"),
            (
                {"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}},
                "Poll: Tea? (yes / no)",
            ),
            (
                {
                    "venue": {
                        "title": "Lab",
                        "address": "Road 1",
                        "location": {"latitude": 1, "longitude": 2},
                    }
                },
                "Place: Lab, Road 1 (1.000000, 2.000000)",
            ),
        ],
    )
    def test_what_is_neither_text_nor_file_is_said_in_a_line(self, fields: Json, line: str) -> None:
        assert message(**fields).text == line


class TestQuotes:
    REPLIED: ClassVar[Json] = {
        "message_id": 70,
        "date": 1,
        "chat": TALK,
        "from": BEN,
        "text": "I prefer the blue one because it is small",
    }

    def test_a_reply_quotes_the_message_and_its_author(self) -> None:
        got = message(TALK, text="why?", reply_to_message=self.REPLIED)
        assert got.quote == Quote("I prefer the blue one because it is small", "Ben Berg")

    def test_a_chosen_quote_is_what_counts(self) -> None:
        quote = {"text": "the blue one", "position": 9}
        got = message(TALK, text="why?", reply_to_message=self.REPLIED, quote=quote)
        assert got.quote == Quote("the blue one", "Ben Berg")

    def test_the_file_of_a_quoted_message_comes_along(self) -> None:
        replied = {**self.REPLIED, "text": None, "caption": "plan"}
        replied |= {"document": {"file_id": "P", "file_name": "plan.pdf"}}
        quote = message(TALK, text="?", reply_to_message=replied).quote
        assert quote is not None
        assert (quote.text, [file.name for file in quote.files]) == ("plan", ["plan.pdf"])

    def test_a_quote_from_another_chat_names_its_title(self) -> None:
        channel = {"id": -1001900000555, "type": "channel", "title": "Team News"}
        external = {"origin": {"type": "channel", "chat": channel, "message_id": 9}}
        got = message(
            text="still true?", external_reply=external, quote={"text": "Release is on Friday"}
        )
        assert got.text == "still true?"
        assert got.quote == Quote("Release is on Friday", origin="Team News")

    @pytest.mark.parametrize(
        ("origin", "author", "title"),
        [
            ({"type": "user", "sender_user": BEN}, "Ben Berg", ""),
            ({"type": "hidden_user", "sender_user_name": "Somebody"}, "Somebody", ""),
            ({"type": "chat", "sender_chat": TALK}, "", "Talk"),
            ({"type": "channel", "chat": TALK, "author_signature": "Eva"}, "Eva", "Talk"),
            ({"type": "something new"}, "", ""),
        ],
    )
    def test_forwarded_words_are_a_quote_and_not_the_senders_own(
        self, origin: Json, author: str, title: str
    ) -> None:
        got = message(text="/stop everything", forward_origin=origin)
        assert got.text == ""
        assert got.quote == Quote("/stop everything", author, title, forwarded=True)

    def test_a_mention_inside_forwarded_words_does_not_address_us(self) -> None:
        origin = {"type": "user", "sender_user": BEN}
        got = message(TALK, text="@gw_bot go", entities=mention(0), forward_origin=origin)
        assert not got.addressed

    def test_the_file_of_a_forwarded_message_is_the_messages_own(self) -> None:
        origin = {"type": "user", "sender_user": BEN}
        got = message(voice={"file_id": "V"}, forward_origin=origin)
        assert [file.ref for file in got.files] == ["V"]


class TestOtherUpdates:
    def test_an_edit_has_an_identity_of_its_own_for_each_edit_date(self) -> None:
        edited = update(kind="edited_message", text="/new", edit_date=1798086400)
        got = read(edited, ME, NOW)
        assert isinstance(got, Edit)
        assert got.of == "telegram:800000001:700000001:41"
        assert got.identity == "telegram:800000001:700000001:41:e1798086400"

    def test_a_moving_live_location_is_no_edit(self) -> None:
        location = {"latitude": 1.0, "longitude": 2.0}
        assert read(update(kind="edited_message", location=location), ME, NOW) is None

    def press(self, **fields: Any) -> Any:
        query = {"id": "c1", "from": ANA, "chat_instance": "1", "data": "a:x", **fields}
        return read({"update_id": 501, "callback_query": query}, ME, NOW)

    def test_a_press_carries_thread_message_and_button(self) -> None:
        carried = update(FORUM, message_thread_id=77, is_topic_message=True)["message"]
        got = self.press(message=carried)
        assert isinstance(got, Press)
        assert (got.identity, got.press, got.button) == ("cb:c1", "c1", "a:x")
        assert (str(got.address), got.message_id) == ("telegram:-1001900000001:77", "41")
        assert (got.sender, got.direct) == ("telegram:700000001", False)

    def test_a_press_on_a_message_too_old_to_show_still_counts(self) -> None:
        got = self.press(message={"chat": TALK, "message_id": 41, "date": 0})
        assert isinstance(got, Press)
        assert got.button == "a:x"

    def test_a_press_without_our_message_or_data_is_not_ours(self) -> None:
        assert self.press(inline_message_id="i") is None
        assert self.press(message=update()["message"], data=None) is None

    def test_both_announcements_of_a_move_say_the_same(self) -> None:
        old = {"id": -900000077, "type": "group", "title": "G"}
        new = {"id": -1001900000077, "type": "supergroup", "title": "G"}
        there = read(update(old, migrate_to_chat_id=-1001900000077), ME, NOW)
        here = read(update(new, migrate_from_chat_id=-900000077), ME, NOW)
        for moved in (there, here):
            assert isinstance(moved, Moved)
            assert (moved.old_chat, moved.new_chat) == ("-900000077", "-1001900000077")

    @pytest.mark.parametrize("kind", ["forum_topic_created", "forum_topic_edited"])
    def test_a_named_or_renamed_topic_is_titled(self, kind: str) -> None:
        service = {kind: {"name": "Builds"}, "message_thread_id": 36, "is_topic_message": True}
        got = read(update(FORUM, **service), ME, NOW)
        assert isinstance(got, Titled)
        assert (got.address.thread, got.title) == ("36", "Builds")

    def test_a_topics_name_that_an_app_made_up_is_none(self) -> None:
        made_up = {"name": "New Chat", "is_name_implicit": True}
        topic = {"message_thread_id": 36, "is_topic_message": True}
        assert not isinstance(
            read(update(FORUM, forum_topic_created=made_up, **topic), ME, NOW), Titled
        )
        begun = {"message_id": 36, "from": BOT, "forum_topic_created": made_up}
        assert message(FORUM, text="hi", reply_to_message=begun, **topic).title == ""

    def test_a_renamed_group_is_titled(self) -> None:
        got = read(update(TALK, new_chat_title="Walk"), ME, NOW)
        assert isinstance(got, Titled)
        assert (str(got.address), got.title) == ("telegram:-1001900000002", "Walk")

    @pytest.mark.parametrize(
        "fields",
        [
            {"forum_topic_edited": {"icon_custom_emoji_id": "5"}},
            {"new_chat_members": [ANA]},
            {"pinned_message": {"message_id": 3, "date": 0, "chat": TALK}},
            {"forum_topic_closed": {}},
        ],
    )
    def test_other_service_messages_mean_nothing(self, fields: Json) -> None:
        assert read(update(TALK, **fields), ME, NOW) is None

    @pytest.mark.parametrize(
        "other",
        [
            {"my_chat_member": {"chat": TALK, "from": ANA}},
            {"something_new": {"x": 1}},
            {"channel_post": {"message_id": 1}},
            {},
        ],
    )
    def test_updates_of_other_kinds_mean_nothing(self, other: Json) -> None:
        assert read({"update_id": 1, **other}, ME, NOW) is None
