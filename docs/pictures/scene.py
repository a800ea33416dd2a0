"""The conversation of the pictures: played with a real gateway, and kept as it stood at moments.

The gateway runs in this process with the demo agent, against the fake Telegram of the tests; what
is kept is what that server would show a person. It must not know how a picture is drawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.end_to_end.house import House
from tests.end_to_end.looking import quick
from tests.fakes.telegram import ANA, BEN, FORUM, FakeTelegram

SPEED = 3.0  # the gateway's seconds are so much shorter
BOT = "laneway_bot"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Button:
    label: str
    style: str  # success, danger, or nothing


@dataclass(frozen=True, slots=True)
class File:
    name: str
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class Bubble:
    """A message as it stands in a chat."""

    author: str
    own: bool  # of the person who holds the phone
    text: str
    entities: tuple[Json, ...]
    buttons: tuple[tuple[Button, ...], ...]  # rows of them
    reactions: tuple[str, ...]
    file: File | None
    seconds: int  # since the conversation began


@dataclass(frozen=True, slots=True)
class Screen:
    """What Ana sees of one topic at one moment."""

    title: str
    place: str
    bubbles: tuple[Bubble, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """Two topics of a forum at work side by side; a question before and after it is answered."""

    topics: tuple[Screen, Screen]
    approval: tuple[Screen, Screen]


async def record() -> Recording:
    """Play it all; half a minute or so."""
    with TemporaryDirectory() as folder:
        settings = {"LANEWAY_ENGINE": "demo", "LANEWAY_LOG_LEVEL": "error"}
        house = quick(Path(folder), SPEED, **settings)
        house.fake.me.update(first_name="Laneway", username=BOT)
        async with house:
            return await _play(house)


async def _play(house: House) -> Recording:
    """A table needs a yes before it is made, while a story is told in the other topic."""
    fake = house.fake
    week, stories = fake.topic(FORUM, "Week in numbers"), fake.topic(FORUM, "Bedtime stories")

    def say(text: str, thread: int, user: int) -> None:
        fake.user_says(text, chat=FORUM, thread=thread, user=user)

    def stands(words: str, thread: int) -> bool:
        return any(words in text for text in fake.texts(FORUM, thread))

    since = await _earlier(house, week, stories)
    say("Make a table of this week", week, ANA)
    await _until(fake, lambda: _offered(fake, "Allow", week))
    await _pause(10)
    say("Tell me a story", stories, BEN)
    await _pause(1)
    say("Do you remember what we wanted?", week, BEN)
    await _until(fake, lambda: _offered(fake, "Drop", week) and stands("writing", stories))
    await _pause(1.5)
    say("/status", stories, ANA)
    wanted = ("first message", "writing", "State:")
    await _until(fake, lambda: all(stands(words, stories) for words in wanted))
    asked, told = _screen(fake, week, since), _screen(fake, stories, since)
    fake.press("Allow", chat=FORUM)
    await house.answered(f"telegram:{FORUM}:{week}", 3)
    await _until(fake, lambda: not any(fake.reactions.values()))
    return Recording((asked, told), (asked, _screen(fake, week, since)))


async def _earlier(house: House, *topics: int) -> int:
    """A first turn in each topic; the number of its last message, from which on nothing is seen."""
    fake = house.fake
    for thread in topics:
        fake.user_says(f"@{BOT} Hello", chat=FORUM, thread=thread)
        await house.answered(f"telegram:{FORUM}:{thread}")
    await _until(fake, lambda: not any(fake.reactions.values()))
    await _pause(30)  # or what was said just now makes the next messages come slowly
    return max(number for _, number in fake.messages)


async def _pause(seconds: float) -> None:
    """People take their time; these are the gateway's seconds."""
    await asyncio.sleep(seconds / SPEED)


async def _until(fake: FakeTelegram, condition: Callable[[], bool]) -> None:
    await fake.until(condition, seconds=30)


def _offered(fake: FakeTelegram, label: str, thread: int) -> bool:
    """Whether a button can be pressed there."""
    return any(label in fake.buttons(message) for message in fake.shown(FORUM, thread))


def _screen(fake: FakeTelegram, thread: int, since: int) -> Screen:
    """A topic as it stands now, scrolled up to a message that is not seen any more."""
    seen = {key: one for key, one in sorted(fake.messages.items()) if key[1] > since}
    began = min(one["date"] for one in seen.values())
    bubbles = tuple(
        _bubble(one, fake.reactions.get(key, []), began)
        for key, one in seen.items()
        if one.get("message_thread_id") == thread
    )
    title, place = fake.topics[FORUM, thread], fake.chat(FORUM)["title"]
    return Screen(title, f"topic in {place}", bubbles)


def _bubble(message: Json, reactions: list[str], began: int) -> Bubble:
    keyboard = message.get("reply_markup", {}).get("inline_keyboard", [])
    document = message.get("document")
    return Bubble(
        author=message["from"]["first_name"],
        own=message["from"]["id"] == ANA,
        text=message.get("text") or message.get("caption") or "",
        entities=tuple(message.get("entities") or message.get("caption_entities") or ()),
        buttons=tuple(
            tuple(Button(key["text"], key.get("style", "")) for key in row) for row in keyboard
        ),
        reactions=tuple(reactions),
        file=File(document["file_name"], document["file_size"]) if document else None,
        seconds=round((message["date"] - began) * SPEED),
    )
