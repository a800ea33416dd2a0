"""The asyncio shell round the lane rules: one step at a time, durable before it has an effect.

Every change of a lane comes through ``take``: its identity, its rows and its event are one unit of
the store's group commit. The lane rules work on a draft inside the transaction; only after the
commit are their commands carried out, and a failed commit takes the draft back. So there is one
owner of lane state (``Lanes``), and what people see never runs ahead of what is stored.

It must not know any platform, the commands people type, or how an engine works.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace

from core import lane_events, restoring
from core.budgeting import Budgeting, Money
from core.engines.base import Abilities, Choices, Engine, Offering
from core.guard import guarded
from core.items import Item
from core.lane_commands import (
    Cancel,
    Command,
    Join,
    Prompt,
    Refuse,
    Save,
    SaveLane,
    Start,
    StartSide,
    Steer,
    Tell,
    Withdraw,
)
from core.lane_events import DrainAsked, DrainEnded, Event
from core.lane_ids import channel_of
from core.lanes import Lanes, LaneView
from core.leftovers import shown_for
from core.lifting import lift
from core.notices import Notices
from core.preparing import Defaults
from core.running import Running
from core.steps import Restoring, Step
from core.store import reads
from core.store.errors import StoreError
from core.store.records import Delivery, DeliveryState
from core.store.store import Store
from core.store.writer import Unit
from core.turn_counts import TurnCounts
from core.turn_life import TurnLife
from core.turns import Kind, Limits, Stop, StopKind, Turn

log = logging.getLogger("laneway.runner")

GoOn = Callable[[int], Awaitable[None]]  # continues the turn with this id
TELLS_WITHIN = 1.2  # seconds an engine has to say what it can be set to; a command waits for it
PROMISED = 3_600_000  # ms for which a turn that was said to go on still does after a crash
LEAVE = 2.0  # seconds beyond the stop grace for the ends of turns to be stored


class Runner:
    """One for the process. ``run`` owns every task of a turn; ``take`` is the only way in."""

    def __init__(
        self,
        store: Store,
        notices: Notices,
        life: TurnLife,
        engines: Mapping[str, Engine],
        defaults: Defaults,
        channels: Collection[str],
        limits: Limits,
        money: Money | None = None,
    ) -> None:
        self.lanes = Lanes(limits)
        self.telling = life.telling
        self.budgeting = Budgeting(money or Money(), self.lanes, life.telling, life.clock)
        self._notices = notices
        self._store = store
        self._life = life
        self._engines = engines
        self._defaults = defaults
        self._channels = channels
        self._clock = life.clock
        self._running: dict[int, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # of running turns
        self._sources: dict[int, tuple[str, ...]] = {}  # message ids of turns not yet over
        self._group: asyncio.TaskGroup | None = None
        self._watchers: set[Callable[[Turn], None]] = set()
        self._lane_watchers: set[Callable[[str], None]] = set()
        self.patience: float | None = None  # seconds of the drain, when they were changed
        self.messages: Counter[str] = Counter()  # that were taken, by channel
        self.counts = TurnCounts()
        self._idle = asyncio.Event()
        self._idle.set()
        self._releasing = asyncio.Lock()

    async def run(
        self,
        ready: asyncio.Event,
        stop: asyncio.Event,
        drain: float,
        go_on: GoOn | None = None,
    ) -> None:
        """Restore, run turns until ``stop`` is set, then drain for at most ``drain`` seconds.

        ``go_on`` continues a turn that a crash cut off; without it people are asked. Messages are
        still taken while it drains; returns when no turn runs any more.
        """
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self._life.approvals.begin(group, self.take)
            await self._restore(go_on)
            showing = group.create_task(self._notices.run(self.take, self), name="waiting notices")
            lifting = group.create_task(
                lift(self.take, self.lanes, self._clock), name="ends of pauses"
            )
            spending = group.create_task(self.budgeting.run(self.take), name="days and caps")
            ready.set()
            await stop.wait()
            lifting.cancel()
            spending.cancel()
            await self._drain(group, drain if self.patience is None else self.patience)
            self._group = None  # what is decided from now on is as after a crash
            showing.cancel()

    async def take(self, *items: Item) -> list[bool]:
        """Commit the items in order with whatever else is pending; True where it was new."""
        units = []
        for item in items:
            step = Step(self, item)
            units.append(Unit(item.identity, step.decide, step.undo, step.done))
        return await self._store.commit(*units)

    def now(self) -> int:
        return self._clock.now()

    async def renew(self, limits: Limits, money: Money) -> None:
        """Go by other limits and caps from now on."""
        await self.take(Item(event=lane_events.LimitsChanged(limits)))
        await self.budgeting.renew(money, self.take)

    def view(self, lane: str) -> LaneView | None:
        """The lane as it is now; None when nothing runs or waits there."""
        return self.lanes.view(lane)

    def since(self, turn: int) -> int | None:
        """When a running turn began; milliseconds since 1970."""
        running = self._running.get(turn)
        return running.began_at if running else None

    def doing(self, lane: str) -> str:
        """The tool that the lane's main turn is at; "" while it thinks or writes."""
        work = self._life.at_work.of(lane)
        return work.doing if work else ""

    def acting(self, engine: str) -> str:
        """The engine that takes the turns of this one now: itself, or what stands in for it."""
        return self._life.health.acting(engine)

    async def choices(self, engine: str, model: str) -> Choices:
        """What this engine can be set to, as far as it can tell at once."""
        known: object = self._engines.get(engine)
        if not isinstance(known, Offering):
            return Choices()
        try:
            async with asyncio.timeout(TELLS_WITHIN):
                return await known.choices(model)
        except TimeoutError:
            return Choices()

    def abilities(self, engine: str) -> Abilities:
        known = self._engines.get(self.acting(engine))
        return known.abilities if known else Abilities()

    def cancel_now(self, lane: str, stop: Stop, turn: int | None = None) -> None:
        """End what runs in ``lane`` from memory, before its stop is stored: a stop needs no disk.

        The event follows through ``take`` like any other; done twice it changes nothing.
        """
        for running in self._running.values():
            named = turn is None or running.turn.id == turn
            ends = running.turn.kind is not Kind.SIDE or stop.kind is StopKind.STOP
            if running.turn.lane == lane and named and ends:
                running.cancel(stored=False)

    def on_over(self, watcher: Callable[[Turn], None]) -> Callable[[], None]:
        """Call ``watcher`` with every turn that ends; returns how to stop that."""
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)

    def on_change(self, watcher: Callable[[str], None]) -> Callable[[], None]:
        """Call ``watcher`` with every lane that a commit changed or told something.

        Returns how to stop that.
        """
        self._lane_watchers.add(watcher)
        return lambda: self._lane_watchers.discard(watcher)

    # After a commit -----------------------------------------------------------------------

    def heard(self, item: Item) -> None:
        """Remember which messages a turn came from, for their receipts."""
        for message in item.messages:
            self.messages[channel_of(message.lane)] += 1
        for message in (*item.messages, *item.joined):
            if message.turn is not None and message.message_id:
                known = self._sources.get(message.turn, ())
                self._sources[message.turn] = (*known, message.message_id)

    def carry_out(
        self, commands: Sequence[Command], deliveries: Sequence[Delivery], lane: str = ""
    ) -> None:
        """Do what the rules decided; called in order, right after each commit.

        ``lane``: the one that the event was about; it may have changed without any command.
        """
        self.lanes.settle()
        self.budgeting.settle()
        self.telling.deliver(deliveries)
        touched: dict[str, None] = {lane: None} if lane else {}
        for command in commands:
            match command:
                case Save(turn):
                    touched[turn.lane] = None
                    self._saved(turn)
                case Start(turn) | StartSide(turn):
                    self._start(turn)
                case Prompt(turn_id):
                    if running := self._running.get(turn_id):
                        running.go_ahead()
                case Cancel(turn_id):
                    if running := self._running.get(turn_id):  # may have just ended
                        running.cancel(stored=True)
                case Steer(turn_id, into):
                    if running := self._running.get(into):
                        running.steer(turn_id)
                case Withdraw():
                    pass  # no engine gives a message back; what became of it is told as it comes
                case Join(message_turn, into):
                    moved = self._sources.pop(message_turn, ())
                    self._sources[into] = (*self._sources.get(into, ()), *moved)
                case SaveLane(lane):
                    touched[lane] = None
                case Refuse() | Tell():
                    pass
        for lane in touched:
            self._notices.changed(lane)
        for lane in (*touched, *{one.lane for one in deliveries if one.lane not in touched}):
            for watcher in tuple(self._lane_watchers):
                watcher(lane)
        self._notices.all_changed()  # a slot, a pause or a limit concerns lanes of no command

    def _saved(self, turn: Turn) -> None:
        self.telling.receipt(turn, self._sources.get(turn.id, ()))
        if not turn.status.over:
            return
        self._sources.pop(turn.id, None)
        running = self._running.get(turn.id)
        self.counts.over(turn, running.ran if running else None, self._clock.now())
        self._life.outbox.over(turn.id)
        for watcher in tuple(self._watchers):
            watcher(turn)

    # Tasks --------------------------------------------------------------------------------

    def _start(self, turn: Turn) -> None:
        if self._group is None:
            return  # the end came between the decision and its commit; the next start runs it
        running = Running(turn, self._life, self.take, self._group, self.budgeting.tightest)
        self._running[turn.id] = running
        self._idle.clear()
        task = guarded(self._group, running.live(), f"turn {turn.id} in {turn.lane}")
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._gone(turn.id, running, task))

    def _gone(self, turn: int, running: Running, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._running.get(turn) is running:  # a turn whose prompt never left starts anew
            del self._running[turn]
        if not self._running:
            self._idle.set()

    async def _restore(self, go_on: GoOn | None) -> None:
        """Rebuild the lanes from the store, and settle what a crash cut off."""
        state = await restoring.stored_state(self._store, self._defaults, self._channels)
        self._sources.update(state.sources)
        await self.budgeting.load(self._store, state.turns)
        # What goes on by itself comes before what waits: nothing starts until it is in its lane.
        step = Restoring(self, state, goes_on=go_on is not None)
        await self._store.commit(Unit(None, step.decide, step.undo, step.done))
        if go_on is not None:
            # With those of a start that was itself cut off between its word and here.
            found = await reads.promised(self._store, self._clock.now() - PROMISED)
            promised = {row.id for row in found if channel_of(row.lane) in self._channels}
            for turn in sorted(promised | {turn.id for turn in step.going_on()}):
                await go_on(turn)
            if not state.paused_all:
                await self.take(Item(event=lane_events.ResumeAsked()))
        await self._notices.restore()

    async def adopt(self, channel: str) -> None:
        """Go on with what is stored for a channel that was not set up until now."""
        state = await restoring.stored_state(self._store, self._defaults, {channel})
        facts = {lane: one for lane, one in state.facts.items() if channel_of(lane) == channel}
        own = {turn.id for turn in state.turns}
        sources = {turn: said for turn, said in state.sources.items() if turn in own}
        self._sources.update(sources)
        state = replace(state, facts=facts, sources=sources)
        step = Restoring(self, state)
        await self._store.commit(Unit(None, step.decide, step.undo, step.done))
        await self._life.approvals.settle_left(channel)

    def uses(self, engine: Engine) -> bool:
        """Whether a turn runs on it, or may be about to."""
        return any(running.may_use(engine) for running in self._running.values())

    async def release(self) -> tuple[int, int]:
        """Let go of what a restored backup held back; how many turns and deliveries that were."""
        async with self._releasing:  # of two who ask, the second finds nothing held any more
            return await self._release()

    async def _release(self) -> tuple[int, int]:
        state = await restoring.stored_state(self._store, self._defaults, self._channels, held=True)
        held = await reads.deliveries_held(self._store)
        deliveries = [replace(delivery, state=DeliveryState.PENDING) for delivery in held]
        self._sources.update(state.sources)
        outbox = self._life.outbox
        outbox.adopt([*state.previews.values(), *await shown_for(self._store, deliveries)])
        step = Restoring(self, replace(state, released=tuple(deliveries)))
        await self._store.commit(Unit(None, step.decide, step.undo, step.done))
        return len(state.turns), len(deliveries)

    async def _drain(self, group: asyncio.TaskGroup, patience: float) -> None:
        """Let turns finish, then end them; while the disk fails, leave without a word to it.

        What is not stored then is as after a crash, and the next start settles it.
        """
        log.info("shutting down; turns that still run: %d", len(self._running))
        told = [group.create_task(self._offered(DrainAsked()), name="drain")]
        await self._idle_within(group, patience)
        if self._running:
            told.append(group.create_task(self._offered(DrainEnded()), name="end of the drain"))
            for running in tuple(self._running.values()):
                running.cancel(stored=False)
            await self._idle_within(group, self._life.limits.grace + LEAVE)
        if self._running:
            log.error("leaving; turns that could not be stored: %d", len(self._running))
        for task in (*told, *self._tasks):
            task.cancel()

    async def _offered(self, event: Event) -> None:
        """Take an event of the gateway itself; a store that closes first does not get it."""
        with contextlib.suppress(StoreError):
            await self.take(Item(event=event))

    async def _idle_within(self, group: asyncio.TaskGroup, seconds: float) -> None:
        """Until no turn runs any more, at most so long."""
        last = group.create_task(self._idle.wait(), name="wait for the last turn")
        timer = group.create_task(self._clock.sleep(seconds), name="drain time")
        await asyncio.wait((last, timer), return_when=asyncio.FIRST_COMPLETED)
        last.cancel()
        timer.cancel()
