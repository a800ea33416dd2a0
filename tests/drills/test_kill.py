"""The kill drill: SIGKILL at random moments under load, again and again, on one home.

Promised, on three platforms at once: no accepted message is lost, none runs out of order in its
lane, none is answered twice; no moment of a job is lost or counts twice, and a watch sees each
change once. The short drill is part of the suite; ``make drill`` sets
LANEWAY_DRILL_KILLS for the long one and LANEWAY_DRILL_SEED to repeat one.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.drills.looking import check, settled
from tests.drills.platforms import Discord, Place, Platform, Slack, Telegram, serving, settings
from tests.drills.waking import SETTINGS, Waking
from tests.end_to_end.house import Process, until

KILLS = int(os.environ.get("LANEWAY_DRILL_KILLS", "2"))
SEED = int(os.environ.get("LANEWAY_DRILL_SEED", "0")) or random.randrange(1, 10**9)
# Direct chats and threads of each platform. Each has an agent, and few calls may go into one group.
PLACES = (8, 12) if KILLS > 5 else (5, 2)


class Drill:
    """People who write all the time, and a gateway that is killed."""

    def __init__(self, home: Path, platforms: Sequence[Platform], chance: random.Random) -> None:
        self.home = home
        self.platforms = {platform.name: platform for platform in platforms}
        self.chance = chance
        self.waking = Waking(home.parent, platforms)
        self.gateway = Process(
            home,
            None,
            anew=True,
            LANEWAY_WEB_PORT="0",  # a fixed one may be taken by a connection between two lives
            LANEWAY_MAX_TURNS="4",
            LANEWAY_QUEUE_LIMIT="1000",
            **settings(platforms) | SETTINGS | {"LANEWAY_ADMINS": self.waking.admins},
        )
        self.said: dict[int, Place] = {}
        self.kills = 0

    async def begin(self) -> None:
        """Start for the first time, and meet everybody.

        What is said before it listened was not said to it; and who is met for the first time while
        it is away is heard only if the platform says it again.
        """
        await self.gateway.start()
        for platform in self.platforms.values():
            await self.meet(platform)
        await self.waking.begin(self.home)

    async def meet(self, platform: Platform) -> None:
        await until(lambda: platform.connected)
        directs = [place for place in platform.places if not place.number]
        for place in directs:
            self.say(place)
        await until(lambda: all(map(platform.texts, directs)))

    def say(self, place: Place) -> None:
        number = len(self.said) + 1
        pace = self.chance.choice(("0", "0.02", "0.1"))
        text = f"/stream 2 {pace}\n/say answer {number}."
        if self.platforms[place.platform].say(place, text):
            self.said[number] = place

    async def people(self) -> None:
        """One message every few hundredths of a second, somewhere."""
        places = [place for platform in self.platforms.values() for place in platform.places]
        places = [place for place in places if place not in self.waking.places]
        while True:
            self.say(self.chance.choice(places))
            await asyncio.sleep(self.chance.uniform(0.05, 0.25))

    async def killer(self) -> None:
        for _ in range(KILLS):
            await asyncio.sleep(self.chance.uniform(0.0, 1.5))
            await self.gateway.end(signal.SIGKILL)
            self.kills += 1
            await self.gateway.start()


@pytest.mark.timeout(180 + 30 * KILLS)
async def test_nothing_is_lost_doubled_or_reordered_when_the_gateway_is_killed(
    tmp_path: Path,
) -> None:
    print(f"seed {SEED}, {KILLS} kills")
    platforms: list[Platform] = [Telegram(*PLACES), Slack(*PLACES), Discord(*PLACES)]
    async with serving(platforms):
        drill = Drill(tmp_path / "home", platforms, random.Random(SEED))
        talking: asyncio.Task[None] | None = None
        writing: asyncio.Task[None] | None = None
        try:
            await drill.begin()
            talking = asyncio.create_task(drill.people(), name="people")
            writing = asyncio.create_task(drill.waking.write(drill.home), name="a file that grows")
            await drill.killer()
            writing.cancel()
            talking.cancel()
            await drill.waking.end(drill.home)
            turns = await settled(drill.home, platforms, drill.said)
            assert await drill.gateway.end(signal.SIGTERM) == 0
        except BaseException:
            with suppress(TimeoutError):  # one that breaks by itself says why at its very end
                await asyncio.wait_for(drill.gateway.child.communicate(), 10)
            print(f"exit status {drill.gateway.child.returncode}, and it said last:")
            print("".join(drill.gateway.lines[-25:]))
            raise
        finally:
            for task in (talking, writing):
                if task is not None:
                    task.cancel()
            with suppress(ProcessLookupError):
                drill.gateway.child.kill()
        for name, found in check(platforms, drill.said, turns).items():
            print(f"{name:<9} {drill.kills} kills, {found}")
        print(f"jobs      {drill.waking.check(drill.home)}")
