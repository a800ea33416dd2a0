"""What tokens cost, where an engine tells only how many it used: a table that an admin writes.

A model without a price has none; nothing is guessed. It knows no turn and no store.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from core.engines.base import Usage

log = logging.getLogger(__name__)

FILE = "prices.toml"  # in the home
LOOK_EVERY = 10.0  # seconds between two looks whether the file has changed
MOST = 1_000_000.0  # dollars for a million tokens; more is a slip of the pen
MILLION = 1_000_000
_HINT = 'write it like: "gpt-5-mini" = { in = 0.25, out = 2.00 }'


class BadPrices(Exception):
    """The table cannot be read; ``problems`` says where and why, a line each."""

    def __init__(self, problems: Collection[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens: of what is sent to the model, and of what it writes."""

    tokens_in: float
    tokens_out: float


class Prices:
    """By engine, then by the model's name, in which ``*`` stands for anything."""

    def __init__(self, table: Mapping[str, Mapping[str, Price]] | None = None) -> None:
        self._table = table or {}

    def __len__(self) -> int:
        return sum(map(len, self._table.values()))

    def of(self, engine: str, model: str) -> Price | None:
        """The model's own price, else that of the longest pattern that fits; None: not known."""
        models = self._table.get(engine, {})
        if model in models:
            return models[model]
        fitting = [name for name in models if "*" in name and fnmatchcase(model, _only_star(name))]
        return models[max(fitting, key=len)] if fitting else None

    def knows(self, engine: str, model: str) -> bool:
        """Whether a turn will have a price; one whose model is not named yet may have one."""
        return self.of(engine, model) is not None or (not model and bool(self._table.get(engine)))

    def priced(self, engine: str, model: str, usage: Usage) -> Usage:
        """With its cost, where the engine told none and the price is known."""
        if usage.cost is not None:
            return usage
        price = self.of(engine, model)
        if price is None:
            return usage
        cost = usage.tokens_in * price.tokens_in + usage.tokens_out * price.tokens_out
        return replace(usage, cost=cost / MILLION)


def _only_star(pattern: str) -> str:
    """A pattern in which nothing but the star is special."""
    return "".join(f"[{sign}]" if sign in "?[" else sign for sign in pattern)


def read(text: str, engines: Collection[str]) -> Prices:
    """The table as it is written. Raises BadPrices with everything that is wrong with it."""
    import tomllib  # late: most have no table

    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise BadPrices([f"{FILE}: {fault}"]) from fault
    problems: list[str] = []
    table: dict[str, dict[str, Price]] = {}
    for engine, models in found.items():
        if engine not in engines or not isinstance(models, dict):
            known = ", ".join(f"[{name}]" for name in sorted(engines))
            problems.append(f"{FILE}: {engine!r} is no engine; prices stand below {known}")
            continue
        table[engine] = {}
        for model, told in models.items():
            price = _price(told)
            if price is None:
                problems.append(f"{FILE}: [{engine}] {model!r} has no price; {_HINT}")
            else:
                table[engine][model] = price
    if problems:
        raise BadPrices(problems)
    return Prices(table)


def _price(told: Any) -> Price | None:
    if not isinstance(told, dict) or set(told) != {"in", "out"}:
        return None
    amounts = [told["in"], told["out"]]
    if not all(
        isinstance(amount, int | float)
        and not isinstance(amount, bool)
        and math.isfinite(amount)
        and 0 <= amount <= MOST
        for amount in amounts
    ):
        return None
    return Price(*map(float, amounts))


def load(home: Path, engines: Collection[str]) -> Prices:
    """The table in the home; an empty one when there is none. Raises BadPrices."""
    path = home / FILE
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Prices()
    except (OSError, UnicodeDecodeError) as fault:
        reason = getattr(fault, "strerror", "") or "it is not UTF-8 text"
        raise BadPrices([f"{path} cannot be read: {reason}"]) from fault
    return read(text, engines)


def problems(home: Path, engines: Collection[str]) -> tuple[str, ...]:
    """What is wrong with the table, in plain words; empty when all is well."""
    try:
        load(home, engines)
    except BadPrices as fault:
        return fault.problems
    return ()


class PriceList:
    """The newest readable table. A change of the file counts from the next look on.

    A table that was spoilt while the gateway runs is told in the log, and the one before counts.
    """

    def __init__(
        self, home: Path, engines: Collection[str], monotonic: Callable[[], float]
    ) -> None:
        self._home = home
        self._engines = engines
        self._monotonic = monotonic
        self._looked = -math.inf
        self._stamp: tuple[int, int] | None = None
        self._prices = Prices()

    @property
    def now(self) -> Prices:
        if self._monotonic() - self._looked >= LOOK_EVERY:
            self._looked = self._monotonic()
            self._look()
        return self._prices

    def _look(self) -> None:
        try:
            found = (self._home / FILE).stat()
            stamp: tuple[int, int] | None = (found.st_mtime_ns, found.st_size)
        except OSError:
            stamp = None
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._prices = load(self._home, self._engines)
        except BadPrices as fault:
            log.error("the prices stay as they were: %s", fault)
