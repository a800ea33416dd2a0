"""A chat that lives on under another id: its lanes and permissions go along, in one step."""

from __future__ import annotations

from dataclasses import replace

from core.ground import Ground
from core.items import Item
from core.messages import Address
from core.store import reads, roster, rows
from core.store.records import LaneRow, PlaceRow
from core.store.rows import Row


async def moved(ground: Ground, channel: str, old: str, new: str, identity: str | None) -> None:
    """Move everything of a chat. Told twice, or by both chats, it changes nothing more.

    The caller holds the channel's lock.
    """
    if old == new or not old or not new:
        return
    written = [roster.move(f"{channel}:{old}", f"{channel}:{new}", ground.clock.now())]
    written += await _place(ground, f"{channel}:{old}", f"{channel}:{new}")
    for lane in await reads.lanes_of_place(ground.store, channel, old):
        written += await _lane(ground, lane, new)
    (stored,) = await ground.take(Item(identity, rows=written))
    if stored:
        await ground.people.load(ground.store)
        ground.says.moved(channel, old, new)


async def _place(ground: Ground, old: str, new: str) -> list[Row]:
    """The stored permission under its new name; the old one counts as well, for ever."""
    for place in await roster.places(ground.store):
        if place.id == old:
            return [roster.place(PlaceRow(new, place.title, place.added_at, place.added_by))]
    return []


async def _lane(ground: Ground, lane: LaneRow, new: str) -> list[Row]:
    """The lane's new address. A lane that was begun there meanwhile changes places with it.

    So session, settings, jobs and waiting messages of the older lane are those of the chat, and
    what the younger one still has to say is repeated to the new address when it is sent.
    """
    target = replace(lane.address, chat=new)
    young = await reads.lane_at(ground.store, target)
    if young is None:
        return rows.lane_moved(lane.id, target)
    if ground.people.now_at(lane.address) == target:
        return []  # they changed places already
    aside = Address(lane.address.channel, f"{lane.address.chat} moved", lane.address.thread)
    return [
        rows.lane_address(lane.id, aside),
        rows.lane_address(young.id, lane.address),
        *rows.lane_moved(lane.id, target),
    ]
