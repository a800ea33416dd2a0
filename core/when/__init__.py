"""WHEN: what people write for "at these times", and which instants it means.

``parse`` reads it, ``following`` and ``upcoming`` reckon. Pure: the clock, the zone of the person
and the moment asked are parameters. It must not know jobs, the store or who asks.
"""

from core.when.grammar import BadWhen, NotATime, parse, span
from core.when.plan import Cron, Every, Once, Plan
from core.when.reckoning import following, upcoming

__all__ = [
    "BadWhen",
    "Cron",
    "Every",
    "NotATime",
    "Once",
    "Plan",
    "following",
    "parse",
    "span",
    "upcoming",
]
