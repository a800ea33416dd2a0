"""Lanes: one event in, commands out.

Here stand the rules that look at more than one lane: arrivals, starts, side answers, pauses,
drain, restore. What concerns one lane alone is in one_lane.py and what it imports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.lanes import endings, one_lane, steering, stopping
from core.lanes.board import Board, Mark
from core.lanes.lane import UNDER_WAY, Hold, Lane, LaneView, Phase
from core.lanes.step import Step
from core.turns import (
    Arrived,
    AsideAsked,
    Busy,
    Command,
    Configured,
    DaySpent,
    DrainAsked,
    DrainEnded,
    EnginePause,
    Event,
    Join,
    Kind,
    LaneFacts,
    Limits,
    LimitsChanged,
    Origin,
    PauseAsked,
    Rank,
    Refusal,
    Renewed,
    ResumeAsked,
    SideAsked,
    Start,
    StartSide,
    Status,
    Stop,
    StopKind,
    Turn,
)
from core.waiting import find, full, merged, queued, without

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
                self._side_asked(event, step)
            case AsideAsked():
                self._aside_asked(event, step)
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
        self._fill(step)
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
        self._fill(step)
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
            paused=self._holds(found),
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
            self._start_side(lane, turn, step)
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
        if not _is_message(turn):
            return Busy.QUEUE
        match event.busy:
            case Busy.SIDE if self._no_side(lane, turn, event.can_side):
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

    # Side answers

    def _side_asked(self, event: SideAsked, step: Step) -> None:
        lane = self._board.lane(event.turn.lane, event.facts)
        if reason := self._no_side(lane, event.turn, event.can_side):
            step.refuse(event.turn, reason)
        else:
            self._start_side(lane, event.turn, step)

    def _aside_asked(self, event: AsideAsked, step: Step) -> None:
        """The message leaves the queue for a side answer, as the turn it is, in this one step."""
        lane = self._board.get(event.lane)
        turn = find(lane.waiting, event.turn) if lane else None
        if lane is None or turn is None or turn.offered_to is not None:
            step.deny(event.lane, event.person, Refusal.NOT_WAITING)
        elif turn.person != event.person and not event.admin:
            step.deny(event.lane, event.person, Refusal.NOT_YOURS, turn)
        elif reason := self._no_side(lane, turn, event.can_side and _is_message(turn)):
            step.deny(event.lane, event.person, reason, turn)
        else:
            rest = replace(lane, waiting=without(lane.waiting, turn.id))
            self._start_side(rest, turn, step)

    def _no_side(self, lane: Lane, turn: Turn, can_side: bool) -> Refusal | None:
        door = self._board.door
        if door.draining:
            return Refusal.DRAINING
        if _meets(door.spent, turn):
            return Refusal.SPENT
        if any(hold is not Hold.PERSON_SPENT for hold in self._holds(lane)):
            return Refusal.PAUSED
        if not can_side:
            return Refusal.NO_SIDE
        in_lane, in_all = len(lane.sides), self._board.slots.sides
        if in_lane >= door.limits.sides_per_lane or in_all >= door.limits.sides:
            return Refusal.SIDE_BUSY
        return None

    def _start_side(self, lane: Lane, turn: Turn, step: Step) -> None:
        side = _started(lane, replace(turn, kind=Kind.SIDE), step)
        step.do(StartSide(side))
        self._board.put(replace(lane, sides=(*lane.sides, side)))

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

    def _holds(self, lane: Lane) -> tuple[Hold, ...]:
        door, facts = self._board.door, lane.facts
        holds = []
        if facts.paused:
            holds.append(Hold.LANE)
        if facts.engine in door.engines:
            holds.append(Hold.ENGINE)
        if door.paused:
            holds.append(Hold.ALL)
        if door.spent.everybody:
            holds.append(Hold.ALL_SPENT)
        elif lane.waiting and _meets(door.spent, lane.waiting[0]):
            holds.append(Hold.PERSON_SPENT)
        return tuple(holds)

    def _cut_off(self, cut: Stop, step: Step, whose: DaySpent = EVERYBODY) -> None:
        """Stop what runs of these people. At the end of a drain it ends as at a crash.

        What is on its way to its engine as a day is spent is not lost: the shell lets it wait.
        """
        patient = cut.kind is StopKind.BUDGET
        for before in self._board:
            after = before
            for turn in (before.main, *before.sides):
                if turn is None or turn.status not in UNDER_WAY or not _meets(whose, turn):
                    continue
                if not (patient and turn is before.main and turn.status is Status.STARTING):
                    after = after.with_turn(stopping.stopped(turn, cut, step))
            if after is not before:
                self._board.put(after)

    # Starts

    def _fill(self, step: Step) -> None:
        """Start what can start, the longest waiting lane first.

        Nothing that could start was left over before this event. So unless a slot or a folder
        became free, only a lane the event was about needs a look: the line can be long, and one
        more message must not cost a walk along it.
        """
        board = self._board
        if board.door.draining or board.door.paused:
            return
        if board.freed or len(board.touched) > 1:
            self._walk(step)
        else:
            for key in list(board.touched):
                lane = board.get(key)
                if lane is not None and lane.entry is not None and self._may_start(lane):
                    self._start(lane, step)

    def _walk(self, step: Step) -> None:
        board, index = self._board, 0
        while index < len(board.line) and board.slots.running < board.door.limits.running:
            lane = board.get(board.line[index])
            if lane is not None and self._may_start(lane):
                self._start(lane, step)  # and the next lane moves up to this place
            else:
                index += 1

    def _may_start(self, lane: Lane) -> bool:
        """Whether a lane of the line may start. In a lane order beats caps: its head counts."""
        board = self._board
        return (
            board.slots.admit(lane.waiting[0], board.door.limits)
            and lane.facts.engine not in board.door.engines
            and board.slots.free(lane.facts.folder)
            and not _meets(board.door.spent, lane.waiting[0])
        )

    def _start(self, lane: Lane, step: Step) -> None:
        turn = _started(lane, lane.waiting[0], step)
        step.do(Start(turn))
        rest = lane.waiting[1:]
        self._board.put(replace(lane, main=turn, folder=lane.facts.folder, waiting=rest))


def _is_message(turn: Turn) -> bool:
    """Said by a person, for this lane's agent; not a job, a continued turn or a compaction."""
    return turn.origin is Origin.PERSON and turn.kind is Kind.MAIN


def _meets(spent: DaySpent, turn: Turn) -> bool:
    return spent.everybody or turn.person in spent.people


def _started(lane: Lane, turn: Turn, step: Step) -> Turn:
    """The start is counted and saved before it is made, so that no crash makes it a loop."""
    return step.save(
        replace(turn, status=Status.STARTING, attempts=turn.attempts + 1, epoch=lane.facts.epoch)
    )
