"""Signing in: what a browser brings is turned into keys for the rules, and what they say is done.

One for the process. Everything that is decided is stored before anybody is answered, so that a
restart forgets no limit and no used code. It must not know HTTP or mail servers.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from core.clock import Clock
from core.people import WEB
from core.store import signing_in, web
from core.store.rows import Row
from core.store.store import Store
from gateway.keys import Keys
from gateway.signin_links import hash_of
from gateway.values import SigninLimits
from gateway.web.accounts import Accounts
from gateway.web.signin_rules import Answer, Asker, Asking, Rules, TooMany

log = logging.getLogger("laneway.signin")

DIGITS = 8
DEVICE_LASTS = 365 * 86_400  # seconds
TIDY_EVERY = 60_000  # ms
REFUSALS_EVERY = 600_000  # ms between two acts about one network
REFUSED_MOST = 1000  # networks that are remembered for that
REFUSALS_MOST, REFUSALS_WITHIN = 60, 3_600_000  # acts about all networks, ms
BROWSERS_MOST = 4  # names of one browser that are looked at
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_WIDE = str.maketrans({0xFF10 + n: str(n) for n in range(10)})  # digits as some keyboards have them
_BETWEEN = re.compile(r"[\s\-\u2010-\u2015\u00ad\u200b\u2060\ufeff.]+")


@dataclass(frozen=True, slots=True)
class Caller:
    """A browser: from where it comes, and what it has kept from before."""

    address: str
    network: str
    browser: str  # in words
    names: tuple[str, ...] = ()  # by which it asked before; secret
    device: str = ""  # as it was handed out at an earlier sign-in, or not
    token: str = ""  # of a sign-in that is replaced


@dataclass(frozen=True, slots=True)
class Letter:
    """A code on its way to a mailbox. ``made_at`` in ms since 1970."""

    address: str
    code: str
    made_at: int
    browser: str
    network: str


@dataclass(frozen=True, slots=True)
class Opened:
    """Somebody is signed in: the tokens for their browser."""

    person: str
    token: str
    device: str


class Signins:
    """``deliver`` takes a letter without waiting; ``limits`` are those of now."""

    def __init__(
        self,
        store: Store,
        accounts: Accounts,
        keys: Keys,
        clock: Clock,
        limits: Callable[[], SigninLimits],
        deliver: Callable[[Letter], None],
    ) -> None:
        self._store = store
        self._accounts = accounts
        self._clock = clock
        self._limits = limits
        self._deliver = deliver
        self._rules = Rules()
        self._key = keys.for_purpose("sign-in")
        self._device_key = keys.for_purpose("device of a sign-in")
        self._tidied = 0
        self._refusals: dict[str, int] = {}
        self._told: deque[int] = deque()  # when acts about refusals were made
        self._used: set[str] = set()

    async def load(self) -> None:
        """What was counted before the gateway started.

        What the start itself has stored is stored when this returns: old links are over.
        """
        await self._store.save(signing_in.tidy_links(self._clock.now()))
        for row in await signing_in.askings(self._store):
            state = json.loads(row.state)
            codes = [(code, made) for code, made in state["codes"]]
            self._rules.askings[row.id] = Asking(codes, state["wrong"], state["told"], row.at)
        for tries in await signing_in.all_tries(self._store):
            self._rules.tallies[tries.id] = [(at, n) for at, n in json.loads(tries.times)]

    # Asking for a code --------------------------------------------------------------------

    async def ask(self, address: str, typed: str, caller: Caller) -> TooMany | None:
        """Send a code to ``address`` if it may sign in; empty: it is none that could.

        The same is done for every address, and nothing waits for a mail.
        """
        now = self._clock.now()
        code = f"{secrets.randbelow(10**DIGITS):0{DIGITS}}"
        known = bool(self._accounts.role(WEB + address)) and bool(address)
        asking = self._asking(address or typed, caller.names[0])
        asked = self._rules.ask(
            self._asker(caller, address or typed),
            asking, self._code(asking, code), known, now, self._limits(),
        )  # fmt: skip
        if isinstance(asked, TooMany):
            await self._store.save(*self._changes(now), *self._refused(caller, "asked too often"))
            return asked
        await self._store.save(*self._changes(now))
        if asked:
            self._deliver(Letter(address, code, now, caller.browser, caller.address))
        return None

    # Proving it ---------------------------------------------------------------------------

    async def guess(
        self, address: str, typed: str, code: str, caller: Caller
    ) -> Opened | Answer | TooMany:
        """Sign in with a code, as it was typed."""
        now, person = self._clock.now(), WEB + address
        known = bool(self._accounts.role(person)) and bool(address)
        askings = [self._asking(address or typed, name) for name in caller.names]
        plain = plain_code(code)
        answer = self._rules.guess(
            self._asker(caller, address or typed),
            {asking: self._code(asking, plain) for asking in askings},
            known, now, self._limits(),
        )  # fmt: skip
        if answer is Answer.RIGHT:
            return await self._open(person, caller, "with a code", self._changes(now))
        why = "too many tries" if isinstance(answer, TooMany) else "a wrong code"
        if isinstance(answer, Answer):
            log.warning("sign-in as %s from %s: %s", typed.strip(), caller.address, why)
        await self._store.save(*self._changes(now), *self._refused(caller, why))
        return answer

    async def follow(self, token: str, caller: Caller) -> Opened | Answer | TooMany:
        """Sign in with a printed link."""
        now, limits = self._clock.now(), self._limits()
        link = await signing_in.signin_link(self._store, hash_of(token))
        if link is not None and self._good(link, now):
            # Before any limit: nobody finds one by trying, and nobody shuts the owner out.
            self._used.add(link.id)  # two requests at once are one sign-in
            used = signing_in.remove_link(link.id)
            return await self._open(link.person, caller, "with a link", [used])
        asker = self._asker(caller, "")
        if wait := self._rules.must_wait(asker, now, limits):
            await self._store.save(*self._refused(caller, "too many tries"))
            return wait
        self._rules.failed(asker, now, limits)
        log.warning("sign-in from %s: a link that is used, old or wrong", caller.address)
        await self._store.save(*self._changes(now), *self._refused(caller, "a wrong link"))
        return Answer.WRONG

    def _good(self, link: signing_in.SigninLink, now: int) -> bool:
        timely = link.expires_at is None or now < link.expires_at
        return timely and link.id not in self._used and bool(self._accounts.role(link.person))

    async def _open(self, person: str, caller: Caller, how: str, rows: Iterable[Row]) -> Opened:
        device = self._device(caller.device) or secrets.token_hex(16)
        about = f"{how}, {caller.browser}, {caller.address}"
        opened = web.act(self._clock.now(), person, "signin.opened", person, about)
        token = await self._accounts.open(
            person, caller.browser, caller.address, caller.token, (*rows, opened)
        )
        return Opened(person, token, self._device_cookie(device))

    # Keys and hashes ----------------------------------------------------------------------

    def _asker(self, caller: Caller, address: str) -> Asker:
        return Asker(
            self._hash("network", caller.network),
            self._hash("pair", address, caller.network),
            self._device(caller.device),
        )

    def _asking(self, address: str, name: str) -> str:
        return self._hash("asking", address, name)

    def _code(self, asking: str, code: str) -> str:
        return self._hash("code", asking, code)

    def _hash(self, *parts: str) -> str:
        text = json.dumps(parts).encode()
        return hmac.digest(self._key, text, hashlib.sha256).hex()

    def _device(self, cookie: str) -> str:
        """The id in a device cookie that we made within the last year; else empty."""
        ident, _, rest = cookie.partition(".")
        made, _, _ = rest.partition(".")
        if not re.fullmatch(r"[0-9a-f]{32}\.[0-9]{1,12}\.[0-9a-f]{64}", cookie):
            return ""
        ours = hmac.compare_digest(cookie, self._signed(ident, int(made)))
        age = self._clock.now() // 1000 - int(made)
        return ident if ours and age < DEVICE_LASTS else ""

    def _device_cookie(self, ident: str) -> str:
        return self._signed(ident, self._clock.now() // 1000)

    def _signed(self, ident: str, made: int) -> str:
        text = f"{ident}.{made}"
        mark = hmac.digest(self._device_key, text.encode(), hashlib.sha256).hex()
        return f"{text}.{mark}"

    # Storing ------------------------------------------------------------------------------

    def _changes(self, now: int) -> list[Row]:
        """Rows of what the rules changed."""
        rules, changed = self._rules, self._rules.changed
        found: list[Row] = []
        for ident in changed.askings:
            found.append(_asking_row(ident, rules.askings.get(ident)))
        for key in changed.tallies:
            tally = rules.tallies.get(key)
            found.append(
                signing_in.tries(signing_in.TriesRow(key, json.dumps(tally), tally[-1][0]))
                if tally
                else signing_in.remove_tries(key)
            )
        changed.askings.clear()
        changed.tallies.clear()
        if not 0 <= now - self._tidied < TIDY_EVERY:
            self._tidied = now
            found.extend(signing_in.tidy(*rules.tidy(now, self._limits())))
        return found

    def _refused(self, caller: Caller, why: str) -> list[Row]:
        """The act that somebody was refused, once for a network and ten minutes.

        Of networks there are billions: beyond some acts an hour only the log tells of more, or
        whoever has many could bury what people did.
        """
        now = self._clock.now()
        if 0 <= now - self._refusals.get(caller.network, -REFUSALS_EVERY) < REFUSALS_EVERY:
            return []
        self._refusals.pop(caller.network, None)
        while len(self._refusals) >= REFUSED_MOST:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[caller.network] = now
        log.warning("sign-in from %s: %s (told once in ten minutes)", caller.network, why)
        while self._told and not 0 <= now - self._told[0] < REFUSALS_WITHIN:
            self._told.popleft()
        if len(self._told) >= REFUSALS_MOST:
            return []
        self._told.append(now)
        return [web.act(now, "gateway", "signin.refused", caller.network, why)]


def _asking_row(ident: str, asking: Asking | None) -> Row:
    if asking is None:
        return signing_in.remove_asking(ident)
    state = {"codes": asking.codes, "wrong": asking.wrong, "told": asking.told}
    return signing_in.asking(signing_in.AskingRow(ident, json.dumps(state), asking.at))


def new_name() -> str:
    """A name for a browser that has none."""
    return secrets.token_urlsafe(32)


def is_name(value: str) -> bool:
    return _TOKEN.fullmatch(value) is not None


def plain_code(typed: str) -> str:
    """A code without what people and mail programs put between its digits.

    It stays text: a zero in front is part of it, and what is no digit makes it a wrong one.
    """
    return _BETWEEN.sub("", typed).translate(_WIDE)
