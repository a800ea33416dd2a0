"""Jobs at work: rows are the truth, an alarm rings, what is due becomes a turn in its lane.

A firing is claimed in the transaction that stores its turn, so no crash makes two of one or none of
one. Everything about a job is read when it is due and forgotten after it: ten thousand jobs are
ten thousand rows. What a firing is made of stands in firing.py; it must not know commands.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from core import job_rules, job_words
from core.alarm import TICK, Alarm
from core.firing import Fired, Firing
from core.guard import fault_of
from core.items import Item
from core.job_rules import Fate, FiringState, Job, JobState
from core.lane_events import DropAsked
from core.lane_ids import channel_of
from core.lanes import LaneView
from core.store import jobs as stored
from core.store import reads
from core.store.errors import Poisoned
from core.store.jobs import OpenFiring
from core.store.records import Delivery
from core.turns import Turn
from core.when import BadWhen

log = logging.getLogger("laneway.jobs")

AT_ONCE = 25  # jobs of one step; between two steps everything else has its turn
STEPPED = 3_600_000  # ms that the wall clock may go back without a look at what it settled


class Spine(Protocol):
    """What jobs need of the runner."""

    async def take(self, *items: Item) -> list[bool]: ...

    def view(self, lane: str) -> LaneView | None: ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """A firing whose turn is not over."""

    lane: str
    person: str
    drop_at: int  # ms; what still waits then does not run


class Jobs:
    """One for the process. ``run`` is its only task; the rest may be called from anywhere."""

    def __init__(self, firing: Firing, spine: Spine, alarm: Alarm) -> None:
        self.firing = firing
        self._store = firing.store
        self._clock = firing.clock
        self._spine = spine
        self._alarm = alarm
        self.fates: Counter[Fate] = Counter()  # of instants that were due
        self._rung = asyncio.Event()
        self._open: dict[int, Waiting] = {}  # by turn
        self._over: dict[int, None] = {}  # turns that ended, in order
        self._gone: dict[int, None] = {}  # turns whose thread cannot be written to any more
        self._first: int | None = None  # the next instant of any job
        self._changed = True  # since that was read
        self._moment = (0, 0.0)  # wall clock (ms) and monotonic (s) at the last look

    def changed(self) -> None:
        """A job was made or changed, or somebody wants it to run."""
        self._changed = True
        self._rung.set()

    def over(self, turn: Turn) -> None:
        """A turn has ended."""
        if turn.origin.job:
            self._over[turn.id] = None
            self._rung.set()

    def unreachable(self, turn: int) -> None:
        """What this turn had to say cannot be said: its thread is gone, or closed to us."""
        self._gone[turn] = None
        self._rung.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Fire what is due, until cancelled; once ``stopping`` is set nothing fires any more."""
        try:
            await fault_of(self._take_over(), "taking over the jobs")
            while True:
                self._rung.clear()
                if await fault_of(self._look(stopping), "looking at the jobs") is not None:
                    self._changed = True
                    await fault_of(
                        self._alarm.set(self._later(), self._rung.set), "the alarm of the jobs"
                    )
                await self._rung.wait()
        finally:
            self._alarm.close()

    # Looking ------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """What an earlier process left."""
        now = self._clock.now()
        self._moment = (now, self._clock.monotonic())
        for firing in await stored.open_firings(self._store):
            self._note(firing.turn, firing.job, firing.due)
            if firing.status.over:
                self._over[firing.turn] = None
        for job in await stored.restored(self._store):
            if job.next_at is None and job.state is JobState.ACTIVE:
                why = job_words.RESTORED  # its last run is held with what else is held
                await self._store.save(
                    stored.state(job.id, JobState.EXPIRED, now, None, why),
                    stored.next_at(job.id, None, job.settled_at),
                )
            elif not job_rules.due(job, now):
                await self._store.save(stored.next_at(job.id, job.next_at, job.settled_at))
        await self._set_right(now)

    async def _look(self, stopping: asyncio.Event) -> None:
        await self._settle()
        if stopping.is_set():
            return
        await self._drop_overdue()
        if self._changed:
            await self._drop_cancelled()
        await self._stepped()
        if self._changed or (self._first is not None and self._first <= self._clock.now()):
            self._changed = False
            stuck = await self._fire_due(stopping)
            self._first = self._later() if stuck else await stored.first(self._store)
        await self._alarm.set(self._wake(), self._rung.set)

    def _wake(self) -> int | None:
        """When to look again. A run that goes on past its catch-up is no reason to look at once."""
        if self._first is not None or not self._open:
            return self._first
        now = self._clock.now()
        ahead = [one.drop_at for one in self._open.values() if one.drop_at > now]
        return min(ahead, default=self._later())

    def _later(self) -> int:
        return self._clock.now() + round(TICK * 1000)

    async def _fire_due(self, stopping: asyncio.Event) -> bool:
        """Whether something is due that cannot be decided about; nothing else waits for it."""
        before: list[Job] = []
        while jobs := await stored.due(self._store, self._clock.now(), AT_ONCE):
            if jobs == before or stopping.is_set():
                return True
            await self._fire(jobs)
            before = jobs
        return False

    async def _stepped(self) -> None:
        """After the wall clock went back by much, what it had settled is looked at."""
        now, passed = self._clock.now(), self._clock.monotonic()
        was, had_passed = self._moment
        self._moment = (now, passed)
        if now - was < (passed - had_passed) * 1000 - STEPPED:
            await self._set_right(now)

    async def _set_right(self, now: int) -> None:
        """Jobs that a clock far ahead sent into the future go by this one again."""
        for job in await stored.ahead(self._store, now + job_rules.DAY):
            try:
                at = job_rules.set_right(job, job.plan, now)
            except (BadWhen, LookupError, ValueError):
                continue  # it is told when it is due
            if at is not None:
                log.warning("job %d: the clock was ahead; it goes by this one again", job.id)
                self._changed = True
                await self._store.save(stored.next_at(job.id, at, now))

    # Firing -------------------------------------------------------------------------------

    async def _fire(self, jobs: Sequence[Job]) -> None:
        """Decide about jobs that are due, and store what was decided as one transaction."""
        lanes = await stored.lanes(self._store, (job.lane for job in jobs))
        fired: list[Fired] = []
        begun: set[str] = set()  # lanes that are busy once these are stored

        async def decide(job: Job) -> None:
            busy = job.lane in begun or self._busy(job.lane)
            fired.append(await self.firing.of(job, lanes[job.lane], busy=busy))
            if fired[-1].turn is not None:
                begun.add(job.lane)

        for job in jobs:
            await fault_of(decide(job), f"job {job.id}")  # a fault costs this one alone
        await self.store(fired)

    def _busy(self, lane: str) -> bool:
        view = self._spine.view(lane)
        return view is not None and (view.main is not None or bool(view.waiting))

    async def store(self, fired: Sequence[Fired]) -> None:
        """Commit what was decided about jobs and tell their threads; ends are recorded later."""
        try:
            accepted = await self._spine.take(*(one.item for one in fired), *self._told(fired))
        except Poisoned as fault:
            log.error("some firings cannot be stored: %s", fault)
            accepted = fault.accepted
        for one, new in zip(fired, accepted, strict=False):
            if one.decision is None:
                continue
            if not new:
                await self._go_behind(one)
                continue
            self.fates[one.decision.fate] += 1
            if one.turn is not None:
                self._note(one.turn, one.job, one.decision.due)

    def _told(self, fired: Sequence[Fired]) -> list[Item]:
        """One message a thread, however many of its jobs it is about."""
        told: dict[str, list[str]] = {}
        for one in fired:
            if one.told:
                told.setdefault(one.job.lane, []).append(one.told)
        showing = self.firing.showing
        return [
            Item(deliveries=showing.text(lane, "\n\n".join(texts))) for lane, texts in told.items()
        ]

    async def _go_behind(self, one: Fired) -> None:
        """Its instant was claimed before, or can never be stored: the job goes on behind it."""
        job, decision = one.job, one.decision
        assert decision is not None
        log.warning("job %d: the instant %d is not claimed anew", job.id, decision.due)
        settled_at = max(decision.settled_at, decision.due)
        await self._store.save(stored.next_at(job.id, decision.next_at, settled_at))
        if decision.next_at is None and job.turn is None and not decision.asked:
            now, why = self._clock.now(), job_words.UNSTORED
            await self._store.save(stored.state(job.id, JobState.FAILED, now, None, why))

    def _note(self, turn: int, job: Job, due: int) -> None:
        patience = max(job_rules.patience(job, self.firing.catch_up), job_rules.PUNCTUAL)
        self._open[turn] = Waiting(job.lane, job.person, due + patience + 1)

    async def _drop_overdue(self) -> None:
        """What waited in its lane for longer than it may still run leaves the queue."""
        now = self._clock.now()
        for turn, one in list(self._open.items()):
            view = self._spine.view(one.lane) if one.drop_at <= now else None
            if view is not None and any(waiting.id == turn for waiting in view.waiting):
                await self._drop(turn, one.lane, one.person)

    async def _drop_cancelled(self) -> None:
        """What fired in the very moment in which its job was cancelled does not run either."""
        for job in await stored.cancelled(self._store):
            view = self._spine.view(job.lane)
            if view is not None and any(waiting.id == job.turn for waiting in view.waiting):
                await self._drop(job.turn or 0, job.lane, job.person)

    async def _drop(self, turn: int, lane: str, person: str) -> None:
        drop = DropAsked(turn, lane, person, admin=True, quiet=True)
        await self._spine.take(Item(event=drop))

    # Ends ---------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Record how firings went whose turns are over."""
        for turn in list(self._over):
            # Until it is recorded it stays, behind the others: one that cannot be keeps none up.
            self._over[turn] = self._over.pop(turn)
            found = await stored.of_turn(self._store, turn)
            if found is not None and found.status.over:
                await self._ended(found)
            self._open.pop(turn, None)
            del self._over[turn]
        for turn in list(self._gone):
            del self._gone[turn]
            found = await stored.of_turn(self._store, turn)
            if found is not None and not found.job.state.ended:
                await self._lane_gone(found.job)

    async def _ended(self, firing: OpenFiring) -> None:
        job, due, now = firing.job, firing.due, self._clock.now()
        at = firing.over_at or now
        end = job_rules.ending(job, due, firing.status, at, self.firing.catch_up)
        result = job_words.ended(end.firing, firing, at - due)
        written = [stored.firing_over(job.id, due, end.firing, result)]
        told = ""
        if job.turn == firing.turn:
            after = replace(job, failures=end.failures)
            if end.firing is not FiringState.DONE or (job.last_due or 0) <= due:
                after = replace(after, last_due=due, last_result=result)
            written.append(stored.over(after))
            if end.state is not None:
                written.append(stored.state(job.id, end.state, now))
            if end.state is JobState.PAUSED:
                told = job_words.ends(job, end.state, job_words.THREE_FAILURES)
            elif end.firing is FiringState.MISSED:
                told = job_words.waited(job, due, at - due, self.firing.zone_of(job.person))
        await self._spine.take(Item(rows=written, deliveries=await self._for_lane(job, told)))

    async def _for_lane(self, job: Job, told: str) -> list[Delivery]:
        """Words for the job's thread, as long as its person may have it run there."""
        lane = await reads.lane(self._store, job.lane) if told else None
        if lane is None or channel_of(lane.id) not in self.firing.channels:
            return []
        if not self.firing.allowed(job.person, lane):
            return []
        return self.firing.showing.text(lane.id, told)

    async def _lane_gone(self, job: Job) -> None:
        """Nothing it says arrives: it waits until somebody lets it go on, and costs nothing."""
        why = job_words.LANE_GONE
        row = stored.state(job.id, JobState.PAUSED, self._clock.now(), None, f"paused: {why}")
        told = job_words.ends(job, JobState.PAUSED, why)
        log.warning("job %d is paused: %s", job.id, why)
        alone = await self.firing.elsewhere(job, told)
        await self._spine.take(Item(rows=(row,), deliveries=alone))
