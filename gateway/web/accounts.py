"""Who is signed in: tokens, how long they hold, and what somebody is on this gateway now.

A token is known to the browser alone; its hash is stored. The right to be here is looked up at
each request, so that whoever is taken off the lists is out at once. It must not know how somebody
proved who they are, nor HTTP.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from core.clock import Clock
from core.people import WEB, People, Role
from core.store import signing_in, web
from core.store.rows import Row
from core.store.store import Store
from gateway.control import OWNER, OWNER_NAME
from gateway.signin_links import hash_of, role_of
from gateway.web.visitor import Visitor

__all__ = ["OWNER", "OWNER_NAME", "Accounts"]

DAY = 86_400_000
IDLE = 30 * DAY  # ms without a visit after which a sign-in ends
OLDEST = 180 * DAY  # ms after which it ends however often it is used
SEEN_EVERY = 3_600_000  # ms; how exactly it is stored when somebody was here last
_TOKEN_BYTES = 32
_BROWSER_MOST = 120


class Accounts:
    """One for the process."""

    def __init__(self, store: Store, people: People, clock: Clock) -> None:
        self._store = store
        self._people = people
        self._clock = clock
        self.on_ended: Callable[[], None] = lambda: None  # told that sign-ins have ended

    async def open(
        self,
        person: str,
        browser: str = "",
        network: str = "",
        instead: str = "",
        rows: Sequence[Row] = (),
    ) -> str:
        """Sign somebody in; returns the token for their browser. It is durable then.

        ``instead``: the token that the browser had until now, which is good no more. ``rows`` are
        stored in the same commit.
        """
        token, now = secrets.token_urlsafe(_TOKEN_BYTES), self._clock.now()
        row = web.Signin(hash_of(token), person, now, now, browser[:_BROWSER_MOST], network)
        await self._store.save(
            *rows,
            web.remove_signin(hash_of(instead)),
            web.signin(row),
            web.tidy_signins(now - IDLE, now - OLDEST),
        )
        return token

    async def visitor(self, token: str) -> Visitor | None:
        """Who has this token, if they may still be here."""
        if not token:
            return None
        row = await web.signed_in(self._store, hash_of(token))
        now = self._clock.now()
        if row is None or now - row.seen_at > IDLE or now - row.opened_at > OLDEST:
            return None
        role = self.role(row.person)
        if not role:
            return None
        if now - row.seen_at > SEEN_EVERY:
            self._store.save_later(signing_in.seen(row.id, now))
        linked = frozenset(
            one.identity for one in await web.links(self._store) if one.account == row.person
        )
        return Visitor(row.person, self.name(row.person), role, row.id, linked)

    def role(self, person: str) -> Role:
        """What somebody who signed in is now."""
        return role_of(self._people, person)

    def name(self, person: str) -> str:
        return OWNER_NAME if person == OWNER else person.removeprefix(WEB)

    async def begin(self) -> None:
        """End what the built-in owner opened, once an admin is named; it stays ended.

        When the page's settings name one while the gateway runs, they end it in the same commit.
        """
        if not self.role(OWNER):
            await self._store.save(web.remove_signins_of(OWNER))
        self.on_ended()

    async def close(self, signin: str, person: str) -> None:
        """End one sign-in of somebody."""
        act = web.act(self._clock.now(), person, "signin.closed", person)
        await self._store.save(web.remove_signin(signin), act)
        self.on_ended()

    async def end(self, signin: web.Signin, by: str) -> None:
        """End one sign-in of anybody, as an act of an admin."""
        act = web.act(self._clock.now(), by, "signin.ended", signin.person, signin.browser)
        await self._store.save(web.remove_signin(signin.id), act)
        self.on_ended()

    async def close_others(self, person: str, but: str) -> int:
        """End all sign-ins of somebody but one; how many there were."""
        others = [row.id for row in await self.listed(person) if row.id != but]
        if others:
            said = f"everywhere else ({len(others)})"
            act = web.act(self._clock.now(), person, "signin.closed", person, said)
            await self._store.save(*map(web.remove_signin, others), act)
            self.on_ended()
        return len(others)

    async def listed(self, person: str) -> list[web.Signin]:
        """Where somebody is signed in, the last seen first."""
        now = self._clock.now()
        found = await web.signins_of(self._store, person)
        return [one for one in found if now - one.seen_at <= IDLE and now - one.opened_at <= OLDEST]
