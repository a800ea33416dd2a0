"""Jobs as the command line lists, makes and changes them, for the owner of the machine.

The same functions answer over the local socket while the gateway runs and work in the database
while it is down; then nothing is taken by a runner, and the next start goes by what is stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.commands.scheduling import VERBS
from core.items import Take
from core.job_asking import JobLimits
from core.job_rules import Job, JobState
from core.lane_ids import LOCAL, channel_of, local_name
from core.messages import Address
from core.people import People
from core.store import jobs as stored
from core.store import reads, rows
from core.store.rows import Row
from core.store.store import Store
from core.when import BadWhen
from gateway.control import OWNER
from gateway.job_desk import JobDesk, Wish, coming
from gateway.reports import instant

Json = dict[str, Any]


@dataclass(slots=True)
class JobReports:
    """``take`` and ``rings``: the runner's way in and the timer; without them it is down."""

    store: Store
    people: People
    limits: JobLimits
    zone: str
    take: Take | None = None
    rings: Callable[[], None] = lambda: None

    @property
    def _desk(self) -> JobDesk:
        return JobDesk(self.store, self.people, self.limits, self.zone, self.take, self.rings)

    def asks(self) -> dict[str, Callable[[Mapping[str, Any]], Awaitable[Any]]]:
        """The requests of the local socket, by name."""
        return {"jobs": self.list, "job_add": self.add, "job": self.change}

    async def list(self, _: Mapping[str, Any]) -> list[Json]:
        """What is active, and what ended in the last seven days."""
        found = await stored.listed(self.store, self.store.clock.now())
        return [as_json(job) for job in found]

    async def add(self, request: Mapping[str, Any]) -> Json:
        """Make a job of the owner's; raises LookupError with the reason."""
        desk = self._desk
        when, prompt = str(request.get("when", "")), str(request.get("prompt", ""))
        try:
            wanted = desk.asked(Wish(when, prompt), OWNER, desk.zone_of(OWNER))
            lane, made = await self._lane(str(request.get("lane", "")))
            job = await desk.add(wanted, lane, OWNER, made=made)
        except BadWhen as refused:
            raise LookupError(str(refused)) from refused
        plan = job.plan
        found = [plan.local(at).isoformat(timespec="seconds") for at in coming(job)]
        return as_json(job) | {"coming": found}

    async def change(self, request: Mapping[str, Any]) -> Json:
        """Pause, resume, run or cancel; raises LookupError where there is no such job."""
        ident, verb = request.get("id"), str(request.get("verb", ""))
        job = await stored.job(self.store, ident) if isinstance(ident, int) else None
        if job is None:
            raise LookupError(f"there is no job {ident}; laneway jobs lists them")
        if verb not in VERBS:
            raise LookupError(f"say what to do with job {ident}: {', '.join(VERBS)}")
        answer = await self._desk.change(job, verb, OWNER, self.zone, job.person == OWNER)
        if not answer.rows:
            raise LookupError(answer.text)
        after = await stored.job(self.store, job.id)
        assert after is not None
        return as_json(after) | {"said": answer.text, "later": self.take is None}

    async def _lane(self, named: str) -> tuple[str, tuple[Row, ...]]:
        """The lane of this name; one of the terminal's own is made when it is new."""
        lane = await reads.lane_called(self.store, named)
        if lane is not None:
            if lane.direct or self.people.listed(lane.address):
                return lane.id, ()
            raise LookupError(f"nobody may talk to me in {lane.address.place}; allow it first")
        if channel_of(named) != LOCAL:
            raise LookupError(f"there is no lane {named!r}; laneway lanes lists them")
        try:
            address = Address(LOCAL, local_name(named))
        except ValueError as fault:
            raise LookupError(str(fault)) from fault
        row = rows.new_lane(named, address, True, "", self.store.clock.now(), OWNER)
        return named, (row, rows.lane_setting(named, "person", OWNER))


def as_json(job: Job) -> Json:
    return {
        "id": job.id,
        "kind": job.kind.value,
        "lane": job.lane,
        "when": f"{job.what} {job.said}" if job.what else job.said,
        "zone": job.zone,
        "prompt": job.prompt,
        "state": job.state.value,
        "next": instant(job.next_at) if job.state is JobState.ACTIVE else None,
        "last": instant(job.last_due),
        "last_result": job.last_result,
        "running": job.turn is not None,
        "person": job.person,
        "made_by": job.made_by,
        "catch_up_s": None if job.catch_up is None else job.catch_up / 1000,
        "if_busy": job.if_busy.value,
        "budget_usd": job.budget,
        "until": instant(job.until),
        "each_time": job.each_time,
    }
