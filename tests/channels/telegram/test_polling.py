"""Receiving: what is confirmed when, and how trouble is met."""

from __future__ import annotations

import logging
import time

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.updates import KINDS
from core.channel import NotSent, Send
from core.messages import Address, Message, Part, Unreadable
from tests.channels.telegram.conftest import QuickClock, Telegram
from tests.contracts.channel_contract import listening
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.telegram import ANA, FakeTelegram

CONFLICT = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is"
    " running"
)
BAD = {
    "update_id": 230,
    "message": {"message_id": 1, "date": 1798000000, "from": {"id": 700000009}, "text": "no chat"},
}
ABOUT = ("telegram:700000009",)


class TestConfirming:
    async def test_an_update_is_confirmed_only_after_it_is_stored(self, telegram: Telegram) -> None:
        fake, intake = telegram.fake, telegram.intake
        async with listening(telegram.channel, intake):
            await fake.until(lambda: intake.up)
            intake.disk(False)
            fake.user_says("once please")
            await fake.until(lambda: len(fake.called("getUpdates")) >= 4)
            assert len(fake.updates) == 1
            intake.disk(True)
            await fake.until(lambda: not fake.updates)
        assert intake.texts == ["once please"]

    async def test_what_waits_at_the_start_is_kept(self, telegram: Telegram) -> None:
        telegram.fake.user_says("while down")
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: telegram.intake.texts == ["while down"])
        assert telegram.fake.called("deleteWebhook") == []
        first = telegram.fake.called("getUpdates")[0].fields
        assert "offset" not in first
        assert first["allowed_updates"] == list(KINDS)

    async def test_updates_that_mean_nothing_are_confirmed_as_well(
        self, telegram: Telegram
    ) -> None:
        telegram.fake.user_says(None, new_chat_members=[])
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: telegram.intake.up and not telegram.fake.updates)
        assert telegram.intake.offered == []

    async def test_numbers_that_telegram_draws_anew_are_no_hindrance(
        self, telegram: Telegram
    ) -> None:
        fake, intake = telegram.fake, telegram.intake
        async with listening(telegram.channel, intake):
            fake.user_says("high number")
            await fake.until(lambda: intake.messages and not fake.updates)
            fake.hurry()
            await fake.until(lambda: "offset" not in fake.called("getUpdates")[-1].fields)
            fake.number_updates_from(5)
            fake.user_says("low number")
            await fake.until(lambda: intake.texts == ["high number", "low number"])

    async def test_a_backlog_arrives_whole_and_in_order(self, telegram: Telegram) -> None:
        for number in range(230):
            telegram.fake.user_says(str(number))
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: len(telegram.intake.messages) == 230)
        assert telegram.intake.texts == [str(number) for number in range(230)]


class TestDiskTrouble:
    async def test_a_stop_is_seen_while_nothing_can_be_stored(self, telegram: Telegram) -> None:
        fake, intake = telegram.fake, telegram.intake
        async with listening(telegram.channel, intake):
            await fake.until(lambda: intake.up)
            intake.disk(False)
            fake.user_says("work")
            await fake.until(lambda: intake.offered)
            fake.user_says("/stop")
            await fake.until(lambda: intake.glanced)
            polls = len(fake.called("getUpdates"))
            await fake.until(lambda: len(fake.called("getUpdates")) >= polls + 3)
            assert len(intake.glanced) == 1
            assert isinstance(intake.glanced[0], Message)
            assert intake.glanced[0].text == "/stop"
            assert len(fake.updates) == 2
            intake.disk(True)
            await fake.until(lambda: intake.texts == ["work", "/stop"])
        waits = [call.fields.get("timeout") for call in fake.called("getUpdates")]
        assert telegram.clock.asked[:1] == [2.0]
        assert waits.count("0") >= 3


class TestUnreadableUpdates:
    async def test_a_malformed_update_holds_up_no_other(
        self, telegram: Telegram, caplog: pytest.LogCaptureFixture
    ) -> None:
        fake, intake = telegram.fake, telegram.intake
        fake.push_raw(BAD)
        fake.push_raw("not even an object")
        fake.user_says("still here?")
        with caplog.at_level(logging.INFO):
            async with listening(telegram.channel, intake):
                await fake.until(lambda: intake.texts == ["still here?"])
                await fake.until(lambda: "update 230 " in caplog.text)
        lines = [r.getMessage() for r in caplog.records if "update 230 " in r.getMessage()]
        assert len(lines) == 1
        aside = intake.of(Unreadable)
        assert aside[0].identity == "telegram:800000001:u230"
        assert aside[0].about == ABOUT
        assert aside[1].about == ()
        assert len(aside) == 2
        assert {0.5, 1.0, 2.0} <= set(telegram.clock.asked)
        assert len(fake.called("getUpdates")) < 6

    async def test_a_batch_without_any_number_is_not_asked_for_without_pause(
        self, telegram: Telegram
    ) -> None:
        fake, clock = telegram.fake, telegram.clock
        fake.push_raw({"message": {"text": "no number"}})
        async with listening(telegram.channel, telegram.intake):
            await fake.until(lambda: max(clock.asked, default=0) > 25)
        assert len(fake.called("getUpdates")) < 12


class TestOutages:
    async def test_pauses_grow_to_half_a_minute_while_telegram_is_unreachable(
        self, telegram: Telegram
    ) -> None:
        fake, clock, intake = telegram.fake, telegram.clock, telegram.intake
        await fake.stop()
        async with listening(telegram.channel, intake):
            await fake.until(lambda: len(clock.asked) >= 8)
            pauses = clock.asked[:8]
            assert pauses[:6] == sorted(pauses[:6])
            assert 1.0 <= pauses[0] <= 1.2
            assert pauses[-1] == 30.0
            assert "cannot be reached" in intake.connections[0].reason
            fake.user_says("after the outage")
            await fake.start(fake.port)
            await fake.until(lambda: intake.texts == ["after the outage"])
        assert [connection.up for connection in intake.connections] == [False, True]

    @pytest.mark.parametrize("method", ["getMe", "getUpdates"])
    @pytest.mark.parametrize(
        "answer",
        [
            (500, b'{"ok":false,"error_code":500,"description":"Internal Server Error"}'),
            (502, b"<html>Bad Gateway</html>"),
            (200, b"<html>hello</html>"),
            (200, b"[]"),
            (200, b'{"ok":true}'),
            (200, b'{"ok":true,"result":{"not":"a list"}}'),
            (200, b"\xff\xfe"),
            (200, b"[" * 100_000),
        ],
        ids=["500", "502", "html", "list", "no result", "no list", "no text", "deep"],
    )
    async def test_answers_that_make_no_sense_are_healed(
        self, telegram: Telegram, method: str, answer: tuple[int, bytes]
    ) -> None:
        status, body = answer
        telegram.fake.garble(method, body, status, times=2)
        telegram.fake.user_says("through it all")
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: telegram.intake.texts == ["through it all"])
        assert [one.up for one in telegram.intake.connections] == [False, True]
        assert len(telegram.clock.asked) >= 2

    async def test_a_dropped_connection_is_taken_up_again(self, telegram: Telegram) -> None:
        telegram.fake.drop("getUpdates", times=2)
        telegram.fake.user_says("hello")
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: telegram.intake.texts == ["hello"])

    async def test_a_flood_refusal_is_waited_out(self, telegram: Telegram) -> None:
        said = "Too Many Requests: retry after 17"
        telegram.fake.fail("getUpdates", 429, said, retry_after=17)
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: telegram.intake.up)
        assert telegram.clock.asked[0] == 17

    async def test_stopping_does_not_wait_for_the_long_poll(self, telegram: Telegram) -> None:
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: len(telegram.fake.called("getUpdates")) == 2)
            begun = time.monotonic()
        assert time.monotonic() - begun < 10


class TestToken:
    async def test_a_revoked_token_is_fatal_and_still_tried_now_and_then(
        self, telegram: Telegram
    ) -> None:
        fake, intake, token = telegram.fake, telegram.intake, telegram.fake.token
        async with listening(telegram.channel, intake):
            await fake.until(lambda: len(fake.called("getUpdates")) == 2)
            fake.revoke()
            await fake.until(lambda: not intake.up)
            assert intake.connections[-1].fatal
            assert "BotFather" in intake.connections[-1].reason
            await fake.until(lambda: telegram.clock.asked[-1] == 180)
            fake.token = token
            fake.user_says("back")
            await fake.until(lambda: intake.texts == ["back"])
        assert intake.up

    async def test_a_refusal_that_passes_costs_no_minutes(self, telegram: Telegram) -> None:
        fake, intake = telegram.fake, telegram.intake
        fake.fail("getUpdates", 404, "Not Found")
        fake.user_says("still here")
        async with listening(telegram.channel, intake):
            await fake.until(lambda: intake.texts == ["still here"])
        assert intake.up
        assert 180 not in telegram.clock.asked

    async def test_a_malformed_token_is_fatal_as_well(self, telegram: Telegram) -> None:
        telegram.fake.fail("getMe", 404, "Not Found")
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: telegram.intake.connections)
        assert telegram.intake.connections[0].fatal

    async def test_no_text_for_people_or_logs_holds_the_token(
        self, telegram: Telegram, caplog: pytest.LogCaptureFixture
    ) -> None:
        fake = telegram.fake
        secret = fake.token.partition(":")[2]
        with caplog.at_level(logging.DEBUG, logger="channels"):
            async with listening(telegram.channel, telegram.intake):
                await fake.until(lambda: telegram.intake.up)
                fake.garble("getUpdates", f"no JSON {fake.token}".encode(), 500)
                fake.push_raw(BAD)
                await fake.stop()
                await fake.until(lambda: not telegram.intake.up)
                with pytest.raises(NotSent) as caught:
                    await telegram.channel.do(Send(Address("telegram", str(ANA)), Part("x")))
        ours = [record for record in caplog.records if record.name.startswith("channels")]
        said = [record.getMessage() for record in ours]
        said += [one.reason for one in telegram.intake.connections]
        said += [str(caught.value), repr(caught.value)]
        assert caught.value.__suppress_context__
        assert not any(secret in text for text in said)


class TestOtherInstances:
    async def test_a_conflict_is_named_once_and_met_with_growing_pauses(
        self, telegram: Telegram
    ) -> None:
        fake, intake, clock = telegram.fake, telegram.intake, telegram.clock
        fake.fail("getUpdates", 409, CONFLICT, times=4)
        fake.user_says("pending")
        async with listening(telegram.channel, intake):
            await fake.until(lambda: intake.texts == ["pending"])
        assert [one.up for one in intake.connections] == [False, True]
        assert "second instance" in intake.connections[0].reason
        assert not intake.connections[0].fatal
        pauses = clock.asked[:4]
        assert pauses == sorted(pauses)
        assert pauses[0] >= 1
        assert sum(pauses) > 10  # so there are at most ten polls in ten seconds

    async def test_two_instances_share_the_updates_without_falling_over(
        self, telegram: Telegram
    ) -> None:
        fake, other = telegram.fake, RecordingIntake()
        clock = QuickClock()
        async with (
            TelegramChannel(fake.token, clock, fake.url) as second,
            listening(telegram.channel, telegram.intake),
            listening(second, other),
        ):
            for number in range(5):
                fake.user_says(str(number))
                await fake.until(lambda n=str(number): n in telegram.intake.texts + other.texts)
            reports = (telegram.intake.connections, other.connections)
            await fake.until(
                lambda: any("second instance" in one.reason for said in reports for one in said)
            )

    async def test_a_webhook_is_taken_away_and_what_waits_is_kept(self, telegram: Telegram) -> None:
        fake = telegram.fake
        fake.webhook = "https://example.org/hook"
        fake.user_says("kept")
        async with listening(telegram.channel, telegram.intake):
            await fake.until(lambda: telegram.intake.texts == ["kept"])
        (call,) = fake.called("deleteWebhook")
        assert str(call.fields["drop_pending_updates"]).lower() == "false"


class TestMenu:
    MENU = (("help", "what can be said here"), ("stop", "ends the running turn"))

    async def test_the_menu_is_offered_in_all_kinds_of_chats_once(self, telegram: Telegram) -> None:
        for _ in range(2):
            await telegram.channel.menu(self.MENU)
        assert set(telegram.fake.commands) == {
            "default",
            "all_private_chats",
            "all_group_chats",
        }
        assert telegram.fake.commands["default"][0] == {
            "command": "help",
            "description": "what can be said here",
        }
        assert len(telegram.fake.called("setMyCommands")) == 3

    async def test_a_menu_that_is_there_already_is_not_set_again(self, telegram: Telegram) -> None:
        await telegram.channel.menu(self.MENU)
        async with TelegramChannel(telegram.fake.token, QuickClock(), telegram.fake.url) as again:
            await again.menu(self.MENU)
        assert len(telegram.fake.called("setMyCommands")) == 3

    async def test_a_server_that_cannot_tell_its_menu_is_given_one(
        self, telegram: Telegram
    ) -> None:
        telegram.fake.fail("getMyCommands", 404, "Not Found: method not found", times=3)
        await telegram.channel.menu(self.MENU)
        assert len(telegram.fake.commands) == 3

    async def test_a_menu_wanted_in_an_outage_is_set_after_it(self, telegram: Telegram) -> None:
        await telegram.fake.stop()
        await telegram.channel.menu(self.MENU)
        await telegram.fake.start(telegram.fake.port)
        async with listening(telegram.channel, telegram.intake):
            await telegram.fake.until(lambda: len(telegram.fake.commands) == 3)


async def test_every_start_listens_anew_on_the_same_channel() -> None:
    async with FakeTelegram() as fake, TelegramChannel(fake.token, QuickClock(), fake.url) as one:
        for number in range(3):
            intake = RecordingIntake()
            async with listening(one, intake):
                fake.user_says(str(number))
                await fake.until(lambda seen=intake, n=str(number): n in seen.texts)
