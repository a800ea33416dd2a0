"""Who may talk to the gateway, and where: roles, places, moved chats, pairing codes.

Lists of the environment and of the store add up. The one owner of this in memory; what changes in
the store is told to it after the commit. It must not know platforms, commands or turns.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum

from core.messages import Address
from core.store import roster
from core.store.records import PersonRow
from core.store.store import Store

PAIRING_LASTS = 3_600_000  # ms; also the least time between two codes for one person
PAIRINGS_MOST = 200  # open codes at once, so that strangers cannot fill the store
KNOCK_WINDOW = 3_600_000  # ms
KNOCKERS_MOST = 4096
WEB = "web:"  # in front of the address of somebody who signed in on the page
_CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike


class Role(StrEnum):
    """What somebody may do. Nobody without a role is answered."""

    NONE = ""
    MEMBER = "member"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Lists:
    """Who and what the environment names; ids as ``telegram:700000001``."""

    admins: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    bots: frozenset[str] = frozenset()
    admin_emails: frozenset[str] = frozenset()  # addresses, or @example.org for a whole domain
    member_emails: frozenset[str] = frozenset()

    def of_mail(self, address: str) -> Role:
        """The role of a mailbox, by its address in lower case."""
        names = {address, "@" + address.rpartition("@")[2]}
        if names & self.admin_emails:
            return Role.ADMIN
        return Role.MEMBER if names & self.member_emails else Role.NONE


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who wrote or pressed, as far as rights go."""

    id: str
    name: str
    role: Role
    zone: str = ""

    @property
    def admin(self) -> bool:
        return self.role is Role.ADMIN


class People:
    """Roles and places: the environment's and the stored ones together."""

    def __init__(self, lists: Lists) -> None:
        self.lists = lists  # replaced when settings change
        self._stored: dict[str, PersonRow] = {}
        self._places: set[str] = set()
        self._moves: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._coming: set[str] = set()  # who is let in right now

    async def load(self, store: Store) -> None:
        """Read everything anew; also after somebody changed people or places elsewhere."""
        self._stored = {row.id: row for row in await roster.people(store)}
        self._places = {row.id for row in await roster.places(store)}
        self._moves = dict(await roster.moves(store))

    def role(self, person: str) -> Role:
        if person.startswith(WEB):  # whoever has the mailbox; only the lists say more
            return self.lists.of_mail(person.removeprefix(WEB))
        stored = self._stored.get(person)
        given = stored.role if stored else ""
        if person in self.lists.admins or given == Role.ADMIN:
            return Role.ADMIN
        if person in self.lists.members or given == Role.MEMBER:
            return Role.MEMBER
        return Role.NONE

    def person(self, ident: str, name: str, from_bot: bool = False) -> Person:
        """Somebody who just wrote. A bot is answered only when it is on the list of bots."""
        if from_bot:
            listed = ident in self.lists.bots
            return Person(ident, name, Role.MEMBER if listed else Role.NONE)
        role = self.role(ident)
        if name and role is not Role.NONE:
            self._names[ident] = name
        stored = self._stored.get(ident)
        return Person(ident, name, role, stored.zone if stored else "")

    def name(self, ident: str) -> str:
        """The name others know this person by; the id when none is known."""
        stored = self._stored.get(ident)
        return self._names.get(ident) or (stored.name if stored else "") or ident

    def known(self) -> tuple[str, ...]:
        """Everybody the environment or the store names, admins first."""
        stored = set(self._stored)
        return (
            *sorted(self.lists.admins),
            *sorted(self.lists.members - self.lists.admins),
            *sorted(stored - self.lists.admins - self.lists.members),
        )

    async def waiting(self, store: Store, code: str, now: int) -> PersonRow:
        """The member-to-be who was given this code; LookupError when there is none such."""
        typed = code.strip().upper()
        for waiting in await roster.pairings(store):
            if waiting.code == typed and waiting.expires_at > now:
                return PersonRow(waiting.person, waiting.name, Role.MEMBER, added_at=now)
        raise LookupError("nobody waits with this code; it may have expired: ask for a new one")

    @contextmanager
    def letting_in(self, person: str) -> Iterator[None]:
        """Held while somebody is let in: two who do so at once do it once; LookupError for one."""
        stored = self._stored.get(person)
        if person in self._coming or (stored and stored.role):
            raise LookupError("somebody else has just let this person in")
        self._coming.add(person)
        try:
            yield
        finally:
            self._coming.discard(person)

    def let_in(self, row: PersonRow) -> None:
        """This person was stored."""
        self._stored[row.id] = row

    def admins(self) -> tuple[str, ...]:
        stored = {ident for ident in self._stored if self.role(ident) is Role.ADMIN}
        return tuple(sorted(self.lists.admins | stored))

    def now_at(self, address: Address) -> Address:
        """Where a chat lives today; an old id counts for the new one for ever."""
        place = self._moved(address.place)
        if place == address.place:
            return address
        return replace(address, chat=place.partition(":")[2])

    def listed(self, address: Address) -> bool:
        """Whether members may talk in this group chat; threads belong to their parent."""
        return self._place(address.place)

    def places(self, channel: str) -> frozenset[str]:
        """The group chats of a channel in which members may talk, as they are called today."""
        moved = map(self._moved, self.lists.places | self._places)
        return frozenset(place for place in moved if place.startswith(f"{channel}:"))

    def knows(self, ident: str) -> bool:
        """Whether this is somebody with a role, or a place where members may talk."""
        return self.role(ident) is not Role.NONE or self._place(ident)

    def _place(self, ident: str) -> bool:
        here = self._moved(ident)
        return any(self._moved(place) == here for place in self.lists.places | self._places)

    def _moved(self, place: str) -> str:
        seen = {place}
        while (after := self._moves.get(place)) is not None and after not in seen:
            place = after
            seen.add(place)
        return place


def pairing_code() -> str:
    """A code that a person reads out to an admin; good for an hour, so eight letters are plenty."""
    return "".join(secrets.choice(_CODE_LETTERS) for _ in range(8))


@dataclass(slots=True)
class _Knock:
    since: int
    chat: str
    untold: int = 0


@dataclass(slots=True)
class Knocks:
    """Strangers' attempts: one line a sender and hour, without a word of what they wrote."""

    _known: dict[str, _Knock] = field(default_factory=dict)

    def knock(self, sender: str, chat: str, now: int) -> list[str]:
        """Count one more; returns the lines that are due."""
        lines = self._old(now)
        known = self._known.get(sender)
        if known is not None:
            known.untold += 1
            return lines
        if len(self._known) >= KNOCKERS_MOST:
            oldest = next(iter(self._known))
            lines.extend(_told(oldest, self._known.pop(oldest)))
        self._known[sender] = _Knock(now, chat)
        lines.append(f"not allowed: {sender} in {chat}, 1 attempt")
        return lines

    def _old(self, now: int) -> list[str]:
        """What is told of those whose hour is over; they stand in front, the oldest first."""
        lines: list[str] = []
        while self._known:
            sender, knock = next(iter(self._known.items()))
            if 0 <= now - knock.since < KNOCK_WINDOW:
                break
            del self._known[sender]
            lines.extend(_told(sender, knock))
        return lines


def _told(sender: str, knock: _Knock) -> Iterable[str]:
    if knock.untold:
        yield f"not allowed: {sender} in {knock.chat}, {knock.untold} more attempts in an hour"


@dataclass(slots=True)
class Allowance:
    """How often each bot is answered."""

    _times: dict[str, list[float]] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)

    def take(self, who: str, now: float, most: int, per: float) -> tuple[bool, bool]:
        """At most ``most`` times in ``per`` seconds: whether this one is answered.

        The second value says whether it is the first refusal since the last answer.
        """
        times = [at for at in self._times.get(who, ()) if now - at < per]
        allowed = len(times) < most
        if allowed:
            times.append(now)
            self._warned.discard(who)
        self._times[who] = times
        first = not allowed and who not in self._warned
        if first:
            self._warned.add(who)
        return allowed, first
