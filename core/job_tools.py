"""Jobs that a running agent makes, lists and cancels, in its thread and with its person's rights.

What an agent sets up is asked of a person first, unless the settings allow it; what a job's own run
sets up is always asked. It must not know how agents reach it, nor how jobs fire.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from core import job_words, watch_asking, watch_words
from core.attending import begun
from core.cards import in_full
from core.clock import Clock
from core.items import Item, Take
from core.job_asking import Asked, JobLimits, asked
from core.job_rules import Job, JobState
from core.messages import clean
from core.people import People, Role
from core.showing import Showing
from core.store import jobs as stored
from core.store.store import Store
from core.tool_table import BadCall
from core.turns import Turn
from core.watch_asking import AskedWatch
from core.when import BadWhen, upcoming
from core.wording import plain

YES, NO = "Set it up", "No"
Confirm = Callable[[str, Sequence[str]], Awaitable[str | None]]  # asks a person; their choice
Read = Callable[[], "Asked | AskedWatch"]  # what is asked for, as of now; raises BadWhen


@dataclass(slots=True)
class JobTools:
    """``changed``: something is new for the timer. ``zone``: of people who named none."""

    store: Store
    people: People
    showing: Showing
    clock: Clock
    limits: JobLimits
    zone: str
    changed: Callable[[], None] = lambda: None
    _asking: set[tuple[str, str]] = field(default_factory=set)

    async def schedule(
        self, turn: Turn, when: str, prompt: str, request: str, confirm: Confirm, take: Take
    ) -> str:
        """Make a job, once for each request id; raises BadCall."""

        def wanted() -> Asked:
            now, zone = self.clock.now(), self._zone(turn.person)
            return asked(when, prompt, zone, now, self.limits)

        words = clean(when), clean(prompt)
        return await self._set_up(turn, wanted, words, request, confirm, take)

    async def watch(
        self,
        turn: Turn,
        what: str,
        when: str,
        prompt: str,
        request: str,
        confirm: Confirm,
        take: Take,
    ) -> str:
        """The same with a watch. A command or a file is always asked about."""

        def wanted() -> AskedWatch:
            now, zone = self.clock.now(), self._zone(turn.person)
            return watch_asking.asked(f"{what} {when}", prompt, zone, now, self.limits)

        words = clean(what), clean(when), clean(prompt)
        return await self._set_up(turn, wanted, words, request, confirm, take)

    async def _set_up(
        self,
        turn: Turn,
        read: Read,
        words: Sequence[str],
        request: str,
        confirm: Confirm,
        take: Take,
    ) -> str:
        if self.people.role(turn.person) is Role.NONE:
            raise BadCall("The person you work for may not set up jobs.")
        request = request or _request(turn, words)
        key = (turn.lane, request)
        if key in self._asking:
            raise BadCall("A person is being asked about this already; wait for that answer.")
        self._asking.add(key)
        try:
            known = await stored.requested(self.store, turn.lane, request)
            if known is not None:
                return f"It was set up before and stays as it is. {self._told(known)}"
            wanted = await self._wanted(turn, read)
            unasked = not (await begun(self.store, turn)).asked
            if self.limits.agents_ask or unasked or _reaches(wanted):
                if await confirm(self._question(turn, wanted), (YES, NO)) != YES:
                    raise BadCall("Nobody agreed to it, so nothing was set up.")
                wanted = await self._wanted(turn, read)  # times that count from now
            return await self._make(turn, wanted, request, take)
        finally:
            self._asking.discard(key)

    async def listed(self, turn: Turn) -> str:
        found = await stored.of_lane(self.store, turn.lane, self.clock.now())
        return json.dumps([self._fields(job, turn.person) for job in found], ensure_ascii=False)

    async def cancel(self, turn: Turn, ident: int, take: Take) -> str:
        """End a job of this thread; raises BadCall."""
        job = await stored.job(self.store, ident)
        if job is None or job.lane != turn.lane or not await self._may(turn, job):
            raise BadCall(f"There is no job {ident} in this thread that you may cancel.")
        if job.state.ended:
            return f"It has ended already ({job.state.value})."
        row = stored.state(job.id, JobState.CANCELLED, self.clock.now())
        text = f"The agent cancelled {_lower(job_words.named(job))}."
        await take(Item(rows=(row,), deliveries=self.showing.text(turn.lane, text)))
        self.changed()
        return "Cancelled."

    # Inside -------------------------------------------------------------------------------

    async def _wanted(self, turn: Turn, read: Read) -> Asked | AskedWatch:
        """What is asked for, as of now."""
        try:
            wanted = read()
        except BadWhen as refused:
            raise BadCall(str(refused)) from refused
        if _reaches(wanted) and self.people.role(turn.person) is not Role.ADMIN:
            raise BadCall("Only admins watch commands and files; the person can watch a url.")
        if await stored.count(self.store, turn.person) >= self.limits.most:
            raise BadCall(f"The person has {self.limits.most} jobs, as many as there may be.")
        return wanted

    def _question(self, turn: Turn, wanted: Asked | AskedWatch) -> str:
        """Everything the person agrees to; nothing of it is left out."""
        zone = self._zone(turn.person)
        if isinstance(wanted, AskedWatch):
            return watch_words.question(
                wanted.words,
                wanted.said,
                job_words.moment(wanted.until, zone),
                wanted.each_time,
                self.people.name(turn.person),
                wanted.prompt,
            )
        times = [job_words.moment(at, zone) for at in upcoming(wanted.plan, wanted.now, 3)]
        listed = "\n".join(f"- {one}" for one in times)
        return (
            f"The agent wants to set up a job here, {plain(wanted.said)}, that runs with the "
            f"rights of {plain(self.people.name(turn.person))}:\n\n{in_full(wanted.prompt)}\n\n"
            f"It would run:\n\n{listed}"
        )

    async def _make(self, turn: Turn, wanted: Asked | AskedWatch, request: str, take: Take) -> str:
        job = wanted.job(self.store.ids.job(), turn.lane, turn.person)
        job = replace(job, made_by="agent", request=request)
        zone = self._zone(turn.person)
        if isinstance(wanted, AskedWatch):
            made = watch_words.made(job, zone)
        else:
            made = job_words.made(job, zone, wanted.now, self.limits.catch_up)
        text = f"The agent set this up. {made}"
        shown = self.showing.text(turn.lane, text)
        await take(Item(rows=(stored.new(job),), deliveries=shown))
        self.changed()
        return f"Set up. {self._told(job)}"

    async def _may(self, turn: Turn, job: Job) -> bool:
        """A run of a job may end that job alone; a person's turn what the person may."""
        run = (await begun(self.store, turn)).job_run
        if run is not None:
            firing = await stored.of_turn(self.store, run)
            return firing is not None and firing.job.id == job.id
        return job.person == turn.person or self.people.role(turn.person) is Role.ADMIN

    def _told(self, job: Job) -> str:
        return json.dumps(self._fields(job, job.person), ensure_ascii=False)

    def _fields(self, job: Job, person: str) -> dict[str, object]:
        zone = self._zone(person)
        coming = job.next_at if job.state is JobState.ACTIVE else None
        return {
            "id": job.id,
            "kind": job.kind.value,
            "when": job_words.times(job),
            "prompt": job.prompt,
            "state": job.state.value,
            "next": job_words.moment(coming, zone) if coming else None,
            "last": job_words.moment(job.last_due, zone) if job.last_due else None,
            "last_result": job.last_result,
        }

    def _zone(self, person: str) -> str:
        return self.people.person(person, "").zone or self.zone


def _reaches(wanted: Asked | AskedWatch) -> bool:
    """Whether it runs commands or reads files by itself: only admins may, and agents only asked."""
    return isinstance(wanted, AskedWatch) and watch_words.needs_admin(wanted.what)


def _request(turn: Turn, words: Sequence[str]) -> str:
    """The same words in one turn are the same wish."""
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()
    return f"turn {turn.id} {digest[:16]}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
