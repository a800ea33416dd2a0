"""What every turn needs while it runs: the parts it works with, and its limits. Made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.approvals import Approvals
from core.at_work import AtWork
from core.clock import Clock
from core.health import Health
from core.outbox import Outbox
from core.preparing import Preparing
from core.prices import Prices
from core.telling import Telling
from core.tools import Tools


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds. Both pause while a person decides."""

    idle: float  # without any event of the engine
    turn: float
    grace: float  # from a stop to the kill of the whole process tree


@dataclass(slots=True)
class TurnLife:
    """What every turn needs; made once. Its limits follow the settings, for turns that begin."""

    preparing: Preparing
    approvals: Approvals
    outbox: Outbox
    telling: Telling
    tools: Tools
    clock: Clock
    limits: TimeLimits
    previews: bool
    spill: Path  # where answers go that are too long for a chat
    health: Health
    at_work: AtWork
    prices: Callable[[], Prices] = Prices  # those that hold now
