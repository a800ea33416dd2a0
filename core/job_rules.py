"""Jobs: what is due, whether it still runs, and what comes of it.

Pure: a job and the moment in, a decision out. The shell asks it when a timer rings and a simulated
year asks the same. It must not know the store, lanes, people or how a turn runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from zoneinfo import ZoneInfo

from core.turns import Status
from core.when import Cron, Every, Plan, following, parse

DAY = 86_400_000
HOUR = 3_600_000
PUNCTUAL = 20_000  # ms; what is no later was not missed: timers tick every 15 seconds
FAILURES = 3  # in a row, then a job pauses itself
COUNTED = 100  # missed instants of a cron line that are counted at most


class JobKind(StrEnum):
    SCHEDULE = "schedule"  # again and again
    WAKEUP = "wakeup"  # once
    WATCH = "watch"  # when something is found


class JobState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"
    EXPIRED = "expired"  # its time passed and it did not run
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self not in (JobState.ACTIVE, JobState.PAUSED)


class IfBusy(StrEnum):
    """What a firing does whose thread is at work or has messages waiting."""

    QUEUE = "queue"
    SKIP = "skip"


class FiringState(StrEnum):
    OPEN = "open"  # its turn waits or runs
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    DROPPED = "dropped"
    SKIPPED = "skipped"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is stored. Instants are ms since 1970."""

    id: int
    lane: str
    person: str  # whose rights its turns have
    kind: JobKind
    said: str  # the WHEN as it was written
    zone: str
    anchor: int  # when it was said
    prompt: str
    made_at: int
    state: JobState = JobState.ACTIVE
    catch_up: int | None = None  # ms; None: the setting; 0: what was missed is skipped
    if_busy: IfBusy = IfBusy.QUEUE
    budget: float | None = None  # US dollars for each run
    made_by: str = "person"  # or agent
    request: str = ""  # an agent's own name for it
    ended_at: int | None = None
    next_at: int | None = None  # the first instant nothing was decided about
    settled_at: int = 0  # the last one that something was
    asked_at: int | None = None  # somebody wants it to run now
    turn: int | None = None  # the turn of it that waits or runs
    failures: int = 0  # in a row
    last_due: int | None = None
    last_result: str = ""
    restored: bool = False  # came out of a backup
    what: str = ""  # of a watch, what it looks at and waits for, as it was written
    each_time: bool = False  # a watch goes on after it has found something
    until: int | None = None  # when a watch ends

    @property
    def plan(self) -> Plan:
        return parse(self.said, ZoneInfo(self.zone), self.anchor)


class Fate(StrEnum):
    RUN = "run"
    RUNNING = "its earlier run goes on"  # skipped for that
    BUSY = "its thread is busy"  # skipped for that
    MISSED = "missed"
    RESTORED = "restored"  # missed: a backup does not know whether it ran


@dataclass(frozen=True, slots=True)
class Decision:
    """About one instant of a job, and about all before it.

    ``missed``: how many earlier ones it stands for. ``late``: ms. ``asked``: somebody wanted it.
    """

    due: int
    fate: Fate
    late: int = 0
    missed: int = 0
    next_at: int | None = None
    settled_at: int = 0
    asked: bool = False


def as_shown(job: Job, now: int) -> Job:
    """The job with the instant at which it really is next, for who looks at it.

    Looks of a watch that find nothing are stored only now and then, so what is stored may be past.
    """
    if not job.what or job.state is not JobState.ACTIVE or job.next_at is None or job.next_at > now:
        return job
    try:
        at = following(job.plan, now)
    except (LookupError, ValueError):
        return job  # what cannot be read ends at its next look
    ends = [one for one in (at, job.until) if one is not None]
    return replace(job, next_at=min(ends, default=None))


def due(job: Job, now: int) -> bool:
    """Whether something is to be decided about the job."""
    if job.asked_at is not None:
        return not job.state.ended
    return job.state is JobState.ACTIVE and job.next_at is not None and job.next_at <= now


def decide(job: Job, plan: Plan, now: int, *, catch_up: int, busy: bool) -> Decision:
    """What is done about a job that is due. ``catch_up``: the setting; ``busy``: its lane is.

    Of several instants that have passed the latest counts, and the others with it. A job never runs
    beside its own earlier run: what falls into that is skipped.
    """
    if job.asked_at is not None:
        fate = Fate.RUN if job.turn is None else Fate.RUNNING
        return Decision(job.asked_at, fate, 0, 0, job.next_at, job.settled_at, asked=True)
    assert job.next_at is not None, "only what is due is decided about"
    at, missed, after = latest(plan, job.next_at, now)
    late = max(0, now - at)
    if job.restored:
        fate = Fate.RESTORED
    elif job.turn is not None:
        fate = Fate.RUNNING
    elif late > max(patience(job, catch_up), PUNCTUAL):
        fate = Fate.MISSED
    elif busy and job.if_busy is IfBusy.SKIP:
        fate = Fate.BUSY
    else:
        fate = Fate.RUN
    return Decision(at, fate, late, missed, after, at)


def patience(job: Job, catch_up: int) -> int:
    """How late a firing of this job still runs; ms."""
    return catch_up if job.catch_up is None else job.catch_up


def overdue(job: Job, due: int, now: int, catch_up: int) -> bool:
    """Whether a firing has waited in its lane for longer than it may still run."""
    return now - due > max(patience(job, catch_up), PUNCTUAL)


def latest(plan: Plan, first: int, now: int) -> tuple[int, int, int | None]:
    """The last instant up to ``now``, how many lie before it from ``first`` on, and the next one.

    ``first`` is an instant of the plan that has come. However long ago that is, it is quick.
    """
    match plan.times:
        case Every(period, _):
            passed = (now - first) // period
            at = first + passed * period
            return at, passed, at + period
        case Cron():
            return _latest_match(plan, first, now)
        case _:
            return first, 0, None


def _latest_match(plan: Plan, first: int, now: int) -> tuple[int, int, int | None]:
    at, found, missed = first, following(plan, first), 0
    while found is not None and found <= now:  # nearly always it is the first one
        at, found, missed = found, following(plan, found), missed + 1
        if missed == COUNTED:
            at, found = _last_before(plan, at, now)
            break
    return at, missed, found


def _last_before(plan: Plan, first: int, now: int) -> tuple[int, int | None]:
    """The last instant up to ``now`` and the next, looked for from there back in growing spans."""
    span, at, found = HOUR, first, following(plan, first)
    while now - span > first:
        near = following(plan, now - span)
        if near is not None and near <= now:
            found = near
            break
        span *= 4
    while found is not None and found <= now:
        at, found = found, following(plan, found)
    return at, found


def set_right(job: Job, plan: Plan, now: int) -> int | None:
    """The next instant of a recurring job that a clock far ahead of this one had settled.

    None where nothing is wrong: a step back of less than a day is waited out, and no instant comes
    twice. What ran while the clock was wrong stays claimed.
    """
    wrong = job.settled_at > now + DAY and not plan.once
    return following(plan, now) if wrong else None


@dataclass(frozen=True, slots=True)
class Ending:
    """What the end of a firing's turn makes of the firing and of its job."""

    firing: FiringState
    failures: int
    state: JobState | None = None  # None: the job stays as it is


_ENDS = {
    Status.DONE: FiringState.DONE,
    Status.FAILED: FiringState.FAILED,
    Status.STOPPED: FiringState.STOPPED,
    Status.INTERRUPTED: FiringState.INTERRUPTED,
}
_LAST = {
    FiringState.FAILED: JobState.FAILED,
    FiringState.INTERRUPTED: JobState.FAILED,
    FiringState.MISSED: JobState.EXPIRED,
}


def ending(job: Job, due: int, status: Status, at: int, catch_up: int) -> Ending:
    """The turn of a firing ended. Three failures in a row pause a job; only success clears them."""
    firing = _ENDS.get(status, FiringState.DROPPED)
    if firing is FiringState.DROPPED and overdue(job, due, at, catch_up):
        firing = FiringState.MISSED
    failures = job.failures
    if firing is FiringState.DONE:
        failures = 0
    elif firing is FiringState.FAILED:
        failures += 1
    if job.state.ended:
        return Ending(firing, failures)
    if job.state is JobState.ACTIVE and job.next_at is None:
        return Ending(firing, failures, _LAST.get(firing, JobState.DONE))
    if job.state is JobState.ACTIVE and failures >= FAILURES:
        return Ending(firing, failures, JobState.PAUSED)
    return Ending(firing, failures)
