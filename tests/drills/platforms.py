"""Telegram, Slack and Discord behind one face: places in which people write, and what stands there.

    platforms = [Telegram(fake, 4, 4), Slack(4, 4), Discord(4, 4)]   # direct chats, threads
    async with serving(platforms):
        ... settings(platforms)                      # the gateway's, for all of them together
        platform.say(place, "hello")                 # False: nobody can write there yet
        platform.texts(place), platform.everything()

It must not know what is asked of a gateway, nor what goes wrong.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tests.fakes.discord import CHANNEL, OTHER, FakeDiscord
from tests.fakes.discord_world import BOT
from tests.fakes.slack import FakeSlack
from tests.fakes.slack_rules import shown_text
from tests.fakes.slack_world import BOT_USER
from tests.fakes.telegram import FakeTelegram

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A thread as people see it. ``number`` 0: the direct chat itself."""

    platform: str
    chat: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.platform}:{self.chat}:{self.number}"


class Platform(Protocol):
    """What drills need of each."""

    @property
    def name(self) -> str: ...

    @property
    def fake(self) -> Any: ...

    @property
    def places(self) -> Sequence[Place]: ...

    @property
    def connected(self) -> bool:
        """Whether what is said now is told to the gateway at once."""

    def settings(self) -> dict[str, str]:
        """Tokens and addresses."""

    def members(self) -> list[str]: ...

    def rooms(self) -> list[str]:
        """As LANEWAY_PLACES names them."""

    def say(self, place: Place, text: str) -> bool:
        """Somebody writes; False where nobody can write yet."""

    def texts(self, place: Place) -> list[str]:
        """What stands there from the bot, in order."""

    def everything(self) -> list[str]:
        """What stands anywhere from the bot."""

    def calls(self) -> list[tuple[str, int]]:
        """Every call so far: a short name, and the status it got (0: no answer)."""


class Telegram:
    name = "telegram"

    def __init__(self, directs: int, threads: int, fake: FakeTelegram | None = None) -> None:
        self.fake = fake or FakeTelegram()
        self._people = [700_200_000 + number for number in range(directs)]
        self._forums = [-1_001_900_100_000 - number for number in range((threads + 1) // 2)]
        self.places = [Place(self.name, str(person)) for person in self._people]
        topics = [Place(self.name, str(f), topic) for f in self._forums for topic in (11, 12)]
        self.places += topics[:threads]

    @property
    def connected(self) -> bool:
        return bool(self.fake.called("getUpdates"))

    def settings(self) -> dict[str, str]:
        return {
            "LANEWAY_TELEGRAM_TOKEN": self.fake.token,
            "LANEWAY_TELEGRAM_API_BASE": self.fake.url,
        }

    def members(self) -> list[str]:
        return [f"telegram:{person}" for person in self._people]

    def rooms(self) -> list[str]:
        return [f"telegram:{forum}" for forum in self._forums]

    def say(self, place: Place, text: str) -> bool:
        chat = int(place.chat)
        if place.number:
            someone = self._people[abs(chat) % len(self._people)]
            mentioned = f"@gw_bot {text}"
            self.fake.user_says(mentioned, chat=chat, user=someone, thread=place.number)
        else:
            self.fake.user_says(text, chat=chat, user=chat)
        return True

    def texts(self, place: Place) -> list[str]:
        return self.fake.texts(int(place.chat), place.number or None)

    def everything(self) -> list[str]:
        ours = self.fake.me["id"]
        shown = self.fake.messages.values()
        return [one.get("text", "") for one in shown if one.get("from", {}).get("id") == ours]

    def calls(self) -> list[tuple[str, int]]:
        return [(call.method, call.status) for call in self.fake.calls]


class Slack:
    name = "slack"

    def __init__(self, directs: int, threads: int) -> None:
        self.fake = FakeSlack()
        self.fake.retries = (0.0, 1.0, 5.0)  # Slack's own are minutes
        self._people = {f"D0P{number:03}": f"U0P{number:03}" for number in range(directs)}
        self._channels = [f"C0ROOM{number:02}" for number in range((threads + 1) // 2)]
        for direct, person in self._people.items():
            self.fake.person(person, person.title())
            self.fake.channel(direct, user=person)
        for channel in self._channels:
            self.fake.channel(channel)
        self.places = [Place(self.name, direct) for direct in self._people]
        self.places += [Place(self.name, c, n) for c in self._channels for n in (1, 2)][:threads]
        self.roots: dict[Place, str] = {}

    @property
    def connected(self) -> bool:
        return bool(self.fake.sockets)

    def settings(self) -> dict[str, str]:
        return {
            "LANEWAY_SLACK_BOT_TOKEN": self.fake.bot_token,
            "LANEWAY_SLACK_APP_TOKEN": self.fake.app_token,
            "LANEWAY_SLACK_API_BASE": self.fake.url,
        }

    def members(self) -> list[str]:
        return [f"slack:{person}" for person in self._people.values()]

    def rooms(self) -> list[str]:
        return [f"slack:{channel}" for channel in self._channels]

    def say(self, place: Place, text: str) -> bool:
        self._write(place, text, delivered=True)
        return True

    def say_out_of_order(self, place: Place, first: str, second: str) -> None:
        """Two messages of which the later is delivered first."""
        written = [self._write(place, text, delivered=False) for text in (first, second)]
        for message in reversed(written):
            for event in self.fake.events_of(message, place.chat):
                self.fake.event(event)

    def _write(self, place: Place, text: str, *, delivered: bool) -> Json:
        more: Json = {"channel": place.chat, "delivered": delivered}
        if not place.number:
            return self.fake.user_says(text, user=self._people[place.chat], **more)
        someone = list(self._people.values())[hash(place) % len(self._people)]
        if (root := self.roots.get(place)) is not None:
            return self.fake.user_says(text, user=someone, thread=root, **more)
        begun = self.fake.user_says(f"<@{BOT_USER}> {text}", user=someone, **more)
        self.roots[place] = begun["ts"]
        return begun

    def texts(self, place: Place) -> list[str]:
        if not place.number:
            return self.fake.texts(place.chat)
        return self.fake.texts(place.chat, self.roots[place]) if place in self.roots else []

    def everything(self) -> list[str]:
        shown = self.fake.messages.values()
        return [shown_text(one) for one in shown if one.get("user") == BOT_USER]

    def calls(self) -> list[tuple[str, int]]:
        return [(call.method, call.status) for call in self.fake.calls]


class Discord:
    """Half of the threads are begun by people, the others by a mention in a channel."""

    name = "discord"

    def __init__(self, directs: int, threads: int) -> None:
        self.fake = FakeDiscord()
        numbers = [f"9100000000000001{number:02}" for number in range(directs)]
        self._people = {self._met(number): number for number in numbers}
        self.places = [Place(self.name, direct) for direct in self._people]
        rooms = [(CHANNEL, OTHER)[number % 2] for number in range(threads)]
        self.places += [Place(self.name, room, n + 1) for n, room in enumerate(rooms)]
        self.threads = {
            place: self.fake.opens_thread(f"thread {place.number}", place.chat, announce=False)
            for place in self.places
            if place.number % 4 > 1
        }

    def _met(self, person: str) -> str:
        """Somebody's direct chat."""
        self.fake.person(person, f"Person{person[-2:]}")
        return str(self.fake.direct(person)["id"])

    @property
    def connected(self) -> bool:
        return self.fake.connected

    def settings(self) -> dict[str, str]:
        return {
            "LANEWAY_DISCORD_TOKEN": self.fake.token,
            "LANEWAY_DISCORD_API_BASE": self.fake.url,
            "LANEWAY_DISCORD_GATEWAY_URL": self.fake.gateway_url,
        }

    def members(self) -> list[str]:
        return [f"discord:{person}" for person in self._people.values()]

    def rooms(self) -> list[str]:
        return [f"discord:{channel}" for channel in (CHANNEL, OTHER)]

    def say(self, place: Place, text: str) -> bool:
        if not place.number:
            self.fake.user_says(text, user=self._people[place.chat], channel=place.chat)
            return True
        someone = list(self._people.values())[place.number % len(self._people)]
        mentioned = f"<@{BOT}> {text}"
        thread = self.threads.get(place)
        if thread is None:
            begun = self.fake.user_says(mentioned, user=someone, channel=place.chat)
            self.threads[place] = str(begun["id"])
        elif thread not in self.fake.channels:
            return False  # the bot has not opened it yet
        else:
            self.fake.user_says(mentioned, user=someone, channel=thread)
        return True

    def texts(self, place: Place) -> list[str]:
        channel = self.threads.get(place, "") if place.number else place.chat
        return self.fake.texts(channel) if channel else []

    def everything(self) -> list[str]:
        every = (one for channel in self.fake.messages.values() for one in channel.values())
        return [one["content"] for one in every if one["author"]["id"] == BOT]

    def calls(self) -> list[tuple[str, int]]:
        return [(f"{call.method} {_shape(call.path)}", call.status) for call in self.fake.calls]


def _shape(path: str) -> str:
    """A path without its numbers."""
    parts = path.strip("/").split("/")
    return "/".join("#" if part.isdecimal() else part for part in parts if len(part) < 40)


@asynccontextmanager
async def serving(platforms: Iterable[Platform]) -> AsyncIterator[None]:
    """Their servers, up."""
    async with AsyncExitStack() as stack:
        for platform in platforms:
            await stack.enter_async_context(platform.fake)
        yield


def settings(platforms: Iterable[Platform]) -> dict[str, str]:
    """The gateway's, for these platforms together; their servers are up."""
    made: dict[str, str] = {}
    members: list[str] = []
    rooms: list[str] = []
    for platform in platforms:
        made |= platform.settings()
        members += platform.members()
        rooms += platform.rooms()
    return made | {"LANEWAY_MEMBERS": ",".join(members), "LANEWAY_PLACES": ",".join(rooms)}
