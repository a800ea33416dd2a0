"""People at the page, each in several threads and tabs: what static/*.js does, without a screen.

    async with Person(page_url, "ben@example.org", lanes=2, pace=Pace()) as ben:
        ben.threads[0].write("hello")          # kept until it is there, sent once however often

The composer, the log and the stream follow composer.js, log.js and page.js step by step; what they
must not show at any moment is looked at with every event. It must not know what goes wrong.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.drills.looking import ANSWER, CUT_OFF, WAITING
from tests.drills.platforms import Place
from tests.web.tabs import new_lane, text_of

Json = dict[str, Any]
Before = Callable[[int], Awaitable[Json]]
LOCAL = "local"
BACK = 0.1  # seconds until a stream that broke is opened again; browsers take one
AGAIN = 0.2  # seconds between tries to send; the page takes three
HASTY = 0.15  # of all messages: the answer to them is not waited for, as on a bad network
MORE_THAN_ALL = 1 << 49  # ms


class Log:
    """What is drawn of a thread, as log.js does it."""

    def __init__(self, before: Before, follows: bool) -> None:
        self.entries: dict[str, Json] = {}
        self.refs: set[str] = set()
        self.more = False
        self._before = before
        self._follows = follows  # looks at the end; else at what stands above it

    async def whole(self, entries: Sequence[Json], more: bool) -> None:
        first = entries[0]["at"] if entries and more else 0
        self._renew(entries, first, MORE_THAN_ALL)
        above = [one for one in self.entries.values() if one["at"] < first]
        if not above:
            self.more = more
        elif self._follows:
            for one in above:
                del self.entries[one["id"]]
            self.more = more
        else:
            await self._above(first, min(one["at"] for one in above))

    def _renew(self, entries: Sequence[Json], first: int, last: int) -> None:
        there = {one["id"] for one in entries}
        for ident, one in tuple(self.entries.items()):
            if ident not in there and first <= one["at"] < last:
                del self.entries[ident]
        for one in entries:
            self._put(one)

    async def _above(self, before: int, oldest: int) -> None:
        while before > oldest:
            page = await self._before(before)
            first = page["entries"][0]["at"] if page["more"] and page["entries"] else 0
            self._renew(page["entries"], first, before)
            self.more = page["more"]
            if first >= before:
                return
            before = first

    def change(self, entries: Sequence[Json], removed: Sequence[str]) -> None:
        for ident in removed:
            self.entries.pop(ident, None)
        first = self.first if self.more else 0
        for one in entries:
            if one["id"] in self.entries or one["at"] >= first:
                self._put(one)

    def _put(self, one: Json) -> None:
        if one["ref"]:
            self.refs.add(one["ref"])
        self.entries[one["id"]] = one

    @property
    def first(self) -> int:
        return min((one["at"] for one in self.entries.values()), default=0)

    @property
    def shown(self) -> list[Json]:
        return sorted(self.entries.values(), key=lambda one: (one["at"], one["id"]))

    @property
    def answers(self) -> list[str]:
        return [text_of(one) for one in self.shown if not one["key"]]

    @property
    def said(self) -> list[str]:
        return [text_of(one) for one in self.shown if one["key"]]

    def check(self, mine: set[int]) -> None:
        """What may never be seen, however short."""
        refs = Counter(one["ref"] for one in self.entries.values() if one["ref"])
        assert not refs or max(refs.values()) == 1, f"a message stands twice: {refs}"
        numbers: Counter[int] = Counter()
        for text in self.answers:
            if CUT_OFF not in text and not text.startswith(WAITING):
                numbers.update(map(int, ANSWER.findall(text)))
        assert numbers.keys() <= mine, f"somebody else's answers: {numbers.keys() - mine}"
        assert not numbers or max(numbers.values()) == 1, f"an answer stands twice: {numbers}"


@dataclass
class Tab:
    """One stream, and what it has drawn."""

    person: Person
    lane: str
    follows: bool = True
    lanes: dict[str, Json] = field(default_factory=dict)
    begun: int = 0  # how often it was told the whole state
    log: Log = field(init=False)

    def __post_init__(self) -> None:
        self.log = Log(lambda before: self.person.earlier(self.lane, before), self.follows)

    async def follow(self) -> None:
        """Look on until cancelled; a stream that breaks is opened again."""
        address = f"/api/events?lane={self.lane}"
        while True:
            with suppress(httpx.TransportError):
                async with self.person.browser.stream("GET", address, timeout=None) as answer:
                    self.person.heard(answer.status_code, address)
                    if answer.status_code == 200:
                        await self._read(answer)
            await asyncio.sleep(BACK)

    async def _read(self, answer: httpx.Response) -> None:
        name = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                await self._take(name, json.loads(line.removeprefix("data: ")))

    async def _take(self, name: str, body: Json) -> None:
        if name == "state":
            self.begun += 1
            self.lanes.clear()
            await self.log.whole(body.get("entries", ()), body.get("more", False))
        else:
            self.log.change(body.get("entries", ()), body.get("removed", ()))
        for gone in body.get("gone", ()):
            self.lanes.pop(gone, None)
        for one in body["lanes"]:
            self.lanes[one["lane"]] = one
        said = self.person.said.items()
        self.log.check({number for number, place in said if place.chat == self.lane})
        if not self.person.admin:
            others = self.lanes.keys() - self.person.lanes
            assert not others, f"{self.person.address} sees {others}"


@dataclass
class Thread:
    """A thread with its composer, which is composer.js's, and the tab that both are in."""

    tab: Tab
    chance: random.Random
    unsent: list[tuple[str, str]] = field(default_factory=list)  # ref, text
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    tries: int = 0

    def write(self, text: str) -> None:
        self.unsent.append((secrets.token_hex(16), text))
        self.woken.set()

    async def send(self) -> None:
        """Send what waits, in its order, until cancelled."""
        while True:
            await self.woken.wait()
            self.woken.clear()
            while self.unsent:
                ref, text = self.unsent[0]
                if ref in self.tab.log.refs or await self._try(ref, text):
                    self.unsent.pop(0)
                else:
                    await asyncio.sleep(AGAIN)

    async def _try(self, ref: str, text: str) -> bool:
        self.tries += 1
        address, person = f"/api/lanes/{self.tab.lane}/say", self.tab.person
        hasty = self.chance.random() < HASTY
        try:
            async with asyncio.timeout(self.chance.uniform(0.0, 0.03) if hasty else None):
                body = {"id": ref, "text": text, "files": []}
                answer = await person.browser.post(address, json=body)
        except (httpx.TransportError, TimeoutError):
            return False
        person.heard(answer.status_code, address)
        return answer.status_code == 200


class Person:
    """An account of the page, in one browser."""

    def __init__(
        self, url: str, address: str, threads: int, seed: int, admin: bool = False
    ) -> None:
        self.address = address
        self.admin = admin
        self.browser = httpx.AsyncClient(
            base_url=url, headers={"Origin": url}, trust_env=False, verify=False, timeout=30.0
        )
        tabs = [Tab(self, new_lane()) for _ in range(threads)]
        chance = random.Random(seed)
        self.threads = [Thread(tab, chance) for tab in tabs]
        # A second tab of the first thread, in which nothing is written and all is kept in sight.
        self.tabs = [*tabs, Tab(self, tabs[0].lane, follows=False)]
        self.lanes = {tab.lane for tab in tabs}
        self.said: dict[int, Place] = {}  # what this person asked, and where
        self._tasks: list[asyncio.Task[None]] = []

    def heard(self, status: int, address: str) -> None:
        """A gateway that goes or comes may be silent or busy; it never says no."""
        assert status == 200 or status >= 500, f"{self.address} at {address}: {status}"

    async def sign_in(self, link: str) -> None:
        token = link.partition("#token=")[2]
        answer = await self.browser.post("/api/signin/link", json={"token": token})
        assert answer.status_code == 200, answer.text

    def begin(self) -> None:
        """Open all tabs."""
        following = [(tab.follow(), f"tab {tab.lane}") for tab in self.tabs]
        sending = [(one.send(), f"composer {one.tab.lane}") for one in self.threads]
        self._tasks = [
            asyncio.create_task(work, name=name) for work, name in (*following, *sending)
        ]

    def fault(self) -> None:
        """Raise what broke in a tab."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.browser.aclose()

    async def earlier(self, lane: str, before: int) -> Json:
        """A page of a thread; raises TransportError where there is none now."""
        answer = await self.browser.get(f"/api/lanes/{lane}/history?before={before}")
        self.heard(answer.status_code, str(answer.url))
        if answer.status_code != 200:
            raise httpx.TransportError(answer.text)
        page: Json = answer.json()
        return page

    async def history(self, lane: str) -> list[Json]:
        """All of a thread, page by page, as somebody reads it who scrolls up."""
        found: dict[str, Json] = {}
        before, more = MORE_THAN_ALL, True
        while more:
            page = await self.earlier(lane, before)
            fresh = {one["id"]: one for one in page["entries"] if one["id"] not in found}
            found |= fresh
            more = page["more"] and bool(fresh)
            before = min((one["at"] for one in found.values()), default=0)
        return sorted(found.values(), key=lambda one: (one["at"], one["id"]))


class ThePage:
    """All of them, behind the face that the checks of all drills know."""

    name = LOCAL
    fake = None
    connected = True

    def __init__(self, people: Sequence[Person]) -> None:
        self.people = people
        self.tabs = [tab for person in people for tab in person.tabs]
        self.places = [Place(LOCAL, lane) for lane in dict.fromkeys(tab.lane for tab in self.tabs)]
        self.whole: dict[str, list[Json]] = {}  # threads to their beginning, once all is over

    def settings(self) -> dict[str, str]:
        return {}

    def members(self) -> list[str]:
        return []

    def rooms(self) -> list[str]:
        return []

    def say(self, place: Place, text: str) -> bool:
        for person in self.people:
            for thread in person.threads:
                if thread.tab.lane == place.chat:
                    number = re.search(ANSWER, text)
                    assert number, text
                    person.said[int(number[1])] = place
                    thread.write(text)
        return True

    def texts(self, place: Place) -> list[str]:
        return [text_of(one) for one in self.whole[place.chat] if not one["key"]]

    def everything(self) -> list[str]:
        if self.whole:
            return [text for place in self.places for text in self.texts(place)]
        return [text for tab in self.tabs for text in tab.log.answers]

    def calls(self) -> list[tuple[str, int]]:
        return []
