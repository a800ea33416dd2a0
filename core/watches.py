"""Watches at work: what is due is looked at, beside everything else, and what is found runs.

Rows are the truth; in memory is only when each watch is next. A look costs no turn and no model.
What it means is decided by watch_rules; what it found is stored in the transaction that stores its
turn. After a restart or a clock that went wrong a watch just looks: it has no missed times.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from core import job_words, watch_rules, watch_words
from core.alarm import TICK, Alarm
from core.firing import Fired, Firing
from core.guard import fault_of, guarded
from core.items import Item
from core.job_rules import Decision, Fate, IfBusy, Job, JobState
from core.lane_ids import channel_of
from core.lanes import LaneView
from core.people import Role
from core.store import jobs as stored_jobs
from core.store import watches as stored
from core.store.records import LaneRow
from core.store.rows import Row
from core.watch_asking import read_what
from core.watch_rules import Judged, Known, News, Unseen, What
from core.watching.looks import Looks
from core.when import BadWhen

log = logging.getLogger("laneway.watches")

AT_ONCE = 8  # looks
STORED_EVERY = 60_000  # ms after which a watch is stored although it saw nothing new
AGAIN = 60_000  # ms until a look that broke is made again
STEPPED = 3_600_000  # ms that the wall clock may go back without a look at everything


class Spine(Protocol):
    """What watches need of the runner."""

    async def take(self, *items: Item) -> list[bool]: ...

    def view(self, lane: str) -> LaneView | None: ...


class Fires(Protocol):
    """What watches need of jobs."""

    async def store(self, fired: Sequence[Fired]) -> None: ...


@dataclass(frozen=True, slots=True)
class _Next:
    at: int  # ms
    stored: int | None  # the same as it is stored
    saved: int  # ms, when that was


class Watches:
    """One for the process. ``run`` is its only task; the rest may be called from anywhere."""

    def __init__(
        self, firing: Firing, spine: Spine, jobs: Fires, looks: Looks, alarm: Alarm
    ) -> None:
        self._firing = firing
        self._store = firing.store
        self._clock = firing.clock
        self._spine = spine
        self._jobs = jobs
        self._looks = looks
        self._alarm = alarm
        self._rung = asyncio.Event()
        self._next: dict[int, _Next] = {}
        self._order: list[tuple[int, int]] = []  # a heap of instants; some are out of date
        self._looking: set[int] = set()
        self._changed = True
        self._changes = 0  # that were told
        self._moment = 0  # ms, of the last glance at the clock

    def changed(self) -> None:
        """A watch was made or changed, or somebody wants it to look."""
        self._changed = True
        self._changes += 1
        self._rung.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Look at what is due, until cancelled; once ``stopping`` is set nothing is found."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._rung.clear()
                    if await fault_of(self._begin(group, stopping), "the watches") is not None:
                        self._changed = True
                        again = self._clock.now() + round(TICK * 1000)
                        await fault_of(self._alarm.set(again, self._rung.set), "their alarm")
                    await self._rung.wait()
        finally:
            self._alarm.close()

    # When ---------------------------------------------------------------------------------

    async def _begin(self, group: asyncio.TaskGroup, stopping: asyncio.Event) -> None:
        """Begin as many looks as are due and may be made at once."""
        if stopping.is_set():
            return
        now = self._clock.now()
        if now < self._moment - STEPPED:
            self._changed = True
        self._moment = now
        if self._changed:
            self._changed = False
            await self._read(now)
        while len(self._looking) < AT_ONCE and (ident := self._first(now)) is not None:
            self._looking.add(ident)
            guarded(group, self._one(ident, stopping), f"watch {ident}")
        full = len(self._looking) >= AT_ONCE
        wake = None if full or not self._order else self._order[0][0]
        await self._alarm.set(wake, self._rung.set)

    async def _read(self, now: int) -> None:
        """When each watch is next. What is known of it in memory is newer than what is stored."""
        found: dict[int, _Next] = {}
        for time in await stored.times(self._store):
            held = self._next.get(time.job)
            if time.asked is not None or (time.at is not None and time.looked > now + STEPPED):
                found[time.job] = _Next(now, time.at, 0)
            elif time.at is None:
                if not time.runs:  # a backup was restored that had it run
                    found[time.job] = _Next(now, None, 0)
            elif held is not None and held.stored == time.at and held.at <= now + STEPPED:
                found[time.job] = held
            else:
                found[time.job] = _Next(time.at, time.at, now)
        self._next = found
        self._order = [(one.at, ident) for ident, one in found.items()]
        heapq.heapify(self._order)

    def _first(self, now: int) -> int | None:
        """Take the watch that is due longest; None where none is."""
        while self._order:
            at, ident = self._order[0]
            known = self._next.get(ident)
            if known is None or known.at != at or ident in self._looking:
                heapq.heappop(self._order)
            elif at <= now:
                heapq.heappop(self._order)
                return ident
            else:
                return None
        return None

    def _later(self, ident: int, at: int | None, *, saved: bool) -> None:
        """When it is next. ``saved``: that was stored as well."""
        held = self._next.get(ident)
        if at is None:
            self._next.pop(ident, None)
            return
        if saved or held is None:
            self._next[ident] = _Next(at, at, self._clock.now())
        else:
            self._next[ident] = replace(held, at=at)
        heapq.heappush(self._order, (at, ident))

    # One look -----------------------------------------------------------------------------

    async def _one(self, ident: int, stopping: asyncio.Event) -> None:
        changes = self._changes
        try:
            if await fault_of(self._look(ident, stopping), f"watch {ident}") is not None:
                self._later(ident, self._clock.now() + AGAIN, saved=False)
        finally:
            # What was said while it looked may be newer than when it thinks it is next.
            self._changed = self._changed or changes != self._changes
            self._looking.discard(ident)
            self._rung.set()

    async def _look(self, ident: int, stopping: asyncio.Event) -> None:
        job = await self._open(ident)
        if job is None:
            return self._later(ident, None, saved=True)
        lane = (await stored_jobs.lanes(self._store, [job.lane]))[job.lane]
        if await self._ends(job, lane):
            return self._later(ident, None, saved=True)
        if not self._may_look(job, lane):
            return await self._goes_on(job, 0, ())
        known = await stored.of(self._store, ident)
        what = read_what(job.what)
        saw = await self._looks.look(what, lane.id, lane.workspace)
        job = await self._open(ident)  # much may have been said meanwhile
        if job is None:
            return self._later(ident, None, saved=True)
        if stopping.is_set() or not self._may_look(job, lane):
            return await self._goes_on(job, known.failures, ())
        judged = watch_rules.judge(what, known, saw, anew=job.restored)
        await self._settle(job, lane, what, known, judged, saw)
        return None

    async def _open(self, ident: int) -> Job | None:
        job = await stored_jobs.job(self._store, ident)
        if job is None or job.state.ended:
            return None
        rests = job.state is JobState.PAUSED or (job.next_at is None and job.turn is not None)
        over = job.until is not None and job.until <= self._clock.now()
        ends = over and job.state is JobState.PAUSED
        if rests and job.asked_at is None and not ends:
            return None
        return job

    def _may_look(self, job: Job, lane: LaneRow) -> bool:
        """Whether something may be found now: never while what it found before waits or runs."""
        if job.turn is not None or channel_of(lane.id) not in self._firing.channels:
            return False
        view = self._spine.view(job.lane)
        busy = view is not None and (view.main is not None or bool(view.waiting))
        return not (busy and job.if_busy is IfBusy.SKIP)

    async def _ends(self, job: Job, lane: LaneRow) -> bool:
        """End a watch whose time has come, or that may not look any more."""
        firing, now = self._firing, self._clock.now()
        here = channel_of(lane.id) in firing.channels
        if job.until is None or now < job.until:
            why = self._forbidden(job, lane) if here else ""
            if why:
                state = JobState.FAILED if why == job_words.UNREADABLE else JobState.PAUSED
                await self._jobs.store([await firing.ends(job, lane, state, why)])
            return bool(why)
        row = stored_jobs.state(job.id, watch_words.last_state(job), now)
        told = watch_words.over(job, now) if here and firing.allowed(job.person, lane) else ""
        log.info("watch %d has ended: its time is over", job.id)
        await self._jobs.store([Fired(job, Item(rows=(row,)), told=told)])
        return True

    def _forbidden(self, job: Job, lane: LaneRow) -> str:
        if not self._firing.allowed(job.person, lane):
            return job_words.NOT_ALLOWED
        try:
            what, _ = read_what(job.what), job.plan
        except (BadWhen, LookupError, ValueError) as fault:
            log.error("watch %d cannot be read any more: %s", job.id, fault)
            return job_words.UNREADABLE
        role = self._firing.people.role(job.person)
        if watch_words.needs_admin(what) and role is not Role.ADMIN:
            return watch_words.NOT_ADMIN
        return ""

    # What comes of it ---------------------------------------------------------------------

    async def _settle(
        self,
        job: Job,
        lane: LaneRow,
        what: What,
        known: Known,
        judged: Judged,
        saw: object,
    ) -> None:
        firing = self._firing
        if judged.news is News.BARRED and isinstance(saw, Unseen):
            fired = await firing.ends(job, lane, JobState.PAUSED, saw.why)
            await self._jobs.store([fired])
            return self._later(job.id, None, saved=True)
        written: list[Row] = []
        if judged.known != known:
            written.append(stored.known(job.id, judged.known))
        told = self._news(job, judged, saw, written)
        if not judged.found and not judged.perhaps:
            return await self._goes_on(job, judged.known.failures, written, told)
        now = self._clock.now()
        goes_on = job.each_time or judged.perhaps
        at = self._following(job, judged.known.failures) if goes_on else None
        fate = Fate.RUN if judged.found else Fate.RESTORED
        decision = Decision(now, fate, next_at=at, settled_at=now)
        if judged.found:
            lines = watch_rules.evidence(what, known, judged.seen)
            result = watch_words.found(what, judged.seen)
            fired = firing.found(job, lane, decision, result, watch_words.evidence(lines))
        else:
            fired = firing.left_out(job, decision, here=True)
        item = replace(fired.item, rows=(*fired.item.rows, *written))
        told = "\n\n".join(filter(None, (told, fired.told)))
        await self._jobs.store([replace(fired, item=item, told=told)])
        return self._later(job.id, at, saved=True)

    def _news(self, job: Job, judged: Judged, saw: object, written: list[Row]) -> str:
        """Words for the thread about looking itself."""
        match judged.news:
            case News.TROUBLE if isinstance(saw, Unseen):
                written.append(stored.said(job.id, f"cannot look: {saw.why}"))
                log.warning("watch %d could not look several times in a row", job.id)
                return watch_words.trouble(job, saw.why)
            case News.WELL:
                written.append(stored.said(job.id, "can look again"))
                return watch_words.well(job, judged.failed)
            case _:
                return ""

    def _following(self, job: Job, failures: int) -> int | None:
        """When it looks next, or ends."""
        if job.state is JobState.PAUSED:
            return job.until
        if job.turn is not None and not job.each_time:
            return None
        at = watch_rules.next_look(job.plan, self._clock.now(), failures)
        return job.until if at is None or (job.until is not None and job.until < at) else at

    async def _goes_on(
        self, job: Job, failures: int, written: Sequence[Row], told: str = ""
    ) -> None:
        """Nothing was found. It is stored when there is something to store, and now and then."""
        now, at = self._clock.now(), self._following(job, failures)
        held = self._next.get(job.id)
        new = bool(written or told) or job.asked_at is not None or job.restored
        saves = new or held is None or now - held.saved >= STORED_EVERY
        if saves:
            rows = (*written, stored.looked(job, at, now))
            deliveries = self._firing.showing.text(job.lane, told) if told else []
            await self._spine.take(Item(rows=rows, deliveries=deliveries))
        self._later(job.id, at, saved=saves)
