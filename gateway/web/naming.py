"""What people are called on the page: accounts by their mailbox, others by the name they have."""

from __future__ import annotations

import re

from core.people import WEB
from gateway.web.accounts import OWNER, OWNER_NAME
from gateway.web.site import Site

_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def name_of(site: Site, person: str) -> str:
    """The name others know somebody by; the id when none is known."""
    if person == OWNER:
        return OWNER_NAME
    if person.startswith(WEB):
        return person.removeprefix(WEB)
    return straight(site.parts.people.name(person))


def straight(text: str) -> str:
    """Somebody's words within a line of ours: without what would turn the rest of it around."""
    return " ".join(_TURNING.sub("", text).split())
