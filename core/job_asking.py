"""What a person writes to make a job: WHEN, options, a colon, and what to do.

Pure. Every refusal says what is wrong and what would work; nothing is stored then. Watches put more
options before the same colon. It must not know the store, nor how jobs run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from zoneinfo import ZoneInfo

from core.job_rules import IfBusy, Job, JobKind
from core.messages import clean
from core.when import BadWhen, Cron, Every, NotATime, Plan, following, parse, span
from core.wording import duration

LOOKED_FOR = 366 * 86_400_000  # ms, and
LOOKED_AT = 60  # firings of a cron line that are looked at for the shortest time between two
MOST_DOLLARS = 100_000.0
LENDING = ("every", "in")  # commands whose name may be the first word of the WHEN
EXAMPLES = {
    "every": "/every day at 09:00 : what is new in the repository?",
    "at": "/at tomorrow 8:00 : remind me of the dentist",
    "in": "/in 20m : look whether the build is green",
}

_QUOTED = re.compile(r"\"[^\"]*\"|“[^“”]*”|(?<!\S)'[^']*'(?=[\s:]|$)")
_SEPARATOR = re.compile(r":(?=\s|$)")
_UNIT = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\b"
_SPAN = re.compile(rf"\d+\s*{_UNIT}(?:\s*\d+\s*{_UNIT})*", re.I)
_CLOCK = re.compile(r"\d{1,2}(?::\d{2}\s*(?:am|pm)?|\s*(?:am|pm))(?:\s+\S+/\S+|\s+utc)?", re.I)
_CATCH_UP = re.compile(rf"\bcatch[ -]?up\b(?:\s+(\d+\s*{_UNIT}(?:\s*\d+\s*{_UNIT})*))?", re.I)
_SKIP = re.compile(r"\bskip\s+missed\b", re.I)
_BUSY = re.compile(r"\bif\s+busy\b(?:\s+([a-z]+))?", re.I)
_BUDGET = re.compile(r"\bbudget\b(?:\s+(\$?[\d.]+))?(?![^\s,])", re.I)


class BadJob(BadWhen):
    """No job comes of it; the message says why, and what would work."""


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The settings of jobs."""

    least: int = 10_000  # ms between two firings
    most: int = 50  # jobs of one person
    catch_up: int = 6 * 3_600_000  # ms
    agents_ask: bool = True
    watch_private: bool = False  # watches reach private addresses


@dataclass(frozen=True, slots=True)
class Options:
    """How a job runs. ``catch_up``: ms, None is the setting, 0 skips what was missed."""

    catch_up: int | None = None
    if_busy: IfBusy = IfBusy.QUEUE
    budget: float | None = None  # US dollars a run


@dataclass(frozen=True, slots=True)
class Asked:
    """A job as it was asked for. ``said``: its WHEN alone."""

    said: str
    plan: Plan
    zone: str
    now: int
    prompt: str
    options: Options = Options()

    def job(self, ident: int, lane: str, person: str) -> Job:
        return Job(
            id=ident,
            lane=lane,
            person=person,
            kind=JobKind.WAKEUP if self.plan.once else JobKind.SCHEDULE,
            said=self.said,
            zone=self.zone,
            anchor=self.now,
            prompt=self.prompt,
            made_at=self.now,
            catch_up=self.options.catch_up,
            if_busy=self.options.if_busy,
            budget=self.options.budget,
            next_at=following(self.plan, self.now),
            settled_at=self.now,
        )


def typed(name: str, text: str, zone: str, now: int, limits: JobLimits) -> Asked:
    """What ``/NAME TEXT`` asks for; raises BadWhen."""
    head, prompt = split(text, EXAMPLES[name])
    return asked(head, prompt, zone, now, limits, name)


def asked(
    head: str, prompt: str, zone: str, now: int, limits: JobLimits, name: str = "at"
) -> Asked:
    """The same with WHEN and prompt apart; options stand around the WHEN. Raises BadWhen."""
    prompt = clean(prompt).strip()
    if not prompt:
        raise BadJob(f"What shall I do then? Write it behind the colon: {EXAMPLES[name]}")
    when, options = read_options(clean(head))
    said, plan = planned(name, when, zone, now)
    if (often := shortest(plan, now)) is not None and often < limits.least:
        least = duration(limits.least)
        raise BadJob(
            f"That is every {duration(often)}, and at least {least} must lie between two runs "
            f"here. Say for example: every {limits.least // 1000}s."
        )
    return Asked(said, plan, zone, now, prompt, options)


def split(text: str, example: str) -> tuple[str, str]:
    """What stands before and behind the first colon outside quotes that a blank follows."""
    colon = _SEPARATOR.search(masked(text))
    if colon is None:
        raise BadJob(f"Write a colon and a blank between when and what: {example}")
    return text[: colon.start()].strip(), text[colon.end() :].strip()


def masked(text: str) -> str:
    """The text with what is quoted in it blotted out, at the same places."""
    return _QUOTED.sub(lambda found: "\0" * len(found[0]), text)


def quotations(text: str) -> tuple[str, list[str]]:
    """The text with a number in the place of what is quoted, in quotes, and what was, as it was."""
    found: list[str] = []

    def put_away(one: re.Match[str]) -> str:
        found.append(one[0])
        return f'"{len(found) - 1}"'

    return _QUOTED.sub(put_away, text), found


# The WHEN ---------------------------------------------------------------------------------


def planned(name: str, when: str, zone: str, now: int) -> tuple[str, Plan]:
    """What the WHEN behind a command means; ``every`` and ``in`` may be its first word."""
    said, plan = _planned(name, when, ZoneInfo(zone), now)
    if following(plan, now) is None:
        raise BadJob(f"“{said}” does not come in the next nine years.")
    return said, plan


def _planned(name: str, when: str, here: ZoneInfo, now: int) -> tuple[str, Plan]:
    if name == "at" and _CLOCK.fullmatch(when):
        return _next_clock(when, here, now)
    if name not in LENDING or not when:
        return when, parse(when, here, now)
    lent = f"{name} {when}"
    try:
        return lent, parse(lent, here, now)
    except BadWhen as refused:
        try:
            return when, parse(when, here, now)
        except NotATime:
            raise refused from None
        except BadWhen as other:
            raise (other if isinstance(refused, NotATime) else refused) from None


def is_span(said: str) -> bool:
    """Whether it is a length of time alone: ``2h``."""
    return _SPAN.fullmatch(said) is not None


def _next_clock(when: str, here: ZoneInfo, now: int) -> tuple[str, Plan]:
    """A time of day alone is the next one: today's, else tomorrow's."""
    today, tomorrow = f"today at {when}", f"tomorrow at {when}"
    try:
        return today, parse(today, here, now)
    except BadWhen:
        return tomorrow, parse(tomorrow, here, now)


def shortest(plan: Plan, now: int) -> int | None:
    """The shortest time between two of its instants, ms; None where there is one alone."""
    match plan.times:
        case Every(period, _):
            return period
        case Cron():
            found = _near(plan, now)
            gaps = [after - before for before, after in pairwise(found)]
            return min(gaps, default=None)
        case _:
            return None


def _near(plan: Plan, now: int) -> list[int]:
    """Some of its instants. Seldom ones are far apart, and looked for at a cost."""
    found: list[int] = []
    while len(found) < LOOKED_AT:
        at = following(plan, found[-1] if found else now)
        if at is None:
            break
        found.append(at)
        if len(found) > 1 and at > now + LOOKED_FOR:
            break
    return found


# Options ----------------------------------------------------------------------------------


def read_options(head: str) -> tuple[str, Options]:
    """The WHEN without the options that stand around it, and these."""
    options = Options()
    readers: Sequence[tuple[re.Pattern[str], Callable[[Options, str], Options]]] = (
        (_BUSY, _busy),
        (_CATCH_UP, _catch_up),
        (_SKIP, _skip),
        (_BUDGET, _budget),
    )
    late = 0
    for pattern, read in readers:
        head, given = take_out(head, pattern)
        if len(given) > 1:
            raise BadJob(f"“{given[0][0]}” stands there twice. Say it once.")
        for one in given:
            late += read in (_catch_up, _skip)
            options = read(options, one[1])
    if late > 1:
        raise BadJob("Say catch up 1h, or skip missed; not both.")
    return head, options


def take_out(head: str, pattern: re.Pattern[str]) -> tuple[str, list[tuple[str, str]]]:
    """The text without what the pattern finds outside quotes; each whole and its first group."""
    found = list(pattern.finditer(masked(head)))
    for one in reversed(found):
        head = f"{head[: one.start()]} {head[one.end() :]}"
    group = [(one[0], (one[1] or "") if pattern.groups else "") for one in found]
    return " ".join(head.split()).strip(" ,"), group


def _catch_up(options: Options, said: str) -> Options:
    if not said:
        raise BadJob("How late may a missed run still start? Say for example: catch up 1h.")
    return replace(options, catch_up=span(" ".join(said.lower().split())))


def _skip(options: Options, _: str) -> Options:
    return replace(options, catch_up=0)


def _busy(options: Options, said: str) -> Options:
    try:
        return replace(options, if_busy=IfBusy(said.lower()))
    except ValueError:
        raise BadJob("When the thread is busy, say: if busy queue, or if busy skip.") from None


def _budget(options: Options, said: str) -> Options:
    try:
        dollars = float(said.lstrip("$"))
    except ValueError:
        dollars = 0.0
    if not 0 < dollars <= MOST_DOLLARS:
        raise BadJob("What may a run cost? Say it in US dollars: budget 0.50.")
    return replace(options, budget=dollars)
