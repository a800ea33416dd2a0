"""An engine whose every move a test makes: events come when the test says so.

    run = await engine.started()              # the newest run, once its events are asked for
    run.say(Started("s1")); run.say(Text("hello")); run.say(Finished(Result.DONE)); run.end()

``handed_over`` tells whether the prompt left: the port says that it does when the event after
``Started`` is asked for, and not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from core.engines.base import Abilities, Decision, Event, Finding, Finished, Request, Started
from core.turns import Result


class PuppetRun:
    quarantine = ""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.handed_over = False
        self.answers: list[tuple[str, Decision]] = []
        self.offered: list[tuple[int, str]] = []
        self.stops = 0
        self.obeys = True  # whether a stop ends it
        self.asked = asyncio.Event()
        self._gone = asyncio.Event()
        self._events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()

    def say(self, *events: Event) -> None:
        for event in events:
            self._events.put_nowait(event)

    def fail(self, error: BaseException) -> None:
        """The adapter itself breaks."""
        self._events.put_nowait(error)

    def end(self) -> None:
        """The processes are gone or handed back."""
        self._events.put_nowait(None)
        self._gone.set()

    def answer_with(self, text: str) -> None:
        """A whole turn that ends well."""
        from core.engines.base import Text

        session = self.request.session
        self.say(Started(session or "session", resumed=bool(session)))
        self.say(Text(text), Finished(Result.DONE))
        self.end()

    async def events(self) -> AsyncGenerator[Event, None]:
        self.asked.set()
        ready = False
        while True:
            if ready:
                self.handed_over = True
            event = await self._events.get()
            if event is None:
                return
            if isinstance(event, BaseException):
                raise event
            ready = ready or isinstance(event, Started)
            yield event

    def answer(self, approval: str, decision: Decision) -> None:
        self.answers.append((approval, decision))

    async def steer(self, turn: int, text: str) -> None:
        self.offered.append((turn, text))

    async def stop(self, grace: float) -> None:
        self.stops += 1
        if self.obeys:
            self.say(Finished(Result.CANCELLED))
            self.end()
        else:
            await self._gone.wait()


class PuppetEngine:
    name = "demo"

    def __init__(self, abilities: Abilities | None = None) -> None:
        self.abilities = abilities or Abilities(resume=True)
        self.runs: list[PuppetRun] = []

    def run(self, request: Request) -> PuppetRun:
        self.runs.append(PuppetRun(request))
        return self.runs[-1]

    async def started(self, number: int = 1) -> PuppetRun:
        """The run with this number, once the gateway listens to it."""
        async with asyncio.timeout(20):
            while len(self.runs) < number:
                await asyncio.sleep(0.002)
            await self.runs[number - 1].asked.wait()
        return self.runs[number - 1]

    async def check(self) -> Sequence[Finding]:
        return ()

    async def tend(self) -> None:
        """Nothing is kept warm."""

    async def close(self) -> None:
        """Nothing runs."""
