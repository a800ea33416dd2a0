"""Codes that tie a chat identity to an account of the page: who may say one, and how often.

A code is shown on the account's page and said in a chat within ten minutes; then it is used up. It
is kept in memory alone: after a restart the page shows a new one. It must not know commands, the
page or the store.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.clock import Clock
from core.people import pairing_code
from core.wording import duration

MOVE = "move"  # behind a code: away from the account that the chat belongs to now
LASTS = 600_000  # ms for which a code is good
REMEMBERED = 3_600_000  # ms for which it is still known that a code was good once
CODES_MOST = 5  # of one account that are remembered
GUESSES = 5  # wrong codes of one identity
GUESSES_WITHIN = 600_000  # ms
GUESSERS_MOST = 4096
WRONG = (
    "That is no code of mine. Your account page shows the right one; it is good for ten minutes "
    "and works once."
)
EXPIRED = "That code has expired or was used. Show a new one on your account page and write it."


@dataclass(frozen=True, slots=True)
class Code:
    """``until``: ms since 1970; 0 when it was used or another one took its place."""

    code: str
    account: str
    made_at: int
    until: int


@dataclass(frozen=True, slots=True)
class Looked:
    """What a typed code is: the account that it belongs to, or why there is none, in words."""

    account: str = ""
    problem: str = ""


class Linking:
    """One for the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: dict[str, Code] = {}
        self._wrong: dict[str, list[int]] = {}

    def new(self, account: str) -> Code:
        """A code for an account; an earlier one of it ends."""
        now = self._clock.now()
        self._forget(account, now)
        for one in [one for one in self._codes.values() if one.account == account]:
            self._end(one)
        made = Code(pairing_code(), account, now, now + LASTS)
        self._codes[made.code] = made
        return made

    def look(self, typed: str, identity: str) -> Looked:
        """Whose code somebody typed. It stays good: ``used`` ends it."""
        now = self._clock.now()
        wrong = [at for at in self._wrong.get(identity, ()) if 0 <= now - at < GUESSES_WITHIN]
        if len(wrong) >= GUESSES:
            wait = duration(max(60_000, wrong[0] + GUESSES_WITHIN - now))
            return Looked(problem=f"Those were too many wrong codes. Try again in {wait}.")
        found = self._codes.get(plain_code(typed))
        if found is not None and now < found.until:
            return Looked(found.account)
        self._missed(identity, [*wrong, now])
        return Looked(problem=WRONG if found is None else EXPIRED)

    def used(self, typed: str) -> None:
        """A code has done its work, or was said where others read it."""
        if (found := self._codes.get(plain_code(typed))) is not None:
            self._end(found)

    def _end(self, one: Code) -> None:
        self._codes[one.code] = Code(one.code, one.account, one.made_at, 0)

    def _forget(self, account: str, now: int) -> None:
        """Drop what nobody will ask for any more."""
        self._codes = {
            code: one for code, one in self._codes.items() if now - one.made_at < REMEMBERED
        }
        mine = sorted((o.made_at, o.code) for o in self._codes.values() if o.account == account)
        for _, code in mine[: max(0, len(mine) - CODES_MOST + 1)]:
            del self._codes[code]

    def _missed(self, identity: str, times: list[int]) -> None:
        self._wrong.pop(identity, None)
        if len(self._wrong) >= GUESSERS_MOST:
            del self._wrong[next(iter(self._wrong))]
        self._wrong[identity] = times


def said(args: str) -> tuple[str, bool]:
    """The code behind the command, blanks or not, and whether it is to move the chat."""
    words = args.split()
    moves = len(words) > 1 and words[-1].lower() == MOVE
    return "".join(words[:-1] if moves else words), moves


def plain_code(typed: str) -> str:
    """As it is kept, however it was typed: ``abcd-efgh`` is ``ABCDEFGH``."""
    return "".join(typed.split()).replace("-", "").upper()


def shown_code(code: str) -> str:
    """In two halves, to be read out."""
    return f"{code[:4]}-{code[4:]}"
