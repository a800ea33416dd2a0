"""What is stored while somebody signs in: codes asked for, what the limits counted, links.

Rows to write and readers, as in web.py. It must not know HTTP, codes, tokens or the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.store.rows import Row
from core.store.store import Reader


@dataclass(frozen=True, slots=True)
class AskingRow:
    """An address in a browser. ``at``: last change, ms since 1970."""

    id: str
    state: str
    at: int


@dataclass(frozen=True, slots=True)
class TriesRow:
    """What one limit has counted for one somebody; ``times`` is JSON, ``at`` the newest."""

    id: str
    times: str
    at: int


@dataclass(frozen=True, slots=True)
class SigninLink:
    """A link that signs in once; ``expires_at`` None: until the next start."""

    id: str  # hash of the token
    person: str
    expires_at: int | None


def asking(row: AskingRow) -> Row:
    return "asking.save", {"id": row.id, "state": row.state, "at": row.at}


def remove_asking(ident: str) -> Row:
    return "asking.remove", {"id": ident}


def tries(row: TriesRow) -> Row:
    return "tries.save", {"id": row.id, "times": row.times, "at": row.at}


def remove_tries(ident: str) -> Row:
    return "tries.remove", {"id": ident}


def tidy(askings_before: int, tries_before: int) -> tuple[Row, ...]:
    """Forget what has not changed since then; ms."""
    return (
        ("asking.tidy", {"before": askings_before}),
        ("tries.tidy", {"before": tries_before}),
    )


def link(row: SigninLink) -> Row:
    return "signin_link.save", {"id": row.id, "person": row.person, "expires_at": row.expires_at}


def remove_link(ident: str) -> Row:
    return "signin_link.remove", {"id": ident}


def remove_links_of_start() -> Row:
    """Those that were good until the next start."""
    return "signin_link.remove_of_start", {}


def tidy_links(now: int) -> Row:
    return "signin_link.tidy", {"now": now}


def seen(signin: str, at: int) -> Row:
    """Somebody was here; a sign-in that was ended meanwhile stays ended."""
    return "signin.seen", {"id": signin, "at": at}


async def askings(store: Reader) -> list[AskingRow]:
    """All of them, the longest unchanged first."""
    return [AskingRow(**row) for row in await store.fetch("asking.list")]


async def all_tries(store: Reader) -> list[TriesRow]:
    """All of them, the longest unchanged first."""
    return [TriesRow(**row) for row in await store.fetch("tries.list")]


async def signin_link(store: Reader, ident: str) -> SigninLink | None:
    found = await store.fetch("signin_link.one", id=ident)
    return SigninLink(**found[0]) if found else None
