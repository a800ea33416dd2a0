"""The page under SIGKILL: people chat in many threads while the gateway dies again and again.

Promised to whoever has the page open: a message that was written is there once and answered once,
in its thread and in order, however often it was sent; nothing drawn is lost, doubled or somebody
else's at any moment; and nobody is signed out. ``make drill`` sets LANEWAY_DRILL_KILLS for the long
one and LANEWAY_DRILL_SEED to repeat one.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.drills.looking import ANSWER, check, settled
from tests.drills.page_people import MORE_THAN_ALL, Person, Tab, ThePage
from tests.drills.platforms import Place
from tests.end_to_end.house import Process, ask, until
from tests.web.tabs import text_of

KILLS = int(os.environ.get("LANEWAY_DRILL_KILLS", "2"))
SEED = int(os.environ.get("LANEWAY_DRILL_SEED", "0")) or random.randrange(1, 10**9)
LONG = KILLS > 5
PEOPLE, THREADS = (4, 3) if LONG else (3, 2)
PAUSE = (0.1, 0.5) if LONG else (0.02, 0.15)  # seconds between two messages of anybody
QUIET = 40.0  # seconds until all tabs show the end


def port_of_a_service(chance: random.Random) -> int:
    """A port that stays free between two lives: none that connections get by themselves."""
    for _ in range(100):
        port = chance.randrange(20_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Drill:
    """People at the page, and a gateway that is killed."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        port = port_of_a_service(random.Random())
        url = f"http://127.0.0.1:{port}"
        self.chance = chance
        self.people = [
            Person(url, f"p{n}@example.org", THREADS, chance.randrange(10**9))
            for n in range(PEOPLE)
        ]
        self.people[0].admin = True
        self.page = ThePage(self.people)
        self.gateway = Process(
            home,
            None,
            anew=LONG,
            LANEWAY_WEB_PORT=str(port),
            LANEWAY_ADMIN_EMAILS=self.people[0].address,
            LANEWAY_MEMBER_EMAILS=",".join(one.address for one in self.people[1:]),
            LANEWAY_MAX_TURNS="4",
            LANEWAY_QUEUE_LIMIT="1000",
        )
        self.said: dict[int, Place] = {}

    async def begin(self) -> None:
        await self.gateway.start()
        for person in self.people:
            made = await ask(self.gateway.home, "signin", email=person.address)
            await person.sign_in(made["address"])
            person.begin()

    async def write(self) -> None:
        """A message every few hundredths of a second, somewhere: often several wait."""
        while True:
            number = len(self.said) + 1
            place = self.chance.choice(self.page.places)
            pace = self.chance.choice(("0", "0.02", "0.1"))
            self.page.say(place, f"/stream 2 {pace}\n/say answer {number}.")
            self.said[number] = place
            await asyncio.sleep(self.chance.uniform(*PAUSE))

    async def kill(self) -> None:
        for _ in range(KILLS):
            await asyncio.sleep(self.chance.uniform(0.0, 1.5))
            await self.gateway.end(signal.SIGKILL)
            await self.gateway.start()
            self.fault()

    def fault(self) -> None:
        for person in self.people:
            person.fault()

    @property
    def begun(self) -> set[str]:
        """The threads in which something was said: no others exist."""
        return {place.chat for place in self.said.values()}

    async def drawn(self) -> None:
        """Wait until each tab shows what a tab that is opened now would."""
        for person in self.people:
            for tab in person.tabs:
                if tab.lane not in self.begun:  # it ended too soon: there is no such thread yet
                    self.page.whole[tab.lane] = []
                    assert not tab.log.shown
                    continue
                self.page.whole[tab.lane] = await person.history(tab.lane)
                try:
                    await until(partial(self.same, tab), QUIET)
                except TimeoutError:
                    expected, shown = self.pages(tab)
                    lost = [one for one in expected if one not in shown]
                    more = [one for one in shown if one not in expected]
                    why = f"{tab.lane}: not drawn {lost}, and too much {more}"
                    raise AssertionError(why) from None
                assert tab.follows or not tab.log.more, "all of it is in sight there"

    def same(self, tab: Tab) -> bool:
        self.fault()
        expected, shown = self.pages(tab)
        return expected == shown

    def pages(self, tab: Tab) -> tuple[list[object], list[object]]:
        """What a tab has to draw, down to where earlier pages begin, and what it draws."""
        first = tab.log.first if tab.log.more else 0
        whole = self.page.whole[tab.lane]
        return [plain(one) for one in whole if one["at"] >= first], list(map(plain, tab.log.shown))


def plain(entry: dict[str, Any]) -> tuple[object, ...]:
    return tuple(entry[key] for key in ("id", "html", "key", "receipt", "note", "buttons"))


async def nobody_elses(people: list[Person], begun: set[str]) -> None:
    """A member gets nothing of a thread that somebody else began."""
    for person in people[1:]:
        session = await person.browser.get("/api/session")
        assert session.status_code == 200, session.text
        listed = (await person.browser.get("/api/threads")).json()["lanes"]
        assert {one["lane"] for one in listed} <= person.lanes
        theirs = set[str]().union(*(other.lanes for other in people if other is not person))
        for lane in theirs & begun:
            for address in (f"lanes/{lane}/history?before={MORE_THAN_ALL}", f"events?lane={lane}"):
                assert (await person.browser.get(f"/api/{address}")).status_code == 404
            body = {"id": "0123456789", "text": "hello"}
            said = await person.browser.post(f"/api/lanes/{lane}/say", json=body)
            assert said.status_code == 404


@pytest.mark.timeout(180 + 30 * KILLS)
async def test_who_has_the_page_open_loses_nothing_when_the_gateway_is_killed(
    tmp_path: Path,
) -> None:
    print(f"seed {SEED}, {KILLS} kills")
    drill = Drill(tmp_path / "home", random.Random(SEED))
    writing: asyncio.Task[None] | None = None
    try:
        await drill.begin()
        writing = asyncio.create_task(drill.write(), name="people at the page")
        await drill.kill()
        writing.cancel()
        turns = await settled(tmp_path / "home", [drill.page], drill.said)
        await drill.drawn()
        counted = check([drill.page], drill.said, turns)
        for lane, whole in drill.page.whole.items():
            asked = [ANSWER.search(text_of(one)) for one in whole if one["key"]]
            mine = [n for n, place in drill.said.items() if place.chat == lane]
            assert [int(found[1]) for found in asked if found] == mine
        await nobody_elses(drill.people, drill.begun)
        assert await drill.gateway.end(signal.SIGTERM) == 0
    except BaseException:
        print("".join(drill.gateway.lines[-25:]))
        raise
    finally:
        if writing is not None:
            writing.cancel()
        for person in drill.people:
            await person.end()
        with suppress(ProcessLookupError, AssertionError):
            drill.gateway.child.kill()
    tries = sum(thread.tries for person in drill.people for thread in person.threads)
    begun = sum(tab.begun for tab in drill.page.tabs)
    more = f"{tries} sends of {len(drill.said)} messages, {begun} times all was told anew"
    print(f"{drill.page.name:<9} {KILLS} kills, {counted[drill.page.name]}; {more}")
