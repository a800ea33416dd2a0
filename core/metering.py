"""What a running turn uses, as its engine tells it: priced, stored now and then, held against caps.

It owns the sum of the present run; how that is stored with the turn's end is in settling.py. It
must not know how a turn runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.budgeting import Tightest
from core.clock import Clock
from core.engines.base import Usage
from core.items import Item, Take
from core.prices import Prices
from core.settling import TurnUsage
from core.turns import Turn

EVERY = 1.0  # seconds between two stored usages of a turn


class Meter:
    def __init__(
        self,
        turn: Turn,
        take: Take,
        tightest: Tightest,
        prices: Callable[[], Prices],
        clock: Clock,
    ) -> None:
        self.used = TurnUsage()
        self.engine = self.model = ""  # by whose prices it counts; known once they are
        self._turn = turn
        self._take = take
        self._tightest = tightest
        self._prices = prices
        self._clock = clock
        self._saved = -EVERY

    def begin(self, engine: str, earlier: Usage) -> None:
        """The run begins; ``earlier`` is what earlier tries of the turn have used."""
        self.engine = engine
        self.used = TurnUsage(None, earlier)

    async def see(self, usage: Usage) -> None:
        """What the run has used so far, in all. Under a cap it returns once that is stored."""
        usage = self._prices().priced(self.engine, self.model, usage)
        run = self.used.run
        if usage.cost is None and run is not None:
            usage = replace(usage, cost=run.cost)  # what was spent stays spent
        used = self.used = replace(self.used, run=usage)
        now = self._clock.monotonic()
        # Under a cap nothing more is heard of the engine before it is known whether that is met.
        if now - self._saved >= EVERY or self._tightest(self._turn):
            self._saved = now
            await self._take(Item(rows=used.rows(self._turn), spending=used.spending(self._turn)))
