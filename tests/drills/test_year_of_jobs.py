"""A year of jobs with a process that is killed all the time, and a clock that jumps both ways.

Real database, real SIGKILL: at random moments, just before a commit, just after one. What fired is
held against the calendar: nothing twice, nothing that was not due, nothing missed that the process
lived through, and what it did not live through is as late, or as missed, as each job allows. The
short one is part of the suite; ``make drill`` sets LANEWAY_DRILL_JOBS for the long one.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import time
from bisect import bisect_right
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.drills.year_life import TICK, Life, live, made
from tests.drills.year_reckoning import BEGIN, DAY, HOUR, MINUTE, Due, draw

JOBS = int(os.environ.get("LANEWAY_DRILL_JOBS", "15"))
DAYS = int(os.environ.get("LANEWAY_DRILL_DAYS", "365" if JOBS > 100 else "30"))
LIVES = int(os.environ.get("LANEWAY_DRILL_LIVES", "300" if JOBS > 100 else "6"))
SEED = int(os.environ.get("LANEWAY_DRILL_SEED", "0")) or random.randrange(1, 10**9)
END = BEGIN + DAYS * DAY
PUNCTUAL = 20_000  # ms; what is later than that was missed
CATCH_UP = 6 * HOUR  # of jobs that say none
JUMPS = (-20, -3, -1, -0.25, 0.25, 1, 3, 20)  # hours
FAR_AHEAD = 40 * 24  # hours that a clock was wrong by, until somebody put it right


@dataclass
class Lived:
    """What the process lived through, as wall time, and how far it had come."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    at: int = BEGIN
    blind: int = 0  # until then a jump may not have been noticed
    reached: int = BEGIN  # what is not later was lived through before
    first_back: int = END + DAY  # where the clock was first put back by days
    counts: Counter[str] = field(default_factory=Counter)

    def advanced(self, to: int) -> None:
        begin = max(self.at, self.blind, self.reached)
        if to > begin:
            self.spans.append((begin, to))
        self.reached = max(self.reached, to)
        self.at = to

    def jumped(self, to: int) -> None:
        """Also while it was down."""
        self.counts["jumps"] += 1
        if self.reached - to > DAY:
            self.reached = to + DAY  # what was settled far ahead is due again behind this
            self.first_back = min(self.first_back, to)
        self.at, self.blind = to, to + round(TICK * 1000)

    def began(self, at: int) -> None:
        self.jumped(at)
        self.counts["jumps"] -= 1
        self.blind = at


class Year:
    def __init__(self, home: Path, dice: random.Random) -> None:
        self.home, self.dice = home, dice
        self.dues: list[Due] = [draw(dice, DAYS) for _ in range(JOBS)]
        self.lived = Lived()
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload([live.__module__])

    def play(self) -> None:
        at, number = BEGIN + DAY, 0
        while at < END:
            far = number in (LIVES * 2 // 3, LIVES * 5 // 6) and END - at > (FAR_AHEAD + 48) * HOUR
            at = self.life(at, number, far=far)
            number += 1

    def life(self, begins: int, number: int, *, far: bool) -> int:
        """One of them; when the next one begins."""
        dice, lived = self.dice, self.lived
        span = 2 * (END - BEGIN) / LIVES * dice.random()
        way = dice.choice(("clock", "before", "after", "before", "after"))
        commits = max(2, round(JOBS * span / DAY * 1.2))  # about as many as there would be
        life = Life(
            self.home, begins, self.steps(span, far=far), dice.randrange(10**9),
            None if way == "clock" or far else dice.randrange(1, commits + 2),
            way == "before", self.dues if number == 0 else (),
        )  # fmt: skip
        hears, tells = self.context.Pipe(duplex=False)
        process = self.context.Process(target=live, args=(life, tells), daemon=True)
        process.start()
        tells.close()
        end = self.follow(life, hears, process, begins, kill=way == "clock" and number > 0)
        process.join()
        assert end or process.exitcode in (0, -9), f"exit status {process.exitcode}"
        down = dice.choice((0, 0, MINUTE, 10 * MINUTE, HOUR, 12 * HOUR, 3 * DAY, -5 * MINUTE))
        return max(end, lived.at) + down + dice.randrange(60_000)

    def follow(self, life: Life, hears: Any, process: Any, begins: int, *, kill: bool) -> int:
        """Listen to it until it dies; the latest that its clock may have shown."""
        lived, done = self.lived, 0
        lived.began(begins)
        timer = Timer(self.dice.uniform(0.0, 0.4) * JOBS**0.5, process.kill)
        try:
            while True:
                what, at = hears.recv()
                match what:
                    case "begun" if kill:
                        timer.start()
                    case "advance":
                        lived.advanced(at)
                    case "jump":
                        lived.jumped(at)
                    case "died":
                        lived.counts["killed at a commit"] += 1
                        lived.advanced(at - 1000)
                        return int(at)
                    case "over":
                        lived.counts["ended by themselves"] += 1
                        return lived.at
                done += what in ("advance", "jump")
        except EOFError:
            lived.counts["killed at any moment"] += 1
            assert kill, "it died by itself"
            left = life.steps[done] if done < len(life.steps) else ("", 0.0)
            return lived.at + (round(left[1] * 1000) if left[0] == "advance" else 0)
        finally:
            timer.cancel()

    def steps(self, span: float, *, far: bool) -> list[tuple[str, float]]:
        """In which the clock jumps now and then; once or twice by weeks, and back again."""
        dice, found, passed = self.dice, [], 0.0
        while passed < span:
            step = dice.uniform(HOUR, min(12 * HOUR, max(span, 2 * HOUR)))
            found.append(("advance", step / 1000))
            passed += step
            if dice.random() < 0.1:
                found.append(("jump", dice.choice(JUMPS) * 3600))
        if far:
            ahead = FAR_AHEAD * 3600.0
            found += [("jump", ahead), ("advance", 26 * 3600.0), ("jump", -ahead)]
            found.append(("advance", 2 * TICK))
        return found


def check(year: Year) -> Counter[str]:
    """Hold what is stored against the calendar; how it went, counted."""
    found: Counter[str] = Counter()
    with closing(sqlite3.connect(year.home / "laneway.db")) as database:
        database.row_factory = sqlite3.Row
        check_turns(database)
        for number, due in enumerate(year.dues, 1):
            firings = database.execute(
                "SELECT f.*, t.ended_at AS over FROM firings f LEFT JOIN turns t ON t.id = f.turn"
                " WHERE job = ? ORDER BY due",
                (number,),
            ).fetchall()
            check_job(number, due, firings, year.lived)
            found.update(one["state"] for one in firings)
            found["merged into a later one"] += sum(one["missed"] for one in firings)
    return found


def check_turns(database: sqlite3.Connection) -> None:
    """Each run is of one firing, and has one prompt."""
    (runs,) = database.execute("SELECT count(*) FROM turns WHERE origin <> 'person'").fetchone()
    (of_firings,) = database.execute(
        "SELECT count(DISTINCT turn) FROM firings WHERE turn IS NOT NULL"
    ).fetchone()
    (firings,) = database.execute("SELECT count(turn) FROM firings").fetchone()
    (prompts,) = database.execute("SELECT count(*) FROM messages").fetchone()
    assert runs == of_firings == firings == prompts


def check_job(number: int, due: Due, firings: list[sqlite3.Row], lived: Lived) -> None:
    job = made(number, due, 1)
    instants = due.instants(END + 100 * DAY)
    place = {at: index for index, at in enumerate(instants)}
    told = f"job {number}, {due.said} in {due.zone}"
    for one in firings:
        assert one["due"] in place, f"{told}: it fired at {one['due']}, when nothing was due"
    decided = {one["due"] for one in firings}
    for begin, end in lived.spans:
        lived_through = instants[bisect_right(instants, begin) : bisect_right(instants, end)]
        missing = [at for at in lived_through if at not in decided]
        assert not missing, f"{told}: {missing} were lived through, and nothing was done"
    before = -1
    for one in firings:
        if one["due"] > lived.first_back:
            break
        merged = place[one["due"]] - before - 1
        assert one["missed"] == merged, f"{told}: {merged} came before {one['due']}"
        before = place[one["due"]]
    patience = max(CATCH_UP if job.catch_up is None else job.catch_up, PUNCTUAL)
    for one in firings:
        late = one["at"] - one["due"]
        assert late >= 0, f"{told}: {one['due']} was early"
        if one["turn"] is not None:
            assert late <= patience, f"{told}: {one['due']} ran though it was too late"
        elif one["state"] == "missed":
            assert late > patience, f"{told}: {one['due']} was missed without need"
        else:
            assert one["state"] == "skipped"
            why = "its earlier run goes on" if "earlier" in one["result"] else "busy"
            assert why != "busy" or job.if_busy == "skip", told
    check_skipped(told, firings, jumped=bool(lived.counts["jumps"]))


def check_skipped(told: str, firings: list[sqlite3.Row], *, jumped: bool) -> None:
    """What was left out for an earlier run fell into one."""
    last: sqlite3.Row | None = None
    for one in firings:
        if "its earlier run goes on" in one["result"]:
            assert last is not None, told
            over = last["over"]
            assert jumped or over is None or over >= one["at"], f"{told}: nothing ran then"
        last = one if one["turn"] is not None else last


@pytest.mark.timeout(60 + 2 * JOBS + 5 * LIVES)
def test_jobs_fire_as_the_calendar_says_through_kills_and_jumps_of_the_clock(
    tmp_path: Path,
) -> None:
    print(f"seed {SEED}, {JOBS} jobs, {DAYS} days")
    began = time.monotonic()
    year = Year(tmp_path, random.Random(SEED))
    year.play()
    found = check(year)
    print(f"{dict(year.lived.counts)}, {dict(found)}, {time.monotonic() - began:.0f} s")
    assert found["done"]
