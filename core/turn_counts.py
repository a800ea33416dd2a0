"""What ended turns come to since the start: how many, how long, what they used.

Sums only: no lane and no person is remembered. It must not know who reads them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from core.engines.base import Usage
from core.tallies import Spread
from core.turns import Kind, Turn

NO_ENGINE = "none"  # of turns that ended before they had one
_SHORT = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_LONG = (1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 10_800.0)


@dataclass(frozen=True, slots=True)
class Ran:
    """What of a run is counted. Times are ms since 1970; 0: it did not come to that."""

    engine: str
    began_at: int
    first_text_at: int
    usage: Usage | None  # of all tries


class TurnCounts:
    """Seconds, tokens and US dollars; by engine where that matters."""

    def __init__(self) -> None:
        self.ended: Counter[tuple[str, str, str]] = Counter()  # kind, status, engine
        self.waited = Spread(_LONG)  # from a message to the start of its turn
        self.first_text = Spread(_SHORT)  # from there to the first words
        self.lasted = Spread(_LONG)
        self.tokens_in: Counter[str] = Counter()
        self.tokens_out: Counter[str] = Counter()
        self.cost: dict[str, float] = {}

    def over(self, turn: Turn, ran: Ran | None, now: int) -> None:
        """Count a turn that has ended; ``ran`` is None when nothing of it runs here."""
        engine = (ran.engine if ran else "") or NO_ENGINE
        self.ended[turn.kind.value, turn.status.value, engine] += 1
        if ran is None:
            return
        self.lasted.see(max(0, now - ran.began_at) / 1000)
        if turn.kind is not Kind.SIDE:
            self.waited.see(max(0, ran.began_at - turn.arrived) / 1000)
        if ran.first_text_at:
            self.first_text.see(max(0, ran.first_text_at - ran.began_at) / 1000)
        if ran.usage is not None:
            self.tokens_in[engine] += ran.usage.tokens_in or 0
            self.tokens_out[engine] += ran.usage.tokens_out or 0
            self.cost[engine] = self.cost.get(engine, 0.0) + (ran.usage.cost or 0.0)
