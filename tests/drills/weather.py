"""What goes wrong on platforms while people write, and whether penalties were kept.

Everything here a platform may do on any day: refuse for a time, lose an answer on its way, break a
connection, say an event again. Nothing loses a message for good.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.drills.platforms import Discord, Platform, Slack, Telegram
from tests.fakes.discord_world import BOT

UNDER_WAY = (
    0.25  # share of a penalty in which calls may still come that had left before it was read
)
POST = ("POST", "/messages$")
EDIT = ("PATCH", "/messages/")
Fault = Callable[[], object]


@dataclass(slots=True)
class Weather:
    """Orders one fault after another; ``times`` is how fast the gateway's seconds pass.

    A ``penalty`` lasts so many seconds of the test.
    """

    platforms: Sequence[Platform]
    chance: random.Random
    times: float
    penalty: float
    hangs: bool  # also answers that never come, for as long as a platform is waited for
    ordered: Counter[str] = field(default_factory=Counter)
    late: list[tuple[float, float]] = field(default_factory=list)  # when, and by how many seconds

    async def blow(self, pause: float) -> None:
        """Until cancelled."""
        kinds = {one.name: self._kinds(one) for one in self.platforms}
        while True:
            name = self.chance.choice(list(kinds))
            what = self.chance.choice(list(kinds[name]))
            if kinds[name][what]() is not False:
                self.ordered[f"{name}: {what}"] += 1
            await asyncio.sleep(self.chance.uniform(0.3, 1.7) * pause)

    async def watch(self) -> None:
        """How late this machine is, until cancelled: a call may be that late on its way."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.02)
            now = time.monotonic()
            self.late.append((now, now - began - 0.02))

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        for platform in self.platforms:
            platform.fake.heal()

    @property
    def _seconds(self) -> int:
        """A penalty as the gateway is told it."""
        return round(self.penalty * self.times)

    def _kinds(self, platform: Platform) -> Mapping[str, Fault]:
        match platform:
            case Telegram():
                return self._telegram(platform)
            case Slack():
                return self._slack(platform)
            case Discord():
                return self._discord(platform)
        raise AssertionError(platform.name)

    def _telegram(self, it: Telegram) -> dict[str, Fault]:
        fake = it.fake

        def limited(method: str) -> None:
            chat = int(self.chance.choice(it.places).chat)
            words = f"Too Many Requests: retry after {self._seconds}"
            fake.fail(method, 429, words, chat=chat, retry_after=self._seconds)

        kinds: dict[str, Fault] = {
            "429 for a message": lambda: limited("sendMessage"),
            "429 for an edit": lambda: limited("editMessageText"),
            "429 for typing": lambda: limited("sendChatAction"),
            "5xx for an edit": lambda: fake.fail("editMessageText", 502, "Bad Gateway"),
            "5xx for a poll": lambda: fake.fail("getUpdates", 502, "Bad Gateway"),
            "a batch of updates again": lambda: fake.drop("getUpdates", after=True),
            "connection lost after a message was taken": lambda: fake.drop(
                "sendMessage", after=True
            ),
        }
        if self.hangs:
            kinds["no answer after a message was taken"] = lambda: fake.hang(
                "sendMessage", after=True
            )
        return kinds

    def _slack(self, it: Slack) -> dict[str, Fault]:
        fake, post = it.fake, "chat.postMessage"

        def again() -> bool:
            events = [one for one in fake.envelopes if one.acked and one.type == "events_api"]
            if events:
                fake.again(self.chance.choice(events))
            return bool(events)

        def reconnect() -> bool:
            if fake.sockets:
                fake._spawn(fake.disconnect("refresh_requested"))
            return bool(fake.sockets)

        kinds: dict[str, Fault] = {
            "429 for a message": lambda: fake.fail(post, "ratelimited", retry_after=self._seconds),
            "429 for an edit": lambda: fake.fail(
                "chat.update", "ratelimited", retry_after=self._seconds
            ),
            "5xx for a message": lambda: fake.fail(post, "internal_error", 500),
            "connection lost after a message was taken": lambda: fake.drop(post, after=True),
            "connection lost before a message was taken": lambda: fake.drop(post),
            "connection of events lost": fake.cut,
            "asked to connect anew": reconnect,
            "an event again": again,
        }
        if self.hangs:
            kinds["no answer after a message was taken"] = lambda: fake.hang(post, after=True)
        return kinds

    def _discord(self, it: Discord) -> dict[str, Fault]:
        fake = it.fake

        def limited(call: tuple[str, str], everywhere: bool = False) -> None:
            fake.fail(*call, 429, retry_after=float(self._seconds), everywhere=everywhere)

        def again() -> bool:
            said = [
                one
                for channel in fake.messages.values()
                for one in channel.values()
                if one["author"]["id"] != BOT
            ]
            if said:
                fake.api.tell("MESSAGE_CREATE", self.chance.choice(said))
            return bool(said)

        def forgotten() -> None:
            fake.forget_session()
            fake.cut(4000)

        kinds: dict[str, Fault] = {
            "429 for a message": lambda: limited(POST),
            "429 for everything": lambda: limited(POST, everywhere=True),
            "429 for an edit": lambda: limited(EDIT),
            "5xx for a message": lambda: fake.fail(*POST, 502),
            "connection lost after a message was taken": lambda: fake.drop(*POST, after=True),
            "connection lost before a message was taken": lambda: fake.drop(*POST),
            "connection of events lost": lambda: fake.cut(4000),
            "session lost": forgotten,
            "asked to connect anew": lambda: fake.order(7),
            "an event again": again,
        }
        if self.hangs:
            kinds["no answer after a message was taken"] = lambda: fake.hang(*POST, after=True)
        return kinds


# Penalties --------------------------------------------------------------------------------


@dataclass(slots=True)
class Penalties:
    """How often a platform said 429, and the calls that came before it would take them again."""

    told: int = 0
    broken: list[str] = field(default_factory=list)


def penalties(platform: Platform, weather: Weather) -> Penalties:
    """From the calls that a platform saw."""
    found = Penalties()
    calls: list[Any] = platform.fake.calls
    for number, refused in enumerate(calls):
        if refused.status != 429:
            continue
        found.told += 1
        concerned = _concerned(platform, refused)
        lasts = weather.penalty
        if platform.name == "discord" and refused.limited is not None:
            lasts = refused.limited.retry_after / weather.times
        for later in calls[number + 1 :]:
            after = later.at - refused.at
            if after > lasts - 0.05:
                break
            on_its_way = UNDER_WAY * weather.penalty + 4 * _lateness(weather, refused.at, later.at)
            if after > on_its_way and concerned(later):
                found.broken.append(f"{_named(later)} {after:.2f} s after {_named(refused)}")
    return found


def _lateness(weather: Weather, begin: float, end: float) -> float:
    """The most by which this process was late meanwhile."""
    return max((late for at, late in weather.late if begin - 0.5 < at < end + 0.5), default=0.0)


def _named(call: Any) -> str:
    where = getattr(call, "path", "") or getattr(call, "channel", "") or getattr(call, "chat", "")
    return f"{call.method} {where}"


def _concerned(platform: Platform, refused: Any) -> Callable[[Any], bool]:
    match platform:
        case Telegram() if refused.method == "sendChatAction":  # what is cosmetic holds only that
            return lambda later: (later.method, later.chat) == (refused.method, refused.chat)
        case Telegram():
            return lambda later: later.chat is not None and later.chat == refused.chat
        case Slack():
            return lambda later: bool(later.method == refused.method)
        case _ if refused.limited is not None and refused.limited.everywhere:
            return lambda later: not re.match("/(interactions|webhooks)/", later.path)
        case _:
            return lambda later: (later.method, later.path) == (refused.method, refused.path)
