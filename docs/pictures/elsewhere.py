"""The same gateway on Slack and on Discord: a thread of each, played and kept as it stood.

The gateway runs in this process with the demo agent, against the fakes of the tests; what is kept
is what those servers would show a person. It must not know how a picture is drawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.end_to_end.house import House, until
from tests.end_to_end.looking import quick
from tests.fakes import discord_world, slack
from tests.fakes.discord import FakeDiscord
from tests.fakes.slack import FakeSlack
from tests.fakes.slack_world import BOT_USER

SPEED = 3.0  # the gateway's seconds are so much shorter
NAME = "Laneway"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Post:
    """A message of a thread. ``said`` is the whole of it as its platform tells it to clients."""

    author: str
    bot: bool
    said: Json
    reactions: tuple[str, ...]
    seconds: int  # since the conversation began


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread as it stands at one moment, and the channel that it belongs to."""

    title: str
    place: str
    posts: tuple[Post, ...]


async def record() -> tuple[Thread, Thread]:
    """A thread on Slack and one on Discord, of one gateway; a quarter of a minute or so."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        work = await stack.enter_async_context(FakeSlack())
        club = await stack.enter_async_context(FakeDiscord())
        club.me.update(username=NAME.lower(), global_name=NAME)
        await stack.enter_async_context(_house(Path(folder), work, club))
        await until(lambda: work.sockets and club.connected)
        await _pause(1)
        return await _on_slack(work), await _on_discord(club)


def _house(folder: Path, work: FakeSlack, club: FakeDiscord) -> House:
    settings = {
        "LANEWAY_ENGINE": "demo",
        "LANEWAY_LOG_LEVEL": "error",
        "LANEWAY_SLACK_BOT_TOKEN": work.bot_token,
        "LANEWAY_SLACK_APP_TOKEN": work.app_token,
        "LANEWAY_SLACK_API_BASE": work.url,
        "LANEWAY_DISCORD_TOKEN": club.token,
        "LANEWAY_DISCORD_API_BASE": club.url,
        "LANEWAY_DISCORD_GATEWAY_URL": club.gateway_url,
        "LANEWAY_ADMINS": f"slack:{slack.ANA},discord:{discord_world.ANA}",
        "LANEWAY_MEMBERS": f"slack:{slack.BEN},discord:{discord_world.BEN}",
        "LANEWAY_PLACES": f"slack:{slack.LAB},discord:{discord_world.CHANNEL}",
    }
    return quick(folder, SPEED, **settings)


async def _on_slack(fake: FakeSlack) -> Thread:
    """A first question was answered; a table needs a yes, and another message waits for that."""
    thread = fake.user_says(f"<@{BOT_USER}> How was our week?", channel=slack.LAB)["ts"]
    reactions = fake.reactions

    def offered(label: str) -> bool:
        return any(label in fake.buttons(one) for one in fake.shown(slack.LAB, thread))

    await _until(lambda: fake.texts(slack.LAB, thread) and not offered("Stop"))
    await _until(lambda: not any(reactions.get((slack.LAB, thread), {}).values()))
    await _pause(30)
    fake.user_says("Make a table of this week", channel=slack.LAB, thread=thread, user=slack.BEN)
    await _until(lambda: offered("Allow"))
    await _pause(5)
    fake.user_says("Do you remember what we wanted?", channel=slack.LAB, thread=thread)
    await _until(lambda: offered("Drop"))
    await _pause(2)
    posts = [
        Post(
            fake.people[one["user"]]["profile"]["display_name"],
            one["user"] == BOT_USER,
            deepcopy(one),
            tuple(name for name, by in reactions.get((slack.LAB, one["ts"]), {}).items() if by),
            round((float(one["ts"]) - float(thread)) * SPEED),
        )
        for one in fake.in_channel(slack.LAB)
        if thread in (one["ts"], one.get("thread_ts"))
    ]
    return Thread("Thread", fake.channel(slack.LAB)["name"], tuple(posts))


async def _on_discord(fake: FakeDiscord) -> Thread:
    """A table was allowed and made; now a story is being told."""
    asked = fake.user_says(
        f"<@{discord_world.BOT}> Make a table of this week", channel=discord_world.CHANNEL
    )
    thread = asked["id"]

    def offered(label: str) -> bool:
        return any(label in fake.buttons(one) for one in fake.shown(thread))

    await _until(lambda: offered("Allow"))
    await _pause(2)
    fake.press("Allow")
    await _until(lambda: any("Here is" in text for text in fake.texts(thread)))
    await _until(lambda: not offered("Stop") and not any(fake.reactions.values()))
    await _pause(20)
    fake.user_says("Tell me a story", channel=thread, user=discord_world.BEN)
    await _until(lambda: offered("Stop") and "into a" in fake.texts(thread)[-1])
    began = _seconds(asked)
    posts = [
        Post(
            one["author"]["global_name"],
            bool(one["author"].get("bot")),
            deepcopy(one),
            tuple(fake.reactions.get((one["channel_id"], one["id"]), ())),
            round((_seconds(one) - began) * SPEED),
        )
        for one in (asked, *sorted(fake.messages[thread].values(), key=_seconds))
    ]
    names = (fake.channels[thread]["name"], fake.channels[discord_world.CHANNEL]["name"])
    return Thread(*names, tuple(posts))


def _seconds(message: Json) -> float:
    return datetime.fromisoformat(message["timestamp"]).timestamp()


async def _pause(seconds: float) -> None:
    """People take their time; these are the gateway's seconds."""
    await asyncio.sleep(seconds / SPEED)


async def _until(condition: Callable[[], object]) -> None:
    await until(condition, within=30)
