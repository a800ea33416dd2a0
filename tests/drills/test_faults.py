"""Three platforms at once in all weathers: each message is answered once, in its thread, in order.

Half of the threads are direct chats. Everything a platform may do on any day happens meanwhile (see
weather.py); afterwards a report says which calls were made, and that penalties were kept. The short
drill is part of the suite, with a gateway in this process; ``make drill`` sets
LANEWAY_DRILL_THREADS for the long one, with a gateway as people start it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.drills.looking import Found, check, settled
from tests.drills.platforms import Discord, Place, Platform, Slack, Telegram, serving, settings
from tests.drills.weather import Penalties, Weather, penalties
from tests.end_to_end.house import TIMES, House, Process, until
from tests.fakes.discord_faults import Pace
from tests.fakes.slack_faults import Tiers
from tests.fakes.telegram_faults import Flood

LONG = "LANEWAY_DRILL_THREADS" in os.environ
THREADS = int(os.environ.get("LANEWAY_DRILL_THREADS", "12"))  # of all platforms together
EACH = 5 if LONG else 4  # messages in a thread
SEED = int(os.environ.get("LANEWAY_DRILL_SEED", "0")) or random.randrange(1, 10**9)
SPEED, PENALTY = (1.0, 3.0) if LONG else (TIMES, 1.0)
PAUSE = 0.03  # seconds between two messages, somewhere; faults come a little slower
CAPS = {"LANEWAY_MAX_TURNS": "8", "LANEWAY_QUEUE_LIMIT": "1000", "LANEWAY_WEB_PORT": "0"}


@asynccontextmanager
async def gateway(folder: Path, platforms: Sequence[Platform]) -> AsyncIterator[Path]:
    """Its home, while it runs; how fast its seconds pass depends on where it does."""
    wanted = CAPS | settings(platforms)
    if LONG:
        process = Process(folder / "home", None, anew=True, **wanted)
        await process.start()
        try:
            yield process.home
        finally:
            assert await process.end(signal.SIGTERM) == 0
        return
    house = House(folder, times=SPEED, **wanted)
    house.fake = platforms[0].fake
    await house.start_gateway()
    try:
        yield house.home
    finally:
        await house.stop_gateway()


def limit(platforms: Sequence[Platform]) -> None:
    """The platforms' own limits; where seconds pass three times as fast they could not be kept."""
    for platform in platforms:
        match platform:
            case Telegram():
                platform.fake.flood = Flood(penalty=round(PENALTY))
            case Slack():
                platform.fake.tiers = Tiers(penalty=round(PENALTY))
            case Discord():
                platform.fake.pace = Pace(5, 5.0, 50)


async def meet(platforms: Sequence[Platform]) -> dict[int, Place]:
    """Everybody says something in their direct chat, and is answered."""
    said: dict[int, Place] = {}
    for platform in platforms:
        for place in platform.places:
            if not place.number:
                said[len(said) + 1] = place
                platform.say(place, f"/say answer {len(said)}.")
    by_name = {platform.name: platform for platform in platforms}
    await until(lambda: all(by_name[place.platform].texts(place) for place in said.values()))
    return said


async def talk(
    platforms: Sequence[Platform], said: dict[int, Place], chance: random.Random
) -> None:
    """Everybody writes; ``said`` becomes the place of each message by its number."""
    by_name = {platform.name: platform for platform in platforms}
    met = Counter(said.values())
    left = {place: EACH - met[place] for platform in platforms for place in platform.places}

    def text(number: int) -> str:
        slow = chance.choice(("", "/stream 3 0.05\n", "/stream 4 0.3\n"))
        return f"{slow}/say answer {number}."

    while left:
        place = chance.choice(list(left))
        platform, number = by_name[place.platform], len(said) + 1
        known = not place.number or place in getattr(platform, "roots", ())
        if isinstance(platform, Slack) and known and left[place] > 1 and chance.random() < 0.3:
            platform.say_out_of_order(place, text(number), text(number + 1))
            said |= {number: place, number + 1: place}
            left[place] -= 2
        elif platform.say(place, text(number)):
            said[number] = place
            left[place] -= 1
        if not left[place]:
            del left[place]
        await asyncio.sleep(chance.uniform(0.3, 1.7) * PAUSE)


@pytest.mark.timeout(60 + 10 * THREADS)
async def test_each_message_is_answered_once_in_its_thread_in_order_whatever_goes_wrong(
    tmp_path: Path,
) -> None:
    print(f"seed {SEED}, {THREADS} threads")
    directs = THREADS // 6
    threads = THREADS // 3 - directs
    platforms: list[Platform] = [
        Telegram(directs, threads), Slack(directs, threads), Discord(directs, threads)
    ]  # fmt: skip
    chance = random.Random(SEED)
    weather = Weather(platforms, random.Random(SEED + 1), SPEED, PENALTY, hangs=LONG)
    if LONG:
        limit(platforms)
    async with serving(platforms), gateway(tmp_path, platforms) as home:
        await until(lambda: all(platform.connected for platform in platforms))
        said = await meet(platforms)
        watching = asyncio.create_task(weather.watch(), name="lateness")
        blowing = asyncio.create_task(weather.blow(2 * PAUSE), name="weather")
        try:
            await talk(platforms, said, chance)
            blowing.cancel()
            weather.calm()
            turns = await settled(home, platforms, said)
        finally:
            blowing.cancel()
            watching.cancel()
    found = check(platforms, said, turns)
    kept = {platform.name: penalties(platform, weather) for platform in platforms}
    report(platforms, weather, found, kept)
    for platform in platforms:
        assert not kept[platform.name].broken
        assert found[platform.name].states == {"done": THREADS // 3 * EACH}
        assert found[platform.name].unseen == 0


def report(
    platforms: Sequence[Platform],
    weather: Weather,
    found: dict[str, Found],
    kept: dict[str, Penalties],
) -> None:
    print(f"{sum(weather.ordered.values())} faults ordered:")
    for what, count in sorted(weather.ordered.items()):
        print(f"  {what:<52} {count:>5}")
    for platform in platforms:
        calls, refused = Counter[str](), Counter[str]()
        for name, status in platform.calls():
            calls[name] += 1
            refused[name] += not 200 <= status < 300
        print(
            f"{platform.name}: {found[platform.name]}, 0 twice, {found[platform.name].unseen} lost"
        )
        for name, count in sorted(calls.items()):
            print(f"  {name:<52} {count:>5} calls, {refused[name]:>3} refused or cut")
        told = kept[platform.name]
        print(f"  {told.told} penalties, {len(told.broken)} of them not kept")
