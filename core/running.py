"""One running turn, from its start to the lane being free again.

Two halves: ``_talk`` leads the conversation with the engine and may be cut off at any point;
``live`` waits for how it ended, commits that (settling.py) and frees the lane, and is never cut
off. Whatever breaks in the talk ends this turn and nothing else; that is what the one broad
``except`` is for. It tells the lane rules what happens through ``take`` and never looks at other
turns or lanes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from dataclasses import replace

from core import lane_events, turns
from core.aftermath import After, Aftermath
from core.answer import Answer
from core.budgeting import NotToday, Tightest, hindrance, not_kept
from core.budgets import Scope
from core.course import Course
from core.engines import base
from core.engines.base import Decision, EngineError, Request, Run
from core.guard import fault_of, guarded
from core.items import Item, Take
from core.live import Live, type_on
from core.metering import Meter
from core.patience import Limit, Patience
from core.preparing import Prepared, Unworkable
from core.settling import End, Settling
from core.store import rows
from core.telling import Remains
from core.tools import Seat
from core.turn_counts import Ran
from core.turn_life import TurnLife
from core.turns import Kind, Result, Turn
from core.wording import INTERNAL_FAULT, NO_RESULT, NOT_STOPPED, TOO_LONG, TOO_SILENT

log = logging.getLogger("laneway.turn")

RETRY_PAUSE = 1.0  # seconds before the second try to hand a prompt over; the third waits longer
STOP_COMES = 5.0  # seconds a turn's end waits for the event of the stop that ended it
SILENT = base.Failure(base.FailureKind.BROKEN)  # an engine that gave no sign of life
BACK_STOP = 1.0  # seconds after the grace until an engine that does not end is set aside


class Running:
    """A turn that runs. ``live`` never raises but CancelledError."""

    def __init__(
        self,
        turn: Turn,
        life: TurnLife,
        take: Take,
        group: asyncio.TaskGroup,
        tightest: Tightest,
    ) -> None:
        self.turn = turn
        self._tightest = tightest  # of the caps on money that it is under now
        self.began_at = life.clock.now()  # ms since 1970
        self._life = life
        self._take = take
        self._group = group
        self._settling = Settling(take, life.telling, life.clock)
        self._aftermath = Aftermath(life.health, self._settling, life.telling, life.clock)
        self._course = Course(
            life.clock,
            Answer(life.spill / f"answer-{turn.id}-{self.began_at}.md"),
            Patience(life.clock, life.limits.idle, life.limits.turn),
            life.at_work,
        )
        self._meter = Meter(turn, take, tightest, life.prices, life.clock)
        self._limit = ""  # words for the time limit that ended it
        self._written: list[rows.Row] = []  # goes with the next commit
        self._go = asyncio.Event()  # the prompt may leave, or the turn is being ended
        self._stop_stored = asyncio.Event()
        self._cancelled = False
        self._end: End | None = None
        self._over = asyncio.Event()  # the end is known
        self._talking: asyncio.Task[None] | None = None
        self._preparing: asyncio.Timeout | None = None
        self._prepared: Prepared | None = None
        self._run: Run | None = None
        self._seat: Seat | None = None  # its agent's way to the gateway
        self._session = ""  # known once the prompt may leave
        self._files = False  # some were sent, or it was told why not
        self._quarantine = ""  # why the session may never be used again

    @property
    def ran(self) -> Ran:
        first_text_at = self._course.first_text_at
        return Ran(self._meter.engine, self.began_at, first_text_at, self._meter.used.total)

    # What the runner asks for -------------------------------------------------------------

    def go_ahead(self) -> None:
        """*Prompted* is committed; the prompt may leave."""
        self._go.set()

    def cancel(self, *, stored: bool) -> None:
        """End the engine; a second time does nothing.

        ``stored``: the rules know why. A stop from memory comes first and its event follows; the
        turn's end waits for it, so that it is stored as stopped and not as failed.
        """
        if stored:
            self._stop_stored.set()
        if not self._cancelled:
            self._cancelled = True
            self._go.set()
            self._beside(self._stop(), "stop of")
            # Its agent may need a while to end, and in that while nothing is allowed any more.
            self._beside(self._life.approvals.cancel(self.turn.id), "questions of")
            if self._seat:
                self._life.tools.leave(self._seat)

    def steer(self, message_turn: int) -> None:
        self._beside(self._offer(message_turn), "steering of")

    def may_use(self, engine: base.Engine) -> bool:
        """Whether this turn runs on it; one that is being prepared may."""
        return self._prepared is None or self._prepared.engine is engine

    # Its life -----------------------------------------------------------------------------

    async def live(self) -> None:
        talking = self._talking = self._group.create_task(
            self._guarded(), name=f"talk of turn {self.turn.id}"
        )
        over = self._group.create_task(self._over.wait(), name=f"end of turn {self.turn.id}")
        try:
            await asyncio.wait((talking, over), return_when=asyncio.FIRST_COMPLETED)
            end = self._end or End(Result.CANCELLED, self._quarantine)
            await fault_of(self._settle(end), f"end of turn {self.turn.id}")
            await asyncio.wait((talking,))
        finally:
            for task in (over, talking):
                task.cancel()
        if self._prepared and (reason := self._quarantine or (self._run and self._run.quarantine)):
            engine = self._prepared.engine.name
            self._life.tools.renew(self.turn.lane, engine)
            await self._settling.quarantine(self.turn, engine, self._session, reason)
        await self._settling.freed(self.turn)

    async def _settle(self, end: End) -> None:
        if self._cancelled and end.result is not Result.DONE:
            await self._stop_known()
        await self._life.approvals.cancel(self.turn.id)
        self._course.close()
        answer = self._course.answer
        answer.close()
        shown = self._life.outbox.shows(self.turn.id)
        error = self._limit or end.error
        remains = Remains(
            answer.text,
            error,
            shown,
            answer.whole,
            files=self._files,
            # What ended before its prompt left has to be put right first, and says how.
            again=bool(self._session) and error != TOO_LONG,
        )
        after = await self._after(end)
        cap = self._tightest(self.turn)  # when the end is stored it is under none
        written, used = (*self._written, *after.rows), self._meter.used
        if end.unsent or after.again:
            end = replace(end, uncounted=after.uncounted or end.uncounted)
            await self._settling.unsent(self.turn, remains, end, self._session, used, after.rows)
            if after.later:
                self._life.outbox.over(self.turn.id)  # nothing thinks meanwhile
        else:
            remains = replace(remains, besides=after.besides)
            await self._settling.finish(self.turn, remains, end, used, written)
            await self._settling.say(self.turn, after.said)
            if self._prepared and (
                told := not_kept(cap, self._prepared.engine, end, self._meter.used.run)
            ):
                await self._settling.say(self.turn, self._life.telling.note(self.turn, told))

    async def _after(self, end: End) -> After:
        """What follows; of a turn that never came to its engine, nothing does."""
        if self._prepared is None:
            return After()
        if self._limit == TOO_SILENT and end.result is not Result.DONE:
            end = replace(end, result=Result.FAILED, failure=SILENT)
        used = self._course.effects or (self._seat is not None and self._seat.used)
        harmless = not (used or self._cancelled or self._limit)
        return await self._aftermath.of(
            self.turn, self._prepared, end, self._session, harmless=harmless
        )

    async def _stop_known(self) -> None:
        """Wait until the stop that ended the engine is stored; it is on its way."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_COMES):
                await self._stop_stored.wait()

    # The talk with the engine -------------------------------------------------------------

    async def _guarded(self) -> None:
        """The border to engines: any fault in here is this turn's failure and is told."""
        try:
            await self._talk()
        except EngineError as fault:
            self._ended(End(Result.FAILED, str(fault), failure=fault.failure))
        except Unworkable as fault:
            self._ended(End(Result.FAILED, str(fault)))
        except NotToday:
            self._ended(End(Result.CANCELLED, unsent=True, uncounted=True))
        except Exception:
            log.exception("turn %d in %s broke", self.turn.id, self.turn.lane)
            self._ended(End(Result.FAILED, INTERNAL_FAULT))
        finally:
            self._course.end()
            if self._seat:
                self._life.tools.leave(self._seat)

    def _ended(self, end: End) -> None:
        """The first end counts."""
        self._end = self._end or end
        self._over.set()

    async def _talk(self) -> None:
        prepared = self._prepared = await self._ready()
        if prepared is None:
            self._ended(End(Result.CANCELLED))
            return
        engine, model = prepared.engine.name, prepared.request.model
        self._meter.begin(engine, prepared.earlier)
        keyboard, buttons = self._life.telling.stop_button(self.turn)
        self._written.append(rows.turn_started(self.turn.id, self.began_at, engine, model))
        self._written += buttons if self._life.previews else ()
        if self._cancelled:
            self._ended(End(Result.CANCELLED))
            return
        seat = self._seat = self._life.tools.admit(
            self.turn, engine, prepared.request.folder, self._course.hold, self._course.release
        )
        cap = self._tightest(self.turn)
        own = cap.left if cap and cap.scope is Scope.TURN else None
        request = replace(prepared.request, toolbox=seat, budget=own)
        self._run = prepared.engine.run(request)
        live = Live(
            self.turn.id,
            self.turn.lane,
            prepared.direct,
            prepared.limits,
            self._life.outbox,
            self._life.clock,
            self._life.previews,
            keyboard,
            self.turn.person,
        )
        main = self.turn.kind is not Kind.SIDE
        work = self._life.at_work.begin(self.turn, self.began_at) if main else None
        self._course.begin(live, work)
        beside = [
            self._beside(live.run(), "live view of"),
            self._beside(self._watch(), "limits of"),
        ]
        try:
            async with contextlib.aclosing(self._run.events()) as events:
                async for event in events:
                    self._course.feed(event, shown=not self._cancelled)
                    await self._on(event, request)
        finally:
            live.close()
            for task in beside:
                task.cancel()
        self._ended(End(Result.FAILED, NO_RESULT))

    async def _ready(self) -> Prepared | None:
        """Prepare; a stop, also one of a drain's end, cuts it short: files can be slow to come.

        What could not be sent a moment ago is not tried at once.
        """
        life = self._life
        typing: asyncio.Task[None] | None = None  # not while it only waits
        try:
            async with asyncio.timeout(0 if self._cancelled else None) as self._preparing:
                wait = life.health.wait(self.turn.id)
                if wait is None:
                    wait = RETRY_PAUSE * self.turn.unsent**2
                if wait:
                    await life.clock.sleep(wait)
                signs = type_on(life.outbox, self.turn.lane, life.clock)
                typing = self._beside(signs, "typing before")
                return await life.preparing.prepare(self.turn)
        except TimeoutError:
            if not self._cancelled:
                raise
            return None
        finally:
            if typing:
                typing.cancel()
            self._preparing = None

    async def _on(self, event: base.Event, request: Request) -> None:
        """What one event of the engine asks for; what it says is in the turn's course already."""
        match event:
            case base.Started():
                await self._prompted(event)
            case base.Usage():
                await self._meter.see(event)
            case base.ApprovalAsked():
                await self._asked(event)
            case base.ApprovalWithdrawn(approval):
                await self._life.approvals.withdraw(self.turn.id, approval)
            case base.FileMade(path, name):
                said = await self._life.telling.file(
                    self.turn, request.folder, path, name, self._life.spill
                )
                await self._take(Item(deliveries=said.deliveries))
                self._files = self._files or bool(said.deliveries)
            case base.SteerSettled(turn, taken, certain):
                lane = self.turn.lane
                taking = lane_events.SteerTaken(turn, lane, certain)
                await self._tell(taking if taken else lane_events.SteerRefused(turn, lane))
            case base.Unsent(error, failure):
                self._ended(End(Result.FAILED, error, unsent=True, failure=failure))
            case base.Finished(result, error, failure):
                if failure and failure.kind is base.FailureKind.SPENT and request.budget:
                    await self._spent()
                self._ended(End(result, error, failure=failure))

    async def _prompted(self, started: base.Started) -> None:
        """Commit that the prompt leaves now, and wait for the rules' go-ahead."""
        prepared = self._prepared
        assert prepared is not None
        session, model = started.session, started.model
        self._session = session
        self._meter.model = model or prepared.request.model
        cap, prices = self._tightest(self.turn), self._life.prices()
        why = hindrance(self.turn, cap, prepared.engine, prices, self._meter.model)
        if why:
            raise Unworkable(why)
        now = self._life.clock.now()
        written = [*self._written, rows.turn_prompted(self.turn.id, now, session, model)]
        self._written = []
        if self.turn.kind is not Kind.SIDE:  # a side answer's session is a fork, and forgotten
            engine = prepared.engine.name
            written.append(rows.session(self.turn.lane, engine, self.turn.epoch, session, now))
        said = self._aftermath.beginning(self.turn, prepared, started)
        event = lane_events.Prompted(self.turn.id, self.turn.lane)
        await self._take(Item(event=event, rows=written, deliveries=said.deliveries))
        await self._go.wait()
        if self._cancelled and self._run:
            # The rules refused the prompt, or a stop came first: the engine must not get it.
            await self._run.stop(self._life.limits.grace)

    async def _spent(self) -> None:
        """The engine says that the cap is reached, whatever our own sum is."""
        if not self._cancelled:
            lane, kind = self.turn.lane, turns.StopKind.BUDGET
            await self._tell(lane_events.SkipAsked(lane, "", kind=kind, turn=self.turn.id))

    async def _asked(self, asked: base.ApprovalAsked) -> None:
        """Ask a person, unless a rule or the mode answers; typing and limits pause meanwhile."""
        prepared = self._prepared
        assert prepared is not None

        def decided(decision: Decision) -> None:
            self._course.release()
            if self._cancelled and decision is Decision.ALLOW:  # by a rule, or a moment too late
                decision = Decision.CANCEL
            if self._run:
                self._run.answer(asked.id, decision)

        if self._cancelled:  # nobody is asked for what is being ended
            if self._run:
                self._run.answer(asked.id, Decision.CANCEL)
            return
        self._course.hold()
        request = prepared.request
        await self._life.approvals.ask(
            self.turn, prepared.engine.name, request.approvals, request.folder, asked, decided
        )

    # Ending and steering it ---------------------------------------------------------------

    async def _stop(self) -> None:
        """The stop ladder, and its back-stop: the talk is over in the end, whatever happens.

        Only the engine is waited for. A talk that then still hangs waits for the disk, and what it
        waits for is stored all the same.
        """
        if self._run is None:
            if self._preparing:
                self._preparing.reschedule(0)  # at once
            return
        grace = self._life.limits.grace
        try:
            async with asyncio.timeout(grace + BACK_STOP):
                await self._run.stop(grace)
        except TimeoutError:
            log.error("turn %d in %s did not end; set aside", self.turn.id, self.turn.lane)
            self._quarantine = NOT_STOPPED
        if self._talking:
            await asyncio.wait((self._talking,), timeout=0 if self._quarantine else BACK_STOP)
            self._talking.cancel()

    async def _offer(self, message_turn: int) -> None:
        try:
            text = await self._life.preparing.text_of(message_turn)
        except Unworkable:  # it is told when the message has its own turn
            await self._tell(lane_events.SteerRefused(message_turn, self.turn.lane))
            return
        if self._run and not self._over.is_set():
            await self._run.steer(message_turn, text)
        else:
            await self._tell(lane_events.SteerRefused(message_turn, self.turn.lane))

    async def _watch(self) -> None:
        """Ends the turn when the engine is silent, or the turn too long."""
        met = await self._course.patience.lost()
        log.warning("turn %d in %s met a time limit: %s", self.turn.id, self.turn.lane, met)
        self._limit = TOO_SILENT if met is Limit.SILENT else TOO_LONG
        limit = turns.StopKind.LIMIT
        await self._tell(lane_events.SkipAsked(self.turn.lane, "", kind=limit, turn=self.turn.id))

    async def _tell(self, event: lane_events.Event | None, *written: rows.Row) -> None:
        await self._take(Item(event=event, rows=written))

    def _beside(self, work: Coroutine[None, None, None], what: str) -> asyncio.Task[None]:
        """A task beside the talk. A fault in it is logged, and ends neither turn nor gateway."""
        return guarded(self._group, work, f"{what} turn {self.turn.id}")
