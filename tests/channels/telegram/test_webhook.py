"""Updates that Telegram posts: who is let in, when a post is answered, how it is looked after."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.setup import check
from channels.telegram.updates import KINDS
from channels.telegram.webhook import Posting
from core.channel import Hook, Reply, Took
from core.messages import Message, Unreadable
from tests.channels.telegram.conftest import QuickClock
from tests.contracts.channel_contract import listening
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.telegram import ANA, BEN, FakeTelegram

SECRET = "hush-hush_1"
URL = "https://lab.example.org/hooks/telegram"
HEADERS = {"x-telegram-bot-api-secret-token": SECRET}


@dataclass
class Posted:
    """A bot in webhook mode; nobody posts but the test."""

    fake: FakeTelegram
    channel: TelegramChannel
    clock: QuickClock
    intake: RecordingIntake

    @property
    def hook(self) -> Hook:
        assert self.channel.hook is not None
        return self.channel.hook

    async def post(self, update: object) -> Reply:
        return await self.hook.posted(HEADERS, json.dumps(update).encode())

    def said(self, text: str, user: int = ANA) -> object:
        """An update that the server does not post by itself."""
        self.fake.user_says(text, user=user)
        return self.fake.updates.pop()

    async def up(self) -> None:
        await self.fake.until(lambda: self.intake.up)

    async def patient(self) -> None:
        """Up, and what waits for the disk has time enough on a busy machine as well."""
        await self.up()
        self.clock.speed = 20.0


@asynccontextmanager
async def _opened(url: str = URL) -> AsyncIterator[Posted]:
    clock, posting = QuickClock(), Posting(url, SECRET)
    async with (
        FakeTelegram() as fake,
        TelegramChannel(fake.token, clock, fake.url, posting=posting) as channel,
    ):
        await fake.posting.stop()
        yield Posted(fake, channel, clock, RecordingIntake())


@pytest.fixture
async def bot() -> AsyncIterator[Posted]:
    async with _opened() as one:
        yield one


class TestSettingIt:
    async def test_it_is_set_with_the_secret_and_what_waits_is_kept(self, bot: Posted) -> None:
        async with listening(bot.channel, bot.intake):
            await bot.up()
        (call,) = bot.fake.called("setWebhook")
        assert (call.fields["url"], call.fields["secret_token"]) == (URL, SECRET)
        assert call.fields["allowed_updates"] == list(KINDS)
        assert int(call.fields["max_connections"]) <= 10
        assert "drop_pending_updates" not in call.fields
        assert not bot.fake.called("getUpdates")
        assert not bot.fake.called("deleteWebhook")

    async def test_it_is_set_once_telegram_can_be_reached(self, bot: Posted) -> None:
        bot.fake.fail("getMe", 500)
        bot.fake.fail("setWebhook", 502, times=2)
        async with listening(bot.channel, bot.intake):
            await bot.up()
        assert any("does not answer well" in one.reason for one in bot.intake.connections)
        assert bot.fake.webhook == URL

    async def test_an_address_that_telegram_refuses_is_told_with_the_setting(
        self, bot: Posted
    ) -> None:
        bot.fake.fail("setWebhook", 400, "Bad Request: bad webhook: IP address is reserved")
        async with listening(bot.channel, bot.intake):
            await bot.fake.until(lambda: bot.intake.connections)
            (told,) = bot.intake.connections[:1]
        assert told.fatal
        assert "reserved" in told.reason
        assert "LANEWAY_WEB_URL" in told.reason

    async def test_a_refused_token_is_told_as_one(self, bot: Posted) -> None:
        bot.fake.revoke()
        async with listening(bot.channel, bot.intake):
            await bot.fake.until(lambda: bot.intake.connections)
        assert bot.intake.connections[0].fatal
        assert "token" in bot.intake.connections[0].reason

    async def test_who_changed_it_is_told_of_and_it_is_set_again(
        self, bot: Posted, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with listening(bot.channel, bot.intake):
            await bot.up()
            bot.fake.webhook = "https://elsewhere.example.org/hook"
            await bot.fake.until(lambda: bot.fake.webhook == URL)
            await bot.up()
        assert any("second gateway" in one.reason for one in bot.intake.connections)
        assert "elsewhere" not in caplog.text

    async def test_that_telegram_does_not_get_through_is_told_until_it_does(
        self, bot: Posted
    ) -> None:
        old = {"last_error_date": 100, "last_error_message": "from before the start"}
        bot.fake.webhook_error = old
        waits = bot.said("hello?")
        async with listening(bot.channel, bot.intake):
            await bot.up()
            bot.fake.webhook_error = old
            bot.fake.updates.append(waits)
            await bot.fake.until(lambda: len(bot.fake.called("getWebhookInfo")) >= 2)
            assert bot.intake.up
            bot.fake.webhook_error = {"last_error_date": 200, "last_error_message": "SSL error"}
            await bot.fake.until(lambda: not bot.intake.up)
            assert "SSL error" in bot.intake.connections[-1].reason
            assert (await bot.post(waits)).took is Took.STORED
            assert bot.intake.up


class TestWhoMayPost:
    @pytest.mark.parametrize("given", [None, "", "wrong", SECRET + "x", SECRET[:-1], "ü"])
    async def test_nobody_without_the_secret(self, bot: Posted, given: str | None) -> None:
        headers = {} if given is None else {"x-telegram-bot-api-secret-token": given}
        assert not bot.hook.lets_in(headers)
        async with listening(bot.channel, bot.intake):
            await bot.up()
            body = json.dumps(bot.said("forged")).encode()
            assert (await bot.hook.posted(headers, body)).took is Took.NOT_OURS
        assert not bot.intake.offered

    async def test_whoever_has_it(self, bot: Posted) -> None:
        assert bot.hook.lets_in(HEADERS)

    @pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[]", b'"x"', b"[" * 100_000])
    async def test_what_is_no_update_makes_no_sense(self, bot: Posted, body: bytes) -> None:
        async with listening(bot.channel, bot.intake):
            await bot.up()
            assert (await bot.hook.posted(HEADERS, body)).took is Took.NO_SENSE
        assert not bot.intake.offered

    async def test_nothing_is_taken_while_nobody_listens(self, bot: Posted) -> None:
        reply = await bot.post(bot.said("too early"))
        assert reply.took is Took.LATER
        assert reply.again_after

    def test_the_secret_is_not_shown_with_the_address(self) -> None:
        assert SECRET not in repr(Posting(URL, SECRET))


class TestStoring:
    async def test_a_post_is_answered_only_after_it_is_stored(self, bot: Posted) -> None:
        async with listening(bot.channel, bot.intake):
            await bot.patient()
            bot.intake.disk(False)
            post = asyncio.ensure_future(bot.post(bot.said("once please")))
            await bot.fake.until(lambda: bot.intake.offered)
            assert not post.done()
            bot.intake.disk(True)
            assert (await post).took is Took.STORED
        assert bot.intake.texts == ["once please"]

    async def test_posts_at_once_are_stored_in_their_order(self, bot: Posted) -> None:
        async with listening(bot.channel, bot.intake):
            await bot.patient()
            posts = [bot.post(bot.said(str(number))) for number in range(120)]
            replies = await asyncio.gather(*posts)
        assert {reply.took for reply in replies} == {Took.STORED}
        assert bot.intake.texts == [str(number) for number in range(120)]

    async def test_numbers_are_never_compared_by_size(self, bot: Posted) -> None:
        high = bot.said("high")
        bot.fake.number_updates_from(5)
        async with listening(bot.channel, bot.intake):
            await bot.patient()
            for update in (high, bot.said("low")):
                assert (await bot.post(update)).took is Took.STORED
        assert bot.intake.texts == ["high", "low"]

    async def test_while_the_disk_fails_a_post_is_to_come_again_and_waits_once(
        self, bot: Posted
    ) -> None:
        async with listening(bot.channel, bot.intake):
            await bot.up()
            bot.intake.disk(False)
            first, second = bot.said("first"), bot.said("second", BEN)
            replies = [await bot.post(one) for one in (first, second, first, second)]
            assert {reply.took for reply in replies} == {Took.LATER}
            assert all(reply.again_after for reply in replies)
            bot.intake.disk(True)
            assert (await bot.post(first)).took is Took.STORED
            assert (await bot.post(second)).took is Took.STORED
        assert bot.intake.texts[:2] == ["first", "second"]
        assert bot.intake.texts.count("second") <= 2  # core knows it by then

    async def test_a_stop_is_seen_while_nothing_can_be_stored(self, bot: Posted) -> None:
        async with listening(bot.channel, bot.intake):
            await bot.patient()
            bot.intake.disk(False)
            posts = [asyncio.ensure_future(bot.post(bot.said("work")))]
            await bot.fake.until(lambda: bot.intake.offered)
            posts.append(asyncio.ensure_future(bot.post(bot.said("/stop", BEN))))
            await bot.fake.until(lambda: bot.intake.glanced)
            (seen,) = bot.intake.glanced
            assert isinstance(seen, Message)
            assert seen.text == "/stop"
            bot.intake.disk(True)
            await bot.fake.until(lambda: len(bot.intake.texts) == 2)
            await asyncio.gather(*posts)

    async def test_what_is_not_stored_at_the_end_is_to_come_again(self, bot: Posted) -> None:
        async with listening(bot.channel, bot.intake):
            await bot.patient()
            bot.intake.disk(False)
            post = asyncio.ensure_future(bot.post(bot.said("late")))
            await bot.fake.until(lambda: bot.intake.offered)
        assert (await post).took is Took.LATER
        assert not bot.intake.accepted

    async def test_an_unreadable_update_is_set_aside_and_answered(
        self, bot: Posted, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO):
            async with listening(bot.channel, bot.intake):
                await bot.patient()
                assert (await bot.post({"update_id": 7, "message": {}})).took is Took.STORED
                assert (await bot.post({"no": "number"})).took is Took.STORED
                assert (await bot.post(bot.said("next"))).took is Took.STORED
                await bot.fake.until(lambda: "update 7 still cannot" in caplog.text)
        assert next(one.identity for one in bot.intake.of(Unreadable)).endswith(":u7")
        assert bot.intake.texts == ["next"]

    async def test_it_listens_again_after_an_end(self, bot: Posted) -> None:
        for text in ("one", "two"):
            async with listening(bot.channel, bot.intake):
                await bot.fake.until(lambda n=text: len(bot.fake.called("setWebhook")) >= 1)
                update = bot.said(text)
                while (await bot.post(update)).took is Took.LATER:
                    await asyncio.sleep(0)
        assert bot.intake.texts == ["one", "two"]


async def test_a_bot_that_is_polled_has_nowhere_to_post_to() -> None:
    async with TelegramChannel("1:x", QuickClock(), "http://127.0.0.1:9") as channel:
        assert channel.hook is None


class TestDoctor:
    async def findings(self, bot: Posted) -> tuple[str, bool, str, str]:
        found = await check(bot.fake.token, bot.fake.url, URL)
        return next(one for one in found if one[0] == "telegram updates")

    async def test_before_the_first_start_nothing_is_set_and_nothing_wrong(
        self, bot: Posted
    ) -> None:
        _, well, seen, to_do = await self.findings(bot)
        assert well
        assert "not posted anywhere yet" in seen
        assert URL in to_do

    async def test_posts_that_arrive_are_well(self, bot: Posted) -> None:
        bot.fake.webhook = URL
        _, well, seen, _ = await self.findings(bot)
        assert well
        assert f"posted to {URL}, 0 wait" in seen

    async def test_another_address_and_posts_that_fail_are_named(self, bot: Posted) -> None:
        bot.fake.webhook = "https://elsewhere.example.org/"
        _, well, seen, to_do = await self.findings(bot)
        assert not well
        assert "elsewhere" in seen
        assert URL in to_do
        bot.fake.webhook = URL
        bot.fake.updates.append(bot.said("waits"))
        bot.fake.webhook_error = {"last_error_date": 1, "last_error_message": "SSL error"}
        _, well, seen, to_do = await self.findings(bot)
        assert not well
        assert "SSL error" in seen
        assert "https" in to_do
