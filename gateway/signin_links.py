"""Links that sign in once, for whoever can read the home: made here, followed on the page.

The token is in the link alone; its hash is stored. It must not know HTTP.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from core.people import WEB, People, Role
from core.store import signing_in, web
from core.store.rows import Row
from core.store.store import Store
from gateway.control import OWNER
from gateway.web.mailbox import NoAddress, mailbox

LASTS = 600_000  # ms that a link of `laneway signin` is good
_BYTES = 32


class NoLink(LookupError):
    """There is no link for that; the message says why, and what to do."""


def hash_of(token: str) -> str:
    """By what a token is known to the store."""
    return hashlib.sha256(token.encode()).hexdigest()


def link_address(page: str, token: str) -> str:
    """The address to open. The token stands behind the #: browsers never send that part."""
    return f"{page}/signin/link#token={token}"


def role_of(people: People, person: str) -> Role:
    """What somebody is who signs in on the page; the owner is nobody once an admin has a mailbox.

    One who had been let in by the built-in account must not stay in beside the named admins.
    """
    if person == OWNER:
        return Role.NONE if people.lists.admin_emails else Role.ADMIN
    return people.role(person) if person.startswith(WEB) else Role.NONE


def person_for(people: People, address: str) -> str:
    """For whom a link is asked: an address of the lists, or the owner; raises NoLink."""
    typed = address.strip()
    if not typed:
        if people.lists.admin_emails:
            raise NoLink(
                "say for whom, like: laneway signin ana@example.org. The built-in owner cannot"
                " sign in since LANEWAY_ADMIN_EMAILS names somebody"
            )
        return OWNER
    person = WEB + _mailbox(typed)
    if not role_of(people, person):
        raise NoLink(
            f"{typed} is on no list; add it to LANEWAY_ADMIN_EMAILS or LANEWAY_MEMBER_EMAILS, or on"
            " the settings page"
        )
    return person


def _mailbox(typed: str) -> str:
    try:
        return mailbox(typed)
    except NoAddress as fault:
        raise NoLink(str(fault)) from fault


async def make_link(store: Store, person: str, now: int) -> str:
    """A link for somebody, good for ten minutes; returns its token. It is durable then."""
    token = secrets.token_urlsafe(_BYTES)
    row = signing_in.SigninLink(hash_of(token), person, now + LASTS)
    made = web.act(now, OWNER, "signin.link_made", person, "with laneway signin")
    await store.save(signing_in.tidy_links(now), signing_in.link(row), made)
    return token


def link_of_start(store: Store, people: People, now: int) -> str:
    """The owner's link, good until it is used or the gateway starts again; empty: none is needed.

    Nobody waits for the disk: should it be lost, the next start makes another.
    """
    rows: list[Row] = [signing_in.remove_links_of_start()]
    token = ""
    if role_of(people, OWNER):
        token = secrets.token_urlsafe(_BYTES)
        rows.append(signing_in.link(signing_in.SigninLink(hash_of(token), OWNER, None)))
        rows.append(web.act(now, "gateway", "signin.link_made", OWNER, "at the start"))
    store.save_later(*rows)
    return token


class SigninDesk:
    """Makes links for the owner's terminal; ``page`` gives the address of the page."""

    def __init__(
        self, store: Store, people: People, now: Callable[[], int], page: Callable[[], str]
    ) -> None:
        self._store = store
        self._people = people
        self._now = now
        self._page = page

    def asks(self) -> dict[str, Callable[[Mapping[str, Any]], Awaitable[Any]]]:
        """For the local socket."""
        return {"signin": self.make}

    async def make(self, request: Mapping[str, Any]) -> dict[str, str]:
        """A link for ``email``, or for the owner; raises NoLink."""
        person = person_for(self._people, str(request.get("email") or ""))
        token = await make_link(self._store, person, self._now())
        return {"address": link_address(self._page(), token), "person": person}
