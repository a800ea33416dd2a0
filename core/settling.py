"""The end of a turn: its result is committed once, with what the thread is shown for it.

It must not fail, whatever the engine said: what cannot be stored is left out, and the turn ends.
It knows the words for ends and the way in; it does not know engines or how a turn ran.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core import lane_events, turns
from core.budgets import Spending
from core.clock import Clock
from core.engines.base import Failure, Usage
from core.items import Item, Said, Take
from core.store import rows
from core.store.errors import Poisoned, StoreError
from core.store.records import ENGINE_SCOPE
from core.telling import Remains, Telling
from core.turns import Result, Turn
from core.wording import INTERNAL_FAULT, UNREACHED

log = logging.getLogger("laneway.turn")


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """What a turn has used: in its present run, None while the engine tells nothing, and before."""

    run: Usage | None = None
    earlier: Usage = field(default_factory=Usage)  # by earlier tries

    @property
    def total(self) -> Usage | None:
        return None if self.run is None else self.earlier + self.run

    def rows(self, turn: Turn) -> tuple[rows.Row, ...]:
        total = self.total
        if total is None:
            return ()
        return (rows.usage(turn.id, total.tokens_in, total.tokens_out, total.cost),)

    def spending(self, turn: Turn) -> Spending | None:
        """What its present run has cost, where that is known."""
        if self.run is None or self.run.cost is None:
            return None
        return Spending(turn.id, turn.lane, turn.person, self.run.cost)


@dataclass(frozen=True, slots=True)
class End:
    """How an engine left a turn. ``unsent``: no byte of the prompt left.

    ``uncounted``: that start does not count, since the next one waits for something else first.
    """

    result: Result
    error: str = ""
    unsent: bool = False
    failure: Failure | None = None
    uncounted: bool = False


class Settling:
    """Commits ends. Nothing in here raises but CancelledError."""

    def __init__(self, take: Take, telling: Telling, clock: Clock) -> None:
        self._take = take
        self._telling = telling
        self._clock = clock

    async def finish(
        self,
        turn: Turn,
        remains: Remains,
        end: End,
        used: TurnUsage,
        written: Sequence[rows.Row],
    ) -> None:
        """Status, answer, usage and deliveries in one commit; the lane settles after it."""
        result = rows.turn_result(turn.id, self._clock.now(), remains.text, remains.error)
        closing = await self._telling.closing(turn, end.result, remains)
        event = lane_events.Finished(turn.id, turn.lane, end.result, end.error)
        item = Item(
            event=event,
            rows=[*written, result, *used.rows(turn)],
            closing=closing,
            spending=used.spending(turn),
        )
        if await self._stored(turn, item):
            return
        # Something the engine said can never be stored; nothing of it is needed for the end.
        bare = replace(remains, text="", error=INTERNAL_FAULT, whole=None)
        closing = await self._telling.closing(turn, Result.FAILED, bare)
        result = rows.turn_result(turn.id, self._clock.now(), "", INTERNAL_FAULT)
        event = lane_events.Finished(turn.id, turn.lane, Result.FAILED, INTERNAL_FAULT)
        await self._stored(turn, Item(event=event, rows=[result], closing=closing))

    async def unsent(
        self,
        turn: Turn,
        remains: Remains,
        end: End,
        session: str,
        used: TurnUsage,
        written: Sequence[rows.Row],
    ) -> None:
        """The mark *prompted* is taken back; the rules decide whether it is tried again."""
        taken_back = rows.turn_prompted(turn.id, None, session, "")
        failed = rows.turn_failed(turn.id, remains.error or UNREACHED)
        closing = await self._telling.closing(turn, Result.CANCELLED, remains)

        def after_stop(over: Turn) -> Said:
            """What tells that it was given up takes the preview's place; after a stop we do."""
            return closing(over) if remains.shown and over.stop is not None else Said()

        event = lane_events.Unsent(turn.id, turn.lane, end.error, end.uncounted)
        await self._stored(
            turn,
            Item(
                event=event,
                rows=[taken_back, failed, *written, *used.rows(turn)],
                closing=after_stop,
                spending=used.spending(turn),
            ),
        )

    async def say(self, turn: Turn, said: Said) -> None:
        """Something more for the thread, after its end."""
        if said.deliveries:
            await self._stored(turn, Item(deliveries=said.deliveries))

    async def paused(self, turn: Turn, engine: str, why: turns.EnginePause) -> None:
        """Nothing of this engine starts until then."""
        now = self._clock.now()
        row = rows.pause(f"{ENGINE_SCOPE}{engine}", why.reason, now, why.until)
        event = lane_events.PauseAsked(engine=engine, why=why)
        await self._stored(turn, Item(event=event, rows=[row]))

    async def freed(self, turn: Turn) -> None:
        """The engine is gone, or handed back, or set aside: the lane goes on."""
        event = lane_events.Ended(turn.id, turn.lane, self._clock.now())
        await self._stored(turn, Item(event=event))

    async def quarantine(self, turn: Turn, engine: str, session: str, reason: str) -> None:
        """A session that may still have a writer is never used again."""
        if session:
            row = rows.quarantine(turn.lane, engine, session, reason)
            await self._stored(turn, Item(rows=[row]))

    async def _stored(self, turn: Turn, item: Item) -> bool:
        try:
            await self._take(item)
        except Poisoned as fault:
            log.error("turn %d: its end could not be stored as it was: %s", turn.id, fault)
            return False
        except StoreError as fault:  # the gateway is leaving; the next start settles it
            log.error("turn %d: its end was not stored: %s", turn.id, fault)
        return True
