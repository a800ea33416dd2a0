"""The course of a running turn: what its engine has said and done, and who is shown that.

Every event goes in once. From it come the answer, the live view, what side answers are told, and
whether a time limit is met; all but the answer are told when a person has to decide. It must not
know the store, the lane rules or what ends the turn.
"""

from __future__ import annotations

from core.answer import Answer
from core.at_work import AtWork, Work
from core.clock import Clock
from core.engines.base import (
    ApprovalAsked,
    Event,
    FileMade,
    SteerSettled,
    Text,
    ToolEnded,
    ToolStarted,
)
from core.live import Live
from core.patience import Patience


class Course:
    """Of one turn, from before its engine is known."""

    def __init__(self, clock: Clock, answer: Answer, patience: Patience, at_work: AtWork) -> None:
        self.answer = answer
        self.patience = patience
        self.effects = False  # something was shown or done
        self.first_text_at = 0  # ms since 1970
        self._clock = clock
        self._at_work = at_work
        self._live: Live | None = None
        self._work: Work | None = None  # what others are told of it; of a side answer nothing

    def begin(self, live: Live, work: Work | None) -> None:
        """The engine has the word: from now on its time counts."""
        self._live, self._work = live, work
        self.patience.begin()

    def feed(self, event: Event, *, shown: bool) -> None:
        """An event of the engine; ``shown``: the thread may still see what it says."""
        self.patience.heard()
        self.effects = self.effects or has_effect(event)
        if self._work:
            self._work.feed(event)
        if isinstance(event, Text):
            self.first_text_at = self.first_text_at or self._clock.now()
            self.answer.add(event.delta)
        if self._live and shown:
            self._live.feed(event)

    def hold(self) -> None:
        """A person is asked: nothing is expected of the engine meanwhile."""
        if self.patience.pause() and self._live:
            self._live.hold()
        if self._work:
            self._work.asking = True

    def release(self) -> None:
        """A person has decided."""
        if self.patience.resume():
            if self._live:
                self._live.release()
            if self._work:
                self._work.asking = False

    def close(self) -> None:
        """The thread is shown no more of it."""
        if self._live:
            self._live.close()

    def end(self) -> None:
        """The engine says nothing more."""
        self.close()
        if self._work:
            self._at_work.end(self._work)


def has_effect(event: Event) -> bool:
    """Whether what an engine told means that the prompt cannot be handed over once more."""
    match event:
        case Text(delta):
            return bool(delta.strip())
        case ToolStarted() | ToolEnded() | FileMade() | ApprovalAsked():
            return True
        case SteerSettled(taken=taken):
            return taken
        case _:
            return False
