"""What watches remember between two looks, and when each is next."""

from __future__ import annotations

from dataclasses import dataclass

from core.job_rules import Job
from core.store.rows import Row
from core.store.store import Reader
from core.watch_rules import Known


@dataclass(frozen=True, slots=True)
class Time:
    """When a watch that is open looks next, as it is stored; ms. ``asked``: somebody wants it."""

    job: int
    at: int | None
    asked: int | None
    looked: int  # when it looked last, as far as that is stored
    runs: bool  # what it found waits or runs


def known(job: int, known: Known) -> Row:
    return "watch.known", {
        "job": job,
        "digest": known.digest,
        "text": known.text,
        "held": known.held,
        "failures": known.failures,
        "told": known.told,
    }


def looked(job: Job, next_at: int | None, at: int) -> Row:
    """It looked and goes on; the wish that ``job`` had, as it was read, is fulfilled."""
    return "watch.looked", {
        "id": job.id,
        "was": job.next_at,
        "next_at": next_at,
        "settled_at": at,
        "asked_at": job.asked_at,
    }


def said(job: int, result: str) -> Row:
    return "watch.said", {"id": job, "last_result": result}


async def of(store: Reader, job: int) -> Known:
    """What is known; nothing before the first look."""
    found = await store.fetch("watch.of", job=job)
    if not found:
        return Known()
    row = found[0]
    return Known(row["digest"], row["text"], bool(row["held"]), row["failures"], bool(row["told"]))


async def times(store: Reader) -> list[Time]:
    found = await store.fetch("watch.times")
    return [
        Time(
            row["id"],
            row["next_at"],
            row["asked_at"],
            row["settled_at"],
            row["turn"] is not None,
        )
        for row in found
    ]
