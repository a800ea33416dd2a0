"""The page of people: who may talk and why, who waits to be let in, where members may talk.

Also which chats belong to which account, and where accounts are signed in. Every change is one
commit with its audit row, and holds from the next message on.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.people import WEB, Role
from core.store import roster, web
from core.store.records import PersonRow, PlaceRow
from gateway import reports, values
from gateway.web import listing
from gateway.web.access import Bad, api, page, text
from gateway.web.leaving import ended
from gateway.web.naming import name_of, straight
from gateway.web.rendering import html
from gateway.web.site import Site, site_of
from gateway.web.visitor import Visitor

_MAILBOX = re.compile(r"[^@\s]*@[^@\s]+\.[^@\s]+")
ROLES = (Role.MEMBER, Role.ADMIN)
WORD = "remove"  # what has to be written where it is easy to lock oneself out


def routes() -> list[Route]:
    return [
        page("/people", _page),
        api("/api/people", _list),
        api("/api/people", _save, ("POST",)),
        api("/api/people/remove", _remove, ("POST",)),
        api("/api/pairings", _pairing, ("POST",)),
        api("/api/places", _allow, ("POST",)),
        api("/api/places/remove", _disallow, ("POST",)),
        api("/api/links/remove", _unlink, ("POST",)),
        api("/api/signins/end", _end, ("POST",)),
    ]


async def _page(request: Request, visitor: Visitor) -> Response:
    found = await listing.everybody(site_of(request), visitor)
    return html(request, "people.html", visitor, **found)


async def _list(request: Request, visitor: Visitor) -> Response:
    return JSONResponse(await listing.everybody(site_of(request), visitor))


# People --------------------------------------------------------------------------------------


async def _save(request: Request, visitor: Visitor) -> Response:
    """Add somebody, or give somebody another role."""
    site, person = site_of(request), _read(request, "person", values.person)
    wanted = _role(request)
    stored = await _stored(site, person)
    floor = listing.named(site, person)
    if floor is Role.ADMIN and wanted is not Role.ADMIN:
        raise Bad(f"{person} is an admin by the settings; take it out there first.", 409)
    before = site.parts.people.role(person)
    if before is wanted:
        raise Bad(f"{name_of(site, person)} is {_a(wanted)} already.", 409)
    if before is Role.ADMIN:
        _sure(request, site, visitor, person, f"{name_of(site, person)} would be no admin any more")
    now = site.clock.now()
    role = "" if floor is wanted else wanted.value
    zone = stored.zone if stored else ""
    name = stored.name if stored else ""
    row = PersonRow(person, name, role, zone, now, visitor.person)
    word = "person.role" if before else "person.added"
    act = web.act(now, visitor.person, word, person, wanted.value)
    await site.parts.store.save(roster.person(row), roster.remove_pairing(person), act)
    await site.parts.people.load(site.parts.store)
    return _done(f"{name_of(site, person)} is {_a(wanted)} now.")


async def _remove(request: Request, visitor: Visitor) -> Response:
    """Take a saved role away; what of this person runs is stopped, and what waits is dropped."""
    site, person = site_of(request), text(request, "person", 200)
    if listing.named(site, person):
        raise Bad(f"{person} is named by the settings, so it cannot be removed here.", 409)
    stored = await _stored(site, person)
    if stored is None or not stored.role:
        raise Bad("There is nobody such any more.", 404)
    name = name_of(site, person)
    if stored.role == Role.ADMIN:
        _sure(request, site, visitor, person, f"{name} is an admin")
    now = site.clock.now()
    act = web.act(now, visitor.person, "person.removed", person, f"was {stored.role}")
    await site.parts.store.save(roster.remove_person(person), web.remove_link(person), act)
    await site.parts.people.load(site.parts.store)
    site.hub.doubt()
    stopped = await ended(site.parts.store, site.parts.runner, person, visitor.person)
    return _done(f"{name} is removed. {stopped}".strip())


def _sure(request: Request, site: Site, visitor: Visitor, person: str, why: str) -> None:
    """Raises Bad where somebody could shut out themselves, or all admins, by one wrong click."""
    if not listing.delicate(site, visitor, person):
        return
    if text(request, "word", 20, needed=False).strip().lower() != WORD:
        raise Bad(f"{why}, and there may be nobody left who can undo it. Write “{WORD}”.", 409)


async def _pairing(request: Request, visitor: Visitor) -> Response:
    """Let in or refuse somebody who waits. Who is refused is not told."""
    site, person, verb = site_of(request), text(request, "person", 200), text(request, "do", 20)
    store, now = site.parts.store, site.clock.now()
    waiting = next((o for o in await roster.pairings(store) if o.person == person), None)
    if waiting is None or waiting.expires_at <= now:
        raise Bad("Nobody such waits any more: a request lasts an hour.", 404)
    name = straight(waiting.name) or person
    if verb == "let_in":
        people, take = site.parts.people, site.parts.runner.take
        try:
            await reports.pair(store, people, waiting.code, take, visitor.person)
        except LookupError as gone:
            raise Bad(f"{str(gone)[:1].upper()}{str(gone)[1:]}.", 409) from gone
        await site.parts.people.load(store)
        return _done(f"{name} is a member now, and was told.")
    if verb != "refuse":
        raise Bad("Say let_in or refuse.")
    act = web.act(now, visitor.person, "person.refused", person, waiting.name)
    await store.save(roster.remove_pairing(person), act)
    return _done(f"{name} was not let in.")


# Places --------------------------------------------------------------------------------------


async def _allow(request: Request, visitor: Visitor) -> Response:
    site, place = site_of(request), _read(request, "place", values.place)
    if site.parts.people.knows(place):
        raise Bad("Members may talk there already.", 409)
    title = straight(text(request, "title", 120, needed=False))
    now = site.clock.now()
    act = web.act(now, visitor.person, "place.allowed", place, title)
    row = roster.place(PlaceRow(place, title, now, visitor.person))
    await site.parts.store.save(row, act)
    await site.parts.people.load(site.parts.store)
    return _done(f"Members may talk in {title or place} now.")


async def _disallow(request: Request, visitor: Visitor) -> Response:
    site, place = site_of(request), text(request, "place", 200)
    stored = next((one for one in await roster.places(site.parts.store) if one.id == place), None)
    if stored is None:
        known = place in site.parts.people.lists.places
        why = "That place is named by the settings, so it cannot be removed here."
        raise Bad(
            why if known else "That place is not on the list any more.", 409 if known else 404
        )
    act = web.act(site.clock.now(), visitor.person, "place.removed", place, stored.title)
    await site.parts.store.save(roster.remove_place(place), act)
    await site.parts.people.load(site.parts.store)
    return _done(f"Nobody is answered in {straight(stored.title) or place} any more.")


# Accounts ------------------------------------------------------------------------------------


async def _unlink(request: Request, visitor: Visitor) -> Response:
    site, identity = site_of(request), text(request, "identity", 200)
    return _done(await unlinked(site, visitor, identity, lambda _: True))


async def unlinked(
    site: Site, visitor: Visitor, identity: str, may: Callable[[web.Link], bool]
) -> str:
    """End a link that somebody may end; what they are told. Raises Bad when there is none."""
    found = await web.links(site.parts.store)
    link = next((one for one in found if one.identity == identity and may(one)), None)
    if link is None:
        raise Bad("That link is not there any more.", 404)
    act = web.act(site.clock.now(), visitor.person, "link.removed", identity, link.account)
    await site.parts.store.save(web.remove_link(identity), act)
    site.hub.doubt()
    name, account = name_of(site, identity), name_of(site, link.account)
    return f"{name} does not belong to {account} any more."


async def _end(request: Request, visitor: Visitor) -> Response:
    """End one sign-in of anybody."""
    site, person, ident = site_of(request), text(request, "person", 300), text(request, "id", 64)
    found = await web.signins_of(site.parts.store, person)
    one = next((one for one in found if listing.signin_id(one) == ident), None)
    if one is None:
        raise Bad("That sign-in is over already.", 404)
    await site.accounts.end(one, visitor.person)
    return _done(f"{name_of(site, person)} has to sign in again there.")


# Inside --------------------------------------------------------------------------------------


def _done(said: str) -> Response:
    return JSONResponse({"said": said})


def _read(request: Request, name: str, read: Callable[[str], str]) -> str:
    """An id as the settings take it, or Bad with the same words."""
    typed = text(request, name, 200).strip()
    if typed.startswith(WEB) or _MAILBOX.fullmatch(typed):
        raise Bad(
            "Mailboxes are named in the settings: LANEWAY_MEMBER_EMAILS, LANEWAY_ADMIN_EMAILS."
        )
    try:
        return read(typed)
    except ValueError as wrong:
        said = str(wrong).removeprefix(f"has {typed!r}: ")
        raise Bad(f"{said[:1].upper()}{said[1:]}.") from wrong


def _role(request: Request) -> Role:
    typed = text(request, "role", 20)
    found = next((role for role in ROLES if role.value == typed), None)
    if found is None:
        raise Bad("A role is member or admin.")
    return found


async def _stored(site: Site, person: str) -> PersonRow | None:
    return next((row for row in await roster.people(site.parts.store) if row.id == person), None)


def _a(role: Role) -> str:
    return "an admin" if role is Role.ADMIN else "a member"
