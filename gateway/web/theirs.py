"""Which lanes somebody may see on the page: one rule, for every area of it.

An admin sees all. A member sees what is theirs: local lanes that they began, the direct chats of
their linked identities, and group threads in which they have written, as long as members may talk
there. It must not know what of a lane is shown.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from core.lane_ids import LOCAL
from core.people import People
from core.store import reads
from core.store.records import LaneRow
from gateway.web.site import Site
from gateway.web.visitor import Visitor


@dataclass(frozen=True, slots=True)
class Belonging:
    """A lane, and who has written in it: all that the rule looks at."""

    row: LaneRow
    writers: frozenset[str] = frozenset()


def sees(people: People, visitor: Visitor, lane: Belonging) -> bool:
    """The rule. Pure, so that a stream of events costs no query for each."""
    if visitor.admin:
        return True
    row = lane.row
    if row.address.channel == LOCAL:
        return visitor.is_me(row.owner)
    if not (row.direct or people.listed(row.address)):
        return False
    return any(map(visitor.is_me, lane.writers))


async def lanes_of(site: Site, visitor: Visitor) -> dict[str, LaneRow] | None:
    """The lanes of somebody by id; None: all of them, for an admin."""
    if visitor.admin:
        return None
    return {row.id: row for row in await rows_of(site, visitor)}


async def rows_of(site: Site, visitor: Visitor) -> list[LaneRow]:
    """The lanes that are somebody's own, whatever their role."""
    mine = [visitor.person, *visitor.linked]
    found = await site.parts.store.fetch("lane.theirs", people=json.dumps(mine))
    people = site.parts.people
    return [row for row in map(reads.lane_of, found) if _own(people, visitor, row)]


async def belonging(site: Site, lane: str) -> Belonging | None:
    """A lane as the rule looks at it; None when there is none such."""
    store = site.parts.store
    row = await reads.lane(store, lane)
    if row is None:
        return None
    writers = await store.fetch("lane.writers", lane=lane)
    return Belonging(row, frozenset(one["person"] for one in writers))


async def may_see(site: Site, visitor: Visitor, lane: str) -> bool:
    """Whether somebody may see a lane; False as well where there is none such."""
    found = await belonging(site, lane)
    return found is not None and sees(site.parts.people, visitor, found)


def as_in(visitor: Visitor, lane: Belonging, running: Collection[str] = ()) -> str:
    """Who somebody is in a lane: the identity they wrote with there, else that of the page.

    ``running``: whose turns run or wait there; what is theirs is theirs under any of their names.
    """
    known = (*running, *sorted(lane.writers))
    return next((person for person in known if visitor.is_me(person)), visitor.person)


def _own(people: People, visitor: Visitor, row: LaneRow) -> bool:
    """Of a lane that they began or wrote in: whether it is theirs to see."""
    if row.address.channel == LOCAL:
        return visitor.is_me(row.owner)
    return row.direct or people.listed(row.address)
