"""What is stored for the page: who is signed in, which identities belong together, who did what.

Rows to write and readers, as in rows.py and reads.py. It must not know HTTP or tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.store.rows import Row
from core.store.store import Reader


@dataclass(frozen=True, slots=True)
class Signin:
    """One browser in which somebody is signed in. Instants in ms since 1970."""

    id: str  # hash of the token
    person: str
    opened_at: int
    seen_at: int
    browser: str = ""
    network: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    identity: str
    account: str
    at: int


@dataclass(frozen=True, slots=True)
class Act:
    """One administrative act, as the audit page lists it."""

    id: int
    at: int
    person: str
    act: str
    about: str
    detail: str


def signin(one: Signin) -> Row:
    """A new one."""
    return "signin.save", {
        "id": one.id,
        "person": one.person,
        "opened_at": one.opened_at,
        "seen_at": one.seen_at,
        "browser": one.browser,
        "network": one.network,
    }


def remove_signin(ident: str) -> Row:
    return "signin.remove", {"id": ident}


def remove_signins_of(person: str) -> Row:
    return "signin.remove_of", {"person": person}


def tidy_signins(idle: int, old: int) -> Row:
    """Forget those not seen since ``idle``, and those opened before ``old``; ms."""
    return "signin.tidy", {"idle": idle, "old": old}


def link(identity: str, account: str, at: int) -> Row:
    return "link.save", {"identity": identity, "account": account, "at": at}


def remove_link(identity: str) -> Row:
    return "link.remove", {"identity": identity}


def act(at: int, person: str, act: str, about: str = "", detail: str = "") -> Row:
    """``act`` is a word like ``setting.saved``; ``detail`` is for people, and never a secret."""
    return "audit.save", {"at": at, "person": person, "act": act, "about": about, "detail": detail}


async def signed_in(store: Reader, ident: str) -> Signin | None:
    found = await store.fetch("signin.one", id=ident)
    return Signin(**found[0]) if found else None


async def signins_of(store: Reader, person: str) -> list[Signin]:
    return [Signin(**row) for row in await store.fetch("signin.of", person=person)]


async def signins(store: Reader) -> list[Signin]:
    """Of everybody, each person's newest first."""
    return [Signin(**row) for row in await store.fetch("signin.all")]


async def links(store: Reader) -> list[Link]:
    return [Link(**row) for row in await store.fetch("link.list")]


async def acts(
    store: Reader, before: int, limit: int, person: str = "", act: str = ""
) -> list[Act]:
    """The newest acts with an id below ``before``, newest first; of one person or one kind."""
    found = await store.fetch("audit.page", before=before, limit=limit, person=person, act=act)
    return [Act(**row) for row in found]


async def actors(store: Reader) -> tuple[list[str], list[str]]:
    """Whoever did something that is still known, and the kinds of it."""
    people = [row["person"] for row in await store.fetch("audit.people")]
    return people, [row["act"] for row in await store.fetch("audit.kinds")]
