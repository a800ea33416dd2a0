"""From numbers to the geometry of a plot of bars. Pure: it must not know what the numbers are of.

Everything is in the units of the picture, which is stretched to its place; what has to be read
stands beside it as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 1000.0, 200.0
GAP = 0.25  # of a bar's place that stays free
WORTH = 4.0  # times the highest bar: a line above that would press all bars flat
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar. ``series``: which colour it has."""

    x: float
    y: float
    width: float
    height: float
    series: int


@dataclass(frozen=True, slots=True)
class Bar:
    """All of one place on the axis, and the place itself, which says what it is."""

    x: float
    width: float
    pieces: tuple[Piece, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """``top``: the number at the upper edge. ``line``: where the cap is, if in the picture."""

    bars: tuple[Bar, ...]
    top: float
    line: float | None
    width: float = WIDTH
    height: float = HEIGHT


def plot(stacks: Sequence[tuple[str, Sequence[float]]], cap: float | None = None) -> Plot:
    """Bars of several parts each, with what each is said to be, and a cap as a line across."""
    sums = [sum(parts) for _, parts in stacks]
    highest = max(sums, default=0.0)
    within = cap is not None and cap <= highest * WORTH
    top = round_up(max(highest, cap or 0.0) if within else highest)
    place = WIDTH / max(1, len(stacks))
    bars = []
    for number, (label, parts) in enumerate(stacks):
        x, y, pieces = (number + GAP / 2) * place, HEIGHT, []
        for series, part in enumerate(parts):
            height = part / top * HEIGHT
            if height:
                y -= height
                pieces.append(Piece(_in(x), _in(y), _in(place * (1 - GAP)), _in(height), series))
        bars.append(Bar(_in(number * place), _in(place), tuple(pieces), label))
    line = _in(HEIGHT - (cap or 0.0) / top * HEIGHT) if within else None
    return Plot(tuple(bars), top, line)


def share(part: float, whole: float) -> float:
    """How much of a whole is used, from 0 to 100, for a bar of that width."""
    return _in(min(100.0, max(0.0, part / whole * 100.0))) if whole > 0 else 100.0


def round_up(number: float) -> float:
    """The next number that is easy to read; 1 for nothing."""
    if number <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= number:
        power *= 10
    while power > number:
        power /= 10
    return next(power * step for step in STEPS if power * step >= number * (1 - 1e-9))


def _in(value: float) -> float:
    return round(value, 2)
