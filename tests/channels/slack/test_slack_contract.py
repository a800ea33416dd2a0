"""Slack keeps what core relies on of every channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from channels.slack.adapter import SlackChannel
from core.channel import Forbidden, RateLimited, Refused, Uncertain
from core.messages import Address
from tests.channels.slack.conftest import SHORT, QuickClock, Slack, opened
from tests.contracts.channel_contract import ChannelContract, Stage
from tests.fakes.hook_server import posted_to
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.slack import ANA, ANA_DM, LAB, FakeSlack
from tests.fakes.slack_rules import Json
from tests.fakes.slack_world import BOT_USER


class SlackStage:
    direct = Address("slack", ANA_DM)
    group = Address("slack", LAB)
    ana = f"slack:{ANA}"

    def __init__(self, slack: Slack) -> None:
        self.fake = slack.fake
        self.channel = slack.channel
        self.said: Json = {}

    async def says(self, text: str, where: Address, mention: bool = False) -> None:
        text = f"<@{BOT_USER}> {text}" if mention else text
        await self._connected()
        self.said = self.fake.user_says(text, channel=where.chat, thread=where.thread)

    async def edits(self, text: str) -> None:
        self.fake.user_edits(self.said, text)

    async def presses(self, label: str) -> None:
        await self._connected()
        self.fake.press(label)

    async def sends_file(self, data: bytes, name: str, where: Address) -> None:
        await self._connected()
        self.fake.user_sends(data, name, channel=where.chat, thread=where.thread)

    async def _connected(self) -> None:
        """What is said to one who listens is said once Slack can deliver it: it delivers nothing
        again that is pressed, and the rest in any order.
        """
        await asyncio.sleep(0)
        if self.channel._listener is not None:
            await self.fake.until(lambda: self.fake.sockets)

    def shown(self, where: Address) -> list[str]:
        return self.fake.texts(where.chat, where.thread)

    def buttons(self, where: Address) -> list[str]:
        return self.fake.buttons(self.fake.shown(where.chat, where.thread)[-1])

    def files(self, where: Address) -> list[bytes]:
        shown = self.fake.shown(where.chat, where.thread)
        return [self.fake.files[file["id"]]["data"] for one in shown for file in one["files"]]

    def trouble(self, way: type[Exception]) -> None:
        if way is RateLimited:
            self.fake.fail("chat.postMessage", "ratelimited", retry_after=7)
        elif way is Forbidden:
            self.fake.fail("chat.postMessage", "not_in_channel")
        elif way is Refused:
            self.fake.fail("chat.postMessage", "something_else")
        elif way is Uncertain:
            self.fake.drop("chat.postMessage", after=True)

    async def outage(self) -> None:
        await self.fake.stop()

    async def recovery(self) -> None:
        await self.fake.start(self.fake.port)


class PostingStage(SlackStage):
    async def _connected(self) -> None:
        """What is posted before anybody listens comes again, and then behind what is newer."""
        await asyncio.sleep(0)
        webhook = self.channel._webhook
        assert webhook is not None
        if webhook._reports is not None:
            await self.fake.until(lambda: webhook._life)


class TestSlack(ChannelContract):
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[Stage]:
        async with opened() as slack:
            yield SlackStage(slack)


class TestSlackThatPosts(ChannelContract):
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[Stage]:
        clock, made = QuickClock(), list[SlackChannel]()
        async with FakeSlack() as fake, posted_to(lambda: made[0].hook) as url:
            fake.ack_within, fake.retries = SHORT, (SHORT / 10, SHORT, SHORT)
            fake.request_url, secret = url, fake.signing_secret
            channel = SlackChannel(fake.bot_token, "", clock, fake.url, signing_secret=secret)
            async with channel:
                made.append(channel)
                yield PostingStage(Slack(fake, channel, clock, RecordingIntake()))
