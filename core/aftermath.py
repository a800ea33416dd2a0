"""What follows the end of a turn: another try, a pause of its engine, a session set aside.

Health says what is right; this carries it out and says it to the thread. It must not know how a
turn runs, nor any engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core import engine_words as words
from core.clock import Clock
from core.engines.base import Started
from core.health import REFUSED, Case, Health
from core.items import Said
from core.preparing import Prepared
from core.settling import End, Settling
from core.store import rows
from core.store.rows import Row
from core.telling import Telling
from core.turns import Kind, Result, Turn


@dataclass(frozen=True, slots=True)
class After:
    """``again``: the turn waits once more, first in its lane. ``rows`` go with its end."""

    again: bool = False
    uncounted: bool = False
    later: bool = False  # that may take hours
    rows: Sequence[Row] = ()
    said: Said = field(default_factory=Said)
    besides: str = ""  # words for the end of the failure's notice


@dataclass(frozen=True, slots=True)
class Aftermath:
    health: Health
    settling: Settling
    telling: Telling
    clock: Clock

    async def of(
        self, turn: Turn, prepared: Prepared, end: End, begun: str, *, harmless: bool
    ) -> After:
        """``begun``: the conversation it was led in. ``harmless``: nothing was shown or done, and
        nobody ended the turn."""
        engine = prepared.engine.name
        if end.result is Result.DONE:
            said = self.health.worked(turn.lane, prepared.wanted, engine)
            self.health.over(turn)
            return After(said=self.telling.note(turn, said) if said else Said())
        if end.result is Result.CANCELLED:
            return After()
        session = prepared.request.session
        case = Case(turn, prepared.wanted, engine, harmless, session)
        verdict = self.health.judge(case, end.failure)
        if verdict.pause is not None:
            await self.settling.paused(turn, engine, verdict.pause)
        written: list[Row] = []
        if verdict.fresh:
            written.append(rows.quarantine(turn.lane, engine, session, REFUSED))
        if verdict.back:
            now = self.clock.now()
            written.append(rows.session(turn.lane, engine, turn.epoch, verdict.back, now))
        if verdict.again and not session and begun:
            written.append(rows.forget_session(turn.lane, engine, begun))
        if not verdict.again:
            self.health.over(turn)
        later = verdict.again and verdict.pause is not None
        kept = verdict.back and not verdict.again
        besides = words.KEPT if kept else ""
        return After(verdict.again, verdict.uncounted, later, written, besides=besides)

    def beginning(self, turn: Turn, prepared: Prepared, started: Started) -> Said:
        """What a thread has to know as its turn begins: who has it, what it does not remember."""
        if turn.kind is Kind.SIDE:
            return Said()
        engine, asked = prepared.engine.name, prepared.request.session
        told = [self.health.told(turn.lane, prepared.wanted, engine)]
        if prepared.set_aside:
            told.append(words.REFUSED if prepared.set_aside == REFUSED else words.SET_ASIDE)
        elif asked and not started.resumed and started.session != asked:
            told.append(words.LOST)
        notes = [self.telling.note(turn, text) for text in told if text]
        return Said([delivery for note in notes for delivery in note.deliveries])
