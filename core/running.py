"""One running turn, from its start to the lane being free again.

The life of a turn: fetch its files, open the engine, commit *prompted*, hand over the prompt, feed
the preview, commit the result, wait until the engine's processes are gone or handed back. Whatever
breaks in here ends this turn and nothing else; that is what the one broad ``except`` is for.

It tells the lane rules what happens through ``take`` and never looks at other turns or lanes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, replace

from core import turns
from core.approvals import Approvals
from core.clock import Clock
from core.engines import base
from core.engines.base import Decision, EngineError, Request, Run
from core.items import Item, Said, Take
from core.live import Live
from core.outbox import Outbox
from core.preparing import Prepared, Preparing, Unworkable
from core.store import rows
from core.telling import Telling
from core.turns import Kind, Result, Turn
from core.wording import INTERNAL_FAULT, NO_RESULT, NOT_STOPPED

log = logging.getLogger("laneway.turn")

RETRY_PAUSE = 1.0  # seconds before the second try to hand a prompt over; the third waits longer
USAGE_EVERY = 1.0  # seconds between two stored usages of a turn
STOP_COMES = 5.0  # seconds a turn's end waits for the event of the stop that ended it
BACK_STOP = 1.0  # seconds after the grace until a turn that does not end is set aside


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds. Both pause while a person decides."""

    idle: float  # without any event of the engine
    turn: float
    grace: float  # from a stop to the kill of the whole process tree


@dataclass(frozen=True, slots=True)
class TurnLife:
    """What every turn needs; made once."""

    preparing: Preparing
    approvals: Approvals
    outbox: Outbox
    telling: Telling
    clock: Clock
    limits: TimeLimits
    previews: bool


class Running:
    """A turn that runs. ``live`` never raises but CancelledError."""

    def __init__(self, turn: Turn, life: TurnLife, take: Take, group: asyncio.TaskGroup) -> None:
        self.turn = turn
        self._life = life
        self._take = take
        self._group = group
        self._go = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._run: Run | None = None
        self._live: Live | None = None
        self._prepared: Prepared | None = None
        self._preparing: asyncio.Timeout | None = None
        self._answer: list[str] = []
        self._usage: base.Usage | None = None
        self._usage_saved = -USAGE_EVERY
        self._session = ""
        self._written: list[rows.Row] = []  # goes with the next commit
        self._cancelled = False
        self._stop_stored = asyncio.Event()
        self._settled = False
        self.began_at = life.clock.now()  # ms since 1970
        self._heard_at = self._began = life.clock.monotonic()
        self._undecided = 0
        self._decided = asyncio.Event()
        self._decided.set()
        self._paused = 0.0  # seconds spent waiting for people
        self._asked_at = 0.0

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
        if self._cancelled:
            return
        self._cancelled = True
        self._go.set()
        self._group.create_task(self._stop(), name=f"stop turn {self.turn.id}")

    def steer(self, message_turn: int) -> None:
        self._group.create_task(self._offer(message_turn), name=f"steer turn {self.turn.id}")

    def withdraw(self, message_turn: int) -> None:
        """No engine can give a message back once it was offered; the fate is told as it comes."""
        log.debug("turn %d: message of turn %d stays offered", self.turn.id, message_turn)

    # Its life -----------------------------------------------------------------------------

    async def live(self) -> None:
        self._work = self._group.create_task(self._guarded(), name=f"work of turn {self.turn.id}")
        watch = self._group.create_task(self._watch_limits(), name=f"limits of turn {self.turn.id}")
        try:
            await asyncio.wait((self._work,))
        finally:
            watch.cancel()
            if not self._work.done():
                self._work.cancel()
        if self._work.cancelled():
            await self._set_aside()
        await self._take(
            self._item(turns.Ended(self.turn.id, self.turn.lane, self._life.clock.now()))
        )

    async def _guarded(self) -> None:
        """The border to engines: any fault in here is this turn's failure and is told."""
        try:
            await self._through()
        except (EngineError, Unworkable) as fault:
            await self._settle(Result.FAILED, str(fault))
        except Exception:
            log.exception("turn %d in %s broke", self.turn.id, self.turn.lane)
            await self._settle(Result.FAILED, INTERNAL_FAULT)
        finally:
            if self._live:
                self._live.close()

    async def _ready(self) -> Prepared | None:
        """Prepare; a stop, also one of a drain's end, cuts it short: files can be slow to come.

        What could not be sent a moment ago is not tried at once.
        """
        try:
            async with asyncio.timeout(0 if self._cancelled else None) as self._preparing:
                if self.turn.unsent:
                    await self._life.clock.sleep(RETRY_PAUSE * self.turn.unsent**2)
                return await self._life.preparing.prepare(self.turn)
        except TimeoutError:
            if not self._cancelled:
                raise
            return None
        finally:
            self._preparing = None

    async def _through(self) -> None:
        prepared = self._prepared = await self._ready()
        if prepared is None:
            await self._settle(Result.CANCELLED)
            return
        engine, model = prepared.engine.name, prepared.request.model
        keyboard, buttons = self._life.telling.stop_button(self.turn)
        self._written = [
            rows.turn_started(self.turn.id, self.began_at, engine, model),
            *(buttons if self._life.previews else ()),
        ]
        if self._cancelled:
            await self._settle(Result.CANCELLED)
            return
        self._run = prepared.engine.run(prepared.request)
        live = self._live = Live(
            self.turn.id,
            self.turn.lane,
            prepared.direct,
            prepared.limits,
            self._life.outbox,
            self._life.clock,
            self._life.previews,
            keyboard,
        )
        beat = self._group.create_task(live.run(), name=f"live view of turn {self.turn.id}")
        try:
            async with contextlib.aclosing(self._run.events()) as events:
                async for event in events:
                    self._heard_at = self._life.clock.monotonic()
                    await self._on(event, prepared.request)
        finally:
            live.close()
            beat.cancel()
        if not self._settled:
            await self._settle(Result.FAILED, NO_RESULT)
        if self._run.quarantine:
            await self._quarantine(self._run.quarantine)

    async def _on(self, event: base.Event, request: Request) -> None:
        """One event of the engine."""
        match event:
            case base.Started(session, model):
                await self._prompted(session, model)
            case base.Text(delta):
                self._answer.append(delta)
                self._feed(event)
            case base.Thought() | base.ToolStarted() | base.ToolEnded():
                self._feed(event)
            case base.Usage():
                await self._used(event)
            case base.ApprovalAsked():
                await self._asked(event)
            case base.ApprovalWithdrawn(approval):
                await self._life.approvals.withdraw(self.turn.id, approval)
            case base.FileMade(path, name):
                said = self._life.telling.file(self.turn, request.folder, path, name)
                await self._take(Item(deliveries=said.deliveries))
            case base.SteerSettled(turn, taken, certain):
                settled = (
                    turns.SteerTaken(turn, self.turn.lane, certain)
                    if taken
                    else turns.SteerRefused(turn, self.turn.lane)
                )
                await self._take(self._item(settled))
            case base.Unsent(error):
                await self._unsent(error)
            case base.Finished(result, error):
                await self._settle(result, error)

    def _feed(self, event: base.Event) -> None:
        if self._live and not self._cancelled:
            self._live.feed(event)

    async def _prompted(self, session: str, model: str) -> None:
        """Commit that the prompt leaves now, and wait for the rules' go-ahead."""
        prepared = self._prepared
        assert prepared is not None
        self._session = session
        now = self._life.clock.now()
        written = [*self._written, rows.turn_prompted(self.turn.id, now, session, model)]
        self._written = []
        if self.turn.kind is not Kind.SIDE:  # a side answer's session is a fork, and forgotten
            engine = prepared.engine.name
            written.append(rows.session(self.turn.lane, engine, self.turn.epoch, session, now))
        await self._take(self._item(turns.Prompted(self.turn.id, self.turn.lane), *written))
        await self._go.wait()
        if self._cancelled and self._run:
            # The rules refused the prompt, or a stop came first: the engine must not get it.
            await self._run.stop(self._life.limits.grace)

    async def _used(self, usage: base.Usage) -> None:
        self._usage = usage
        now = self._life.clock.monotonic()
        if now - self._usage_saved >= USAGE_EVERY:
            self._usage_saved = now
            await self._take(self._item(None, self._usage_row(usage)))

    def _usage_row(self, usage: base.Usage) -> rows.Row:
        return rows.usage(self.turn.id, usage.tokens_in, usage.tokens_out, usage.cost)

    async def _asked(self, asked: base.ApprovalAsked) -> None:
        """Ask a person, unless a rule or the mode answers; typing and limits pause meanwhile."""
        prepared = self._prepared
        assert prepared is not None

        def decided(decision: Decision) -> None:
            self._undecided -= 1
            if self._undecided == 0:
                self._decided.set()
                self._paused += self._life.clock.monotonic() - self._asked_at
                self._heard_at = self._life.clock.monotonic()
                if self._live:
                    self._live.release()
            if self._run:
                self._run.answer(asked.id, decision)

        if self._undecided == 0:
            self._asked_at = self._life.clock.monotonic()
            self._decided.clear()
            if self._live:
                self._live.hold()
        self._undecided += 1
        await self._life.approvals.ask(
            self.turn, prepared.engine.name, prepared.request.approvals, asked, decided
        )

    # Ends ---------------------------------------------------------------------------------

    async def _unsent(self, error: str) -> None:
        self._settled = True
        if self._live:
            self._live.close()  # the next try has a view of its own, if there is a next one
        written = rows.turn_prompted(self.turn.id, None, self._session, "")
        event = turns.Unsent(self.turn.id, self.turn.lane, error)
        shown = self._shown()

        def closing(turn: Turn) -> Said:
            """What tells that it was given up takes the preview's place; after a stop we do."""
            stopped = shown and turn.stop is not None
            return self._life.telling.closing(turn, "", error, shown) if stopped else Said()

        await self._take(replace(self._item(event, written), closing=closing))

    async def _settle(self, result: Result, error: str = "") -> None:
        """Commit the result once: status, answer, usage and the deliveries to make."""
        if self._settled:
            return
        self._settled = True
        if self._cancelled and result is not Result.DONE:
            await self._stop_known()
        await self._life.approvals.cancel(self.turn.id)
        text = "".join(self._answer)
        preview = self._shown()
        written = [
            *self._written,
            rows.turn_result(self.turn.id, self._life.clock.now(), text, error),
        ]
        if self._usage:
            written.append(self._usage_row(self._usage))

        def closing(turn: Turn) -> Said:
            return self._life.telling.closing(turn, text, error, preview)

        item = self._item(turns.Finished(self.turn.id, self.turn.lane, result, error), *written)
        await self._take(replace(item, closing=closing))

    def _shown(self) -> bool:
        """Close the live view; whether something of it is, or may be, in the thread."""
        if self._live:
            self._live.close()
        return self._life.outbox.shows(self.turn.id)

    async def _stop_known(self) -> None:
        """Wait until the stop that ended the engine is stored; it is on its way."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_COMES):
                await self._stop_stored.wait()

    async def _stop(self) -> None:
        """The stop ladder, and its back-stop: the lane is free in the end, whatever happens."""
        grace = self._life.limits.grace
        if self._run is None:
            if self._preparing:
                self._preparing.reschedule(0)  # at once
            return
        try:
            async with asyncio.timeout(grace + BACK_STOP):
                await self._run.stop(grace)
                if self._work:
                    await asyncio.wait((self._work,))
        except TimeoutError:
            log.error("turn %d in %s did not end; set aside", self.turn.id, self.turn.lane)
            if self._work:
                self._work.cancel()

    async def _set_aside(self) -> None:
        """The engine did not end even after the kill: its session is never used again."""
        await self._settle(Result.CANCELLED, NOT_STOPPED)
        await self._quarantine(NOT_STOPPED)

    async def _quarantine(self, reason: str) -> None:
        if self._prepared and self._session:
            engine = self._prepared.engine.name
            row = rows.quarantine(self.turn.lane, engine, self._session, reason)
            await self._take(self._item(None, row))

    async def _offer(self, message_turn: int) -> None:
        text = await self._life.preparing.text_of(message_turn)
        if self._run and not self._settled:
            await self._run.steer(message_turn, text)
        else:
            await self._take(self._item(turns.SteerRefused(message_turn, self.turn.lane)))

    async def _watch_limits(self) -> None:
        """Ends the turn when the engine is silent, or the turn too long."""
        limits, clock = self._life.limits, self._life.clock
        while True:
            await self._decided.wait()
            now = clock.monotonic()
            idle_left = self._heard_at + limits.idle - now
            turn_left = self._began + self._paused + limits.turn - now
            if idle_left > 0 and turn_left > 0:
                await clock.sleep(min(idle_left, turn_left))
                continue
            log.warning("turn %d in %s met a time limit", self.turn.id, self.turn.lane)
            event = turns.SkipAsked(
                self.turn.lane, "", kind=turns.StopKind.LIMIT, turn=self.turn.id
            )
            await self._take(self._item(event))
            return

    def _item(self, event: turns.Event | None, *written: rows.Row) -> Item:
        return Item(event=event, rows=written)
