"""What is said about caps on money, and how an amount and a wait are written. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

from core.budgets import MOST, Budget, Capped, Expired, Scope, Told, Warned
from core.engine_words import moment
from core.when import BadWhen, span
from core.wording import count, money, plain, quoted

HOW = "Write it like this: /budget 1.50, or /budget 1.50 for 2h, or /budget off."
_AMOUNT = re.compile(r"\$?\s*(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*\$?", re.ASCII)
_WAIT = re.compile(r"(\d+\s*[a-z]+\s*)+|[a-z]+", re.ASCII)
_WAIT_LEAST = 1000  # ms
_OF = {
    Scope.TURN: "the cap of this turn",
    Scope.PERSON: "what you may spend a day",
    Scope.EVERYBODY: "what all may spend a day",
}


class BadBudget(Exception):
    """What was typed is no cap; the message says what is wrong and how to write it."""


def _no_number() -> int:
    raise AssertionError("only commands that set caps have numbers for them")


@dataclass(frozen=True, slots=True)
class BudgetsSeen:
    """Caps as the commands of a lane tell them. Dollars; instants in ms."""

    waiting: Budget | None = None
    running: Budget | None = None  # of the turn that runs here
    own: float = 0.0  # what this person has spent today
    all: float = 0.0
    person_cap: float | None = None
    all_cap: float | None = None
    until: int = 0  # when the next day begins
    priced: bool = True  # somebody tells what a turn here costs
    number: Callable[[], int] = _no_number  # of a new cap


def day_of(now: int, zone: tzinfo) -> str:
    """The local day, as 2026-03-01."""
    return datetime.fromtimestamp(now / 1000, zone).date().isoformat()


def next_day(now: int, zone: tzinfo) -> int:
    """When the next local day begins, in ms: midnight, or the first moment after it that exists."""
    today = datetime.fromtimestamp(now / 1000, zone).date()
    tomorrow = today + timedelta(days=1)
    midnight = datetime.combine(tomorrow, time(), zone).astimezone(UTC)
    at = int(midnight.timestamp() * 1000)
    while day_of(at, zone) <= today.isoformat():  # a midnight that daylight saving leaves out
        at += 60_000
    return at


def typed(text: str) -> tuple[float, int | None]:
    """Dollars and how long they wait (ms; None: for ever), as they were typed; raises BadBudget."""
    amount, _, wait = " ".join(text.split()).lower().partition(" for ")
    found = _AMOUNT.fullmatch(amount)
    if found is None:
        raise BadBudget(f"{plain(text[:40])} is no amount of money. {HOW}")
    dollars = float(found[1])
    if not 0 < dollars <= MOST:
        raise BadBudget(f"A cap lies between a fraction of a cent and {money(MOST)}. {HOW}")
    if not wait:
        return dollars, None
    try:
        ms = span(wait) if _WAIT.fullmatch(wait) else 0
    except BadWhen as fault:
        raise BadBudget(f"{fault} {HOW}") from fault
    if ms < _WAIT_LEAST:
        raise BadBudget(f"{plain(wait[:40])} is no length of time. {HOW}")
    return dollars, ms


# Answers -----------------------------------------------------------------------------------


def no_price(engine: str, model: str) -> str:
    """Why a turn under a cap is refused where nobody tells what it costs."""
    named = f"{plain(engine)}" + (f" with {plain(model)}" if model else "")
    return (
        f"nobody tells what {named} costs, so a cap on money cannot be kept. Ask an admin to add "
        "the model to prices.toml in the gateway's home, or choose another with /engine or /model"
    )


def not_kept(engine: str) -> str:
    return (
        f"{plain(engine)} did not tell what this turn cost, so its cap on money could not be kept. "
        "Ask an admin to add its model to prices.toml in the gateway's home."
    )


def nothing_left(scope: Scope, cap: float) -> str:
    """Why a turn does not begin whose cap is used up already."""
    return f"nothing is left of {_OF[scope]} ({money(cap)}). Send it as a new message to go on"


def accepted(budget: Budget, now: int, zone: tzinfo, *, runs: bool) -> str:
    text = f"The next turn that somebody asks for here may cost {money(budget.dollars)}"
    text += "; it is stopped when that is spent."
    if budget.until is not None:
        text += f" The cap waits for it until {moment(budget.until, now, zone)}."
    return text + (" What runs now goes on as it is." if runs else "")


def taken_off(seen: BudgetsSeen) -> str:
    text = "No cap waits for the next turn here any more."
    if seen.waiting is None:
        text = "No cap waits for the next turn here."
    return text + (" What runs now keeps its own." if seen.running is not None else "")


def shown(seen: BudgetsSeen, now: int, zone: tzinfo, *, admin: bool) -> str:
    """The answer to /budget."""
    lines = caps(seen, now, zone, admin=admin) or ["No cap on money here."]
    return "\n".join(f"- {line}" for line in lines) + f"\n\n{HOW}"


def caps(seen: BudgetsSeen, now: int, zone: tzinfo, *, admin: bool) -> list[str]:
    """Every cap that holds here, a line each."""
    lines = []
    if seen.running is not None:
        has, cap = money(seen.running.spent), money(seen.running.dollars)
        lines.append(f"Cap of what runs: {has} of {cap} spent")
    if seen.waiting is not None:
        until = seen.waiting.until
        wait = f", if it comes until {moment(until, now, zone)}" if until is not None else ""
        lines.append(f"Cap of the next turn: {money(seen.waiting.left)}{wait}")
    if seen.person_cap is not None:
        lines.append(f"You, today: {money(seen.own)} of {money(seen.person_cap)} spent")
    if seen.all_cap is not None and admin:
        lines.append(f"All, today: {money(seen.all)} of {money(seen.all_cap)} spent")
    elif seen.all_cap is not None and seen.all >= seen.all_cap:
        lines.append("All, today: nothing is left to spend")
    return lines


# News --------------------------------------------------------------------------------------


def told(news: Told, next_day_at: int, now: int, zone: tzinfo) -> str:
    match news:
        case Warned(_, _, scope, spent, cap):
            part = f"{int(100 * spent / cap + 1e-6)} % of {_OF[scope]}"
            amounts = "" if scope is Scope.EVERYBODY else f": {money(spent)} of {money(cap)}"
            return f"Spent so far: {part}{amounts}. At 100 % what runs is stopped."
        case Expired(budget):
            return (
                f"The cap of {money(budget.dollars)} has ended: no turn began in time. "
                "Set it again with /budget if it still matters."
            )
        case Capped(turn, Scope.TURN, spent, cap):
            return (
                f"{quoted(turn.label)} was stopped at its cap of {money(cap)}; {money(spent)} are "
                "spent. The thread is free: send a message to go on from there."
            )
        case Capped(turn, scope, spent, cap):
            allowed = "" if scope is Scope.EVERYBODY else f" ({money(cap)})"
            return (
                f"{quoted(turn.label)} was stopped, because {_OF[scope]}{allowed} is spent; "
                f"this turn cost {money(spent)}. Messages wait and run at "
                f"{moment(next_day_at, now, zone)}."
            )


def waiting(number: int, next_day_at: int, now: int, zone: tzinfo, *, all_spent: bool) -> str:
    """The waiting notice of a lane in which a spent day holds what waits."""
    they = "it runs" if number == 1 else "they run"
    whose = "what all may spend today" if all_spent else "what its sender may spend today"
    return (
        f"Waiting: {count(number, 'message')}; {whose} is spent, {they} at "
        f"{moment(next_day_at, now, zone)}."
    )
