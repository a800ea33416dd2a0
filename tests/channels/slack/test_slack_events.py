"""What each payload of Slack means."""

from __future__ import annotations

from typing import Any

import pytest

from channels.slack.events import Me, Reading, message, payload, unreadable
from channels.slack.fields import Malformed, milliseconds, order, stamp_of
from channels.slack.text import escape, mentioned_in, read, visible
from core.messages import Address, Edit, FileKind, Incoming, Message, Press

ME = Me("T0TEST", "UBOT", "BBOT")
NAMES = {"U0ANA": "Ana", "U0BEN": "Ben <b>"}
READING = Reading(ME, lambda ident: NAMES.get(ident, ""), 1_712_345_600_000)
TS, CHILD = "1712345600.000300", "1712345699.000200"


def said(**fields: Any) -> dict[str, Any]:
    return {
        "type": "message", "channel": "C0LAB", "channel_type": "channel", "user": "U0ANA",
        "text": "hi", "ts": TS, **fields,
    }  # fmt: skip


def meant(event: dict[str, Any]) -> Incoming | None:
    found = payload({"type": "event_callback", "event": event}, READING)
    return found.incoming if found else None


def heard(**fields: Any) -> Message:
    found = meant(said(**fields))
    assert isinstance(found, Message)
    return found


class TestWhere:
    def test_a_mention_at_the_top_of_a_channel_opens_its_own_thread(self) -> None:
        found = heard(type="app_mention", text="<@UBOT> a")
        assert found.address == Address("slack", "C0LAB", TS)
        assert (found.message_id, found.text, found.addressed) == (TS, "a", True)

    def test_a_reply_belongs_to_the_root_of_its_thread_never_to_itself(self) -> None:
        found = heard(type="app_mention", text="<@UBOT> b", ts=CHILD, thread_ts=TS)
        assert found.address == Address("slack", "C0LAB", TS)

    def test_a_direct_chat_is_one_lane_and_its_threads_are_others(self) -> None:
        flat = heard(channel="D0ANA", channel_type="im")
        assert flat.address == Address("slack", "D0ANA")
        assert (flat.direct, flat.engages) == (True, False)
        threaded = heard(channel="D0ANA", channel_type="im", ts=CHILD, thread_ts=TS)
        assert threaded.address == Address("slack", "D0ANA", TS)

    def test_the_root_of_a_thread_in_a_direct_chat_stays_in_the_main_lane(self) -> None:
        assert heard(channel="D0ANA", thread_ts=TS).address == Address("slack", "D0ANA")

    def test_a_channels_thread_stays_engaged(self) -> None:
        assert heard().engages
        assert not heard().addressed

    def test_the_instant_is_the_messages_own(self) -> None:
        assert heard().at == 1_712_345_600_000
        assert milliseconds("1712345600.987654") == 1_712_345_600_987
        assert stamp_of(1_712_345_600_987) == "1712345600.987000"
        assert order("1712345600.5") == (1712345600, 500_000)


class TestIdentity:
    def test_a_mention_and_its_message_are_one(self) -> None:
        twin = heard(type="app_mention", text="<@UBOT> hi")
        other = heard(text="<@UBOT> hi", client_msg_id="abc")
        assert twin.identity == other.identity == f"slack:T0TEST:C0LAB:{TS}"
        assert twin.addressed
        assert other.addressed

    def test_an_edit_names_what_it_changes_and_has_an_identity_of_its_own(self) -> None:
        new = said(text="newer &amp; better", edited={"user": "U0ANA", "ts": "1712345700.000000"})
        edit = meant(
            said(subtype="message_changed", ts=CHILD, message=new, previous_message=said())
        )
        assert isinstance(edit, Edit)
        assert edit.of == f"slack:T0TEST:C0LAB:{TS}"
        assert edit.identity == f"{edit.of}:e1712345700.000000"
        assert (edit.text, edit.sender) == ("newer & better", "slack:U0ANA")
        assert edit.address == Address("slack", "C0LAB", TS)

    def test_another_text_is_an_edit_whatever_else_is_said_of_it(self) -> None:
        changed = {
            "type": "message", "subtype": "message_changed", "channel": "C0LAB", "ts": CHILD,
            "message": said(text="new"), "previous_message": said(text="old"),
        }  # fmt: skip
        edit = meant(changed)
        assert isinstance(edit, Edit)
        assert (edit.text, edit.identity) == ("new", f"{edit.of}:e{CHILD}")

    def test_a_mention_that_an_edit_brought_begins_nothing(self) -> None:
        edited = {"user": "U0ANA", "ts": CHILD}
        assert meant(said(type="app_mention", text="<@UBOT> now?", edited=edited)) is None

    def test_what_was_edited_while_nobody_listened_is_read_as_it_stands(self) -> None:
        edited = {"user": "U0ANA", "ts": CHILD}
        read = message(said(text="<@UBOT> now?", edited=edited), "C0LAB", READING)
        assert read is not None
        assert (read.text, read.addressed) == ("now?", True)

    @pytest.mark.parametrize(
        "changed",
        [
            {"text": "hi", "attachments": [{"title": "a link's preview"}]},
            {"text": "hi", "edited": {"user": "U0ANA", "ts": CHILD}},
            {"text": "x", "subtype": "tombstone", "edited": {"user": "U0ANA", "ts": CHILD}},
            {"text": "x", "user": "UBOT", "edited": {"user": "UBOT", "ts": CHILD}},
            {"text": "x", "bot_id": "BBOT", "edited": {"user": "UBOT", "ts": CHILD}},
        ],
        ids=["link preview", "same text", "deleted root", "our own", "our own by its app"],
    )
    def test_a_change_that_is_no_persons_edit_means_nothing(self, changed: dict[str, Any]) -> None:
        event = said(
            subtype="message_changed", message=said(**changed), previous_message=said(text="hi")
        )
        assert meant(event) is None


class TestWhatCounts:
    @pytest.mark.parametrize("subtype", ["file_share", "thread_broadcast", "me_message"])
    def test_what_a_person_wrote_counts_whatever_its_kind(self, subtype: str) -> None:
        assert heard(subtype=subtype, ts=CHILD, thread_ts=TS).text == "hi"

    @pytest.mark.parametrize(
        "subtype",
        ["message_deleted", "channel_join", "message_replied", "assistant_app_thread", "new_kind"],
    )
    def test_news_of_the_channel_does_not(self, subtype: str) -> None:
        assert meant(said(subtype=subtype)) is None

    @pytest.mark.parametrize("ours", [{"user": "UBOT"}, {"user": "U9", "bot_id": "BBOT"}])
    def test_our_own_messages_do_not(self, ours: dict[str, Any]) -> None:
        assert meant(said(**ours)) is None

    def test_a_message_that_says_nothing_does_not_but_a_bare_mention_does(self) -> None:
        assert meant(said(text="")) is None
        assert heard(text="<@UBOT>").addressed

    def test_other_programs_are_marked_as_such(self) -> None:
        app = heard(user="U0APP", bot_id="B0APP")
        assert (app.sender, app.from_bot) == ("slack:U0APP", True)
        old = heard(user=None, bot_id="B0OLD", subtype="bot_message", username="ci")
        assert (old.sender, old.from_bot, old.sender_name) == ("slack:B0OLD", True, "ci")
        assert heard(user="USLACKBOT").from_bot
        assert not heard().from_bot

    def test_a_program_that_writes_into_attachments_only_is_heard(self) -> None:
        found = heard(text="", bot_id="B0APP", attachments=[{"fallback": "build 7 failed"}])
        assert found.text == "build 7 failed"

    @pytest.mark.parametrize(
        "body",
        [
            {"type": "event_callback", "event": {"type": "reaction_added"}},
            {"type": "view_submission"},
            {"type": "block_actions", "container": {}, "actions": []},
            {},
        ],
    )
    def test_what_nobody_asked_for_means_nothing(self, body: dict[str, Any]) -> None:
        assert payload(body, READING) is None


class TestWords:
    @pytest.mark.parametrize(
        ("written", "read_as"),
        [
            ("<@UBOT> status", "status"),
            ("<@UBOT|laneway>: status", "status"),
            ("  <@UBOT>, go", "go"),
            ("please <@UBOT> go", "please go"),
            ("<@UBOT>\nline", "line"),
            ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
            ("ask <@U0ANA> or <@U0NEW>", "ask @Ana or @U0NEW"),
            ("ask <@U0NEW|newbie>", "ask @newbie"),
            ("in <#C0LAB|lab> and <#C0X>", "in #lab and #C0X"),
            ("<!here> <!subteam^S1|@team> <!date^1^{date}|today>", "@here @team today"),
            ("<https://a.example/x?a=1&amp;b=2>", "https://a.example/x?a=1&b=2"),
            ("<https://a.example|the page>", "[the page](https://a.example)"),
            ("<https://a.example|a.example>", "https://a.example"),
            ("<mailto:a@b.example|a@b.example>", "a@b.example"),
            ("1 &lt; 2 and &lt;@UBOT&gt;", "1 < 2 and <@UBOT>"),
        ],
    )
    def test_brackets_are_written_out_and_our_mention_is_taken_out(
        self, written: str, read_as: str
    ) -> None:
        assert read(written, "UBOT", READING.name_of).text == read_as

    def test_a_persons_name_cannot_bring_markup(self) -> None:
        assert read("<@U0BEN>", "UBOT", READING.name_of).text == "@Ben <b>"

    def test_only_a_real_mention_names_us(self) -> None:
        assert read("x <@UBOT>", "UBOT", str).mentioned
        for text in ("&lt;@UBOT&gt;", "@UBOT", "<@UBOTX>"):
            assert not read(text, "UBOT", str).mentioned

    def test_who_is_named_is_found_out(self) -> None:
        assert mentioned_in("<@U1> <@W2|w> <#C1> &lt;@U3&gt;") == ["U1", "W2"]

    def test_escaped_text_shows_as_it_was(self) -> None:
        text = "<!channel> <@U0ANA> a & b &amp; <https://x|y>"
        assert "<" not in escape(text)
        assert visible(escape(text)) == text


class TestFiles:
    def test_a_file_is_kept_with_where_it_is(self) -> None:
        image = {"id": "F01", "name": "s.png", "mimetype": "image/png", "size": 2048}
        found = heard(subtype="file_share", files=[image | {"url_private_download": "https://f/1"}])
        (file,) = found.files
        assert (file.ref, file.kind, file.name) == ("F01 https://f/1", FileKind.IMAGE, "s.png")
        assert (file.mime, file.size) == ("image/png", 2048)

    @pytest.mark.parametrize(
        ("fields", "kind"),
        [
            ({"mimetype": "audio/webm", "subtype": "slack_audio"}, FileKind.VOICE),
            ({"mimetype": "audio/mpeg"}, FileKind.AUDIO),
            ({"mimetype": "video/mp4"}, FileKind.VIDEO),
            ({"mimetype": "text/plain"}, FileKind.DOCUMENT),
            ({}, FileKind.DOCUMENT),
        ],
    )
    def test_files_are_told_apart(self, fields: dict[str, Any], kind: FileKind) -> None:
        assert heard(files=[{"id": "F1", **fields}]).files[0].kind is kind

    def test_a_file_of_another_workspace_is_asked_for_first(self) -> None:
        shared = {"id": "F1", "file_access": "check_file_info", "url_private": "https://f/1"}
        assert heard(files=[shared]).files[0].ref == "F1"

    def test_a_file_that_is_gone_is_left_out(self) -> None:
        assert heard(files=[{"id": "F1", "mode": "tombstone"}]).files == ()

    def test_a_file_of_another_service_is_a_link_to_it(self) -> None:
        paper = {
            "id": "F1", "mode": "external", "is_external": True, "title": "Plan",
            "name": "plan.gdoc", "url_private": "https://docs.example.org/d/1",
        }  # fmt: skip
        found = heard(subtype="file_share", text="read this", files=[paper])
        assert found.text == "read this\n[Plan](https://docs.example.org/d/1)"
        assert found.files == ()
        assert heard(text="", files=[paper]).text == "[Plan](https://docs.example.org/d/1)"

    def test_a_shared_message_is_a_quote(self) -> None:
        shared = {
            "is_share": True, "text": "look &amp; see", "author_name": "Ben",
            "channel_name": "lab", "files": [{"id": "F2", "name": "b.txt"}],
        }  # fmt: skip
        quote = heard(text="", attachments=[{"title": "not it"}, shared]).quote
        assert quote is not None
        assert (quote.text, quote.author, quote.origin) == ("look & see", "Ben", "lab")
        assert quote.forwarded
        assert quote.files[0].name == "b.txt"


class TestCommandsAndPresses:
    def command(self, text: str, channel: str = "C0LAB") -> Message:
        body = {
            "command": "/laneway", "text": text, "channel_id": channel, "user_id": "U0ANA",
            "user_name": "ana", "trigger_id": "77.1", "response_url": "https://hooks/1",
        }  # fmt: skip
        found = payload(body, READING)
        assert found is not None
        assert isinstance(found.incoming, Message)
        return found.incoming

    @pytest.mark.parametrize(
        ("text", "means"),
        [("status", "/status"), ("/stop", "/stop"), ("", "/help"), ("at 9:00 : x", "/at 9:00 : x")],
    )
    def test_a_slash_command_is_one_of_ours(self, text: str, means: str) -> None:
        command = self.command(text)
        assert (command.text, command.addressed, command.sender) == (means, True, "slack:U0ANA")
        assert command.identity.startswith("slack:T0TEST:command:")
        assert command.press
        assert command.message_id == ""

    def test_a_press_names_button_message_and_person(self) -> None:
        shown = {"ts": CHILD, "thread_ts": TS}
        body = {
            "type": "block_actions", "user": {"id": "U0ANA", "name": "ana"},
            "channel": {"id": "C0LAB"}, "message": shown, "trigger_id": "78.1",
            "container": {"type": "message", "message_ts": CHILD, "channel_id": "C0LAB"},
            "response_url": "https://hooks/2",
            "actions": [{"type": "button", "action_id": "b:1", "value": "b:1", "action_ts": CHILD}],
        }  # fmt: skip
        found = payload(body, READING)
        assert found is not None
        press = found.incoming
        assert isinstance(press, Press)
        assert (press.button, press.message_id, press.sender) == ("b:1", CHILD, "slack:U0ANA")
        assert press.address == Address("slack", "C0LAB", TS)
        assert press.identity.startswith("slack:T0TEST:press:")

    def test_what_repeats_its_trigger_is_told_apart_by_what_it_is_about(self) -> None:
        shown = {"ts": CHILD, "thread_ts": TS}

        def pressed(user: str, button: str, **more: object) -> Press:
            body: dict[str, object] = {
                "type": "block_actions", "user": {"id": user}, "channel": {"id": "C0LAB"},
                "message": shown, "trigger_id": "x", "container": {"message_ts": CHILD},
                "actions": [{"action_id": button}],
            }  # fmt: skip
            found = payload(body | more, READING)
            assert found is not None
            assert isinstance(found.incoming, Press)
            return found.incoming

        first = pressed("U0ANA", "b:1")
        assert first.button == "b:1"
        assert first.address == Address("slack", "C0LAB", TS)
        assert pressed("U0ANA", "b:1").identity == first.identity
        others = [
            pressed("U0BEN", "b:1"),
            pressed("U0ANA", "b:2"),
            pressed("U0ANA", "b:1", trigger_id="y"),
        ]
        assert len({one.identity for one in [first, *others]}) == 4
        assert self.command("status").identity == self.command("status").identity
        assert self.command("status").identity != self.command("stop").identity

    def test_a_press_needs_no_more_than_where_it_was_and_who_pressed(self) -> None:
        body = {
            "type": "block_actions", "user": {"id": "U0ANA"}, "actions": [{"value": "b:1"}],
            "container": {"type": "message", "message_ts": CHILD, "channel_id": "C0LAB"},
        }  # fmt: skip
        found = payload(body, READING)
        assert found is not None
        assert isinstance(found.incoming, Press)
        assert (found.incoming.button, found.incoming.message_id) == ("b:1", CHILD)

    def test_a_command_without_a_trigger_is_one_all_the_same(self) -> None:
        body = {"command": "/laneway", "text": "stop", "channel_id": "C0LAB", "user_id": "U0ANA"}
        found = payload(body, READING)
        assert found is not None
        assert isinstance(found.incoming, Message)
        assert found.incoming.text == "/stop"


class TestMalformed:
    @pytest.mark.parametrize(
        "event",
        [
            said(ts="yesterday"),
            said(ts=5),
            said(text=["hi"]),
            said(user=None),
            said(thread_ts="x"),
            said(files=[{"name": "no id"}]),
            said(files="none"),
            said(attachments=[5]),
            said(channel=None),
            said(subtype="message_changed"),
            said(subtype="message_changed", message=said(text="x", edited={"ts": "?"})),
        ],
    )
    def test_a_payload_of_another_shape_is_set_aside(self, event: dict[str, Any]) -> None:
        body = {"type": "event_callback", "event_id": "Ev1", "event": event}
        with pytest.raises(Malformed) as caught:
            payload(body, READING)
        aside = unreadable(body, ME, caught.value)
        assert aside.identity == "slack:T0TEST:unreadable:Ev1"
        assert aside.error

    def test_who_and_where_it_is_from_is_made_out_as_far_as_it_can_be(self) -> None:
        body = {"type": "event_callback", "event": said(ts=None)}
        assert unreadable(body, ME, Malformed("x")).about == ("slack:U0ANA", "slack:C0LAB")
        assert unreadable("text", ME, Malformed("x")).about == ()

    def test_a_history_reads_as_the_events_did(self) -> None:
        told = said(thread_ts=TS, reply_count=3, latest_reply=CHILD)
        del told["channel"], told["channel_type"]
        assert message(told, "C0LAB", READING) == heard()
