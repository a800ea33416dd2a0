"""What is said about jobs: how a firing went, when the next is, what a job is. Pure.

Words of people are quoted as everywhere. It must not know the store or how jobs run.
"""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

from core.job_rules import (
    PUNCTUAL,
    Decision,
    Fate,
    FiringState,
    IfBusy,
    Job,
    JobKind,
    JobState,
)
from core.store.jobs import OpenFiring
from core.turns import StopKind
from core.when import upcoming
from core.when.plan import to_datetime
from core.wording import count, duration, label, money, plain, quoted

NEXT_SHOWN = 3
PROMPT_SHOWN = 60  # characters
WHAT_SHOWN = 120
ERROR_SHOWN = 200
NOUNS = {
    JobKind.SCHEDULE: "schedule",
    JobKind.WAKEUP: "wake-up",
    JobKind.WATCH: "watch",
}
NOT_ALLOWED = "its person may not use me here any more"
LANE_GONE = "its thread cannot be written to any more"
NO_CHANNEL = "skipped because the platform of its thread is not set up"
RESTORED = "missed: a backup was restored, which does not know whether it ran"
UNREADABLE = "its time cannot be read any more"
UNSTORED = "failed: it could not be stored; the log of the gateway says more"
THREE_FAILURES = "it failed three times in a row"


def moment(instant: int, zone: str) -> str:
    """``Tue 2027-02-09 09:00 CET (UTC+01:00)``; with seconds where there are some."""
    local = to_datetime(instant).astimezone(ZoneInfo(zone))
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    offset = local.utcoffset() or timedelta()
    sign, minutes = ("-" if offset < timedelta() else "+"), abs(offset) // timedelta(minutes=1)
    shift = f"UTC{sign}{minutes // 60:02}:{minutes % 60:02}" if minutes else "UTC"
    name = local.tzname() or ""
    where = f"{name} ({shift})" if name.isalpha() and name != "UTC" else shift
    return f"{local:%a %Y-%m-%d} {clock} {where}"


# How a firing went ------------------------------------------------------------------------


def decided(decision: Decision) -> str:
    """How the firing starts, or why it does not."""
    said = ""
    match decision.fate:
        case Fate.RUN:
            said = "asked for" if decision.asked else began(decision.late)
        case Fate.RUNNING:
            said = "skipped because its earlier run goes on"
        case Fate.BUSY:
            said = "skipped because the thread was busy"
        case Fate.MISSED:
            said = f"missed by {duration(decision.late)}"
        case Fate.RESTORED:
            said = RESTORED
    return said + earlier(decision.missed)


def began(late: int) -> str:
    return "on time" if late <= PUNCTUAL else f"late by {duration(late)}"


def earlier(missed: int) -> str:
    return f", also for {count(missed, 'earlier time')}" if missed else ""


def ended(state: FiringState, firing: OpenFiring, late: int) -> str:
    """How it went in the end. ``late``: of one that waited too long, ms."""
    match state:
        case FiringState.FAILED:
            reason = label(firing.error, ERROR_SHOWN)
            return f"failed with: {reason}" if reason else "failed"
        case FiringState.STOPPED:
            return "stopped at its cap" if firing.stop == StopKind.BUDGET else "stopped"
        case FiringState.INTERRUPTED:
            return "interrupted by a restart"
        case FiringState.DROPPED:
            return "skipped because it was taken out of the queue"
        case FiringState.MISSED:
            return f"missed: it waited for {duration(late)} and could not start"
        case _:
            return firing.began


# Told in the thread -----------------------------------------------------------------------


def named(job: Job) -> str:
    """``Job 12 (every day at 09:00, "look at the build")``."""
    return f"Job {job.id} ({plain(times(job))}, {quoted(label(job.prompt, PROMPT_SHOWN))})"


def times(job: Job) -> str:
    """When it runs, as it was written; of a watch also what it looks at."""
    return f"{label(job.what, WHAT_SHOWN)} {job.said}" if job.what else job.said


def missed(job: Job, decision: Decision, zone: str) -> str:
    """For its person, once: what did not run and why."""
    when = moment(decision.due, zone)
    why = (
        "a backup was restored, and I cannot tell whether it ran"
        if decision.fate is Fate.RESTORED
        else f"I could not run it in time ({duration(decision.late)} late)"
    )
    others = f" It stands for {count(decision.missed, 'earlier time')}." if decision.missed else ""
    return f"{named(job)} did not run at {when}: {why}.{others} {further(decision.next_at, zone)}"


def waited(job: Job, due: int, late: int, zone: str) -> str:
    return (
        f"{named(job)} of {moment(due, zone)} waited for {duration(late)} and could not start, so "
        f"it was left out. {further(job.next_at, zone)}"
    )


def further(next_at: int | None, zone: str) -> str:
    return f"Next: {moment(next_at, zone)}." if next_at else "It does not run again."


def ends(job: Job, state: JobState, why: str) -> str:
    """The job does not go on by itself."""
    if state is not JobState.PAUSED:
        return f"{named(job)} has ended: {why}. Set it anew if it is still wanted."
    return (
        f"{named(job)} is paused: {why}. When that is put right, /job {job.id} resume lets it "
        f"go on; /job {job.id} cancel ends it."
    )


# For people who look ----------------------------------------------------------------------


def made(job: Job, zone: str, now: int, catch_up: int) -> str:
    """The answer to whoever set it; instants on the clocks of that person."""
    plan = job.plan
    found = [moment(at, zone) for at in upcoming(plan, now, NEXT_SHOWN)]
    what = f"{quoted(label(job.prompt, PROMPT_SHOWN))}"
    if plan.once:
        head = f"Job {job.id} is set, {plain(job.said)}: {what}. It runs once, {found[0]}."
    else:
        times = "\n".join(f"- {one}" for one in found)
        head = f"Job {job.id} is set, {plain(job.said)}: {what}. It runs next:\n\n{times}"
    return f"{head}\n\n{manner(job, catch_up)} Change it with /job {job.id}."


def manner(job: Job, catch_up: int) -> str:
    """What is done about missed times and a busy thread."""
    late = catch_up if job.catch_up is None else job.catch_up
    said = f"A missed run is made up for {duration(late)}." if late else "Missed runs are skipped."
    if job.if_busy is IfBusy.SKIP:
        said += " While the thread is busy it is skipped."
    if job.budget is not None:
        said += f" A run is stopped when it has cost {money(job.budget)}."
    return said


def listed(job: Job, zone: str, name: str) -> str:
    """A line of a listing."""
    state = "" if job.state is JobState.ACTIVE else f", {job.state.value}"
    parts = [f"**{job.id}** {plain(times(job))}{state}: {quoted(label(job.prompt, PROMPT_SHOWN))}"]
    if job.turn is not None:
        parts.append("runs or waits now")
    if job.next_at is not None and job.state is JobState.ACTIVE:
        parts.append(f"next {moment(job.next_at, zone)}")
    if job.last_due is not None:
        parts.append(f"last {moment(job.last_due, zone)}, {plain(job.last_result) or 'running'}")
    elif job.last_result:
        parts.append(plain(job.last_result))
    parts.append(f"of {plain(name)}")
    return "; ".join(parts)


def note(job: Job, due: int, zone: str, start: str) -> str:
    """The line above the prompt, for the agent: nobody has just written this."""
    return (
        f"(Job {job.id}, a {NOUNS[job.kind]}: {' '.join(times(job).split())}. "
        f"Due {moment(due, zone)}, {start}. Nobody wrote this just now.)"
    )
