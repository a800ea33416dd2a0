"""Jobs and firings in the store: every write as a typed row, every read as a typed value."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from core.job_rules import FiringState, IfBusy, Job, JobKind, JobState, as_shown
from core.store.reads import lane_of
from core.store.records import LaneRow
from core.store.rows import Row
from core.store.store import Reader
from core.turns import Status

SHOWN_AFTER = 7 * 24 * 3600 * 1000  # ms for which a job that has ended is still listed


@dataclass(frozen=True, slots=True)
class FiringRow:
    """What became of one instant of a job. ``missed``: earlier ones that it stands for."""

    job: int
    due: int
    at: int
    state: FiringState
    turn: int | None = None
    missed: int = 0
    result: str = ""


@dataclass(frozen=True, slots=True)
class OpenFiring:
    """A firing with its job and how far its turn is. ``began``: what was said of its start.

    ``turn`` is that of the firing; its job may have another one by now, or none.
    """

    job: Job
    turn: int
    due: int
    began: str
    status: Status
    stop: str  # what ended it, if something did
    over_at: int | None
    error: str


# Writes -----------------------------------------------------------------------------------


def new(job: Job) -> Row:
    return "job.new", {
        "id": job.id,
        "lane": job.lane,
        "person": job.person,
        "kind": str(job.kind),
        "state": str(job.state),
        "said": job.said,
        "zone": job.zone,
        "anchor": job.anchor,
        "prompt": job.prompt,
        "catch_up": job.catch_up,
        "if_busy": str(job.if_busy),
        "budget": job.budget,
        "made_by": job.made_by,
        "request": job.request,
        "made_at": job.made_at,
        "next_at": job.next_at,
        "settled_at": job.settled_at,
        "what": job.what,
        "each_time": job.each_time,
        "until": job.until,
    }


def settled(job: Job, was: int | None, asked_at: int | None) -> Row:
    """Where the job stands after a decision. ``asked_at``: the wish that this answered.

    ``was``: its next instant when that was decided; where somebody paused, resumed or ended it
    since, what they said counts.
    """
    return "job.settled", {
        "id": job.id,
        "next_at": job.next_at,
        "settled_at": job.settled_at,
        "turn": job.turn,
        "last_due": job.last_due,
        "last_result": job.last_result,
        "was": was,
        "asked_at": asked_at,
    }


def over(job: Job) -> Row:
    """The job's turn has ended; ``job`` carries the failures and the result."""
    return "job.over", {
        "id": job.id,
        "turn": job.turn,
        "failures": job.failures,
        "last_due": job.last_due,
        "last_result": job.last_result,
    }


def state(job: int, state: JobState, at: int, next_at: int | None = None, result: str = "") -> Row:
    """A job that has not ended becomes this. An empty ``result`` leaves the last one."""
    return "job.state", {
        "id": job,
        "state": str(state),
        "ended_at": at if state.ended else None,
        "next_at": next_at,
        "last_result": result,
    }


def ask(job: int, at: int) -> Row:
    """Somebody wants it to run now."""
    return "job.ask", {"id": job, "at": at}


def next_at(job: int, at: int | None, settled_at: int) -> Row:
    """Go on from here, whatever was decided before; a restored job is an ordinary one again."""
    return "job.next", {"id": job, "next_at": at, "settled_at": settled_at}


def firing(firing: FiringRow) -> Row:
    """Claims the instant: a second time it fails, with everything it is stored with."""
    return "firing.new", {
        "job": firing.job,
        "due": firing.due,
        "at": firing.at,
        "state": str(firing.state),
        "turn": firing.turn,
        "missed": firing.missed,
        "result": firing.result,
    }


def firing_over(job: int, due: int, state: FiringState, result: str) -> Row:
    return "firing.over", {"job": job, "due": due, "state": str(state), "result": result}


# Reads ------------------------------------------------------------------------------------


async def job(store: Reader, job: int) -> Job | None:
    found = await store.fetch("job.by_id", id=job)
    return _job(found[0]) if found else None


async def requested(store: Reader, lane: str, request: str) -> Job | None:
    """The job that an agent made there under this name of its own, unless it has ended."""
    found = await store.fetch("job.by_request", lane=lane, request=request)
    return _job(found[0]) if found else None


async def due(store: Reader, now: int, limit: int) -> list[Job]:
    """Jobs about which something is to be decided, longest due first."""
    return [_job(row) for row in await store.fetch("job.due", now=now, limit=limit)]


async def first(store: Reader) -> int | None:
    """The next instant of any job."""
    at = (await store.fetch("job.first"))[0]["at"]
    return None if at is None else int(at)


async def open_firings(store: Reader) -> list[OpenFiring]:
    return [_open(row) for row in await store.fetch("job.open")]


async def of_turn(store: Reader, turn: int) -> OpenFiring | None:
    """The firing that this turn is, if it is one."""
    found = await store.fetch("job.of_turn", turn=turn)
    return _open(found[0]) if found else None


async def cancelled(store: Reader) -> list[Job]:
    """Cancelled jobs with a turn that is not over."""
    return [_job(row) for row in await store.fetch("job.cancelled")]


async def restored(store: Reader) -> list[Job]:
    return [_job(row) for row in await store.fetch("job.restored")]


async def ahead(store: Reader, instant: int) -> list[Job]:
    """Active jobs that are settled beyond this instant."""
    return [_job(row) for row in await store.fetch("job.ahead", ahead=instant)]


async def of_lane(store: Reader, lane: str, now: int) -> list[Job]:
    """What is active or paused there, and what ended in the last seven days, to be shown."""
    found = await store.fetch("job.of_lane", lane=lane, since=now - SHOWN_AFTER)
    return [as_shown(_job(row), now) for row in found]


async def listed(store: Reader, now: int) -> list[Job]:
    """The same of all lanes."""
    found = await store.fetch("job.all", since=now - SHOWN_AFTER)
    return [as_shown(_job(row), now) for row in found]


async def count(store: Reader, person: str) -> int:
    """Jobs of a person that have not ended."""
    return int((await store.fetch("job.count", person=person))[0]["count"])


async def firings(store: Reader, job: int, limit: int) -> list[FiringRow]:
    """The newest of a job, newest first."""
    return [
        FiringRow(
            row["job"],
            row["due"],
            row["at"],
            FiringState(row["state"]),
            row["turn"],
            row["missed"],
            row["result"],
        )
        for row in await store.fetch("firing.of_job", job=job, limit=limit)
    ]


async def lanes(store: Reader, ids: Iterable[str]) -> dict[str, LaneRow]:
    """Those of these lanes that there are."""
    found = await store.fetch("lane.of_ids", ids=json.dumps(sorted(set(ids))))
    return {row["id"]: lane_of(row) for row in found}


FIELDS = tuple(Job.__dataclass_fields__)


def _job(row: sqlite3.Row) -> Job:
    values = {name: row[name] for name in FIELDS}
    values["kind"] = JobKind(values["kind"])
    values["state"] = JobState(values["state"])
    values["if_busy"] = IfBusy(values["if_busy"])
    values["restored"] = bool(values["restored"])
    values["each_time"] = bool(values["each_time"])
    return Job(**values)


def _open(row: sqlite3.Row) -> OpenFiring:
    return OpenFiring(
        _job(row),
        row["fired"],
        row["due"],
        row["began"],
        Status(row["status"]),
        row["stop"],
        row["over_at"],
        row["error"],
    )
