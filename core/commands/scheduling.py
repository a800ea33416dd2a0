"""Commands about jobs: every, at, in, jobs, job.

What somebody sets up is refused with the reason or becomes one row; a timer takes it from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from core import job_words, watch_asking, watch_words
from core.commands.base import Act, Answer, Ask
from core.job_asking import EXAMPLES, typed
from core.job_rules import Job, JobKind, JobState, as_shown
from core.lane_events import DropAsked
from core.messages import Style
from core.showing import Action, Choice
from core.store import jobs as stored
from core.when import BadWhen, following
from core.wording import count, plain

LISTED = 20  # jobs in one answer
WITH_BUTTONS = 4  # of them
FIRINGS_SHOWN = 5
_ONE = re.compile(r"#?(\d{1,15})(?:\s+([a-z]+))?", re.I)
USAGE = "Say which one and what: /job 12 pause, resume, run or cancel. /jobs shows them."


def zone_of(ask: Ask) -> str:
    return ask.person.zone or ask.here.values.zone


def set_up(ask: Ask) -> Answer:
    """``/every``, ``/at`` and ``/in``."""
    here, person = ask.here, ask.person
    limits, now, zone = here.jobs.limits, here.now, zone_of(ask)
    try:
        asked = typed(ask.name, ask.args, zone, now, limits)
    except BadWhen as refused:
        return Answer(plain(str(refused)))
    if here.jobs.mine >= limits.most:
        return Answer(too_many(here.jobs.mine))
    job = asked.job(here.jobs.number(), here.lane.id, person.id)
    text = job_words.made(job, zone, now, limits.catch_up)
    return Answer(text, rows=(stored.new(job),), choices=_choices(job), jobs=True)


def watch(ask: Ask) -> Answer:
    """``/watch``: something is looked at again and again."""
    here, person = ask.here, ask.person
    zone = zone_of(ask)
    try:
        asked = watch_asking.typed(ask.args, zone, here.now, here.jobs.limits)
    except BadWhen as refused:
        return Answer(plain(str(refused)))
    if watch_words.needs_admin(asked.what) and not person.admin:
        return Answer(plain(watch_words.ADMINS_ONLY))
    if here.jobs.mine >= here.jobs.limits.most:
        return Answer(too_many(here.jobs.mine))
    job = asked.job(here.jobs.number(), here.lane.id, person.id)
    text = watch_words.made(job, zone)
    return Answer(text, rows=(stored.new(job),), choices=_choices(job), jobs=True)


def too_many(mine: int) -> str:
    if not mine:
        return "Nobody may set up jobs here (LANEWAY_JOBS_PER_PERSON)."
    return (
        f"You have {count(mine, 'job')}, which is as many as a person may have here. End one "
        "with /job and its number and cancel, then set this one again."
    )


def jobs(ask: Ask) -> Answer:
    """What is set up in this thread, and what ended in the last week; others' for admins."""
    listed = [job for job in ask.here.jobs.listed if _may(ask, job)]
    others = len(ask.here.jobs.listed) - len(listed)
    if not listed and others:
        return Answer(f"You have no jobs here; others have {others}.")
    if not listed:
        return Answer(f"No jobs here. Set one up like this: {EXAMPLES['every']}")
    shown = sorted(listed, key=lambda job: job.state.ended)[:LISTED]
    lines = [
        f"- {job_words.listed(job, zone_of(ask), ask.here.jobs.name(job.person))}" for job in shown
    ]
    if len(listed) > len(shown):
        lines.append(f"- and {len(listed) - len(shown)} more")
    if others:
        lines.append(f"- and {others} of others")
    own = [job for job in shown if not job.state.ended]
    choices = [choice for job in own[:WITH_BUTTONS] for choice in _choices(job, number=True)]
    return Answer("Jobs of this thread:\n\n" + "\n".join(lines), choices=tuple(choices))


def job(ask: Ask) -> Answer:
    """One job: shown, or changed."""
    found = _ONE.fullmatch(ask.args.strip())
    if found is None:
        return Answer(USAGE)
    one = ask.here.jobs.one
    if one is None or not _may(ask, one):
        return Answer(f"There is no job {found[1]} of yours. /jobs shows those of this thread.")
    verb = (found[2] or "").lower()
    if not verb:
        return _shown(ask, one)
    if verb not in VERBS:
        return Answer(USAGE)
    answer = changed(one, verb, ask.here.now, zone_of(ask))
    others = bool(answer.rows) and one.person != ask.person.id
    return replace(answer, act=recorded(one, verb)) if others else answer


def recorded(job: Job, verb: str) -> Act:
    """What an admin did to a job of somebody else."""
    return Act(f"job.{verb}", f"job {job.id}", f"of {job.person} in {job.lane}")


def number_of(args: str) -> int | None:
    """Which job is meant, before it is looked at."""
    found = _ONE.fullmatch(args.strip())
    return int(found[1]) if found else None


def changed(job: Job, verb: str, now: int, zone: str) -> Answer:
    """Pause, resume, run or cancel a job, by somebody who may."""
    if job.state.ended:
        return Answer(f"Job {job.id} has ended ({job.state.value}). Set it anew if you want it.")
    return VERBS[verb](job, now, zone)


def _pause(job: Job, now: int, zone: str) -> Answer:
    if job.state is JobState.PAUSED:
        return Answer(f"Job {job.id} is paused already.", choices=_choices(job))
    if job.next_at is None and job.turn is not None:
        return Answer(
            f"This is the only run of job {job.id}, so there is nothing to pause. /stop in its "
            "thread ends the run."
        )
    return _became(
        job, JobState.PAUSED, now, None, f"Job {job.id} is paused. It keeps until you resume it."
    )


def _resume(job: Job, now: int, zone: str) -> Answer:
    if job.state is JobState.ACTIVE:
        return Answer(f"Job {job.id} is not paused.", choices=_choices(job))
    at = _first(job, now)
    if at is None:
        row = stored.state(job.id, JobState.EXPIRED, now)
        text = f"The time of job {job.id} has passed meanwhile, so it has ended. Set it anew."
        return Answer(text, rows=(row,), jobs=True)
    text = f"Job {job.id} goes on. Next: {job_words.moment(at, zone)}."
    return _became(job, JobState.ACTIVE, now, at, text)


def _first(job: Job, now: int) -> int | None:
    """When a job that goes on runs next; a watch looks at once, as long as it lasts."""
    if job.kind is not JobKind.WATCH:
        return following(job.plan, now)
    return now if job.until is None or now < job.until else None


def _run(job: Job, now: int, zone: str) -> Answer:
    if job.turn is not None or job.asked_at is not None:
        return Answer(f"Job {job.id} runs or waits already.", choices=_choices(job))
    watches = job.kind is JobKind.WATCH
    return Answer(
        f"Job {job.id} looks now."
        if watches
        else f"Job {job.id} runs now, once more than it would.",
        rows=(stored.ask(job.id, now),),
        jobs=True,
    )


def _cancel(job: Job, now: int, zone: str) -> Answer:
    text = f"Job {job.id} is cancelled and does not run again."
    if job.turn is not None:
        text += " A run that has begun goes on; /stop in its thread ends that."
    row = stored.state(job.id, JobState.CANCELLED, now)
    waits = job.turn is not None
    drop = DropAsked(job.turn, job.lane, job.person, quiet=True) if job.turn else None
    return Answer(text, rows=(row,), event=drop if waits else None, jobs=True)


VERBS: dict[str, Callable[[Job, int, str], Answer]] = {
    "pause": _pause,
    "resume": _resume,
    "run": _run,
    "cancel": _cancel,
}


def _became(job: Job, state: JobState, now: int, at: int | None, text: str) -> Answer:
    row = stored.state(job.id, state, now, at)
    return Answer(text, rows=(row,), choices=_choices(job, after=state), jobs=True)


def _shown(ask: Ask, job: Job) -> Answer:
    """All about one job, with its newest firings."""
    zone, limits = zone_of(ask), ask.here.jobs.limits
    lines = [job_words.listed(as_shown(job, ask.here.now), zone, ask.here.jobs.name(job.person))]
    watches = job.kind is JobKind.WATCH
    lines.append(
        watch_words.shown(job, zone) if watches else job_words.manner(job, limits.catch_up)
    )
    past = [
        f"- {job_words.moment(one.due, zone)}: {plain(one.result) or one.state.value}"
        for one in ask.here.jobs.firings
    ]
    if past:
        lines.append("\n".join(("Last times:\n", *past)))
    choices = () if job.state.ended else _choices(job)
    return Answer("\n\n".join(lines), choices=choices)


def _choices(
    job: Job, *, number: bool = False, after: JobState | None = None
) -> tuple[Choice, ...]:
    """Buttons: the other of pause and resume, run, cancel. They stand for the command."""
    paused = (after or job.state) is JobState.PAUSED
    verbs = ("resume" if paused else "pause", "run", "cancel")
    labels = {"run": "Look now" if job.kind is JobKind.WATCH else "Run now"}
    return tuple(
        Choice(
            f"{verb.title()} {job.id}" if number else labels.get(verb, verb.title()),
            Action.SET,
            {"name": "job", "value": f"{job.id} {verb}"},
            style=Style.DANGER if verb == "cancel" else Style.PLAIN,
        )
        for verb in verbs
    )


def _may(ask: Ask, job: Job) -> bool:
    return ask.person.admin or job.person == ask.person.id
