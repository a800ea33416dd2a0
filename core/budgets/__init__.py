"""Caps on money: one for the next turn of a lane, one for a job's run, one for each day.

    waiting --start--> reserved --prompted--> used --end--> over
       ^                  |                     |
       +------------------+---------------------+-- the prompt did not take effect: given back

A cap is a value with an id, held by a lane or by one turn, never by two. What a turn spends comes
in as the sum of its present run; days are named by the caller, in local time. Like the lane rules
this is a draft: `undo` takes back what a commit that failed had changed, `settle` makes it final.

Pure: it must not know a clock, a store, or any words for people.
"""

from core.budgets.rules import Budgets, Mark
from core.budgets.values import (
    MOST,
    Budget,
    Capped,
    Change,
    DaySum,
    Effects,
    Expired,
    Look,
    Off,
    Put,
    Scope,
    Spending,
    Standing,
    State,
    Told,
    Warned,
    Why,
    handed_on,
    of_turn,
)

__all__ = [
    "MOST",
    "Budget",
    "Budgets",
    "Capped",
    "Change",
    "DaySum",
    "Effects",
    "Expired",
    "Look",
    "Mark",
    "Off",
    "Put",
    "Scope",
    "Spending",
    "Standing",
    "State",
    "Told",
    "Warned",
    "Why",
    "handed_on",
    "of_turn",
]
