"""A small world round the lane rules: a store, engines, and people who talk.

Scenario tests speak to it in short verbs, the random histories drive it at random. It carries
commands out as the shell does, and complains at once when a promise is broken that holds for
every command whatever the scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from core.lane_commands import (
    Cancel,
    Command,
    Join,
    News,
    Prompt,
    Refusal,
    Refuse,
    Save,
    SaveLane,
    Start,
    StartSide,
    Steer,
    Tell,
    Withdraw,
)
from core.lane_events import (
    Answered,
    Arrived,
    AsideAsked,
    Asked,
    Configured,
    DaySpent,
    DrainAsked,
    DrainEnded,
    DropAsked,
    Edited,
    Ended,
    Event,
    Finished,
    LimitsChanged,
    PauseAsked,
    Prompted,
    Renewed,
    ResumeAsked,
    SideAsked,
    SkipAsked,
    SteerAsked,
    SteerRefused,
    SteerTaken,
    StopAsked,
    Unsent,
)
from core.lanes import Lanes, LaneView
from core.turns import (
    OVER,
    Busy,
    EnginePause,
    Kind,
    LaneFacts,
    Limits,
    Origin,
    Result,
    Status,
    StopKind,
    Turn,
)

C = TypeVar("C", bound=Command)

ENDS = {News.ENDED, News.INTERRUPTED, News.GIVEN_UP, News.SIDE_CUT_OFF, News.STEER_UNCERTAIN}


def snapshot(lanes: Lanes) -> object:
    """All of the state, down to what is derived."""
    board = lanes._board
    slots = board.slots
    return (
        {lane.key: lane for lane in board},
        set(board._idle),
        board.door,
        (slots.running, slots.jobs, slots.sides, dict(slots.persons)),
        (dict(slots._used), dict(slots._spanned)),
        list(board.line._entries),
    )


class World:
    def __init__(self, **limits: int) -> None:
        self.limits = Limits(**limits)
        self.lanes = Lanes(self.limits)
        self.doubtful = False  # every step is first taken back once, as if its commit had failed
        self.saved: dict[int, Turn] = {}  # what the store knows
        self.facts: dict[str, LaneFacts] = {}
        self.paused_all = False
        self.paused_engines: set[str] = set()
        self.draining = False
        self.spent_by = DaySpent()  # who has to wait for the next day
        self.engines: dict[int, Turn] = {}  # started and not gone
        self.prompts: set[int] = set()  # turns whose engine has got the prompt
        self.cancelled: set[int] = set()  # engines told to end
        self.folders: dict[int, str] = {}  # where each engine works
        self.asking: Counter[int] = Counter()  # open questions
        self.joined: dict[int, int] = {}
        self.ends_told: dict[int, News] = {}
        self.drops_told: set[int] = set()
        self.out: list[Command] = []  # of the last event
        self.now = 0
        self.count = 0  # of turns so far

    # What happens

    def send(self, event: Event) -> list[Command]:
        self.out = self._handled_twice(event) if self.doubtful else self.lanes.handle(event)
        self.carry_out(self.out)
        self.lanes.settle()
        return self.out

    def _handled_twice(self, event: Event) -> list[Command]:
        before, mark = snapshot(self.lanes), self.lanes.mark()
        first = self.lanes.handle(event)
        self.lanes.undo(mark)
        assert snapshot(self.lanes) == before, "an undo left something behind"
        second = self.lanes.handle(event)
        assert second == first, "the same event had another effect after an undo"
        return second

    def crash(self) -> list[Command]:
        """Kill the process and start it again from the store."""
        self.lanes = Lanes(self.limits)
        self.engines, self.prompts, self.cancelled = {}, set(), set()
        self.folders, self.asking = {}, Counter()
        self.draining = False
        self.lanes.handle(self.spent_by)  # worked out from what is stored, before anything starts
        unfinished = [turn for _, turn in sorted(self.saved.items()) if not turn.status.over]
        self.out = self.lanes.restore(
            unfinished,
            self.facts,
            self.paused_all,
            {name: EnginePause() for name in sorted(self.paused_engines)},
        )
        self.carry_out(self.out)
        self.lanes.settle()
        return self.out

    def tick(self) -> int:
        self.now += 1
        return self.now

    def turn(
        self,
        lane: str = "a",
        person: str = "ann",
        origin: Origin = Origin.PERSON,
        kind: Kind = Kind.MAIN,
        at: int | None = None,
    ) -> Turn:
        self.now = at if at is not None else self.now + 1
        self.count += 1
        return Turn(self.count, lane, person, origin, kind, self.now, last_piece=self.now)

    def say(
        self,
        lane: str = "a",
        person: str = "ann",
        busy: Busy = Busy.QUEUE,
        *,
        origin: Origin = Origin.PERSON,
        kind: Kind = Kind.MAIN,
        at: int | None = None,
        admin: bool = False,
        can_steer: bool = True,
        can_side: bool = True,
    ) -> int:
        turn = self.turn(lane, person, origin, kind, at)
        facts = self.facts.get(lane, LaneFacts())
        self.send(Arrived(turn, facts, busy, admin, can_steer, can_side))
        return turn.id

    def working(self, lane: str = "a", person: str = "ann", **more: object) -> int:
        """A turn that has started and got its prompt."""
        turn = self.say(lane, person, **more)  # type: ignore[arg-type]  # passed through
        assert self.started == [turn]
        self.prompt(turn)
        return turn

    def aside(self, lane: str = "a", person: str = "ann", *, can_side: bool = True) -> int:
        turn = self.turn(lane, person)
        self.send(SideAsked(turn, self.facts.get(lane, LaneFacts()), can_side))
        return turn.id

    def move_aside(
        self, turn: int, person: str = "ann", *, admin: bool = False, can_side: bool = True
    ) -> None:
        self.send(AsideAsked(turn, self.saved[turn].lane, person, admin, can_side))

    def prompt(self, turn: int) -> None:
        self.send(Prompted(turn, self.saved[turn].lane))

    def unsent(self, turn: int, *, uncounted: bool = False) -> None:
        self.prompts.discard(turn)
        self.send(Unsent(turn, self.saved[turn].lane, uncounted=uncounted))

    def ask(self, turn: int) -> None:
        if turn in self.engines and self.status(turn) is Status.RUNNING:
            self.asking[turn] += 1
        self.send(Asked(turn, self.saved[turn].lane))

    def answer(self, turn: int) -> None:
        self.asking[turn] = max(0, self.asking[turn] - 1)
        self.send(Answered(turn, self.saved[turn].lane))

    def finish(self, turn: int, result: Result = Result.DONE) -> None:
        self.send(Finished(turn, self.saved[turn].lane, result))

    def end(self, turn: int, at: int | None = None) -> None:
        self.engines.pop(turn, None)
        lane = self.saved[turn].lane
        self.send(Ended(turn, lane, self.tick() if at is None else at))

    def complete(self, turn: int) -> None:
        self.finish(turn)
        self.end(turn)

    def stop(
        self,
        lane: str = "a",
        person: str = "ann",
        *,
        admin: bool = False,
        turn: int | None = None,
        first: int | None = None,
    ) -> None:
        found = None if first is None else self.saved[first]
        self.send(StopAsked(lane, person, admin, turn, found))

    def skip(
        self,
        lane: str = "a",
        person: str = "ann",
        kind: StopKind = StopKind.SKIP,
        turn: int | None = None,
    ) -> None:
        self.send(SkipAsked(lane, person, kind, turn))

    def drop(
        self, turn: int, person: str = "ann", *, admin: bool = False, quiet: bool = False
    ) -> None:
        if quiet:
            self.drops_told.add(turn)  # by whoever asks like this
        self.send(DropAsked(turn, self.saved[turn].lane, person, admin, quiet))

    def edit(self, turn: int, label: str | None = None) -> None:
        self.send(Edited(turn, self.saved[turn].lane, label))

    def steer(
        self, turn: int, person: str = "ann", *, admin: bool = False, can_steer: bool = True
    ) -> None:
        self.send(SteerAsked(turn, self.saved[turn].lane, person, admin, can_steer))

    def take(self, turn: int, *, certain: bool = True) -> None:
        self.send(SteerTaken(turn, self.saved[turn].lane, certain))

    def refuse(self, turn: int) -> None:
        self.send(SteerRefused(turn, self.saved[turn].lane))

    def renew(self, lane: str = "a") -> None:
        self.send(Renewed(lane, self.facts.get(lane, LaneFacts())))

    def configure(self, lane: str = "a", engine: str = "", folder: str = "") -> None:
        facts = self.facts.get(lane, LaneFacts())
        self.facts[lane] = replace(facts, engine=engine, folder=folder)
        self.send(Configured(lane, engine, folder, facts))

    def pause(self, lane: str = "", engine: str = "") -> None:
        self.paused_engines |= {engine} - {""}
        self.paused_all |= not lane and not engine
        self.send(PauseAsked(lane, engine, self.facts.get(lane, LaneFacts())))

    def resume(self, lane: str = "", engine: str = "") -> None:
        self.paused_engines -= {engine}
        self.paused_all &= bool(lane or engine)
        self.send(ResumeAsked(lane, engine, self.facts.get(lane, LaneFacts())))

    def spend(self, *people: str, everybody: bool = False) -> None:
        """These have spent the day, and nobody else."""
        self.spent_by = DaySpent(frozenset(people), everybody)
        self.send(self.spent_by)

    def limit(self, **limits: int) -> None:
        self.limits = replace(self.limits, **limits)
        self.send(LimitsChanged(self.limits))

    def drain(self) -> None:
        self.draining = True
        self.send(DrainAsked())

    def end_drain(self) -> None:
        self.draining = True
        self.send(DrainEnded())

    # What came of it

    def said(self, kind: type[C]) -> list[C]:
        return [command for command in self.out if isinstance(command, kind)]

    @property
    def started(self) -> list[int]:
        return [command.turn.id for command in self.said(Start)]

    @property
    def cancels(self) -> list[int]:
        return [command.turn for command in self.said(Cancel)]

    @property
    def refusals(self) -> list[tuple[int, Refusal]]:
        return [(command.turn.id, command.reason) for command in self.said(Refuse)]

    @property
    def news(self) -> list[tuple[News, int | None]]:
        return [(tell.news, tell.turn.id if tell.turn else None) for tell in self.said(Tell)]

    @property
    def dropped(self) -> list[int]:
        return [turn.id for tell in self.said(Tell) for turn in tell.dropped]

    @property
    def denial(self) -> Refusal | None:
        (tell,) = self.said(Tell)
        assert tell.news is News.DENIED
        return tell.reason

    def status(self, turn: int) -> Status:
        return self.saved[turn].status

    def statuses(self, turns: Iterable[int]) -> list[Status]:
        return [self.status(turn) for turn in turns]

    def view(self, lane: str = "a") -> LaneView:
        view = self.lanes.view(lane)
        assert view is not None
        return view

    def order(self, lane: str = "a") -> list[int]:
        view = self.lanes.view(lane)
        return [turn.id for turn in view.waiting] if view else []

    # What holds for every command

    def carry_out(self, commands: Sequence[Command]) -> None:
        saves = [command for command in commands if isinstance(command, Save)]
        rest = [command for command in commands if not isinstance(command, Save | SaveLane)]
        assert commands[len(commands) - len(rest) :] == rest, "something comes before its save"
        assert len({save.turn.id for save in saves}) == len(saves), "saved twice in one step"
        for save in saves:
            before = self.saved.get(save.turn.id)
            assert before is None or before.status not in OVER, "saved after its end"
            self.saved[save.turn.id] = save.turn
        for command in commands:
            self._carry_out(command)
        for save in saves:
            self._is_told(save.turn)

    def _carry_out(self, command: Command) -> None:
        match command:
            case SaveLane(lane, facts):
                known = self.facts.get(lane, LaneFacts())
                self.facts[lane] = replace(facts, engine=known.engine, folder=known.folder)
            case Start(turn) | StartSide(turn):
                self._starts(turn)
            case Prompt(turn):
                assert self.saved[turn].status is Status.RUNNING, "prompted before it was saved"
                assert turn in self.engines, "prompted without an engine"
                assert turn not in self.prompts, "prompted twice"
                assert turn not in self.cancelled, "prompted although it is to end"
                self.prompts.add(turn)
            case Cancel(turn):
                assert turn in self.engines, "cancelled although nothing runs"
                assert turn not in self.cancelled, "cancelled twice"
                assert self.saved[turn].stop is not None, "cancelled before the stop is saved"
                self.cancelled.add(turn)
            case Steer(turn, into) | Withdraw(turn, into):
                assert self.saved[turn].offered_to == into, "steered before it is saved"
                assert self.saved[turn].status is Status.WAITING
                assert into in self.prompts, "steered into a turn that is not at work"
            case Refuse(turn):
                self.drops_told.add(turn.id)
                assert self.saved[turn.id].status is Status.DROPPED, "refused and not saved"
            case Join(turn, into):
                assert turn not in self.saved, "a joined message is no turn of its own"
                assert self.saved[into].status is Status.WAITING
                self.joined[turn] = into
            case Tell(news, _, turn, _, dropped):
                self.drops_told |= {each.id for each in dropped}
                if turn is not None:
                    if news is News.DROPPED:
                        self.drops_told.add(turn.id)
                    saved = replace(self.saved[turn.id], asking=turn.asking)
                    assert saved == turn, "told what is not saved"
                    if news in ENDS and turn.status.over:
                        assert turn.id not in self.ends_told, "its end is told twice"
                        self.ends_told[turn.id] = news

    def _starts(self, turn: Turn) -> None:
        assert not self.draining, "started in a drain"
        assert self.saved[turn.id] == turn, "started before it was saved"
        assert turn.status is Status.STARTING
        assert turn.id not in self.engines, "started twice"
        assert turn.id not in self.prompts, "started again although its prompt left"
        self.engines[turn.id] = turn
        self.folders[turn.id] = self.facts.get(turn.lane, LaneFacts()).folder
        self.cancelled.discard(turn.id)

    def _is_told(self, turn: Turn) -> None:
        """Every end other than done is told, once; of a stop by a person when it was asked."""
        by_person = turn.stop is not None and turn.stop.kind in (StopKind.STOP, StopKind.SKIP)
        if turn.status is Status.DROPPED:
            assert turn.id in self.drops_told, "dropped without a word"
        silent = turn.status in (Status.DONE, Status.DROPPED) or turn.offered_to is not None
        if turn.status.over and not silent and not by_person:
            assert turn.id in self.ends_told, "its end is not told"
