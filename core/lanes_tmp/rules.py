"""The lane rules: what starts, what waits, what a stop ends, what a crash leaves.

Two things to know first:

1) Everything that decides when a turn runs lives here and in the four small files below it:
   waiting.py (order), slots.py (caps), endings.py (how turns end), board.py (the state and how it
   is taken back). No clock, no store, no await: times come in with events, and what should happen
   goes out as commands.

2) These rules do not know whether a command succeeded. The shell stores what `handle` returns in
   one transaction with the event, and carries commands out only after that. If the transaction
   fails it calls `undo`, and nothing has happened; after it, `settle`.

A main turn goes its way through one lane at a time:

    waiting -> starting -> running (-> asking -> running) -> settling -> over
                  |           |                                 |
                  +- Unsent --+---------------------------------+-> waiting, first in the lane

It is settling from `Finished` (its end is stored, its answer on the way) until `Ended` (its engine
is gone), and keeps its slot and folder that long. Reports about a turn that is not the lane's
present one are late and change nothing.

`handle` returns at most one `Save` a turn, and all of them before everything else: no start comes
before its save. Each end other than done is told exactly once, at the end; but one by a person's
stop or skip when that was asked for, together with what it dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from core import endings
from core.board import Board, Door, Lane, Mark, Phase
from core.turns import (
    Answered,
    Arrived,
    Asked,
    Busy,
    Cancel,
    Command,
    Configured,
    DrainAsked,
    DrainEnded,
    DropAsked,
    Edited,
    Ended,
    Event,
    Finished,
    Join,
    Kind,
    LaneFacts,
    Limits,
    LimitsChanged,
    News,
    Origin,
    PauseAsked,
    Prompt,
    Prompted,
    Rank,
    Refusal,
    Refuse,
    Renewed,
    Result,
    ResumeAsked,
    Save,
    SaveLane,
    SideAsked,
    SkipAsked,
    Start,
    StartSide,
    Status,
    Steer,
    SteerAsked,
    SteerRefused,
    SteerTaken,
    Stop,
    StopAsked,
    StopKind,
    Tell,
    Turn,
    Unsent,
    Withdraw,
)
from core.waiting import Queue, back, find, full, merged, queued, without

UNDER_WAY = (Status.STARTING, Status.RUNNING)


class Hold(StrEnum):
    """Why nothing starts in a lane. Holds are independent: each is released by itself."""

    LANE = "lane"
    ENGINE = "engine"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane as notices and commands show it."""

    lane: str
    facts: LaneFacts
    phase: Phase | None  # None: nothing runs, messages wait
    main: Turn | None
    waiting: Queue  # in the order they run
    sides: Queue
    paused: tuple[Hold, ...]
    place: int  # in the line of lanes for a slot, from 1; 0: not in it


class Lanes:
    def __init__(self, limits: Limits) -> None:
        self._board = Board(limits)
        self._begin()

    # The draft ------------------------------------------------------------------------

    def mark(self) -> Mark:
        return self._board.mark()

    def undo(self, mark: Mark) -> None:
        """Take back exactly what was handled since the mark."""
        self._board.undo(mark)

    def settle(self) -> None:
        """What was handled so far is committed; it cannot be taken back any more."""
        self._board.settle()

    # Looking --------------------------------------------------------------------------

    @property
    def running(self) -> int:
        """Turns that take up a slot: main turns not yet ended, without those that ask."""
        return self._board.slots.running

    @property
    def lanes_waiting(self) -> int:
        """Lanes in the line for a slot."""
        return len(self._board.line)

    def running_for(self, person: str) -> int:
        return self._board.slots.persons[person]

    def view(self, lane: str) -> LaneView | None:
        """A snapshot, or None while the lane is idle."""
        it = self._board.get(lane)
        if it is None or it.idle:
            return None
        return LaneView(
            lane=it.key,
            facts=it.facts,
            phase=it.phase,
            main=it.main,
            waiting=it.waiting,
            sides=it.sides,
            paused=self._holds(it),
            place=self._board.line.place(it.entry) if it.entry else 0,
        )

    # One event in, commands out -------------------------------------------------------

    def handle(self, event: Event) -> list[Command]:
        self._begin()
        match event:
            case Arrived():
                self._arrived(event)
            case Prompted():
                self._prompted(event)
            case Finished():
                self._finished(event)
            case Ended():
                self._ended(event)
            case Unsent():
                self._unsent(event)
            case Asked():
                self._asking(event.lane, event.turn, 1)
            case Answered():
                self._asking(event.lane, event.turn, -1)
            case Edited():
                self._edited(event)
            case SideAsked():
                self._side_asked(event)
            case SteerAsked():
                self._steer_asked(event)
            case SteerTaken():
                self._steer_taken(event)
            case SteerRefused():
                self._steer_refused(event)
            case StopAsked():
                self._stop_asked(event)
            case SkipAsked():
                self._skip_asked(event)
            case DropAsked():
                self._drop_asked(event)
            case Renewed():
                self._renewed(event)
            case Configured():
                self._configured(event)
            case PauseAsked():
                self._pause(event, paused=True)
            case ResumeAsked():
                self._pause(event, paused=False)
            case LimitsChanged():
                self._board.set_door(replace(self._door, limits=event.limits))
            case DrainAsked():
                self._board.set_door(replace(self._door, draining=True))
            case DrainEnded():
                self._drain_ended()
            case _:
                assert_never(event)
        self._fill()
        return self._commands()

    def restore(
        self,
        turns: Sequence[Turn],
        facts: Mapping[str, LaneFacts],
        paused_all: bool,
        paused_engines: Collection[str],
    ) -> list[Command]:
        """The same state from what is stored: unfinished turns in the order of their ids.

        Asking and settling are not stored: a question ends with its turn, and a turn that was
        settling is over.
        """
        self._begin()
        door = replace(self._door, paused=paused_all, engines=frozenset(paused_engines))
        self._board.set_door(door)
        waiting, commands = endings.after_crash(turns, self._limits)
        for turn in waiting:
            lane = self._lane(turn.lane, facts.get(turn.lane, LaneFacts()))
            self._board.put(replace(lane, waiting=queued(lane.waiting, turn)))
        self._fill()
        return commands + self._commands()

    # Arrivals -------------------------------------------------------------------------

    def _arrived(self, event: Arrived) -> None:
        lane, turn = self._lane(event.turn.lane, event.facts), event.turn
        main = lane.main
        manner = Busy.QUEUE if main is None else self._manner(lane, main, event)
        if manner is Busy.SIDE:
            self._start_side(lane, turn)
            return
        if manner is Busy.COLLECT and (joined := merged(lane.waiting, turn, self._limits)):
            self._save(joined)
            self._acts.append(Join(message_turn=turn.id, into=joined.id))
            self._board.put(replace(lane, waiting=(*lane.waiting[:-1], joined)))
            return
        if not turn.origin.job and full(lane.waiting, self._limits):
            self._refuse(turn, Refusal.QUEUE_FULL)
            return
        if main is not None and manner is Busy.STEER:
            turn = self._offer(turn, main)
        elif main is not None and manner is Busy.INTERRUPT:
            turn = replace(turn, rank=Rank.INTERRUPTING)
            if main.status is Status.RUNNING:
                main = self._stop(main, Stop(StopKind.INTERRUPT, turn.person))
        self._save(turn)
        self._board.put(replace(lane, main=main, waiting=queued(lane.waiting, turn)))

    def _manner(self, lane: Lane, main: Turn, event: Arrived) -> Busy:
        """What the mode asked for comes to; QUEUE where it cannot be had here and now.

        Modes are for messages of people; jobs, continued turns and compactions queue. Steering
        and interrupting are for a turn that is at work: not for one that asks or settles, and
        not in a drain, in which running turns have their time.
        """
        turn = event.turn
        if turn.origin is not Origin.PERSON or turn.kind is not Kind.MAIN:
            return Busy.QUEUE
        match event.busy:
            case Busy.SIDE:
                possible = self._no_side(lane, event.can_side) is None
            case Busy.STEER:
                asked_by = turn.person
                possible = self._no_steer(lane, asked_by, event.admin, event.can_steer) is None
            case Busy.INTERRUPT:
                possible = lane.phase in (Phase.STARTING, Phase.RUNNING) and not self._door.draining
            case _:
                possible = True
        return event.busy if possible else Busy.QUEUE

    def _edited(self, event: Edited) -> None:
        """The shell replaces the text exactly when a `Save` comes back: the message waits.

        Once offered, the engine may have the old text already.
        """
        lane = self._board.get(event.lane)
        turn = lane and find(lane.waiting, event.turn)
        if lane is None or turn is None or turn.offered_to is not None:
            return
        if event.label is not None:
            turn = replace(turn, label=event.label)
        self._board.put(replace(lane, waiting=queued(without(lane.waiting, turn.id), turn)))
        self._save(turn)

    # Side answers ---------------------------------------------------------------------

    def _side_asked(self, event: SideAsked) -> None:
        lane = self._lane(event.turn.lane, event.facts)
        if reason := self._no_side(lane, event.can_side):
            self._refuse(event.turn, reason)
        else:
            self._start_side(lane, event.turn)

    def _no_side(self, lane: Lane, can_side: bool) -> Refusal | None:
        if self._door.draining:
            return Refusal.DRAINING
        if self._holds(lane):
            return Refusal.PAUSED
        if not can_side:
            return Refusal.NO_SIDE
        if len(lane.sides) >= self._limits.sides_per_lane:
            return Refusal.SIDE_BUSY
        if not self._board.slots.admit_side(self._limits):
            return Refusal.SIDE_BUSY
        return None

    def _start_side(self, lane: Lane, turn: Turn) -> None:
        turn = replace(turn, kind=Kind.SIDE)
        side = self._started(lane, turn)
        self._acts.append(StartSide(side))
        self._board.put(replace(lane, sides=(*lane.sides, side)))

    # Steering -------------------------------------------------------------------------

    def _steer_asked(self, event: SteerAsked) -> None:
        lane = self._board.get(event.lane)
        turn = lane and find(lane.waiting, event.turn)
        if lane is None or turn is None or turn.offered_to is not None:
            self._deny(event.lane, event.person, Refusal.NOT_WAITING)
            return
        reason = self._no_steer(lane, event.person, event.admin, event.can_steer)
        if turn.person != event.person and not event.admin:
            reason = Refusal.NOT_YOURS
        if reason or lane.main is None:
            self._deny(event.lane, event.person, reason or Refusal.NOTHING_RUNS, turn)
            return
        offered = self._save(self._offer(turn, lane.main))
        rest = without(lane.waiting, turn.id)
        self._board.put(replace(lane, waiting=queued(rest, offered)))

    def _no_steer(self, lane: Lane, person: str, admin: bool, can_steer: bool) -> Refusal | None:
        """Only who began the turn, or an admin, and only in the lane's present session."""
        main = lane.main
        if self._door.draining:
            return Refusal.DRAINING
        if main is None or main.stop is not None or lane.phase is not Phase.RUNNING:
            return Refusal.NOTHING_RUNS
        if not can_steer or main.kind is Kind.COMPACT or main.epoch != lane.facts.epoch:
            return Refusal.NO_STEER
        if person != main.person and not admin:
            return Refusal.NOT_YOURS
        return None

    def _offer(self, turn: Turn, into: Turn) -> Turn:
        self._acts.append(Steer(turn.id, into.id))
        return replace(turn, rank=Rank.OFFERED, offered_to=into.id)

    def _steer_taken(self, event: SteerTaken) -> None:
        lane, turn = self._offered(event.lane, event.turn)
        if lane is None or turn is None:
            return
        turn = self._save(replace(turn, status=Status.RUNNING))
        self._tell(News.STEERED if event.certain else News.STEER_UNCERTAIN, turn)
        rest = without(lane.waiting, turn.id)
        self._board.put(replace(lane, waiting=rest, taken=(*lane.taken, turn)))

    def _steer_refused(self, event: SteerRefused) -> None:
        lane, turn = self._offered(event.lane, event.turn)
        if lane is not None and turn is not None:
            rest = without(lane.waiting, turn.id)
            self._board.put(replace(lane, waiting=self._requeued(rest, turn)))

    def _requeued(self, queue: Queue, turn: Turn) -> Queue:
        """An offered message was not taken: it waits again, unless it was stopped meanwhile."""
        if turn.stop is not None:
            by = turn.stop.by
            self._tell(News.DROPPED, self._save(replace(turn, status=Status.DROPPED)), by)
            return queue
        return queued(queue, self._save(replace(back(turn), status=Status.WAITING)))

    def _offered(self, key: str, turn: int) -> tuple[Lane | None, Turn | None]:
        lane = self._board.get(key)
        offered = lane and find(lane.waiting, turn)
        return lane, offered if offered and offered.offered_to is not None else None

    # Stop, skip, drop -----------------------------------------------------------------

    def _stop_asked(self, event: StopAsked) -> None:
        """Ends what runs in the lane and drops what waits now; later messages are kept.

        What waits goes if it is one's own; all of it for an admin or the person whose turn runs.
        A button on a side answer ends that side answer.
        """
        lane, stop = self._board.get(event.lane), Stop(StopKind.STOP, event.person)
        if event.turn is not None and (lane is None or not _unfinished(lane, event.turn)):
            return
        if lane is None:
            self._acts.append(Tell(News.NOTHING, event.lane, by=event.person))
            return
        if event.turn is not None and (side := find(lane.sides, event.turn)):
            self._stop_side(lane, side, stop)
            self._tell(News.STOPPED, side, by=event.person)
            return
        main = lane.main if lane.main and not lane.main.status.over else None
        everything = event.admin or (main is not None and main.person == event.person)
        dropped, kept, withdrawn = self._drop(lane, stop, everything)
        stopped = main and self._stop(main, stop)
        sides = tuple(self._stop(side, stop) for side in lane.sides)
        self._board.put(replace(lane, main=stopped or lane.main, waiting=kept, sides=sides))
        running = [turn for turn in (stopped, *sides) if turn and turn.stop is not None]
        if running or dropped or withdrawn:
            about = running[0] if running else None
            tell = Tell(News.STOPPED, lane.key, about, by=event.person, dropped=dropped)
            self._acts.append(tell)
        else:
            self._acts.append(Tell(News.NOTHING, lane.key, by=event.person))

    def _drop(self, lane: Lane, stop: Stop, everything: bool) -> tuple[Queue, Queue, bool]:
        """What left the queue, what stays in it, and whether something is being withdrawn."""
        dropped: list[Turn] = []
        kept: list[Turn] = []
        withdrawn = False
        for turn in lane.waiting:
            if not everything and turn.person != stop.by:
                kept.append(turn)
            elif turn.offered_to is not None:
                kept.append(self._withdraw(turn, turn.offered_to, stop))
                withdrawn = True
            else:
                dropped.append(self._save(replace(turn, status=Status.DROPPED)))
        return tuple(dropped), tuple(kept), withdrawn

    def _withdraw(self, turn: Turn, out_of: int, stop: Stop) -> Turn:
        """The engine may have an offered message already, so its fate is the engine's to tell.

        Refused, it is dropped for the sake of this mark; taken, it ends with the running turn.
        """
        if turn.stop is not None:
            return turn
        self._acts.append(Withdraw(turn.id, out_of))
        return self._save(replace(turn, stop=stop))

    def _skip_asked(self, event: SkipAsked) -> None:
        """Ends one running turn and leaves the queue alone; limits and budgets come here too."""
        lane, stop = self._board.get(event.lane), Stop(event.kind, event.person)
        main = lane and lane.main
        by_person = event.kind in (StopKind.SKIP, StopKind.STOP)
        if lane and event.turn is not None and (side := find(lane.sides, event.turn)):
            self._stop_side(lane, side, stop)
            if by_person and not side.status.over:
                self._tell(News.STOPPED, side, by=event.person)
        elif lane and main and not main.status.over and event.turn in (None, main.id):
            main = self._stop(main, stop)
            self._board.put(replace(lane, main=main))
            if by_person:
                self._tell(News.STOPPED, main, by=event.person)
        elif by_person and event.turn is None:
            self._acts.append(Tell(News.NOTHING, event.lane, by=event.person))

    def _drop_asked(self, event: DropAsked) -> None:
        lane = self._board.get(event.lane)
        turn = lane and find(lane.waiting, event.turn)
        if lane is None or turn is None:
            self._deny(event.lane, event.person, Refusal.NOT_WAITING)
        elif turn.person != event.person and not event.admin:
            self._deny(event.lane, event.person, Refusal.NOT_YOURS, turn)
        elif turn.offered_to is not None:
            stop = Stop(StopKind.STOP, event.person)
            marked = self._withdraw(turn, turn.offered_to, stop)
            rest = without(lane.waiting, turn.id)
            self._board.put(replace(lane, waiting=queued(rest, marked)))
        else:
            dropped = self._save(replace(turn, status=Status.DROPPED))
            self._tell(News.DROPPED, dropped, by=event.person)
            self._board.put(replace(lane, waiting=without(lane.waiting, turn.id)))

    def _stop(self, turn: Turn, stop: Stop) -> Turn:
        """The turn on its way to its end: cancelled once, however often it is stopped.

        The first stop stays, for it is the one that took effect.
        """
        if turn.status is Status.WAITING:  # its prompt never left, and now it will not try again
            return self._end(replace(turn, stop=stop), endings.by_stop(stop, Status.STOPPED))
        if turn.stop is not None or turn.status not in UNDER_WAY:
            return turn
        self._acts.append(Cancel(turn.id))
        return self._save(replace(turn, stop=stop))

    def _stop_side(self, lane: Lane, side: Turn, stop: Stop) -> None:
        self._put_side(lane, self._stop(side, stop))

    # The run of a turn ----------------------------------------------------------------

    def _prompted(self, event: Prompted) -> None:
        """No `Prompt` for a turn that is to end: the shell then reports it cancelled."""
        lane, turn = self._present(event.lane, event.turn)
        if lane is None or turn is None or turn.status is not Status.STARTING or turn.stop:
            return
        turn = self._save(replace(turn, status=Status.RUNNING))
        self._acts.append(Prompt(turn.id))
        self._put_turn(lane, turn)

    def _asking(self, key: str, turn: int, by: int) -> None:
        """Open questions are not saved: none of them outlives its turn, nor a crash."""
        lane = self._board.get(key)
        main = lane and lane.main
        if lane is None or main is None or main.id != turn or main.status is not Status.RUNNING:
            return
        self._board.put(replace(lane, main=replace(main, asking=max(0, main.asking + by))))

    def _finished(self, event: Finished) -> None:
        lane, turn = self._present(event.lane, event.turn)
        if lane is not None and turn is not None:
            self._put_over(lane, turn, event.result)

    def _put_over(self, lane: Lane, turn: Turn, result: Result) -> None:
        if turn.kind is Kind.SIDE:
            self._put_side(lane, self._end(turn, endings.by_result(result, turn.stop)))
            return
        cut_off = turn.stop is not None and not endings.deliberate(turn.stop)
        if turn.status is Status.STARTING and cut_off and result is not Result.DONE:
            self._put_again(lane, turn)  # as at a crash: it never reached the engine
            return
        main = self._end(turn, endings.by_result(result, turn.stop))
        for taken in lane.taken:
            self._save(replace(taken, status=main.status))
        kept: list[Turn] = []
        for other in lane.waiting:
            if other.offered_to is None:
                kept.append(other)
            else:  # nobody can say any more whether the engine got it, so it counts as taken
                uncertain = self._save(replace(other, status=main.status))
                self._tell(News.STEER_UNCERTAIN, uncertain)
        self._board.put(replace(lane, main=main, taken=(), waiting=tuple(kept)))

    def _unsent(self, event: Unsent) -> None:
        lane, turn = self._present(event.lane, event.turn)
        if lane is None or turn is None:
            return
        turn = replace(turn, unsent=turn.unsent + 1)
        if turn.kind is Kind.SIDE:
            self._put_side(lane, self._end(turn, endings.by_stop(turn.stop, Status.FAILED)))
        elif turn.stop is not None and endings.deliberate(turn.stop):
            lane = self._released(lane)
            main = self._end(turn, endings.by_stop(turn.stop, Status.STOPPED))
            self._board.put(replace(lane, main=main))
        else:
            self._put_again(self._released(lane), turn)

    def _put_again(self, lane: Lane, turn: Turn) -> None:
        """Its prompt did not leave; it joins the queue at `Ended`, when its engine is gone."""
        turn = self._save(replace(endings.again(turn, self._limits), asking=0))
        if turn.status is Status.FAILED:
            self._tell(News.GIVEN_UP, turn)
        self._board.put(replace(lane, main=turn))

    def _released(self, lane: Lane) -> Lane:
        """No prompt left, so nothing that was offered to this turn has reached an engine."""
        queue: Queue = tuple(turn for turn in lane.waiting if turn.offered_to is None)
        for turn in (*lane.taken, *(turn for turn in lane.waiting if turn.offered_to is not None)):
            queue = self._requeued(queue, turn)
        return replace(lane, waiting=queue, taken=())

    def _ended(self, event: Ended) -> None:
        lane = self._board.get(event.lane)
        if lane is None:
            return
        if side := find(lane.sides, event.turn):
            if side.status in UNDER_WAY:  # its end was never reported
                self._end(side, endings.by_result(Result.FAILED, side.stop))
            self._board.put(replace(lane, sides=without(lane.sides, side.id)))
            return
        main = lane.main
        if main is None or main.id != event.turn:
            return
        if main.status in UNDER_WAY:
            self._put_over(lane, main, Result.FAILED)
            lane = self._board.lane(lane.key, lane.facts)
            main = lane.main or main
        if main.status is Status.WAITING:
            # It has not had its turn, so `ended` stays and the lane keeps its place in the line.
            self._board.put(replace(lane, main=None, folder="", waiting=queued(lane.waiting, main)))
            return
        facts = self._save_lane(lane.key, replace(lane.facts, ended=event.at))
        self._board.put(replace(lane, facts=facts, main=None, folder=""))

    # Settings, pauses, drain ----------------------------------------------------------

    def _renewed(self, event: Renewed) -> None:
        """A running turn keeps the epoch it started with, and side answers go on."""
        lane = self._lane(event.lane, event.facts)
        facts = replace(lane.facts, epoch=lane.facts.epoch + 1)
        self._board.put(replace(lane, facts=self._save_lane(lane.key, facts)))

    def _configured(self, event: Configured) -> None:
        """A running turn keeps its folder; stored by the shell, with the lane's other settings."""
        lane = self._board.get(event.lane)
        if lane is None and event.facts is not None:
            lane = Lane(event.lane, event.facts)
        if lane is not None:
            facts = replace(lane.facts, engine=event.engine, folder=event.folder)
            self._board.put(replace(lane, facts=facts))

    def _pause(self, event: PauseAsked | ResumeAsked, *, paused: bool) -> None:
        """Holds on an engine and on everything are stored by the shell, with its settings."""
        if event.lane:
            lane = self._lane(event.lane, event.facts)
            facts = replace(lane.facts, paused=paused)
            self._board.put(replace(lane, facts=self._save_lane(lane.key, facts)))
        elif event.engine:
            engines = self._door.engines
            engines = engines | {event.engine} if paused else engines - {event.engine}
            self._board.set_door(replace(self._door, engines=engines))
        else:
            self._board.set_door(replace(self._door, paused=paused))

    def _drain_ended(self) -> None:
        stop = Stop(StopKind.DRAIN)
        self._board.set_door(replace(self._door, draining=True))
        for lane in self._board:
            main = lane.main
            if main is not None and main.status in UNDER_WAY:
                main = self._stop(main, stop)
            sides = tuple(self._stop(side, stop) for side in lane.sides)
            if main is not lane.main or sides != lane.sides:
                self._board.put(replace(lane, main=main, sides=sides))

    # What starts ----------------------------------------------------------------------

    def _fill(self) -> None:
        """Start what can start, the longest waiting lane first.

        Before this event nothing that could start was left over. So unless a slot or a folder
        became free, only the lane this event was about needs a look: the line can be long, and
        one more message must not cost a walk along it.
        """
        board = self._board
        if self._door.draining or self._door.paused or not board.line:
            return
        if not board.freed and len(board.touched) == 1:
            lane = board.get(next(iter(board.touched)))
            if lane is not None and self._may_start(lane):
                self._start(lane)
        elif board.freed or board.touched:
            self._walk()

    def _walk(self) -> None:
        board, index = self._board, 0
        while index < len(board.line) and board.slots.running < self._limits.running:
            lane = board.get(board.line[index])
            if lane is not None and self._may_start(lane):
                self._start(lane)  # which takes it out of the line
            else:
                index += 1

    def _may_start(self, lane: Lane) -> bool:
        """Inside a lane order beats caps: only its first message counts."""
        return (
            lane.entry is not None
            and self._board.slots.admit(lane.waiting[0], self._limits)
            and lane.facts.engine not in self._door.engines
            and self._board.slots.free(lane.facts.folder)
        )

    def _start(self, lane: Lane) -> None:
        turn = self._started(lane, lane.waiting[0])
        self._acts.append(Start(turn))
        rest = lane.waiting[1:]
        self._board.put(replace(lane, main=turn, folder=lane.facts.folder, waiting=rest))

    def _started(self, lane: Lane, turn: Turn) -> Turn:
        """The attempt is counted and saved before it is made, so no crash can make it a loop."""
        started = replace(
            turn, status=Status.STARTING, attempts=turn.attempts + 1, epoch=lane.facts.epoch
        )
        return self._save(started)

    def _holds(self, lane: Lane) -> tuple[Hold, ...]:
        door, facts = self._door, lane.facts
        found = {
            Hold.LANE: facts.paused,
            Hold.ENGINE: facts.engine in door.engines,
            Hold.ALL: door.paused,
        }
        return tuple(hold for hold, there in found.items() if there)

    # Small steps ----------------------------------------------------------------------

    @property
    def _door(self) -> Door:
        return self._board.door

    @property
    def _limits(self) -> Limits:
        return self._board.door.limits

    def _lane(self, key: str, facts: LaneFacts) -> Lane:
        return self._board.lane(key, facts)

    def _present(self, key: str, turn: int) -> tuple[Lane | None, Turn | None]:
        """The lane and its turn, main or side, if that is under way; else the report is late."""
        lane = self._board.get(key)
        if lane is None:
            return None, None
        found = lane.main if lane.main and lane.main.id == turn else find(lane.sides, turn)
        return lane, found if found and found.status in UNDER_WAY else None

    def _put_turn(self, lane: Lane, turn: Turn) -> None:
        if turn.kind is Kind.SIDE:
            self._put_side(lane, turn)
        else:
            self._board.put(replace(lane, main=turn))

    def _put_side(self, lane: Lane, side: Turn) -> None:
        sides = tuple(side if other.id == side.id else other for other in lane.sides)
        self._board.put(replace(lane, sides=sides))

    def _begin(self) -> None:
        self._board.look()
        self._saves: dict[int, Turn] = {}
        self._facts: dict[str, LaneFacts] = {}
        self._acts: list[Command] = []

    def _commands(self) -> list[Command]:
        commands: list[Command] = [Save(turn) for turn in self._saves.values()]
        commands += [SaveLane(lane, facts) for lane, facts in self._facts.items()]
        return commands + self._acts

    def _save(self, turn: Turn) -> Turn:
        self._saves[turn.id] = turn
        return turn

    def _save_lane(self, key: str, facts: LaneFacts) -> LaneFacts:
        self._facts[key] = facts
        return facts

    def _end(self, turn: Turn, status: Status) -> Turn:
        turn = self._save(replace(turn, status=status, asking=0))
        if news := endings.news(turn):
            self._tell(news, turn)
        return turn

    def _tell(self, news: News, turn: Turn, by: str = "") -> None:
        self._acts.append(Tell(news, turn.lane, turn, by=by))

    def _deny(self, lane: str, person: str, reason: Refusal, turn: Turn | None = None) -> None:
        self._acts.append(Tell(News.DENIED, lane, turn, by=person, reason=reason))

    def _refuse(self, turn: Turn, reason: Refusal) -> None:
        turn = self._save(replace(turn, status=Status.DROPPED))
        self._acts.append(Refuse(turn, reason))


def _unfinished(lane: Lane, turn: int) -> bool:
    main = (lane.main,) if lane.main else ()
    found = find((*main, *lane.sides, *lane.waiting), turn)
    return found is not None and not found.status.over
