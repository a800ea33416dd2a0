"""The command about money: a cap for the next turn of a thread."""

from __future__ import annotations

from core import budget_words as words
from core.budgets import Budget, Off, Put
from core.commands.base import Answer, Ask

_OFF = ("off", "none", "-")


def budget(ask: Ask) -> Answer:
    here, seen, zone = ask.here, ask.here.budgets, ask.here.values.clock_zone
    typed = ask.args.strip()
    if not typed:
        return Answer(words.shown(seen, here.now, zone, admin=ask.person.admin))
    if typed.lower() in _OFF:
        # Also where nothing waits: what a turn under way has must not come back.
        return Answer(words.taken_off(seen), budget=Off(here.lane.id))
    try:
        dollars, wait = words.typed(typed)
    except words.BadBudget as fault:
        return Answer(str(fault))
    if not seen.priced:
        engine = here.acting or here.values.engine
        return Answer(f"Not set: {words.no_price(engine, here.values.model)}.")
    made = Budget(
        id=seen.number(),
        lane=here.lane.id,
        dollars=dollars,
        made_at=here.now,
        by=ask.person.id,
        until=None if wait is None else here.now + wait,
    )
    runs = here.main is not None
    return Answer(words.accepted(made, here.now, zone, runs=runs), budget=Put(made))
