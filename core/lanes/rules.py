"""Lanes: one event in, commands out.

Here stand the rules that look at more than one lane: arrivals, pauses, drain, restore; starts are
in starting.py, side answers in aside.py. What concerns one lane alone is in one_lane.py and what it
imports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.lane_commands import Command, Join, Refusal
from core.lane_events import (
    Arrived,
    AsideAsked,
    Configured,
    DaySpent,
    DrainAsked,
    DrainEnded,
    Event,
    LimitsChanged,
    PauseAsked,
    Renewed,
    ResumeAsked,
    SideAsked,
)
from core.lanes import aside, endings, one_lane, starting, steering, stopping
from core.lanes.board import Board, Mark
from core.lanes.lane import UNDER_WAY, Lane, LaneView, Phase
from core.lanes.step import Step
from core.turns import Busy, EnginePause, LaneFacts, Limits, Rank, Status, Stop, StopKind, Turn
from core.waiting import full, merged, queued

AT_WORK = frozenset({Phase.STARTING, Phase.RUNNING})
EVERYBODY = DaySpent(everybody=True)


class Lanes:
    def __init__(self, limits: Limits) -> None:
        self._board = Board(limits)

    def handle(self, event: Event) -> list[Command]:
        self._board.begin_step()
        step = Step(self._board.door)
        match event:
            case Arrived():
                self._arrived(event, step)
            case SideAsked():
                aside.asked(self._board, event, step)
            case AsideAsked():
                aside.moved(self._board, event, step)
            case PauseAsked():
                self._hold(event, step, paused=True)
            case ResumeAsked():
                self._hold(event, step, paused=False)
            case LimitsChanged():
                self._board.set_door(replace(self._board.door, limits=event.limits))
            case DaySpent():
                self._board.set_door(replace(self._board.door, spent=event))
                self._cut_off(Stop(StopKind.BUDGET), step, event)
            case DrainAsked():
                self._board.set_door(replace(self._board.door, draining=True))
            case DrainEnded():
                self._board.set_door(replace(self._board.door, draining=True))
                self._cut_off(Stop(StopKind.DRAIN), step)
            case Renewed():
                self._renewed(event, step)
            case Configured():
                self._configured(event)
            case _:
                # A lane not in memory is idle, and an idle lane stays the same in all of these;
                # they bring no facts about it, so it must not get into memory either.
                before = self._board.get(event.lane)
                idle = Lane(event.lane, LaneFacts())
                after = one_lane.changed(before or idle, event, step)
                if before is not None and after is not before:
                    self._board.put(after)
        starting.fill(self._board, step)
        return step.commands()

    def restore(
        self,
        turns: Sequence[Turn],
        facts: Mapping[str, LaneFacts],
        paused_all: bool,
        paused_engines: Mapping[str, EnginePause],
    ) -> list[Command]:
        """The same state from what is stored: the unfinished turns, in the order of their ids.

        Asking and settling are not stored. A question ends with its turn, and a turn that was
        settling is over.
        """
        board = self._board
        board.begin_step()
        board.set_door(replace(board.door, paused=paused_all, engines=dict(paused_engines)))
        step = Step(board.door)
        became: dict[int, Turn] = {}
        # An offered message needs to know what became of the turn, which may have a higher id.
        for turn in sorted(turns, key=lambda turn: turn.offered_to is not None):
            if turn.offered_to is None:
                now, news = endings.after_crash(turn, step.door.limits)
            else:
                into = became.get(turn.offered_to)
                now, news = endings.offered_after_crash(turn, into)
            became[turn.id] = now
            if now is not turn:
                step.save(now)
            if news is not None:
                step.tell(news, now)
            if now.status is Status.WAITING:
                lane = board.lane(now.lane, facts.get(now.lane, LaneFacts()))
                board.put(replace(lane, waiting=queued(lane.waiting, now)))
        starting.fill(self._board, step)
        return step.commands()

    # The draft

    def mark(self) -> Mark:
        return self._board.mark()

    def undo(self, mark: Mark) -> None:
        """Take back exactly what was handled since the mark."""
        self._board.undo(mark)

    def settle(self) -> None:
        """What was handled so far is committed; it cannot be taken back any more."""
        self._board.settle()

    # Looking

    @property
    def running(self) -> int:
        """Turns that take up a slot: main turns not yet ended, without those that ask."""
        return self._board.slots.running

    def phases(self) -> Counter[str]:
        """How many lanes are in each phase, or wait; idle ones are none of them."""
        found: Counter[str] = Counter()
        for lane in self._board:
            if not lane.idle:
                found[lane.phase.value if lane.phase else "waiting"] += 1
        return found

    def busy(self) -> list[str]:
        """The lanes in which something runs or waits."""
        return [lane.key for lane in self._board if not lane.idle]

    @property
    def turns_waiting(self) -> int:
        """Turns that wait, in all lanes."""
        return sum(len(lane.waiting) for lane in self._board)

    @property
    def lanes_waiting(self) -> int:
        """Lanes in the line for a slot."""
        return len(self._board.line)

    @property
    def limits(self) -> Limits:
        return self._board.door.limits

    @property
    def paused(self) -> bool:
        """Whether nothing new starts anywhere."""
        return self._board.door.paused

    @property
    def draining(self) -> bool:
        return self._board.door.draining

    @property
    def engine_pauses(self) -> Mapping[str, EnginePause]:
        """The engines that are paused by themselves."""
        return self._board.door.engines

    def running_for(self, person: str) -> int:
        return self._board.slots.persons[person]

    def view(self, lane: str) -> LaneView | None:
        """A snapshot, or None while the lane is idle."""
        found = self._board.get(lane)
        if found is None or found.idle:
            return None
        return LaneView(
            lane=found.key,
            facts=found.facts,
            phase=found.phase,
            main=found.main,
            taken=found.taken,
            waiting=found.waiting,
            sides=found.sides,
            paused=starting.holds(self._board.door, found),
            place=self._board.line.place(found.entry) if found.entry else 0,
            engine_pause=self._board.door.engines.get(found.facts.engine),
        )

    # Arrivals

    def _arrived(self, event: Arrived, step: Step) -> None:
        turn, limits = event.turn, step.door.limits
        lane = self._board.lane(turn.lane, event.facts)
        main = lane.main
        manner = Busy.QUEUE if main is None else self._manner(lane, event, step)
        if manner is Busy.SIDE:
            aside.start(self._board, lane, turn, step)
            return
        if manner is Busy.COLLECT and (joined := merged(lane.waiting, turn, limits)):
            step.save(joined)
            step.do(Join(message_turn=turn.id, into=joined.id))
            self._board.put(replace(lane, waiting=(*lane.waiting[:-1], joined)))
            return
        if not turn.origin.job and full(lane.waiting, limits):
            step.refuse(turn, Refusal.QUEUE_FULL)
            return
        if main is not None and manner is Busy.STEER:
            turn = steering.offer(turn, main, step)
        elif main is not None and manner is Busy.INTERRUPT:
            turn = replace(turn, rank=Rank.INTERRUPTING)
            if main.status is Status.RUNNING:
                by = Stop(StopKind.INTERRUPT, turn.person)
                main = stopping.stopped(main, by, step)
        step.save(turn)
        self._board.put(replace(lane, main=main, waiting=queued(lane.waiting, turn)))

    def _manner(self, lane: Lane, event: Arrived, step: Step) -> Busy:
        """What the mode asked for comes to; QUEUE where it cannot be had here and now.

        Modes are for messages of people; jobs, continued turns and compactions queue. Steering
        and interrupting are for a turn at work: not for one that asks or settles, and not in a
        drain, in which running turns have their time.
        """
        turn, draining = event.turn, step.door.draining
        if not aside.is_message(turn):
            return Busy.QUEUE
        match event.busy:
            case Busy.SIDE if aside.hindrance(self._board, lane, turn, event.can_side):
                return Busy.QUEUE
            case Busy.STEER if steering.hindrance(
                lane,
                turn.person,
                admin=event.admin,
                can_steer=event.can_steer,
                draining=draining,
            ):
                return Busy.QUEUE
            case Busy.INTERRUPT if draining or lane.phase not in AT_WORK:
                return Busy.QUEUE
            case asked:
                return asked

    # Settings, pauses, drain

    def _renewed(self, event: Renewed, step: Step) -> None:
        """A running turn keeps the epoch it started with, and side answers go on."""
        lane = self._board.lane(event.lane, event.facts)
        facts = replace(lane.facts, epoch=lane.facts.epoch + 1)
        self._board.put(replace(lane, facts=step.save_lane(lane.key, facts)))

    def _configured(self, event: Configured) -> None:
        """A running turn keeps its folder. The shell stores this, with the other settings."""
        lane = self._board.get(event.lane)
        if lane is None and event.facts is not None:
            lane = Lane(event.lane, event.facts)
        if lane is not None:
            facts = replace(lane.facts, engine=event.engine, folder=event.folder)
            self._board.put(replace(lane, facts=facts))

    def _hold(self, event: PauseAsked | ResumeAsked, step: Step, *, paused: bool) -> None:
        """Holds on an engine and on everything are stored by the shell, with its settings."""
        board, door = self._board, self._board.door
        if event.lane:
            lane = board.lane(event.lane, event.facts)
            facts = step.save_lane(lane.key, replace(lane.facts, paused=paused))
            board.put(replace(lane, facts=facts))
        elif event.engine:
            engines = {name: why for name, why in door.engines.items() if name != event.engine}
            if isinstance(event, PauseAsked):
                engines[event.engine] = event.why
            board.set_door(replace(door, engines=engines))
        else:
            board.set_door(replace(door, paused=paused))

    def _cut_off(self, cut: Stop, step: Step, whose: DaySpent = EVERYBODY) -> None:
        """Stop what runs of these people. At the end of a drain it ends as at a crash.

        What is on its way to its engine as a day is spent is not lost: the shell lets it wait.
        """
        patient = cut.kind is StopKind.BUDGET
        for before in self._board:
            after = before
            for turn in (before.main, *before.sides):
                if turn is None or turn.status not in UNDER_WAY or not starting.meets(whose, turn):
                    continue
                if not (patient and turn is before.main and turn.status is Status.STARTING):
                    after = after.with_turn(stopping.stopped(turn, cut, step))
            if after is not before:
                self._board.put(after)
