"""A year of a few jobs; ``make thorough`` plays more of them, ``make bench`` ten thousand."""

from __future__ import annotations

from core.job_rules import Fate
from tests.examples import PROFILE, TIMES
from tests.jobs.year import live


def test_in_a_year_nothing_fires_twice_and_nothing_is_forgotten() -> None:
    year = live(15 * TIMES[PROFILE], seed=7)
    assert all(year.fates[fate] for fate in (Fate.RUN, Fate.MISSED, Fate.RUNNING, Fate.BUSY))
