"""One step of the lane rules as a unit of the store's group commit.

It asks the rules inside the transaction, says what is stored with their answer, and hands the
commands on once it is stored. It must not know how a command is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from core import lane_events, restoring
from core.budgeting import Budgeting
from core.items import Item, Said, content
from core.lane_commands import Command, Join, News, Save, SaveLane, Tell
from core.lanes import Lanes
from core.lanes.board import Mark
from core.lanes.one_lane import OneLane
from core.store import rows
from core.store.records import Delivery
from core.store.rows import Row
from core.telling import Telling
from core.turns import Origin, Turn
from core.wording import UNREACHED

UNMARKED = Mark(0)


class Carrying(Protocol):
    """The owner of the lanes; the runner."""

    @property
    def lanes(self) -> Lanes: ...

    @property
    def telling(self) -> Telling: ...

    @property
    def budgeting(self) -> Budgeting: ...

    def now(self) -> int: ...

    def heard(self, item: Item) -> None: ...

    def carry_out(
        self, commands: Sequence[Command], deliveries: Sequence[Delivery], lane: str = ""
    ) -> None: ...


@dataclass(slots=True)
class Step:
    """An item on its way through the transaction."""

    runner: Carrying
    item: Item
    mark: Mark = UNMARKED
    spent: int = 0  # the same of what is spent
    commands: Sequence[Command] = ()
    deliveries: list[Delivery] = field(default_factory=list)

    def decide(self) -> list[Row]:
        lanes = self.runner.lanes
        self.mark = lanes.mark()
        self.spent = self.runner.budgeting.mark()
        commands = lanes.handle(self.item.event) if self.item.event else ()
        followed = self.runner.budgeting.follow(commands, self.item)
        self.commands = followed.commands
        ends = self.runner.telling.of(self.commands, self._closed(), told=followed.ends)
        told = [self._closing(), ends, *followed.said]
        self.deliveries = [*self.item.deliveries]
        written = [*rows_of(self.commands, self.runner.now()), *content(self.item)]
        written += followed.rows
        for one in told:
            self.deliveries += one.deliveries
            written += one.rows
        written += [rows.delivery(delivery) for delivery in self.deliveries]
        return written

    def undo(self) -> None:
        self.runner.lanes.undo(self.mark)
        self.runner.budgeting.undo(self.spent)

    def done(self) -> None:
        self.runner.heard(self.item)
        event = self.item.event
        lane = event.lane if isinstance(event, OneLane) else ""
        self.runner.carry_out(self.commands, self.deliveries, lane)

    def _closed(self) -> int | None:
        event = self.item.event
        if self.item.closing and isinstance(event, lane_events.Finished | lane_events.Unsent):
            return event.turn
        return None

    def _closing(self) -> Said:
        """The visible end of the turn that this step ended, now that the rules said how."""
        closed = self._closed()
        for command in self.commands:
            if isinstance(command, Save) and command.turn.id == closed and command.turn.status.over:
                assert self.item.closing is not None
                return self.item.closing(command.turn)
        return Said()


def rows_of(commands: Iterable[Command], now: int) -> list[Row]:
    """What the rules want stored."""
    written: list[Row] = []
    for command in commands:
        match command:
            case Save(turn):
                written.append(rows.turn(turn))
                if turn.status.over:
                    written.append(rows.turn_ended(turn.id, now))
            case SaveLane(lane, facts):
                written.append(rows.lane_facts(lane, facts))
            case Join(message_turn, into):
                written.append(rows.messages_join(message_turn, into))
            case _:
                pass
    return written


@dataclass(slots=True)
class Restoring:
    """The first step of a process: the rules take over what is stored."""

    runner: Carrying
    state: restoring.StoredState
    mark: Mark = UNMARKED
    spent: int = 0  # the same of what is spent
    commands: Sequence[Command] = ()
    deliveries: list[Delivery] = field(default_factory=list)
    goes_on: bool = False  # what was cut off is continued; until then nothing starts

    def decide(self) -> list[Row]:
        state, telling = self.state, self.runner.telling
        self.mark = self.runner.lanes.mark()
        self.spent = self.runner.budgeting.mark()
        paused = state.paused_all or self.goes_on
        # Who has spent the day already has to wait before anything starts.
        first = self.runner.budgeting.follow(())
        restored = self.runner.lanes.restore(state.turns, state.facts, paused, state.paused_engines)
        followed = self.runner.budgeting.follow(restored)
        self.commands = [*first.commands, *followed.commands]
        self.deliveries = []
        failed: list[Row] = []
        for command in self.commands:
            match command:
                case Save(turn) if turn.status.over and turn.id in state.previews:
                    self.deliveries += telling.closed_preview(turn, state.previews[turn.id])
                case Tell(News.GIVEN_UP, turn=Turn(id=given_up)):
                    failed.append(rows.turn_failed(given_up, UNREACHED))
                case _:
                    pass
        ends = first.ends | followed.ends
        going = frozenset(turn.id for turn in self.going_on())
        said = telling.of(self.commands, goes_on=going, told=ends)
        for one in (said, *first.said, *followed.said):
            self.deliveries += one.deliveries
        return [
            *(rows.release() if state.held else ()),
            *rows_of(self.commands, self.runner.now()),
            *failed,
            *first.rows,
            *followed.rows,
            *said.rows,
            *(rows.delivery(delivery) for delivery in self.deliveries),
        ]

    def undo(self) -> None:
        self.runner.lanes.undo(self.mark)
        self.runner.budgeting.undo(self.spent)

    def done(self) -> None:
        self.runner.telling.deliver(self.state.released)
        self.runner.carry_out(self.commands, self.deliveries)

    def going_on(self) -> list[Turn]:
        """Turns that a crash cut off and that are continued; one that was is not again."""
        return [
            command.turn
            for command in self.commands
            if self.goes_on
            and isinstance(command, Tell)
            and command.news is News.INTERRUPTED
            and command.turn is not None
            and command.turn.origin is not Origin.CONTINUE
        ]
