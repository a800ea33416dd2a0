"""A step: what one event brings about, collected while the rules work on it.

Must not know the rules; it sees to the order (saves first) and to saying each thing once.
"""

from __future__ import annotations

from dataclasses import replace

from core.lane_commands import Command, News, Refusal, Refuse, Save, SaveLane, Tell
from core.lanes import endings
from core.lanes.board import Door
from core.turns import LaneFacts, Status, Turn


class Step:
    """``door`` is what holds for all lanes while the event is handled."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self._turns: dict[int, Turn] = {}
        self._facts: dict[str, LaneFacts] = {}
        self._then: list[Command] = []

    def commands(self) -> list[Command]:
        saves: list[Command] = [Save(turn) for turn in self._turns.values()]
        saves += [SaveLane(lane, facts) for lane, facts in self._facts.items()]
        return saves + self._then

    def save(self, turn: Turn) -> Turn:
        self._turns[turn.id] = turn
        return turn

    def save_lane(self, lane: str, facts: LaneFacts) -> LaneFacts:
        self._facts[lane] = facts
        return facts

    def do(self, command: Command) -> None:
        self._then.append(command)

    def tell(self, news: News, turn: Turn, by: str = "") -> None:
        self.do(Tell(news, turn.lane, turn, by))

    def deny(self, lane: str, person: str, reason: Refusal, turn: Turn | None = None) -> None:
        self.do(Tell(News.DENIED, lane, turn, person, reason=reason))

    def refuse(self, turn: Turn, reason: Refusal) -> None:
        self.do(Refuse(self.drop(turn), reason))

    def drop(self, turn: Turn) -> Turn:
        return self.save(replace(turn, status=Status.DROPPED))

    def end(self, turn: Turn, status: Status) -> Turn:
        turn = self.save(replace(turn, status=status, asking=0))
        if news := endings.news(turn):
            self.tell(news, turn)
        return turn
