"""Jobs set up and changed for somebody, wherever they ask: on the page or in a shell.

The rules are those of /every, /watch and /job. While the gateway is down there is no ``take``; then
rows are written, and the next start goes by them. It must not know HTTP or terminals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from zoneinfo import ZoneInfo

from core import job_asking, watch_asking, watch_words
from core.commands.base import Answer
from core.commands.scheduling import VERBS, changed, recorded, too_many
from core.items import Item, Take
from core.job_asking import Asked, BadJob, JobLimits
from core.job_rules import Job, JobKind, JobState
from core.lane_events import DropAsked, Event
from core.people import People, Role
from core.store import jobs as stored
from core.store import reads, rows, web
from core.store.rows import Row
from core.store.store import Store
from core.turns import Status
from core.watch_asking import AskedWatch
from core.when import BadWhen, following, parse

NEXT = 3  # firings that are shown
OFTEN = ("every", "each", "daily", "monthly")  # words that begin how often a watch looks
SKIP = "skip"  # for what was missed


@dataclass(frozen=True, slots=True)
class Wish:
    """A job as somebody fills it in. ``watch``: what is looked at; empty where times alone count.

    The fields are the parts that stand before the colon in a chat.
    """

    when: str
    prompt: str
    watch: str = ""
    until: str = ""  # fri 18:00, or 2d
    each_time: bool = False
    catch_up: str = ""  # 1h; skip; empty: the setting
    if_busy: str = ""
    budget: str = ""

    @property
    def head(self) -> str:
        """The same as it is written in a chat, in front of the colon."""
        until, when = self.until.strip(), self.when.strip()
        if self.watch and when and when.split()[0].lower() not in OFTEN:
            when = f"every {when}"
        if until and until.split()[0].lower() not in ("until", "for"):
            until = f"for {until}" if job_asking.is_span(until) else f"until {until}"
        late = self.catch_up.strip()
        parts = (
            self.watch,
            when,
            until,
            "each time" if self.each_time else "",
            ("skip missed" if late.lower() == SKIP else f"catch up {late}") if late else "",
            f"if busy {self.if_busy}" if self.if_busy.strip() else "",
            f"budget {self.budget}" if self.budget.strip() else "",
        )
        return " ".join(part.strip() for part in parts if part.strip())


@dataclass(frozen=True, slots=True)
class JobDesk:
    """``take`` and ``rings``: the runner's way in and the timer; without them it is down."""

    store: Store
    people: People
    limits: JobLimits
    zone: str
    take: Take | None = None
    rings: Callable[[], None] = lambda: None

    def zone_of(self, person: str) -> str:
        return self.people.person(person, "").zone or self.zone

    def asked(self, wish: Wish, person: str, zone: str) -> Asked | AskedWatch:
        """What a wish means for somebody; raises BadWhen with what would work."""
        now, limits = self.store.clock.now(), self.limits
        if not wish.watch.strip():
            return job_asking.asked(wish.head, wish.prompt, zone, now, limits)
        found = watch_asking.asked(wish.head, wish.prompt, zone, now, limits)
        admin = self.people.role(person) is Role.ADMIN
        if watch_words.needs_admin(found.what) and not admin:
            raise BadJob(watch_words.ADMINS_ONLY)
        return found

    async def add(
        self,
        wanted: Asked | AskedWatch,
        lane: str,
        person: str,
        mine: Sequence[str] = (),
        made: Sequence[Row] = (),
    ) -> Job:
        """Store it; raises BadWhen when the person has too many. ``made``: rows of a new lane.

        ``mine``: all the names of this person, whose jobs count together.
        """
        counts = [await stored.count(self.store, one) for one in {person, *mine}]
        if sum(counts) >= self.limits.most:
            raise BadWhen(too_many(sum(counts)))
        job = wanted.job(self.store.ids.job(), lane, person)
        await self._store(Item(rows=(*made, stored.new(job))))
        return job

    async def change(self, job: Job, verb: str, by: str, zone: str, mine: bool) -> Answer:
        """Pause, resume, run or cancel; an answer without rows refused it.

        What is done to a job of somebody else (``mine`` is false) is an administrative act.
        """
        now = self.store.clock.now()
        answer = changed(job, verb, now, zone)
        if not answer.rows:
            return answer
        act = None if mine else recorded(job, verb)
        written = [web.act(now, by, act.act, act.about, act.detail)] if act else []
        await self._store(Item(event=answer.event, rows=(*answer.rows, *written)))
        return answer

    async def _store(self, item: Item) -> None:
        if self.take is None:
            await self.store.save(*item.rows, *await self._dropped(item.event))
        else:
            await self.take(item)
            self.rings()

    async def _dropped(self, event: Event | None) -> tuple[Row, ...]:
        """A run that waits while nothing runs is taken out of its queue here."""
        row = await reads.turn(self.store, event.turn) if isinstance(event, DropAsked) else None
        if row is None or row.status is not Status.WAITING:
            return ()
        dropped = replace(row.turn(), status=Status.DROPPED)
        return rows.turn(dropped), rows.turn_ended(row.id, self.store.clock.now())


def coming(job: Job, most: int = NEXT) -> list[int]:
    """The next instants of a job, ms; a paused one and one that ended have none."""
    if job.state is not JobState.ACTIVE or job.next_at is None:
        return []
    found = _coming(job.said, job.zone, job.anchor, job.next_at, most)
    ends = job.until if job.kind is JobKind.WATCH else None
    return [at for at in found if ends is None or at <= ends or at == job.next_at]


@lru_cache(maxsize=4096)
def _coming(said: str, zone: str, anchor: int, first: int, most: int) -> tuple[int, ...]:
    """The same again and again for everybody who looks, until the job has run."""
    found = [first]
    try:
        plan = parse(said, ZoneInfo(zone), anchor)
        while len(found) < most and (after := following(plan, found[-1])) is not None:
            found.append(after)
    except BadWhen:  # of an earlier version; the job says so itself when it is due
        return tuple(found)
    return tuple(found)


def verbs(job: Job) -> list[str]:
    """What can be done to a job as it is."""
    if job.state.ended:
        return []
    only = job.state is JobState.ACTIVE and job.next_at is None
    other = "resume" if job.state is JobState.PAUSED else "pause"
    found = [other] if not only else []
    if job.turn is None and job.asked_at is None:
        found.append("run")
    return [verb for verb in (*found, "cancel") if verb in VERBS]
