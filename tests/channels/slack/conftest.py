"""A Slack workspace and the channel on it, for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from channels.slack.adapter import SlackChannel
from core.clock import SystemClock
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.slack import FakeSlack

SHORT = 0.3  # seconds Slack waits for an acknowledgement, and between its tries


class QuickClock(SystemClock):
    """Pauses are noted at their length and slept at a fraction of it."""

    def __init__(self, speed: float = 50.0) -> None:
        self.asked: list[float] = []
        self.speed = speed
        self.later = 0.0  # seconds that have passed beside those that did

    def monotonic(self) -> float:
        return super().monotonic() + self.later

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await super().sleep(seconds / self.speed)
        self.later += max(0.0, seconds - seconds / self.speed)


@dataclass
class Slack:
    """One app with its workspace."""

    fake: FakeSlack
    channel: SlackChannel
    clock: QuickClock
    intake: RecordingIntake


@asynccontextmanager
async def opened() -> AsyncIterator[Slack]:
    clock = QuickClock()
    async with FakeSlack() as fake:
        fake.ack_within, fake.retries = SHORT, (SHORT / 10, SHORT, SHORT)
        async with SlackChannel(fake.bot_token, fake.app_token, clock, fake.url) as channel:
            yield Slack(fake, channel, clock, RecordingIntake())


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    async with opened() as one:
        yield one
