"""Telegram keeps what core relies on of every channel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from channels.telegram.adapter import TelegramChannel
from channels.telegram.webhook import Posting
from core.channel import Forbidden, RateLimited, Refused, Uncertain
from core.messages import Address
from tests.channels.telegram.conftest import QuickClock, Telegram, opened
from tests.contracts.channel_contract import ChannelContract, Stage
from tests.fakes.hook_server import posted_to
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.telegram import ANA, FORUM, FakeTelegram


class TelegramStage:
    direct = Address("telegram", str(ANA))
    group = Address("telegram", str(FORUM), "1")
    ana = f"telegram:{ANA}"

    def __init__(self, telegram: Telegram) -> None:
        self.fake = telegram.fake
        self.channel = telegram.channel
        self.said: dict[str, object] = {}

    async def says(self, text: str, where: Address, mention: bool = False) -> None:
        text = f"@gw_bot {text}" if mention else text
        self.said = self.fake.user_says(text, chat=int(where.chat), thread=thread(where))

    async def edits(self, text: str) -> None:
        self.fake.user_edits(self.said, text)

    async def presses(self, label: str) -> None:
        self.fake.press(label)

    async def sends_file(self, data: bytes, name: str, where: Address) -> None:
        self.fake.user_sends(data, name, chat=int(where.chat), thread=thread(where))

    def shown(self, where: Address) -> list[str]:
        return self.fake.texts(int(where.chat), thread(where))

    def buttons(self, where: Address) -> list[str]:
        return self.fake.buttons(self.fake.shown(int(where.chat), thread(where))[-1])

    def files(self, where: Address) -> list[bytes]:
        shown = self.fake.shown(int(where.chat), thread(where))
        return [self.fake.files[one["document"]["file_id"]][1] for one in shown]

    def trouble(self, way: type[Exception]) -> None:
        if way is RateLimited:
            said = "Too Many Requests: retry after 7"
            self.fake.fail("sendMessage", 429, said, retry_after=7)
        elif way is Forbidden:
            self.fake.fail("sendMessage", 403, "Forbidden: bot was blocked by the user")
        elif way is Refused:
            self.fake.fail("sendMessage", 400, "Bad Request: SOMETHING_ELSE")
        elif way is Uncertain:
            self.fake.drop("sendMessage", after=True)

    async def outage(self) -> None:
        await self.fake.stop()

    async def recovery(self) -> None:
        await self.fake.start(self.fake.port)


def thread(where: Address) -> int | None:
    return int(where.thread) if where.thread else None


class TestTelegram(ChannelContract):
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[Stage]:
        async with opened() as telegram:
            yield TelegramStage(telegram)


class TestTelegramThatPosts(ChannelContract):
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[Stage]:
        clock, made = QuickClock(), list[TelegramChannel]()
        async with FakeTelegram() as fake, posted_to(lambda: made[0].hook) as url:
            posting = Posting(url, "hush", patience=2000)  # some seconds, by this clock
            async with TelegramChannel(fake.token, clock, fake.url, posting=posting) as channel:
                made.append(channel)
                yield TelegramStage(Telegram(fake, channel, clock, RecordingIntake()))
