"""A simulated year: many jobs, a process that is down now and then, runs that take their time.

The rules alone, asked as the shell asks them. Nothing may fire twice, nothing may be forgotten.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from core.job_rules import DAY, HOUR, Fate, IfBusy, Job, JobKind, decide, due
from core.when import following, upcoming
from core.when.plan import Plan

BEGIN = 1_798_761_600_000  # 2027-01-01T00:00Z
YEAR = 365 * DAY
CATCH_UP = 6 * HOUR
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
WHENS = (
    ("every day at {h}:{m}", 10),
    ("{m} {h} * * {d}", 60),
    ("every month on {n} at {h}:{m}", 20),
    ("every {n} days", 10),
)


@dataclass
class Year:
    """What a year of jobs came to."""

    fates: Counter[Fate] = field(default_factory=Counter)
    decided: int = 0
    covered: dict[int, int] = field(default_factory=Counter)  # instants decided about, by job
    fired: set[tuple[int, int]] = field(default_factory=set)


def make(count: int, dice: random.Random) -> list[Job]:
    kinds, weights = zip(*WHENS, strict=True)
    made = []
    for number in range(1, count + 1):
        said = dice.choices(kinds, weights)[0].format(
            h=dice.randrange(24), m=f"{dice.randrange(60):02}", d=dice.randrange(7),
            n=dice.randrange(1, 29),
        )  # fmt: skip
        at = BEGIN + dice.randrange(DAY)
        job = Job(
            number, "main", "local:ana", JobKind.SCHEDULE, said, dice.choice(ZONES), at, "look", at,
            catch_up=dice.choice((None, 0, HOUR)), if_busy=dice.choice(list(IfBusy)),
            settled_at=at,
        )  # fmt: skip
        made.append(replace(job, next_at=following(job.plan, at)))
    return made


def outages(dice: random.Random, count: int) -> list[tuple[int, int]]:
    """When the process is down: mostly minutes, sometimes days."""
    found, at = [], BEGIN
    while True:
        at += dice.randrange(1, 2 * YEAR // count)
        if at > BEGIN + YEAR:
            return found
        end = at + dice.choice((60_000, 600_000, HOUR, 12 * HOUR, 3 * DAY))
        found.append((at, end))
        at = end


def live(count: int, seed: int, down: int = 40) -> Year:
    """Play it; raises AssertionError where something fires twice or is forgotten."""
    dice = random.Random(seed)
    jobs = {job.id: job for job in make(count, dice)}
    plans: dict[int, Plan] = {job.id: job.plan for job in jobs.values()}
    began = {job.id: job.anchor for job in jobs.values()}
    ends: dict[int, int] = {}  # of runs
    gone, year, end = outages(dice, down), Year(), BEGIN + YEAR
    line = [(job.next_at or 0, job.id) for job in jobs.values()]
    heapq.heapify(line)
    while line and line[0][0] < end:
        at, number = heapq.heappop(line)
        while gone and gone[0][1] <= at:
            gone.pop(0)
        now = gone[0][1] if gone and gone[0][0] <= at else at + dice.randrange(2000)
        job = jobs[number]
        running = ends.get(number, 0) > now
        job = replace(job, turn=1 if running else None)
        assert due(job, now)
        found = decide(
            job, plans[number], now, catch_up=CATCH_UP, busy=running or dice.random() < 0.1
        )
        assert (number, found.due) not in year.fired
        assert job.settled_at < found.due <= now
        assert found.next_at is not None
        assert found.next_at > now
        year.fired.add((number, found.due))
        year.fates[found.fate] += 1
        year.decided += 1
        year.covered[number] += 1 + found.missed
        if found.fate is Fate.RUN:
            ends[number] = now + dice.choice((1_000, 60_000, 2 * HOUR, 2 * DAY))
        jobs[number] = replace(job, next_at=found.next_at, settled_at=found.due)
        heapq.heappush(line, (found.next_at, number))
    for number in dice.sample(sorted(jobs), min(count, 50)):
        settled = jobs[number].settled_at
        instants = upcoming(plans[number], began[number], year.covered[number] + 1)
        passed = [at for at in instants if at <= settled]
        assert len(passed) == year.covered[number], jobs[number]
    return year
