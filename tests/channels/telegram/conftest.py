"""A Telegram server and the channel on it, for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from channels.telegram.adapter import TelegramChannel
from core.clock import SystemClock
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.telegram import FakeTelegram


class QuickClock(SystemClock):
    """Pauses are noted at their length and slept at a fraction of it."""

    def __init__(self, speed: float = 200.0) -> None:
        self.asked: list[float] = []
        self.speed = speed

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await super().sleep(seconds / self.speed)


@dataclass
class Telegram:
    """One bot with its server."""

    fake: FakeTelegram
    channel: TelegramChannel
    clock: QuickClock
    intake: RecordingIntake


@asynccontextmanager
async def opened() -> AsyncIterator[Telegram]:
    clock = QuickClock()
    async with FakeTelegram() as fake, TelegramChannel(fake.token, clock, fake.url) as channel:
        yield Telegram(fake, channel, clock, RecordingIntake())


@pytest.fixture
async def telegram() -> AsyncIterator[Telegram]:
    async with opened() as one:
        yield one
