"""A Discord and the channel on it, for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from channels.discord.adapter import DiscordChannel
from channels.discord.gateway import Timing
from core.clock import SystemClock
from core.messages import Address
from tests.fakes.discord import ANA, BOT, CHANNEL, FakeDiscord
from tests.fakes.discord_faults import Json
from tests.fakes.recording_intake import RecordingIntake


class QuickClock(SystemClock):
    """Pauses are noted at their length and slept at a fraction of it; durations count whole."""

    def __init__(self, speed: float = 1000.0) -> None:
        self.asked: list[float] = []
        self.speed = speed
        self._ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await super().sleep(seconds / self.speed)
        self._ahead += seconds * (1 - 1 / self.speed)


@dataclass
class Discord:
    """One bot with its server."""

    fake: FakeDiscord
    channel: DiscordChannel
    clock: QuickClock
    intake: RecordingIntake

    @property
    def ana(self) -> Address:
        """Ana's direct messages."""
        return Address("discord", self.fake.direct(ANA)["id"])


def opened_on(fake: FakeDiscord, clock: QuickClock, **options: object) -> DiscordChannel:
    """A channel on a running server."""
    timing = Timing(ready_within=5.0, silence=30.0)
    return DiscordChannel(
        fake.token,
        clock,
        fake.url,
        fake.gateway_url,
        timing=timing,
        **options,  # type: ignore[arg-type]
    )


@asynccontextmanager
async def opened(**options: object) -> AsyncIterator[Discord]:
    clock = QuickClock()
    async with FakeDiscord() as fake, opened_on(fake, clock, **options) as channel:
        yield Discord(fake, channel, clock, RecordingIntake())


@pytest.fixture
async def discord() -> AsyncIterator[Discord]:
    async with opened() as one:
        yield one


async def connected(discord: Discord) -> None:
    """Until the channel listens."""
    await discord.fake.until(lambda: discord.intake.up)


async def mentioned(discord: Discord, text: str = "hello there") -> tuple[Address, Json]:
    """Ana mentions us in the channel: the lane's address, and her message."""
    said = discord.fake.user_says(f"<@{BOT}> {text}", channel=CHANNEL)
    identity = f"discord:{said['id']}"
    await discord.fake.until(
        lambda: any(one.identity == identity for one in discord.intake.messages)
    )
    return Address("discord", CHANNEL, said["id"]), said
