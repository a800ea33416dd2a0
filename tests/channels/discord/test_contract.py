"""Discord keeps what core relies on of every channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from core.channel import Forbidden, RateLimited, Refused, Uncertain
from core.messages import Address
from tests.channels.discord.conftest import Discord, opened
from tests.contracts.channel_contract import ChannelContract, Stage, until
from tests.fakes.discord import ANA, BOT, CHANNEL
from tests.fakes.discord_faults import Json

POST = ("POST", "/messages$")


class DiscordStage:
    ana = f"discord:{ANA}"
    group = Address("discord", CHANNEL)

    def __init__(self, discord: Discord) -> None:
        self.fake = discord.fake
        self.channel = discord.channel
        self.direct = discord.ana
        self.said: Json = {}

    async def says(self, text: str, where: Address, mention: bool = False) -> None:
        if any(task.get_name() == "listen" for task in asyncio.all_tasks()):
            await until(lambda: self.fake.connected)  # Discord tells nothing that was said before
        text = f"<@{BOT}> {text}" if mention else text
        self.said = self.fake.user_says(text, channel=place(where))

    async def edits(self, text: str) -> None:
        self.fake.user_edits(self.said, text)

    async def presses(self, label: str) -> None:
        await until(lambda: self.fake.connected)
        self.fake.press(label)

    async def sends_file(self, data: bytes, name: str, where: Address) -> None:
        await until(lambda: self.fake.connected)
        self.fake.user_sends(data, name, channel=place(where))

    def shown(self, where: Address) -> list[str]:
        return self.fake.texts(place(where))

    def buttons(self, where: Address) -> list[str]:
        return self.fake.buttons(self.fake.shown(place(where))[-1])

    def files(self, where: Address) -> list[bytes]:
        shown = self.fake.shown(place(where))
        return [self.fake.files[one["id"]] for said in shown for one in said["attachments"]]

    def trouble(self, way: type[Exception]) -> None:
        if way is RateLimited:
            self.fake.fail(*POST, 429, retry_after=7)
        elif way is Forbidden:
            self.fake.fail(*POST, 403, 50007, "Cannot send messages to this user")
        elif way is Refused:
            self.fake.fail(*POST, 400, 50035, "Invalid Form Body")
        elif way is Uncertain:
            self.fake.drop(*POST, after=True)

    async def outage(self) -> None:
        await self.fake.stop()

    async def recovery(self) -> None:
        await self.fake.start(self.fake.port)


def place(where: Address) -> str:
    return where.thread or where.chat


class TestDiscord(ChannelContract):
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[Stage]:
        async with opened() as discord:
            yield DiscordStage(discord)
