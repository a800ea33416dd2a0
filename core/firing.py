"""What is stored about a job that is due: its turn, or why there is none.

It decides by job_rules and by who may do what where, and makes one item for the runner of it; the
claim of the instant is in that item. It must not know when it is asked, nor carry anything out.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace

from core import folders, job_rules, job_words
from core.budgets import Put, of_turn
from core.clock import Clock
from core.items import Item
from core.job_rules import Decision, Fate, FiringState, Job, JobState
from core.lane_events import Arrived
from core.lane_ids import channel_of
from core.people import People, Role
from core.preparing import Defaults
from core.prompt import label_of
from core.showing import Showing
from core.store import jobs as stored
from core.store import reads
from core.store.jobs import FiringRow
from core.store.records import Delivery, LaneRow, MessageRow
from core.store.rows import Row
from core.store.store import Store
from core.turns import Busy, Kind, Origin, Turn
from core.when import BadWhen

log = logging.getLogger("laneway.jobs")


@dataclass(frozen=True, slots=True)
class Fired:
    """One job that was due. ``told``: words for its thread; ``turn``: the one that will run."""

    job: Job
    item: Item
    decision: Decision | None = None  # None: the job itself does not go on
    told: str = ""
    turn: int | None = None


@dataclass(slots=True)
class Firing:
    """``catch_up``: ms, of jobs that set none; ``zone``: of people who named none.

    Both follow the settings.
    """

    store: Store
    people: People
    channels: Collection[str]
    showing: Showing
    clock: Clock
    defaults: Defaults
    catch_up: int
    zone: str

    async def of(self, job: Job, lane: LaneRow, *, busy: bool) -> Fired:
        """Decide about a job that is due now. ``busy``: its lane is at work or has some waiting."""
        here = channel_of(lane.id) in self.channels
        if here and not self.allowed(job.person, lane):
            return await self.ends(job, lane, JobState.PAUSED, job_words.NOT_ALLOWED)
        try:
            plan = job.plan
        except (BadWhen, LookupError, ValueError) as fault:
            log.error("job %d cannot be reckoned any more: %s", job.id, fault)
            return await self.ends(job, lane, JobState.FAILED, job_words.UNREADABLE)
        now = self.clock.now()
        decision = job_rules.decide(job, plan, now, catch_up=self.catch_up, busy=busy)
        if decision.fate is Fate.RUN and here:
            return self._runs(job, lane, decision)
        return self.left_out(job, decision, here=here)

    def found(
        self, job: Job, lane: LaneRow, decision: Decision, result: str, evidence: str
    ) -> Fired:
        """A watch has seen what it waits for: its turn gets the evidence below the prompt."""
        return self._runs(job, lane, decision, result, evidence)

    def allowed(self, person: str, lane: LaneRow) -> bool:
        """Whether this person may still have something run there."""
        return self.people.role(person) is not Role.NONE and self.may_here(lane)

    def may_here(self, lane: LaneRow) -> bool:
        return lane.direct or self.people.listed(lane.address)

    def zone_of(self, person: str) -> str:
        return self.people.person(person, "").zone or self.zone

    async def elsewhere(self, job: Job, told: str) -> list[Delivery]:
        """For the job's person alone, where its thread cannot or may not be written to."""
        channel = channel_of(job.person)
        known = self.people.role(job.person) is not Role.NONE and channel in self.channels
        direct = await reads.lane_direct(self.store, channel, job.person) if known else None
        if direct is None or direct.id == job.lane:
            return []
        return self.showing.text(direct.id, told)

    # One of three ends --------------------------------------------------------------------

    def _runs(
        self, job: Job, lane: LaneRow, decision: Decision, start: str = "", evidence: str = ""
    ) -> Fired:
        now, turn = self.clock.now(), self.store.ids.turn()
        start = start or job_words.decided(decision)
        note = job_words.note(job, decision.due, self.zone_of(job.person), start)
        identity = _identity(job, decision)
        said = MessageRow(
            seq=self.store.ids.message(),
            identity=identity,
            lane=lane.id,
            turn=turn,
            person=job.person,
            person_name=self.people.name(job.person),
            message_id="",
            text="\n\n".join(filter(None, (note, job.prompt, evidence))),
            at=now,
        )
        made = Turn(
            id=turn,
            lane=lane.id,
            person=job.person,
            origin=Origin(job.kind.value),
            kind=Kind.MAIN,
            arrived=now,
            label=label_of(job.prompt, ()),
            last_piece=now,
        )
        folder = folders.claim(lane.workspace, self.defaults.workspace)
        facts = lane.facts(lane.engine or self.defaults.engine, folder)
        written = self._written(replace(job, turn=turn), decision, FiringState.OPEN, start)
        event = Arrived(made, facts, Busy.QUEUE)
        item = Item(identity, event, messages=(said,), rows=written, budget=self._cap(job, made))
        log.info("job %d fires in %s, %s", job.id, lane.id, start)
        return Fired(job, item, decision, turn=turn)

    def _cap(self, job: Job, turn: Turn) -> Put | None:
        """What one run of the job may cost."""
        if job.budget is None:
            return None
        number = self.store.ids.budget()
        return Put(of_turn(number, turn.lane, turn.id, job.budget, turn.arrived, job.person))

    def left_out(self, job: Job, decision: Decision, *, here: bool) -> Fired:
        """An instant at which the job does not run. ``here``: its thread can be written to."""
        missed = decision.fate in (Fate.MISSED, Fate.RESTORED)
        result = job_words.decided(decision)
        if decision.fate is Fate.RUN:
            result = job_words.NO_CHANNEL
        state = FiringState.MISSED if missed else FiringState.SKIPPED
        written = self._written(job, decision, state, result)
        if decision.next_at is None and job.turn is None and not decision.asked:
            now = self.clock.now()
            written = (*written, stored.state(job.id, JobState.EXPIRED, now, None, result))
        told = ""
        if missed and here:
            told = job_words.missed(job, decision, self.zone_of(job.person))
        log.info("job %d does not run: %s", job.id, result)
        return Fired(job, Item(_identity(job, decision), rows=written), decision, told)

    async def ends(self, job: Job, lane: LaneRow, state: JobState, why: str) -> Fired:
        """The job does not go on; its person is told, in the thread or else alone."""
        row = stored.state(job.id, state, self.clock.now(), None, f"{state.value}: {why}")
        log.warning("job %d is %s: %s", job.id, state.value, why)
        told = job_words.ends(job, state, why)
        if self.allowed(job.person, lane) or (self.may_here(lane) and not lane.direct):
            return Fired(job, Item(rows=(row,)), told=told)
        alone = await self.elsewhere(job, told)
        return Fired(job, Item(rows=(row,), deliveries=alone))

    def _written(
        self, job: Job, decision: Decision, state: FiringState, result: str
    ) -> tuple[Row, ...]:
        """The claim, and where the job stands after it."""
        turn = job.turn if state is FiringState.OPEN else None
        claim = FiringRow(
            job.id, decision.due, self.clock.now(), state, turn, decision.missed, result
        )
        after = replace(
            job,
            next_at=decision.next_at,
            settled_at=decision.settled_at,
            last_due=decision.due,
            last_result=result,
        )
        return (stored.firing(claim), stored.settled(after, job.next_at, job.asked_at))


def _identity(job: Job, decision: Decision) -> str:
    return f"job:{job.id}:{decision.due}"
