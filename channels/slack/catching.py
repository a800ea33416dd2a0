"""Catching up with what was missed, while what is new waits behind it, thread by thread.

Also when it is cut short: what waits is let in once the next reading has read it all. It must not
know how payloads arrive.
"""

from __future__ import annotations

from collections.abc import Callable

from channels.slack.backfill import Backfill
from channels.slack.errors import TokenRefused
from channels.slack.events import Me, is_direct
from channels.slack.inlet import Inlet, nothing_held
from channels.slack.names import Names
from channels.slack.web import Web
from core.channel import Connection, Intake, SendError
from core.clock import Clock
from core.messages import Address

LEFT_FOR = 600_000  # ms; Slack itself ends a sign of work after two minutes without a word


class Reports:
    """Tells changes of the connection, and only changes."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.last: Connection | None = None

    def __call__(self, connection: Connection) -> None:
        if connection != self.last:
            self.last = connection
            self._intake.connection("slack", connection)


class Catching:
    """One for a ``listen``. ``lag``: ms for which Slack may still deliver what was said."""

    def __init__(
        self, web: Web, intake: Intake, names: Names, clock: Clock, report: Reports,
        left: Callable[[Address], None], people: frozenset[str], lag: int,
    ) -> None:  # fmt: skip
        self._web = web
        self._intake = intake
        self._names = names
        self._clock = clock
        self._report = report
        self._left = left
        self._people = people
        self._lag = lag
        self._behind: Connection | None = None  # as it was reported while something was unread
        self._resumed = False
        self._reached_at = 0.0
        self.done = False

    async def up(self, me: Me, inlet: Inlet, stale: Callable[[], bool] = lambda: False) -> None:
        """Read what was missed. ``stale``: it began too early, and everything is to wait on."""

        def hold(held: Callable[[Address], bool]) -> None:
            inlet.hold(lambda address: stale() or held(address))

        now = self.now()
        marks = await self._intake.marks("slack")
        reading = Backfill(
            self._web, me, inlet.reading, inlet.store, self._clock, self._names.learn,
            troubled=self._unread, people=self._people,
        )  # fmt: skip
        reading.plan(marks)
        if not self._resumed:
            self._resumed = True
            for address, mark in marks.threads.items():
                if address.thread and is_direct(address.chat) and mark.at > now - LEFT_FOR:
                    self._left(address)
        reading.changed = lambda: hold(reading.holds)
        hold(reading.holds)
        await reading.run(marks, self.now)
        hold(nothing_held)
        if self._report.last == self._behind:
            self._report(Connection())
        self.done = True
        self._reached_at = self._clock.monotonic()
        self._intake.reached("slack", now if not marks.since else now - self._lag)

    def tell_reached(self, inlet: Inlet, every: float) -> None:
        """All is quiet, or well: what was missed begins later. Not more often than that (s)."""
        now = self._clock.monotonic()
        if self.done and inlet.idle and now - self._reached_at >= every:
            self._reached_at = now
            self._intake.reached("slack", self.now() - self._lag)

    def now(self) -> int:
        """Slack's time."""
        return self._clock.now() + self._web.ahead

    def _unread(self, error: SendError) -> None:
        """The connection is of little use to those who wait behind what cannot be read."""
        fatal = isinstance(error, TokenRefused)
        words = str(error) if fatal else f"what was said meanwhile cannot be read yet: {error}"
        self._behind = Connection(words, fatal)
        self._report(self._behind)


def everything(address: Address) -> bool:
    """Hold all of it."""
    return True
