"""What became of the messages that were handed to a turn: the prompt, and those offered later.

Pure. Claude Code puts a message into what it is doing, or answers it right after, as a turn of its
own with a result of its own; both belong to the turn it was offered to.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.engines.base import SteerSettled
from core.engines.plain import Json, as_sent


class Offers:
    """The fate of each message, by the id it was handed over with."""

    def __init__(self) -> None:
        self._prompt = ""
        self._waiting: dict[str, int] = {}  # handed over, not yet begun with → the message's turn
        self._owed: set[str] = set()  # begun with; their result is still to come
        self._settled: list[SteerSettled] = []
        self._answered = False  # there was a result that names nothing

    def begin(self, number: str) -> None:
        self._prompt = number
        self._owed.add(number)

    def offer(self, turn: int, number: str) -> None:
        """``number`` is "" when certainly no byte of it left."""
        if number:
            self._waiting[number] = turn
        else:
            self.refuse(turn)

    def refuse(self, turn: int) -> None:
        self._settled.append(SteerSettled(turn, taken=False))

    def hear(self, message: Json) -> None:
        """One ``command_lifecycle``."""
        number, state = as_sent(message.get("command_uuid")), message.get("state")
        if state == "started":
            self._take(number)
        elif state in ("completed", "cancelled") and number != self._prompt:
            if number in self._waiting:
                taken = state == "completed"
                self._settled.append(SteerSettled(self._waiting.pop(number), taken=taken))
            self._owed.discard(number)

    def covered(self, result: Json) -> bool:
        """Take in a result: whether it is one of ours, as every is that does not say."""
        told = result.get("user_message_uuids")
        numbers = {as_sent(number) for number in told} if isinstance(told, list) else set()
        ours = {self._prompt, *self._waiting, *self._owed}
        if not numbers:
            if self._answered:  # a further answer is that to what came meanwhile
                for number in list(self._waiting):
                    self._take(number)
            self._answered = True
            self._owed.clear()
            return True
        for number in numbers:
            self._take(number)
        self._owed -= numbers
        return bool(ours & numbers) or not self._owed

    def _take(self, number: str) -> None:
        turn = self._waiting.pop(number, None)
        if turn is not None:
            self._owed.add(number)
            self._settled.append(SteerSettled(turn, taken=True))

    def waiting(self) -> list[str]:
        """Ids of messages that may still be had back."""
        return list(self._waiting)

    @property
    def under_way(self) -> bool:
        """Something was begun with whose result is still to come."""
        return bool(self._owed)

    @property
    def over(self) -> bool:
        return not self._owed and not self._waiting

    def settled(self) -> Iterator[SteerSettled]:
        while self._settled:
            yield self._settled.pop(0)

    def rest(self) -> Iterator[SteerSettled]:
        """At the end: what could not be found out counts as taken."""
        yield from self.settled()
        while self._waiting:
            _, turn = self._waiting.popitem()
            yield SteerSettled(turn, taken=True, certain=False)
            yield from self.settled()
