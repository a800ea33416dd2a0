"""The rules of signing in: which codes are good, how often somebody may try. Pure.

State and decisions only: who asks is an opaque key, a code is its keyed hash, time is a parameter.
Each decision is made in one go, so that a thousand requests at once pass no limit together; what
it changed is in ``changed`` afterwards, for whoever stores it.

An *asking* is an address in a browser. Every code it was given in the last ten minutes is good
until one of them is used; five wrong tries end them all, and only a new code begins anew. Unknown
addresses have askings like all others, with codes that nobody was told.
"""

from __future__ import annotations

import hmac
import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.values import Rate, SigninLimits

LASTS = 600_000  # ms a code is good
FORGOTTEN = 2 * LASTS  # ms after the last try or code of an asking
WRONG_MOST = 5  # tries for an asking
OF_DEVICE = Rate(5, 900)  # what a browser of an earlier sign-in may, outside all limits
ASKINGS_MOST = 10_000  # kept at once; those that were told a code stay longest
TALLIES_MOST = 20_000
_FINE = 60  # up to so many instants each is kept by itself, more of them in as many parts of time


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, as the limits know them: opaque keys. ``device`` is empty for a new browser."""

    network: str
    pair: str  # the address together with the network
    device: str = ""


class Answer(StrEnum):
    """What became of a guess."""

    RIGHT = "right"
    WRONG = "wrong"
    ASK_AGAIN = "ask again"  # five were wrong: no code of this asking is good any more


@dataclass(frozen=True, slots=True)
class TooMany:
    """A limit of the network is reached; seconds until it is worth trying again."""

    seconds: int


@dataclass(slots=True)
class Asking:
    """One address in one browser. Instants in ms since 1970."""

    codes: list[tuple[str, int]] = field(default_factory=list)  # hash, and when it was made
    wrong: int = 0
    told: bool = False  # whether one of the codes was sent to somebody
    at: int = 0

    @property
    def ended(self) -> bool:
        return self.wrong >= WRONG_MOST

    def good(self, now: int) -> list[str]:
        """The codes that may be used now. One from the future was made before a clock was set."""
        return [code for code, made in self.codes if 0 <= now - made < LASTS]


Tally = list[tuple[int, int]]  # an instant (ms) and how many, the oldest first


@dataclass(slots=True)
class Changed:
    """Keys of what the last decisions changed or let go; emptied by whoever stores it."""

    askings: set[str] = field(default_factory=set)
    tallies: set[str] = field(default_factory=set)


class Rules:
    """All that is known of who asked and guessed, roughly in the order of last change."""

    def __init__(self) -> None:
        # Not plain dicts: what is taken from their front again and again is slow there.
        self.askings: OrderedDict[str, Asking] = OrderedDict()
        self.tallies: OrderedDict[str, Tally] = OrderedDict()
        self.changed = Changed()

    def ask(
        self, who: Asker, asking: str, code: str, known: bool, now: int, limits: SigninLimits
    ) -> bool | TooMany:
        """Somebody wants a code. True: it is good now, and has to be sent.

        ``code`` is the hash of a new one. An address that is not ``known`` is dealt with in the
        same way, and False.
        """
        own = self._room(_own("ask", who), OF_DEVICE, now) if who.device else False
        if own:
            self._count(_own("ask", who), OF_DEVICE, now)
        else:
            if wait := self._wait(f"network {who.network}", limits.network, now):
                return TooMany(wait)
            self._count(f"network {who.network}", limits.network, now)
        given = own or (
            self._room(f"code {who.pair}", limits.code, now)
            and self._room("mail", limits.mail, now)
        )
        if given and not own:
            self._count(f"code {who.pair}", limits.code, now)
            self._count("mail", limits.mail, now, 1 if known else 0)
        self._give(asking, code if given else "", known, now)
        return given and known

    def _give(self, ident: str, code: str, known: bool, now: int) -> None:
        asking = self._asking(ident, now)
        if code:
            if asking.ended or not asking.good(now):
                asking = Asking()
            asking.codes.append((code, now))
            asking.told |= known
        self._keep(ident, asking, now)

    def guess(
        self, who: Asker, hashes: Mapping[str, str], known: bool, now: int, limits: SigninLimits
    ) -> Answer | TooMany:
        """Somebody types a code; ``hashes`` has what it would be for each asking of the browser."""
        if wait := self.must_wait(who, now, limits):
            return wait
        right = False
        for ident, typed in hashes.items():
            asking = self._asking(ident, now)
            for code in asking.good(now):  # all of them: how long it takes tells nothing
                right |= hmac.compare_digest(code, typed)
        if right and known:
            for ident in hashes:
                self._keep(ident, Asking(), now)
            return Answer.RIGHT
        self.failed(who, now, limits)
        return self._wrong(hashes, now)

    def _wrong(self, hashes: Mapping[str, str], now: int) -> Answer:
        ended = not hashes  # nothing was asked for in this browser
        for ident in hashes:
            asking = self._asking(ident, now)
            asking.wrong = min(asking.wrong + 1, WRONG_MOST)
            if asking.ended:
                asking.codes, asking.told, ended = [], False, True
            self._keep(ident, asking, now)
        return Answer.ASK_AGAIN if ended else Answer.WRONG

    def must_wait(self, who: Asker, now: int, limits: SigninLimits) -> TooMany | None:
        """Whether too much went wrong from there."""
        if who.device and self._room(_own("fail", who), OF_DEVICE, now):
            return None
        wait = self._wait(f"failure {who.network}", limits.failure, now)
        return TooMany(wait) if wait else None

    def failed(self, who: Asker, now: int, limits: SigninLimits) -> None:
        """Something was wrong: a code, a link."""
        if who.device and self._room(_own("fail", who), OF_DEVICE, now):
            self._count(_own("fail", who), OF_DEVICE, now)
        else:
            self._count(f"failure {who.network}", limits.failure, now)

    # How much is kept ---------------------------------------------------------------------

    def _asking(self, ident: str, now: int) -> Asking:
        """What is known of one; nothing any more when long nobody came back to it."""
        found = self.askings.get(ident)
        return found if found is not None and now - found.at < FORGOTTEN else Asking()

    def _keep(self, ident: str, asking: Asking, now: int) -> None:
        self.askings.pop(ident, None)
        asking.at = now
        self.askings[ident] = asking
        self.changed.askings.add(ident)
        spared = 0
        while len(self.askings) > ASKINGS_MOST:
            oldest, found = next(iter(self.askings.items()))
            if found.told and found.good(now) and spared < ASKINGS_MOST:
                self.askings.move_to_end(oldest)  # somebody may be about to type it
                spared += 1
            else:
                del self.askings[oldest]
                self.changed.askings.add(oldest)

    def tidy(self, now: int, limits: SigninLimits) -> tuple[int, int]:
        """Let go what counts no more; the instants before which askings and tallies are over."""
        over = now - FORGOTTEN + 1, now - longest(limits)
        for ident in [key for key, one in self.askings.items() if one.at < over[0]]:
            del self.askings[ident]
        for key in [key for key, tally in self.tallies.items() if tally[-1][0] < over[1]]:
            del self.tallies[key]
        return over

    # Counting -----------------------------------------------------------------------------

    def _counted(self, key: str, rate: Rate, now: int) -> Tally:
        """What counts now: nothing from the future, which only a clock that was set back has."""
        per, slack = round(rate.per * 1000), _grain(rate)
        return [(at, n) for at, n in self.tallies.get(key, ()) if -slack <= now - at < per]

    def _room(self, key: str, rate: Rate | None, now: int) -> bool:
        return not self._wait(key, rate, now)

    def _wait(self, key: str, rate: Rate | None, now: int) -> int:
        """Seconds until there is room; 0: there is."""
        if rate is None:
            return 0
        counted = self._counted(key, rate, now)
        over = sum(n for _, n in counted) - rate.count
        if over < 0:
            return 0
        for at, n in counted:
            over -= n
            if over < 0:
                return max(1, math.ceil((at + rate.per * 1000 - now) / 1000))
        return math.ceil(rate.per)

    def _count(self, key: str, rate: Rate | None, now: int, n: int = 1) -> None:
        if rate is None:
            return
        tally = self._counted(key, rate, now)
        grain = _grain(rate)
        at = -(-now // grain) * grain  # never earlier than it was
        if n and tally and tally[-1][0] == at:
            tally[-1] = at, tally[-1][1] + n
        elif n:
            tally.append((at, n))
        self.tallies.pop(key, None)
        if tally:
            self.tallies[key] = tally
        self.changed.tallies.add(key)
        while len(self.tallies) > TALLIES_MOST:
            oldest = next(iter(self.tallies))
            del self.tallies[oldest]
            self.changed.tallies.add(oldest)


def longest(limits: SigninLimits) -> int:
    """The longest span that anything is counted over, in ms."""
    rates = (limits.code, limits.network, limits.mail, limits.failure, OF_DEVICE)
    return max(round(rate.per * 1000) for rate in rates if rate is not None)


def _grain(rate: Rate) -> int:
    """ms that are counted as one instant: 1 where few are counted."""
    return 1 if rate.count <= _FINE else max(1, round(rate.per * 1000) // _FINE)


def _own(what: str, who: Asker) -> str:
    return f"{what} of device {who.device}"
