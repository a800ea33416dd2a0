"""A side answer hands a request to the main conversation of its thread.

It waits there like any message of the person who asked on the side, with that person's rights; the
thread sees it, and it can be dropped. It must not know how agents ask for it.
"""

from __future__ import annotations

from dataclasses import replace

from core import wording
from core.arriving import Arriving
from core.ground import Ground
from core.items import Item
from core.lane_events import Arrived
from core.showing import Action, Choice
from core.store import reads
from core.store.records import MessageRow
from core.turns import Busy, Turn


async def queue_up(ground: Ground, arriving: Arriving, side: Turn, request: str) -> str:
    """Why it cannot wait, in words for the agent; empty when it waits. Once a side answer."""
    lane = await reads.lane(ground.store, side.lane)
    if lane is None:
        return "This thread is not known any more."
    identity = f"handed:{side.id}"
    said = MessageRow(
        seq=ground.store.ids.message(),
        identity=identity,
        lane=lane.id,
        turn=None,
        person=side.person,
        person_name=ground.people.name(side.person),
        message_id="",
        text=request,
        at=ground.clock.now(),
    )
    item = arriving.arrived(lane, [said], identity=identity)
    assert isinstance(item.event, Arrived)
    # It waits, whatever messages do here: it must neither end what runs nor be answered aside.
    item = replace(item, event=replace(item.event, busy=Busy.QUEUE))
    (row,) = item.messages
    if not (await ground.take(item))[0]:
        return "This side answer has handed over its request already."
    view = ground.spine.view(lane.id)
    open_turns = (view.main, *view.waiting) if view else ()
    if not any(turn is not None and turn.id == row.turn for turn in open_turns):
        return "The queue of the thread is full; it was not taken."
    drop = Choice("Drop it", Action.DROP, turn=row.turn)
    keyboard, buttons = ground.showing.buttons(lane.id, (drop,))
    text = f"{wording.HANDED_OVER}\n{wording.quoted(wording.label(request, 300))}"
    shown = ground.showing.text(lane.id, text, keyboard=keyboard)
    await ground.take(Item(rows=buttons, deliveries=shown))
    return ""
