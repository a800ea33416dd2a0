"""What is stored of who may speak, and where: people, those who wait to be let in, places.

Rows to write and readers, as in rows.py and reads.py. What a role allows is decided in
``core.people``, which keeps all of this in memory.
"""

from __future__ import annotations

from core.store.records import PairingRow, PersonRow, PlaceRow
from core.store.rows import Row
from core.store.store import Reader


def person(person: PersonRow) -> Row:
    return "person.save", {
        "id": person.id,
        "name": person.name,
        "role": person.role,
        "zone": person.zone,
        "at": person.added_at,
        "by": person.added_by,
    }


def person_zone(person: str, zone: str, at: int) -> Row:
    """The person's time zone; makes a row without a role for one that has none."""
    return "person.zone", {"id": person, "zone": zone, "at": at}


def remove_person(person: str) -> Row:
    return "person.remove", {"id": person}


def pairing(pairing: PairingRow) -> Row:
    """A waiting person's code; an earlier one of the same person ends."""
    return "pairing.save", {
        "code": pairing.code,
        "person": pairing.person,
        "name": pairing.name,
        "at": pairing.asked_at,
        "expires_at": pairing.expires_at,
    }


def remove_pairing(person: str) -> Row:
    return "pairing.remove", {"person": person}


def place(place: PlaceRow) -> Row:
    return "place.save", {
        "id": place.id,
        "title": place.title,
        "at": place.added_at,
        "by": place.added_by,
    }


def remove_place(place: str) -> Row:
    return "place.remove", {"id": place}


def move(old: str, new: str, at: int) -> Row:
    """A chat lives on under a new id; both as ``Address.place`` writes them."""
    return "move.save", {"old": old, "new": new, "at": at}


async def people(store: Reader) -> list[PersonRow]:
    return [PersonRow(**dict(row)) for row in await store.fetch("person.list")]


async def pairings(store: Reader) -> list[PairingRow]:
    return [PairingRow(**dict(row)) for row in await store.fetch("pairing.list")]


async def places(store: Reader) -> list[PlaceRow]:
    return [PlaceRow(**dict(row)) for row in await store.fetch("place.list")]


async def moves(store: Reader) -> dict[str, str]:
    """Old place → new place, one step each."""
    return {row["old"]: row["new"] for row in await store.fetch("move.list")}
