"""Who may talk and why, who waits, which places are open, which accounts there are: as it is shown.

It reads and decides nothing but what a row says of itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from core import usage
from core.people import WEB, People, Role
from core.store import roster, web
from core.store.web import Signin
from gateway.web.accounts import OWNER
from gateway.web.naming import name_of, straight
from gateway.web.site import Site
from gateway.web.times import iso, said, zone_of
from gateway.web.visitor import Visitor

Json = dict[str, Any]
SEEN_FOR = 30 * 86_400_000  # ms that are looked back for when somebody was here
_ID_SHOWN = 16  # signs of a sign-in's id that the page knows it by


async def everybody(site: Site, visitor: Visitor) -> Json:
    """All the page shows."""
    store, zone = site.parts.store, zone_of(site, visitor)
    seen = await usage.last_seen(store, site.clock.now() - SEEN_FOR)
    links = await web.links(store)
    linked = {one.identity: one.account for one in links}
    return {
        "waiting": await _waiting(site, zone),
        "people": await _people(site, visitor, linked, seen, zone),
        "groups": await _places(site, zone),
        "accounts": await _accounts(site, visitor, links, seen, zone),
        "mails": _mails(site.parts.people),
        "zone": zone,
    }


def signin_id(one: Signin) -> str:
    return one.id[:_ID_SHOWN]


def named(site: Site, person: str) -> Role:
    """The role that the settings give, which nobody takes away here."""
    lists = site.parts.people.lists
    if person in lists.admins:
        return Role.ADMIN
    return Role.MEMBER if person in lists.members else Role.NONE


def delicate(site: Site, visitor: Visitor, person: str) -> bool:
    """Whether an admin less could mean that nobody, or not the visitor, can undo it."""
    people = site.parts.people
    others = [one for one in people.admins() if one not in (person, OWNER)]
    return visitor.is_me(person) or not (others or people.lists.admin_emails)


async def _waiting(site: Site, zone: str) -> list[Json]:
    now = site.clock.now()
    return [
        {
            "person": row.person,
            "name": straight(row.name) or row.person,
            "code": row.code,
            "asked": said(row.asked_at, zone, now),
            "until": said(row.expires_at, zone, now),
            "minutes": max(1, (row.expires_at - now) // 60_000),
        }
        for row in await roster.pairings(site.parts.store)
        if row.expires_at > now
    ]


async def _people(
    site: Site, visitor: Visitor, linked: dict[str, str], seen: dict[str, int], zone: str
) -> list[Json]:
    """Chat identities with a role, admins first."""
    people, now = site.parts.people, site.clock.now()
    stored = {row.id: row for row in await roster.people(site.parts.store)}
    listed = []
    for person in people.known():
        role = people.role(person)
        if not role or person.startswith(WEB):
            continue
        row, floor = stored.get(person), named(site, person)
        at = seen.get(person)
        why = [_named_by(site, person)] if floor else []
        if row is not None and row.role:
            why.append(f"saved as {row.role}{_by(site, row.added_by)}")
        listed.append(
            {
                "person": person,
                "channel": person.partition(":")[0],
                "name": name_of(site, person),
                "role": role.value,
                "why": why,
                "fixed": bool(floor),
                "lowest": floor.value,
                "account": name_of(site, linked[person]) if person in linked else "",
                "seen": said(at, zone, now) if at else "",
                "seen_at": iso(at, zone),
                "me": visitor.is_me(person),
                "delicate": role is Role.ADMIN and delicate(site, visitor, person),
            }
        )
    return sorted(listed, key=lambda one: (one["role"] != Role.ADMIN, str(one["name"]).lower()))


def _named_by(site: Site, person: str) -> str:
    if person == OWNER:
        return "whoever can use laneway on this machine"
    for name in ("LANEWAY_ADMINS", "LANEWAY_MEMBERS"):
        if person in _of_page(site, name):
            return f"{name}, saved under settings"
    return "the environment"


def _of_page(site: Site, name: str) -> frozenset[str]:
    """What of a list was saved on the settings page."""
    typed = site.living.saved.values.get(name, "")
    return frozenset(filter(None, map(str.strip, typed.split(","))))


def _by(site: Site, person: str) -> str:
    return f" by {name_of(site, person)}" if person else ""


async def _places(site: Site, zone: str) -> list[Json]:
    """Group chats and channels in which members may talk."""
    now = site.clock.now()
    listed: list[Json] = []
    stored = await roster.places(site.parts.store)
    for row in stored:
        added = said(row.added_at, zone, now)
        why = f"allowed{_by(site, row.added_by)}, {added}"
        listed.append({"place": row.id, "title": straight(row.title), "why": why, "fixed": False})
    known = {row.id for row in stored}
    for place in sorted(site.parts.people.lists.places - known):
        page = place in _of_page(site, "LANEWAY_PLACES")
        why = "LANEWAY_PLACES, saved under settings" if page else "the environment"
        listed.append({"place": place, "title": "", "why": why, "fixed": True})
    return listed


async def _accounts(
    site: Site, visitor: Visitor, links: Iterable[web.Link], seen: dict[str, int], zone: str
) -> list[Json]:
    """Accounts of the page that are signed in or have chats, or are named by their address."""
    now, lists = site.clock.now(), site.parts.people.lists
    signed: dict[str, list[Signin]] = defaultdict(list)
    for one in await web.signins(site.parts.store):
        signed[one.person].append(one)
    chats: dict[str, list[str]] = defaultdict(list)
    for link in links:
        chats[link.account].append(link.identity)
    addresses = {f"{WEB}{one}" for one in lists.admin_emails | lists.member_emails if one[0] != "@"}
    listed = []
    for person in sorted({*signed, *chats, *addresses}):
        opened = signed[person]
        at = max((one.seen_at for one in opened), default=seen.get(person))
        listed.append(
            {
                "person": person,
                "name": name_of(site, person),
                "role": site.accounts.role(person).value,
                "me": visitor.person == person,
                "seen": said(at, zone, now) if at else "",
                "chats": [{"identity": one, "name": name_of(site, one)} for one in chats[person]],
                "signins": [
                    {
                        "id": signin_id(one),
                        "browser": straight(one.browser) or "a browser",
                        "network": one.network,
                        "opened": said(one.opened_at, zone, now),
                        "seen": said(one.seen_at, zone, now),
                        "here": one.id == visitor.signin,
                    }
                    for one in opened
                ],
            }
        )
    return listed


def _mails(people: People) -> list[Json]:
    """Addresses and domains of the settings."""
    lists = people.lists
    return [
        *({"address": one, "role": "admin"} for one in sorted(lists.admin_emails)),
        *({"address": one, "role": "member"} for one in sorted(lists.member_emails)),
    ]
