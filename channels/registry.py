"""Which channels there are, and how each is opened. A platform is imported only when it is used.

Adding a platform is one folder beside this file and one function here.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from core.channel import Channel
from core.clock import Clock

Finding = tuple[str, bool, str, str]  # what, whether it is well, what was seen, what to do


@dataclass(frozen=True, slots=True)
class Wanted:
    """A channel that the settings ask for. ``options`` are what its opener takes."""

    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Opened:
    """A channel, and how it is told which commands to offer (name, what it does)."""

    channel: Channel
    menu: Callable[[Sequence[tuple[str, str]]], Coroutine[None, None, None]]


@asynccontextmanager
async def telegram(
    clock: Clock, *, token: str, api_base: str, posted_to: str = "", hook_secret: str = ""
) -> AsyncIterator[Opened]:
    from channels.telegram.adapter import TelegramChannel
    from channels.telegram.webhook import Posting

    posting = Posting(posted_to, hook_secret) if posted_to else None
    async with TelegramChannel(token, clock, api_base, posting=posting) as channel:
        yield Opened(channel, channel.menu)


async def check_telegram(
    *, token: str, api_base: str, posted_to: str = "", hook_secret: str = ""
) -> Sequence[Finding]:
    from channels.telegram.setup import check

    return await check(token, api_base, posted_to)


@asynccontextmanager
async def slack(
    clock: Clock,
    *,
    bot_token: str,
    app_token: str,
    api_base: str,
    streams: str = "direct",
    people: frozenset[str] = frozenset(),
    signing_secret: str = "",
) -> AsyncIterator[Opened]:
    from channels.slack.adapter import SlackChannel

    opened = SlackChannel(
        bot_token, app_token, clock, api_base,
        streams=streams, people=people, signing_secret=signing_secret,
    )  # fmt: skip
    async with opened as channel:
        yield Opened(channel, channel.menu)


async def check_slack(
    *,
    bot_token: str,
    app_token: str,
    api_base: str,
    streams: str = "direct",
    people: frozenset[str] = frozenset(),
    signing_secret: str = "",
) -> Sequence[Finding]:
    from channels.slack.setup import check

    return await check(bot_token, app_token, api_base, posted=bool(signing_secret))


@asynccontextmanager
async def discord(
    clock: Clock,
    *,
    token: str,
    api_base: str,
    gateway_url: str,
    auto_thread: bool,
    people: frozenset[str],
    places: frozenset[str],
) -> AsyncIterator[Opened]:
    from channels.discord.adapter import DiscordChannel

    async with DiscordChannel(token, clock, api_base, gateway_url, auto_thread, people) as channel:
        yield Opened(channel, channel.menu)


async def check_discord(
    *,
    token: str,
    api_base: str,
    gateway_url: str,
    auto_thread: bool,
    people: frozenset[str],
    places: frozenset[str],
) -> Sequence[Finding]:
    from channels.discord.setup import check

    return await check(token, api_base, places, auto_thread)


ADAPTERS = {
    "telegram": "channels.telegram.adapter",
    "slack": "channels.slack.adapter",
    "discord": "channels.discord.adapter",
}
OPENERS: Mapping[str, Callable[..., AbstractAsyncContextManager[Opened]]] = {
    "telegram": telegram,
    "slack": slack,
    "discord": discord,
}
CHECKS: Mapping[str, Callable[..., Coroutine[None, None, Sequence[Finding]]]] = {
    "telegram": check_telegram,
    "slack": check_slack,
    "discord": check_discord,
}


def load(wanted: Sequence[Wanted]) -> None:
    """Import what these channels need: half a second of work that a thread can do meanwhile."""
    for one in wanted:
        importlib.import_module(ADAPTERS[one.name])


def open_channel(wanted: Wanted, clock: Clock) -> AbstractAsyncContextManager[Opened]:
    """The channel as a context manager: leaving it gives back its connections."""
    return OPENERS[wanted.name](clock, **wanted.options)
