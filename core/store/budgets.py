"""Caps on money in the store: every write as a typed row, every read as a typed value."""

from __future__ import annotations

import sqlite3

from core.budgets import Budget, DaySum, State, Why
from core.store.rows import Row
from core.store.store import Reader


def save(budget: Budget) -> Row:
    return "budget.save", {
        "id": budget.id,
        "lane": budget.lane,
        "dollars": budget.dollars,
        "why": str(budget.why),
        "set_by": budget.by,
        "made_at": budget.made_at,
        "until": budget.until,
        "state": str(budget.state),
        "turn": budget.turn,
        "spent": budget.spent,
        "returns": int(budget.returns),
    }


def spent(one: DaySum) -> Row:
    return "spent.save", {
        "turn": one.turn,
        "day": one.day,
        "person": one.person,
        "cost": one.cost,
    }


async def open_budgets(store: Reader) -> list[Budget]:
    """Those that wait for a turn, and those of turns that are not over."""
    return [_budget(row) for row in await store.fetch("budget.open")]


async def of_turn(store: Reader, turn: int) -> Budget | None:
    """The cap a turn was under, also when it is over."""
    found = await store.fetch("budget.of_turn", turn=turn)
    return _budget(found[0]) if found else None


async def sums(store: Reader, day: str) -> list[DaySum]:
    """What was spent since this day, and before it by turns that are not over."""
    since = await store.fetch("spent.since", day=day)
    return [_sum(row) for row in (*since, *await store.fetch("spent.of_open", day=day))]


def _budget(row: sqlite3.Row) -> Budget:
    return Budget(
        id=row["id"],
        lane=row["lane"],
        dollars=row["dollars"],
        made_at=row["made_at"],
        why=Why(row["why"]),
        by=row["set_by"],
        until=row["until"],
        state=State(row["state"]),
        turn=row["turn"],
        spent=row["spent"],
        returns=bool(row["returns"]),
    )


def _sum(row: sqlite3.Row) -> DaySum:
    return DaySum(row["turn"], row["day"], row["person"], row["cost"])
