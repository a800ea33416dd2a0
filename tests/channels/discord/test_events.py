"""What each event of Discord means, and that nothing malformed is taken for something else."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.discord.content import Me, id_at, thread_name, time_of
from channels.discord.events import Reading, read_edit, read_interaction, read_message, unreadable
from channels.discord.places import Kind, Places, Spot
from channels.discord.press_token import Token
from channels.fields import Malformed
from core.messages import Address, FileKind, Message, Press

BOT, ROLE, GUILD, LAB, FORUM, THREAD = "92", "94", "90", "10", "15", "55"
ME = Me(BOT, BOT, "Gate")
DIRECT = Spot("70", Kind.DIRECT)


def world() -> Places:
    places = Places()
    places.server(
        {
            "id": GUILD,
            "channels": [
                {"id": LAB, "type": 0, "name": "lab"},
                {"id": "12", "type": 2, "name": "voice"},
                {"id": FORUM, "type": 15, "name": "forum"},
                {"id": "99", "type": "odd"},
            ],
            "threads": [{"id": THREAD, "type": 11, "name": "A matter", "parent_id": LAB}],
            "roles": [
                {"id": ROLE, "name": "Gate", "tags": {"bot_id": BOT}},
                {"id": "95", "name": "Crew"},
            ],
        },
        BOT,
    )
    return places


def said(content: str = "hi", **fields: Any) -> dict[str, Any]:
    message = {
        "id": "1000",
        "channel_id": LAB,
        "author": {"id": "91", "username": "ana_d", "global_name": "Ana"},
        "content": content,
        "timestamp": "2026-11-30T12:00:00.123000+00:00",
        "edited_timestamp": None,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "type": 0,
    }
    return message | fields


def read(message: dict[str, Any], where: str = LAB, **options: Any) -> Message | None:
    places = world()
    spot = DIRECT if where == DIRECT.id else places.get(where)
    assert spot is not None
    return read_message(message, spot, Reading(ME, places, **{"auto_thread": True, **options}))


def found(message: dict[str, Any], where: str = LAB, **options: Any) -> Message:
    result = read(message, where, **options)
    assert result is not None
    return result


class TestWhere:
    def test_a_mention_in_a_text_channel_begins_the_thread_of_its_own_id(self) -> None:
        message = found(said("<@92> fix the *build* please"))
        assert message.address == Address("discord", LAB, "1000")
        assert (message.engages, message.addressed, message.direct) == (True, True, False)
        assert message.title == "fix the build please"

    def test_without_threads_a_mention_is_answered_in_the_channel(self) -> None:
        for options in ({"auto_thread": False}, {"flat": frozenset({LAB})}):
            message = found(said("<@92> hi"), **options)
            assert message.address == Address("discord", LAB)
            assert not message.engages
            assert message.title == "lab"

    def test_a_channel_that_has_no_threads_is_its_own_lane(self) -> None:
        assert found(said("<@92> hi"), "12").address == Address("discord", "12")

    def test_a_message_in_a_thread_belongs_to_its_lane_and_its_parents_place(self) -> None:
        message = found(said("no mention here"), THREAD)
        assert message.address == Address("discord", LAB, THREAD)
        assert message.address.place == f"discord:{LAB}"
        assert (message.engages, message.addressed) == (True, False)
        assert message.title == "A matter"

    def test_talk_in_a_channel_begins_nothing(self) -> None:
        message = found(said("just talking"))
        assert message.address == Address("discord", LAB)
        assert (message.addressed, message.engages) == (False, False)

    def test_direct_messages_need_no_mention(self) -> None:
        message = found(said("hello"), DIRECT.id)
        assert message.address == Address("discord", DIRECT.id)
        assert message.direct
        assert message.title == "Ana"


class TestWords:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("<@92> status", "status"),
            ("<@!92>, status", "status"),
            ("<@&94> status", "status"),
            ("please <@92> look", "please look"),
            ("look <@92>", "look"),
            ("<@92>", ""),
            ("<@92>\n- one\n- two", "- one\n- two"),
            ("<@92> <@92> twice", "twice"),
        ],
    )
    def test_our_mention_is_taken_out(self, content: str, text: str) -> None:
        message = found(said(content))
        assert message.text == text
        assert message.addressed

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("ask <@93> or <@!99>", "ask @Ben or @99"),
            ("the <@&95> in <#10>, not <#77>", "the @Crew in #lab, not #77"),
            ("well <:done:123> </status:456>", "well :done: /status"),
            ("`<@92>` is my id", "`<@92>` is my id"),
            ("```\n<@92>\n```", "```\n<@92>\n```"),
        ],
    )
    def test_other_mentions_read_as_names_and_code_stays(self, content: str, text: str) -> None:
        mentions = [{"id": "93", "username": "ben", "global_name": "Ben"}]
        message = found(said(content, mentions=mentions))
        assert message.text == text
        assert not message.addressed

    def test_everyone_is_not_us(self) -> None:
        assert not found(said("@everyone look", mention_everyone=True)).addressed

    def test_a_role_that_stands_in_the_list_alone_addresses_us(self) -> None:
        assert found(said("look", mention_roles=[ROLE])).addressed

    def test_lone_surrogates_and_nul_never_get_further(self) -> None:
        assert found(said("a\ud800b\0c")).text == "a\ufffdbc"

    def test_the_nickname_is_what_people_see(self) -> None:
        assert found(said(member={"nick": "Captain"})).sender_name == "Captain"
        assert found(said()).sender_name == "Ana"

    def test_stickers_and_polls_have_a_line(self) -> None:
        assert found(said("", sticker_items=[{"name": "wave"}])).text == "[sticker: wave]"
        answers = [{"poll_media": {"text": "yes"}}, {"poll_media": {"text": "no"}}]
        poll = {"question": {"text": "Lunch?"}, "answers": answers}
        assert found(said("", poll=poll)).text == "[poll: Lunch? (yes / no)]"


class TestWho:
    def test_what_we_said_ourselves_is_nothing(self) -> None:
        assert read(said(author={"id": BOT, "username": "gate", "bot": True})) is None

    def test_bots_and_webhooks_are_marked(self) -> None:
        robot = {"id": "93", "username": "robot", "bot": True}
        assert found(said(author=robot)).from_bot
        assert found(said(webhook_id="93")).from_bot
        assert not found(said()).from_bot

    @pytest.mark.parametrize("kind", [1, 3, 6, 7, 8, 18, 20, 21, 23, 24, 46])
    def test_what_the_platform_says_by_itself_is_nothing(self, kind: int) -> None:
        assert read(said("<@92>", type=kind)) is None

    def test_an_empty_message_is_nothing_but_an_empty_mention_is(self) -> None:
        assert read(said("")) is None
        assert found(said("<@92>")).text == ""


class TestQuotes:
    def test_a_reply_carries_what_it_answers(self) -> None:
        earlier = said("look at <@93>", id="900", mentions=[{"id": "93", "username": "ben"}])
        message = found(said("and this?", type=19, referenced_message=earlier))
        assert message.quote is not None
        assert (message.quote.text, message.quote.author) == ("look at @ben", "Ana")
        assert not message.addressed

    def test_a_reply_to_us_is_for_us(self) -> None:
        ours = said("done", id="900", author={"id": BOT, "username": "gate", "bot": True})
        message = found(said("thanks", type=19, referenced_message=ours))
        assert message.addressed
        assert message.address.thread == "1000"

    def test_a_reply_to_something_that_is_gone_is_a_message(self) -> None:
        message = found(said("hm", type=19, referenced_message=None))
        assert message.quote is None

    def test_a_forwarded_message_is_context_and_no_words_of_the_sender(self) -> None:
        inner = {"content": "secret plan", "attachments": [attachment("7")], "mentions": []}
        fields = {"message_reference": {"type": 1}, "message_snapshots": [{"message": inner}]}
        message = found(said("", **fields), DIRECT.id)
        assert message.text == ""
        assert message.quote is not None
        assert message.quote.forwarded
        assert message.quote.text == "secret plan"
        assert message.quote.files[0].ref == f"{DIRECT.id}/1000/7"


def attachment(number: str, **fields: Any) -> dict[str, Any]:
    return {"id": number, "filename": "a.txt", "size": 3, "url": "https://x.invalid/a"} | fields


class TestFiles:
    def test_a_file_is_named_by_its_message_for_its_address_expires(self) -> None:
        (file,) = found(said("", attachments=[attachment("7")])).files
        assert (file.ref, file.name, file.size) == (f"{LAB}/1000/7", "a.txt", 3)
        assert file.kind is FileKind.DOCUMENT

    @pytest.mark.parametrize(
        ("mime", "flags", "kind"),
        [
            ("image/png", 0, FileKind.IMAGE),
            ("video/mp4", 0, FileKind.VIDEO),
            ("audio/mpeg", 0, FileKind.AUDIO),
            ("audio/ogg; codecs=opus", 1 << 13, FileKind.VOICE),
            ("text/plain; charset=utf-8", 0, FileKind.DOCUMENT),
        ],
    )
    def test_the_kind_of_file_is_what_discord_says(
        self, mime: str, flags: int, kind: FileKind
    ) -> None:
        carried = attachment("7", content_type=mime)
        (file,) = found(said("", attachments=[carried], flags=flags)).files
        assert file.kind is kind
        assert file.mime == mime.partition(";")[0]

    def test_the_name_people_gave_is_kept_where_discord_changed_it(self) -> None:
        carried = attachment("7", filename="bersicht.pdf", title="Übersicht")
        (file,) = found(said("", attachments=[carried])).files
        assert file.name == "Übersicht.pdf"


class TestEdits:
    def edit(self, message: dict[str, Any]) -> Any:
        places = world()
        spot = places.get(LAB)
        assert spot is not None
        return read_edit(message, spot, Reading(ME, places, True))

    def test_an_edit_names_its_message_and_its_time(self) -> None:
        at = "2026-11-30T12:05:00+00:00"
        edit = self.edit(said("<@92> better", edited_timestamp=at))
        assert (edit.of, edit.identity) == ("discord:1000", f"discord:1000:e{at}")
        assert edit.text == "better"
        assert edit.address == Address("discord", LAB, "1000")

    def test_links_shown_and_pins_are_no_edits(self) -> None:
        assert self.edit(said(embeds=[{"type": "link"}])) is None
        assert self.edit({"id": "1000", "channel_id": LAB, "embeds": []}) is None
        assert self.edit({"id": "1000", "channel_id": LAB, "edited_timestamp": "x"}) is None

    def test_where_no_time_is_said_an_edit_is_known_by_its_text(self) -> None:
        bare = {"id": "1000", "channel_id": LAB, "author": {"id": "91"}}
        texts = ("new", "new", "newer")
        first, same, other = (self.edit(bare | {"content": text}) for text in texts)
        assert first.identity == same.identity != other.identity

    def test_our_own_edits_are_nothing(self) -> None:
        ours = {"id": BOT, "username": "gate"}
        assert self.edit(said(author=ours, edited_timestamp="2026-11-30T12:05:00Z")) is None


def interaction(kind: int, data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    user = {"id": "91", "username": "ana_d", "global_name": "Ana"}
    event = {"id": "4194304", "type": kind, "token": "t0k:en", "channel_id": LAB, "data": data}
    return event | {"member": {"user": user, "nick": None}} | fields


class TestInteractions:
    def read(self, event: dict[str, Any], where: str = LAB) -> Any:
        places = world()
        spot = DIRECT if where == DIRECT.id else places.get(where)
        assert spot is not None
        return read_interaction(event, spot, Reading(ME, places, True))

    def test_a_press_names_the_button_and_how_to_answer(self) -> None:
        press = self.read(interaction(3, {"custom_id": "b:2"}, message={"id": "900"}))
        assert isinstance(press, Press)
        assert (press.button, press.message_id, press.sender) == ("b:2", "900", "discord:91")
        assert press.identity == "discord:4194304"
        assert Token.read(press.press) == Token("4194304", "t0k:en", BOT, False)

    def test_a_command_is_the_message_it_stands_for(self) -> None:
        options = [{"name": "text", "value": "10m : look", "type": 3}]
        message = self.read(interaction(2, {"name": "every", "options": options}), THREAD)
        assert isinstance(message, Message)
        assert message.text == "/every 10m : look"
        assert message.addressed
        assert message.address == Address("discord", LAB, THREAD)
        assert Token.read(message.press).command

    def test_a_command_in_direct_messages_has_its_person_beside_it(self) -> None:
        event = interaction(2, {"name": "status"})
        event["user"] = event.pop("member")["user"]
        message = self.read(event, DIRECT.id)
        assert (message.text, message.direct, message.sender_name) == ("/status", True, "Ana")

    @pytest.mark.parametrize("kind", [1, 4, 5, 9])
    def test_other_interactions_are_nothing(self, kind: int) -> None:
        assert self.read(interaction(kind, {})) is None


class TestMalformed:
    @pytest.mark.parametrize("key", ["id", "author"])
    def test_a_message_without_what_it_must_have_is_malformed(self, key: str) -> None:
        message = said()
        del message[key]
        with pytest.raises(Malformed):
            read(message)

    @settings(max_examples=60)
    @given(st.data())
    def test_whatever_a_field_holds_it_is_read_or_malformed(self, data: st.DataObject) -> None:
        message = copy.deepcopy(said("<@92> hi", attachments=[attachment("7")], type=19))
        message["referenced_message"] = said("earlier", id="900")
        key = data.draw(st.sampled_from(sorted(message)))
        message[key] = data.draw(
            st.none()
            | st.booleans()
            | st.integers()
            | st.text(max_size=5)
            | st.lists(st.none() | st.integers() | st.dictionaries(st.just("id"), st.integers()))
            | st.dictionaries(st.sampled_from(["id", "author"]), st.text(max_size=3))
        )
        with suppress(Malformed):
            read(message)

    def test_what_cannot_be_read_says_whom_it_is_about(self) -> None:
        aside = unreadable("MESSAGE_CREATE", said(content=5), Malformed("content is no text"))
        assert aside.about == (f"discord:{LAB}", "discord:91")
        assert aside.raw.startswith("MESSAGE_CREATE {")
        again = unreadable("MESSAGE_CREATE", said(content=5), Malformed("content is no text"))
        assert again.identity == aside.identity
        assert unreadable("X", ["no object"], Malformed("no object")).about == ()


class TestNamesAndIds:
    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("fix the build", "fix the build"),
            ("**fix**\n\nthe   `build`", "fix the build"),
            ("", "A question"),
            ("   ```   ", "A question"),
            ("word " * 40, ("word " * 12).strip() + "…"),
            ("x" * 300, "x" * 60 + "…"),
        ],
    )
    def test_a_thread_is_called_after_the_first_words(self, text: str, name: str) -> None:
        assert thread_name(text) == name

    @given(st.integers(min_value=1_420_070_400_001, max_value=4_000_000_000_000))
    def test_an_id_of_an_instant_is_before_all_that_are_made_from_then_on(self, at: int) -> None:
        assert time_of(id_at(at)) == at - 1
        assert time_of(id_at(at) + 1) == at

    def test_a_press_of_another_platform_is_refused(self) -> None:
        with pytest.raises(Exception, match="no press"):
            Token.read("cb:17")
