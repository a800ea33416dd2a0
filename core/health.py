"""How well engines are: what follows a failure, who stands in for whom, when a turn is tried again.

The one owner of that; all of it is memory, so a start gives every engine a new chance. It decides
and names words; it must not know how a turn runs, nor the lane rules, nor any engine by name.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from core import engine_words as words
from core.clock import Clock
from core.engines.base import Failure, FailureKind
from core.turns import EnginePause, Kind, Limits, Turn

log = logging.getLogger("laneway.turn")

T = TypeVar("T")

IN_A_ROW = 3  # failures after which another engine stands in
LOOK_AGAIN = 600.0  # seconds until one that failed is tried again
FIRST_WAIT = 5.0  # seconds before the second try of a turn; doubled for the third, with jitter
WAIT_MOST = 120.0  # seconds that a service may ask to wait; longer is told at once
LIMIT_UNKNOWN = 1800_000  # ms until a limit is looked at again whose end nobody told
LIMIT_LEAST = 60_000  # ms a limit holds at least, whatever was told
LIMIT_MOST = 40 * 86_400_000  # ms; a later end is a misunderstanding
REFUSED = "the agent refused to go on with it"  # why a session is set aside
KEPT = 1000  # turns that are remembered at once


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows a failure. ``again``: the turn waits once more, first in its lane.

    ``uncounted``: that does not use up a try. ``pause``: of this engine. ``fresh``: the session is
    set aside, and the next try begins another. ``back``: the session that was set aside for this
    turn, which was not to blame.
    """

    again: bool = False
    uncounted: bool = False
    pause: EnginePause | None = None
    fresh: bool = False
    back: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A turn that failed. ``wanted`` is the lane's engine, ``engine`` the one that had the turn.

    ``harmless``: nothing was shown or done, and nobody ended it. ``session``: what it went on with.
    """

    turn: Turn
    wanted: str
    engine: str
    harmless: bool
    session: str = ""


@dataclass(slots=True)
class _Down:
    """An engine that another stands in for."""

    why: str
    try_at: int  # ms


def _none_paused() -> Mapping[str, EnginePause]:
    return {}


class Health:
    """``fallback``: who stands in for an engine that fails; "" nobody does."""

    def __init__(
        self,
        clock: Clock,
        fallback: str = "",
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.fallback = fallback
        self.paused: Callable[[], Mapping[str, EnginePause]] = _none_paused
        self._clock = clock
        self._jitter = jitter
        self._failures: dict[str, int] = {}  # of each engine in a row
        self._down: dict[str, _Down] = {}
        self._told: dict[str, set[str]] = {}  # lanes that were told of a stand-in, by engine
        self._waits: dict[int, float] = {}
        self._refused: dict[int, str] = {}  # turn → the session that was set aside for it

    # Who takes a turn ---------------------------------------------------------------------

    def renewed(self, engine: str) -> None:
        """Its settings changed: it gets a new chance."""
        self._failures.pop(engine, None)
        self._down.pop(engine, None)

    def acting(self, wanted: str) -> str:
        """The engine that takes turns of ``wanted`` now."""
        return self.fallback if wanted in self._down and self._can_stand_in(wanted) else wanted

    def choose(self, wanted: str, turn: Turn) -> str:
        """The engine for this turn; now and then one that failed is tried again."""
        acting = self.acting(wanted)
        down = self._down.get(wanted)
        if down is None or acting == wanted or turn.kind is Kind.SIDE:
            return acting
        if self._clock.now() >= down.try_at:
            down.try_at = self._next_look()
            log.info("%s is tried again", wanted)
            return wanted
        return acting

    def told(self, lane: str, wanted: str, engine: str) -> str:
        """What a thread is to be told as its turn begins: another engine, or its own again."""
        down, told = self._down.get(wanted), self._told.setdefault(wanted, set())
        if engine != wanted and down is not None and lane not in told:
            told.add(lane)
            return words.stands_in(wanted, engine, down.why)
        if down is None and lane in told:
            told.discard(lane)
            return words.back_again(wanted)
        return ""

    def worked(self, lane: str, wanted: str, engine: str) -> str:
        """A turn ended well; what its thread is told of that, if another had stood in."""
        self._failures.pop(engine, None)
        if self._down.pop(engine, None) is not None:
            log.info("%s works again", engine)
        return self.told(lane, wanted, engine) if wanted == engine else ""

    # What follows a failure ---------------------------------------------------------------

    def judge(self, case: Case, failure: Failure | None) -> Verdict:
        """Count it, and say what comes next.

        However the fresh try ends on which a turn had its one session set aside: where it was no
        better and nothing more is tried with it, that session comes back.
        """
        verdict = self._judged(case, failure)
        stays = verdict.again and self.acting(case.engine) == case.engine
        if stays or not (back := self._refused.pop(case.turn.id, "")):
            return verdict
        return replace(verdict, back=back)

    def wait(self, turn: int) -> float | None:
        """Seconds until the next try of a turn, once; None: nobody said."""
        return self._waits.pop(turn, None)

    def over(self, turn: Turn) -> None:
        """Forget what was remembered of a turn."""
        self._waits.pop(turn.id, None)
        self._refused.pop(turn.id, None)

    # Inside -------------------------------------------------------------------------------

    def _judged(self, case: Case, failure: Failure | None) -> Verdict:
        turn, engine = case.turn, case.engine
        harmless = case.harmless and turn.kind is not Kind.SIDE
        kind = failure.kind if failure else None
        if kind is FailureKind.LIMIT:
            return self._limited(case, failure.until if failure else None, harmless)
        if kind in (FailureKind.REQUEST, FailureKind.SPENT):
            return Verdict()
        if kind is FailureKind.SESSION and turn.id in self._refused:
            return Verdict()
        if kind is FailureKind.SESSION and case.session:
            return self._session_refused(case, harmless)
        if self._count(engine):
            return Verdict(again=harmless, uncounted=harmless)
        if failure and kind is FailureKind.BUSY and harmless and not failure.tried:
            return self._busy(turn, failure)
        return Verdict()

    def _limited(self, case: Case, until: int | None, harmless: bool) -> Verdict:
        now = self._clock.now()
        if until is None or until > now + LIMIT_MOST:
            until = now + LIMIT_UNKNOWN
        until = max(until, now + LIMIT_LEAST)
        if self._can_stand_in(case.engine):
            self._set_down(case.engine, words.LIMIT_REACHED, until)
            return Verdict(again=harmless, uncounted=harmless)
        # Where the lane's own engine is another, the pause does not hold it: the start counts.
        own = case.engine == case.wanted
        again = harmless and (own or case.turn.attempts <= Limits().attempts)
        held = self.paused().get(case.engine)
        if held is not None and held.until is None:  # by an admin, who alone ends it
            pause = held
        else:
            pause = EnginePause(words.LIMIT_REACHED, until)
        return Verdict(again=again, uncounted=again and own, pause=pause)

    def _session_refused(self, case: Case, harmless: bool) -> Verdict:
        """One fresh try."""
        if harmless and case.turn.attempts <= Limits().attempts:
            self._remember(self._refused, case.turn.id, case.session)
            return Verdict(again=True, fresh=True)
        return Verdict()

    def _busy(self, turn: Turn, failure: Failure) -> Verdict:
        if turn.attempts > Limits().attempts:
            return Verdict()
        wait = FIRST_WAIT * 2 ** (turn.attempts - 1) * (0.5 + self._jitter() / 2)
        if failure.wait is not None:
            wait = max(failure.wait, wait / 2)
        if wait > WAIT_MOST:
            return Verdict()
        self._remember(self._waits, turn.id, wait)
        return Verdict(again=True)

    def _count(self, engine: str) -> bool:
        """One more failure; whether another engine stands in from now on."""
        number = self._failures[engine] = self._failures.get(engine, 0) + 1
        if not self._can_stand_in(engine) or (number < IN_A_ROW and engine not in self._down):
            return False
        self._set_down(engine, words.IN_A_ROW, self._next_look())
        return True

    def _set_down(self, engine: str, why: str, try_at: int) -> None:
        if engine not in self._down:
            log.error("%s: %s stands in for it: %s", engine, self.fallback, why)
        self._down[engine] = _Down(why, try_at)

    def _can_stand_in(self, engine: str) -> bool:
        return self.fallback not in ("", engine, *self.paused())

    def _next_look(self) -> int:
        return self._clock.now() + round(LOOK_AGAIN * 1000)

    @staticmethod
    def _remember(what: dict[int, T], turn: int, value: T) -> None:
        what[turn] = value
        while len(what) > KEPT:
            del what[next(iter(what))]
