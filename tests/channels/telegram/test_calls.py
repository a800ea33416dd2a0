"""What each action sends, and what each refusal becomes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.errors import TokenRefused
from channels.telegram.setup import check
from core.channel import (
    Action,
    AnswerPress,
    ChatMoved,
    Delete,
    FileTooBig,
    Forbidden,
    FormatRefused,
    MessageGone,
    NotSent,
    OpenThread,
    RateLimited,
    React,
    Refused,
    Retitle,
    Revise,
    Send,
    SendError,
    SendFile,
    ThreadGone,
    Typing,
    Uncertain,
)
from core.messages import Address, Button, FileKind, FileRef, Part, Receipt, Style
from tests.channels.telegram.conftest import Telegram
from tests.contracts.channel_contract import listening
from tests.fakes.telegram import ANA, FORUM, GROUP, SUPERGROUP

DIRECT = Address("telegram", str(ANA))
GENERAL = Address("telegram", str(FORUM), "1")
TOPIC = Address("telegram", str(FORUM), "36")
PNG = b"\x89PNG\r\n\x1a\n picture"
NOT_MODIFIED = "Bad Request: message is not modified: specified new message content …"


class TestSending:
    async def test_text_goes_with_entities_and_without_link_previews(
        self, telegram: Telegram
    ) -> None:
        part = Part("👍 bold", json.dumps([{"type": "bold", "offset": 3, "length": 4}]))
        await telegram.channel.do(Send(DIRECT, part))
        (call,) = telegram.fake.called("sendMessage")
        assert call.fields["entities"] == [{"type": "bold", "offset": 3, "length": 4}]
        assert call.fields["link_preview_options"] == {"is_disabled": True}
        assert "parse_mode" not in call.fields

    async def test_a_reply_goes_also_when_its_message_is_gone(self, telegram: Telegram) -> None:
        asked = telegram.fake.user_says("question")
        await telegram.channel.do(Send(DIRECT, Part("a"), reply_to=str(asked["message_id"])))
        await telegram.channel.do(Send(DIRECT, Part("b"), reply_to="99999"))
        assert telegram.fake.texts(ANA) == ["a", "b"]
        replies = [one.get("reply_to_message", {}) for one in telegram.fake.shown(ANA)]
        assert [one.get("text") for one in replies] == ["question", None]

    async def test_buttons_have_their_style(self, telegram: Telegram) -> None:
        row = (Button("b:1", "Allow", Style.SUCCESS), Button("b:2", "Later"))
        await telegram.channel.do(Send(DIRECT, Part("May I?"), (row,)))
        (shown,) = telegram.fake.shown(ANA)
        assert shown["reply_markup"]["inline_keyboard"] == [
            [
                {"text": "Allow", "callback_data": "b:1", "style": "success"},
                {"text": "Later", "callback_data": "b:2"},
            ]
        ]

    @pytest.mark.parametrize("text", ["", "  \n", "\u200b\u2060", "\u2800", "\0"])
    async def test_a_text_that_shows_nothing_becomes_visible(
        self, telegram: Telegram, text: str
    ) -> None:
        await telegram.channel.do(Send(DIRECT, Part(text)))
        assert telegram.fake.texts(ANA) == ["…"]

    async def test_lone_surrogates_do_not_stop_a_message(self, telegram: Telegram) -> None:
        await telegram.channel.do(Send(DIRECT, Part("a\ud83db")))
        assert telegram.fake.texts(ANA) == ["a\ufffdb"]

    async def test_plain_text_pings_nobody(self, telegram: Telegram) -> None:
        await telegram.channel.do(Send(DIRECT, Part("ask @ben_t")))
        (shown,) = telegram.fake.shown(ANA)
        assert [entity["type"] for entity in shown["entities"]] == ["code"]


class TestThreads:
    async def test_every_send_to_general_leaves_the_thread_out(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        for name in ("a.txt", "a.png"):
            (tmp_path / name).write_bytes(PNG)
            await telegram.channel.do(SendFile(GENERAL, tmp_path / name, name))
        await telegram.channel.do(Send(GENERAL, Part("hello")))
        assert {call.thread for call in telegram.fake.calls} == {None}
        assert {call.status for call in telegram.fake.calls} == {200}

    async def test_typing_in_general_names_it(self, telegram: Telegram) -> None:
        await telegram.channel.do(Typing(GENERAL))
        assert telegram.fake.called("sendChatAction")[0].thread == 1

    async def test_everything_in_a_topic_names_the_topic(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        telegram.fake.topic(FORUM, "Work", 36)
        for name in ("a.txt", "a.png"):
            (tmp_path / name).write_bytes(PNG)
            await telegram.channel.do(SendFile(TOPIC, tmp_path / name, name))
        await telegram.channel.do(Send(TOPIC, Part("hello")))
        await telegram.channel.do(Typing(TOPIC))
        assert {call.thread for call in telegram.fake.calls} == {36}

    async def test_a_private_topic_keeps_its_thread(self, telegram: Telegram) -> None:
        telegram.fake.topic(ANA, "Second", 9)
        await telegram.channel.do(Send(Address("telegram", str(ANA), "9"), Part("there")))
        assert telegram.fake.texts(ANA, 9) == ["there"]

    async def test_a_topic_is_opened_and_renamed(self, telegram: Telegram) -> None:
        made = await telegram.channel.do(OpenThread(GENERAL, "Builds"))
        there = Address("telegram", str(FORUM), made.message_id)
        for _ in range(2):  # the same name again is no failure
            await telegram.channel.do(Retitle(there, "Nightly\nbuilds"))
        assert telegram.fake.topics[FORUM, int(made.message_id)] == "Nightly builds"

    async def test_general_is_renamed_in_its_own_way(self, telegram: Telegram) -> None:
        for _ in range(2):
            await telegram.channel.do(Retitle(GENERAL, "Hall"))
        assert telegram.fake.topics[FORUM, 1] == "Hall"

    async def test_a_long_title_is_cut_and_a_group_is_never_renamed(
        self, telegram: Telegram
    ) -> None:
        telegram.fake.topic(FORUM, "Work", 36)
        await telegram.channel.do(Retitle(TOPIC, "t" * 300))
        assert telegram.fake.topics[FORUM, 36] == "t" * 128
        for refused in (Retitle(Address("telegram", str(SUPERGROUP)), "x"), Retitle(TOPIC, " ")):
            with pytest.raises(Refused):
                await telegram.channel.do(refused)


class TestRevising:
    async def test_an_unchanged_text_is_a_success(self, telegram: Telegram) -> None:
        sent = await telegram.channel.do(Send(DIRECT, Part("Hello")))
        done = await telegram.channel.do(Revise(DIRECT, sent.message_id, Part("Hello  \n")))
        assert done.message_id == sent.message_id
        assert telegram.fake.called("editMessageText")[0].status == 400

    async def test_a_message_of_another_kind_counts_as_gone(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        (tmp_path / "a.txt").write_bytes(b"x")
        sent = await telegram.channel.do(SendFile(DIRECT, tmp_path / "a.txt", "a.txt"))
        with pytest.raises(MessageGone):
            await telegram.channel.do(Revise(DIRECT, sent.message_id, Part("text")))

    @pytest.mark.parametrize("number", ["", "x1"])
    async def test_a_message_id_that_is_none_is_gone(self, telegram: Telegram, number: str) -> None:
        with pytest.raises(MessageGone):
            await telegram.channel.do(Revise(DIRECT, number, Part("text")))


class TestReceiptsAndPresses:
    async def test_receipts_are_reactions_that_telegram_allows(self, telegram: Telegram) -> None:
        said = telegram.fake.user_says("hi")
        seen = []
        for receipt in (Receipt.RECEIVED, Receipt.WAITING, Receipt.FAILED, Receipt.NONE):
            await telegram.channel.do(React(DIRECT, str(said["message_id"]), receipt))
            seen.append(telegram.fake.reactions[ANA, said["message_id"]])
        assert seen == [["👀"], ["😴"], ["💔"], []]

    async def test_a_press_is_answered_once_and_too_late_is_no_failure(
        self, telegram: Telegram
    ) -> None:
        await telegram.channel.do(Send(DIRECT, Part("?"), ((Button("b", "Yes"),),)))
        query = telegram.fake.press("Yes")
        await telegram.channel.do(AnswerPress(query, "n" * 300, alert=True))
        await telegram.channel.do(AnswerPress(query, "again"))
        first, second = telegram.fake.called("answerCallbackQuery")
        assert (first.status, second.status) == (200, 400)
        assert len(first.fields["text"]) == 200


class TestSendingFiles:
    async def test_a_picture_is_a_photo_and_everything_else_a_document(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        for name, data in (("a.png", PNG), ("b.pdf", b"%PDF"), ("c.svg", b"<svg/>")):
            (tmp_path / name).write_bytes(data)
            await telegram.channel.do(SendFile(DIRECT, tmp_path / name, name, Part(name)))
        kinds = [next(k for k in ("photo", "document") if k in m) for m in telegram.fake.shown(ANA)]
        assert kinds == ["photo", "document", "document"]
        assert telegram.fake.texts(ANA) == ["a.png", "b.pdf", "c.svg"]

    async def test_a_picture_that_telegram_cannot_show_goes_as_a_document(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        (tmp_path / "odd.png").write_bytes(b"no picture at all")
        await telegram.channel.do(SendFile(DIRECT, tmp_path / "odd.png", "odd.png"))
        assert "document" in telegram.fake.shown(ANA)[0]

    async def test_a_large_file_goes_whole(self, telegram: Telegram, tmp_path: Path) -> None:
        data = os.urandom(3_000_000)
        (tmp_path / "größe.bin").write_bytes(data)
        await telegram.channel.do(SendFile(DIRECT, tmp_path / "größe.bin", "größe.bin"))
        carried = telegram.fake.shown(ANA)[0]["document"]
        assert telegram.fake.files[carried["file_id"]] == ("größe.bin", data)

    async def test_a_caption_that_is_too_long_is_cut(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        (tmp_path / "a.txt").write_bytes(b"x")
        caption = Part("😀" * 600, json.dumps([{"type": "bold", "offset": 0, "length": 1200}]))
        await telegram.channel.do(SendFile(DIRECT, tmp_path / "a.txt", "a.txt", caption))
        (shown,) = telegram.fake.texts(ANA)
        assert shown.endswith("😀…")
        assert len(shown) > 500

    @pytest.mark.parametrize("data", [b"", None])
    async def test_an_empty_or_absent_file_is_refused(
        self, telegram: Telegram, tmp_path: Path, data: bytes | None
    ) -> None:
        if data is not None:
            (tmp_path / "a.txt").write_bytes(data)
        with pytest.raises(Refused):
            await telegram.channel.do(SendFile(DIRECT, tmp_path / "a.txt", "a.txt"))


class TestFetching:
    def file(self, telegram: Telegram, data: bytes, claimed: int | None = None) -> FileRef:
        carried = telegram.fake.file(data, "video.mp4", claimed=claimed)
        return FileRef(carried["file_id"], FileKind.DOCUMENT, "video.mp4", "", None)

    async def test_a_file_comes_whole(self, telegram: Telegram, tmp_path: Path) -> None:
        data = os.urandom(1_000_000)
        await telegram.channel.fetch(self.file(telegram, data), tmp_path / "f")
        assert (tmp_path / "f").read_bytes() == data

    async def test_a_file_above_the_limit_is_named(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        with pytest.raises(FileTooBig) as caught:
            await telegram.channel.fetch(self.file(telegram, b"x", 45_000_000), tmp_path / "f")
        assert str(caught.value) == "video.mp4 is larger than 20 MB"

    async def test_a_failed_download_leaves_nothing(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        telegram.fake.drop("download")
        with pytest.raises(Uncertain):
            await telegram.channel.fetch(self.file(telegram, b"data"), tmp_path / "f")
        assert list(tmp_path.iterdir()) == []

    async def test_a_file_that_telegram_does_not_know_is_refused(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        with pytest.raises(Refused):
            await telegram.channel.fetch(FileRef("?", FileKind.IMAGE, "a.jpg"), tmp_path / "f")

    async def test_a_target_that_cannot_be_written_is_refused(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        with pytest.raises(Refused):
            await telegram.channel.fetch(self.file(telegram, b"x"), tmp_path / "no" / "f")

    async def test_a_server_of_ones_own_hands_out_paths(
        self, telegram: Telegram, tmp_path: Path
    ) -> None:
        telegram.fake.local_files = tmp_path
        await telegram.channel.fetch(self.file(telegram, b"local", 45_000_000), tmp_path / "f")
        assert (tmp_path / "f").read_bytes() == b"local"


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "said", "error"),
        [
            (400, "Bad Request: message to edit not found", MessageGone),
            (400, "Bad Request: message can't be edited", Refused),
            (400, "Bad Request: MESSAGE_ID_INVALID", MessageGone),
            (400, "Bad Request: message thread not found", ThreadGone),
            (400, "Bad Request: TOPIC_CLOSED", ThreadGone),
            (400, "Bad Request: TOPIC_DELETED", ThreadGone),
            (400, "Bad Request: can't parse entities: unsupported start tag", FormatRefused),
            (400, "Bad Request: ENTITY_BOUNDS_INVALID", FormatRefused),
            (400, "Bad Request: chat not found", Forbidden),
            (400, "Bad Request: not enough rights to send text messages to the chat", Forbidden),
            (400, "Bad Request: CHAT_WRITE_FORBIDDEN", Forbidden),
            (400, "Bad Request: message is too long", Refused),
            (403, "Forbidden: bot was blocked by the user", Forbidden),
            (403, "Forbidden: bot was kicked from the supergroup chat", Forbidden),
            (401, "Unauthorized", TokenRefused),
            (404, "Not Found: method not found", Refused),
            (413, "Request Entity Too Large", Refused),
            (429, "Too Many Requests: retry after 9", RateLimited),
            (500, "Internal Server Error", Uncertain),
            (502, "Bad Gateway", Uncertain),
        ],
    )
    async def test_each_refusal_has_its_error(
        self, telegram: Telegram, status: int, said: str, error: type[SendError]
    ) -> None:
        telegram.fake.fail("sendMessage", status, said)
        with pytest.raises(error) as caught:
            await telegram.channel.do(Send(DIRECT, Part("x")))
        assert type(caught.value) is error
        if isinstance(caught.value, RateLimited):
            assert caught.value.retry_after == 9

    @pytest.mark.parametrize(
        ("status", "body", "seconds"),
        [
            (429, {"parameters": {"retry_after": "8"}}, 8),
            (429, {"parameters": {"retry_after": 2.5}}, 2.5),
            (429, {"parameters": {"retry_after": 0}}, 5),
            (429, {"description": "Flood control exceeded"}, 5),
            (429, {"description": "FLOOD_WAIT_7"}, 7),
            (200, {"parameters": {"retry_after": 3}}, 3),
            (429, None, 5),
        ],
    )
    async def test_a_limit_is_kept_however_its_seconds_are_told(
        self, telegram: Telegram, status: int, body: dict[str, object] | None, seconds: float
    ) -> None:
        told = json.dumps({"ok": False, "error_code": 429, **(body or {})})
        telegram.fake.garble("sendMessage", told.encode() if body else b"<html>", status)
        with pytest.raises(RateLimited) as caught:
            await telegram.channel.do(Send(DIRECT, Part("x")))
        assert caught.value.retry_after == seconds

    async def test_a_refusal_counts_as_its_body_says(self, telegram: Telegram) -> None:
        said = {"ok": False, "error_code": 400, "description": "Bad Request: TOPIC_CLOSED"}
        telegram.fake.garble("sendMessage", json.dumps(said).encode())
        with pytest.raises(ThreadGone):
            await telegram.channel.do(Send(DIRECT, Part("x")))
        await telegram.channel.do(Send(DIRECT, Part('{"ok": false, "error_code": 400}')))
        assert telegram.fake.texts(ANA) == ['{"ok": false, "error_code": 400}']

    async def test_a_migrated_group_names_its_new_id(self, telegram: Telegram) -> None:
        telegram.fake.migrate(GROUP, -1001900000077, announce=False)
        with pytest.raises(ChatMoved) as caught:
            await telegram.channel.do(Send(Address("telegram", str(GROUP)), Part("x")))
        assert caught.value.new_chat == "-1001900000077"

    async def test_a_deleted_and_a_closed_topic_are_gone(self, telegram: Telegram) -> None:
        telegram.fake.topic(FORUM, "Work", 36)
        telegram.fake.close_topic(FORUM, 36)
        with pytest.raises(ThreadGone):
            await telegram.channel.do(Send(TOPIC, Part("x")))
        telegram.fake.close_topic(FORUM, 36, gone=True)
        with pytest.raises(ThreadGone):
            await telegram.channel.do(Send(TOPIC, Part("x")))
        assert telegram.fake.shown(FORUM) == []

    @pytest.mark.parametrize("after", [False, True])
    async def test_a_connection_that_ends_without_an_answer_is_uncertain(
        self, telegram: Telegram, after: bool
    ) -> None:
        telegram.fake.drop("sendMessage", after=after)
        with pytest.raises(Uncertain):
            await telegram.channel.do(Send(DIRECT, Part("x")))
        assert len(telegram.fake.texts(ANA)) == int(after)

    async def test_a_send_that_is_never_answered_is_uncertain(self, telegram: Telegram) -> None:
        fake = telegram.fake
        async with TelegramChannel(fake.token, telegram.clock, fake.url, 0.2) as channel:
            fake.hang("sendMessage", after=True)
            with pytest.raises(Uncertain):
                await channel.do(Send(DIRECT, Part("x")))
        assert fake.texts(ANA) == ["x"]

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"ok":true,"result":7}'])
    async def test_an_answer_that_makes_no_sense_is_uncertain(
        self, telegram: Telegram, body: bytes
    ) -> None:
        telegram.fake.garble("sendMessage", body)
        with pytest.raises(Uncertain):
            await telegram.channel.do(Send(DIRECT, Part("x")))

    @pytest.mark.parametrize(
        "action",
        [
            Send(DIRECT, Part("x")),
            Revise(DIRECT, "1", Part("x")),
            Delete(DIRECT, "1"),
            Typing(DIRECT),
            React(DIRECT, "1", Receipt.RECEIVED),
            AnswerPress("1"),
            OpenThread(GENERAL, "x"),
            Retitle(TOPIC, "x"),
        ],
        ids=lambda action: type(action).__name__,
    )
    async def test_no_call_reaches_an_absent_server(
        self, telegram: Telegram, action: Action
    ) -> None:
        await telegram.fake.stop()
        with pytest.raises(NotSent):
            await telegram.channel.do(action)

    async def test_a_refused_token_is_reported_by_a_send_as_well(self, telegram: Telegram) -> None:
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: telegram.intake.up)
            telegram.fake.fail("sendMessage", 401, "Unauthorized")
            with pytest.raises(NotSent):
                await telegram.channel.do(Send(DIRECT, Part("x")))
            assert telegram.intake.connections[-1].fatal

    @pytest.mark.parametrize(
        "address", [Address("telegram", "C0LAB"), Address("telegram", "5", "x")]
    )
    async def test_an_address_of_another_kind_is_refused(
        self, telegram: Telegram, address: Address
    ) -> None:
        with pytest.raises(Refused):
            await telegram.channel.do(Send(address, Part("x")))


class TestChecking:
    async def test_the_doctor_sees_the_bot_and_its_rights(self, telegram: Telegram) -> None:
        telegram.fake.abilities["can_read_all_group_messages"] = False
        found = await check(telegram.fake.token, telegram.fake.url)
        assert [ok for _, ok, _, _ in found] == [True] * 4
        assert found[0][2] == "@gw_bot (800000001)"
        assert "/setprivacy" in found[2][3]

    async def test_the_doctor_minds_no_server_without_webhooks(self, telegram: Telegram) -> None:
        telegram.fake.fail("getWebhookInfo", 404, "Not Found: method not found")
        found = await check(telegram.fake.token, telegram.fake.url)
        assert [ok for _, ok, _, _ in found] == [True] * 4

    async def test_the_doctor_names_a_bad_token_and_a_webhook(self, telegram: Telegram) -> None:
        telegram.fake.webhook = "https://example.org/hook"
        found = await check(telegram.fake.token, telegram.fake.url)
        assert (found[1][1], "example.org" in found[1][2]) == (False, True)
        ((_, ok, _, fix),) = await check("1:wrong", telegram.fake.url)
        assert not ok
        assert "LANEWAY_TELEGRAM_TOKEN" in fix
