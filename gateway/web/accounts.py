"""Who is signed in: tokens, how long they hold, and what somebody is on this gateway now.

A token is known to the browser alone; its hash is stored. The right to be here is looked up at
each request, so that whoever is taken off the lists is out at once. It must not know how somebody
proved who they are, nor HTTP.
"""

from __future__ import annotations

import hashlib
import secrets

from core.clock import Clock
from core.people import WEB, People, Role
from core.store import web
from core.store.store import Store
from gateway.web.visitor import Visitor

OWNER = "local:owner"
OWNER_NAME = "Owner"
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

    async def open(self, person: str, browser: str = "", network: str = "") -> str:
        """Sign somebody in; returns the token for their browser. It is durable then."""
        token, now = secrets.token_urlsafe(_TOKEN_BYTES), self._clock.now()
        row = web.Signin(_hash(token), person, now, now, browser[:_BROWSER_MOST], network)
        await self._store.save(web.signin(row), web.tidy_signins(now - IDLE, now - OLDEST))
        return token

    async def visitor(self, token: str) -> Visitor | None:
        """Who has this token, if they may still be here."""
        if not token:
            return None
        row = await web.signed_in(self._store, _hash(token))
        now = self._clock.now()
        if row is None or now - row.seen_at > IDLE or now - row.opened_at > OLDEST:
            return None
        role = self.role(row.person)
        if not role:
            return None
        if now - row.seen_at > SEEN_EVERY:
            seen = web.Signin(row.id, row.person, row.opened_at, now)
            self._store.save_later(web.signin(seen))
        linked = frozenset(
            one.identity for one in await web.links(self._store) if one.account == row.person
        )
        return Visitor(row.person, self.name(row.person), role, row.id, linked)

    def role(self, person: str) -> Role:
        """What somebody who signed in is now; the owner is nobody once an admin has a mailbox."""
        if person == OWNER:
            return Role.NONE if self._people.lists.admin_emails else Role.ADMIN
        return self._people.role(person) if person.startswith(WEB) else Role.NONE

    def name(self, person: str) -> str:
        return OWNER_NAME if person == OWNER else person.removeprefix(WEB)

    async def close(self, signin: str) -> None:
        """End one sign-in."""
        await self._store.save(web.remove_signin(signin))

    async def listed(self, person: str) -> list[web.Signin]:
        """Where somebody is signed in, the last seen first."""
        return await web.signins_of(self._store, person)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
