"""What people are called on the page: accounts by their mailbox, others by the name they have."""

from __future__ import annotations

from core.people import WEB
from gateway.web.accounts import OWNER, OWNER_NAME
from gateway.web.site import Site


def name_of(site: Site, person: str) -> str:
    """The name others know somebody by; the id when none is known."""
    if person == OWNER:
        return OWNER_NAME
    if person.startswith(WEB):
        return person.removeprefix(WEB)
    return site.parts.people.name(person)
