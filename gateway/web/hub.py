"""What the page is told as it happens: one task that looks, however many look on.

Lanes that a commit changed, and threads in which something is shown, are gathered for a moment;
each is made ready once and handed to every stream whose person may see it. A stream begins with
the whole state, and one that does not keep up is cut off: it comes back and begins anew. It must
not know HTTP.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from channels.local.channel import Shown
from core.guard import fault_of
from core.store import threads
from gateway.web import theirs
from gateway.web.lane_views import Seen, views
from gateway.web.naming import straight
from gateway.web.room import Changed, Room
from gateway.web.site import Site
from gateway.web.visitor import Visitor

log = logging.getLogger("laneway.web")

EVERY = 0.25  # seconds between two looks, and so between two events of a stream
AT_WORK = 1.0  # seconds between looks at what running turns do
BEHIND = 32  # events a stream may be behind
LISTED = 200  # lanes that a stream begins with
PER_PERSON, IN_ALL = 24, 600  # streams


class TooMany(Exception):
    """No further stream is opened; the message says why."""


class Stream:
    """What one browser has not been told yet. ``lane``: the thread it looks at, or ""."""

    def __init__(self, visitor: Visitor, lane: str) -> None:
        self.visitor = visitor
        self.lane = lane
        self.knows: set[str] = set()  # lanes it was told of
        self.begun = False
        self.over = False
        self.doubted = asyncio.Event()  # whether its person may still see this
        self._events: deque[bytes] = deque()
        self._there = asyncio.Event()

    def put(self, event: bytes) -> None:
        if len(self._events) >= BEHIND:
            self.end()
        elif not self.over:
            self._events.append(event)
            self._there.set()

    def end(self) -> None:
        """Nothing more comes; what was not told is told after it comes back."""
        self.over = True
        self._there.set()

    async def get(self) -> bytes | None:
        """The next event; None at the end."""
        while not self._events:
            if self.over:
                return None
            self._there.clear()
            await self._there.wait()
        return self._events.popleft()


class Hub:
    """One for the process."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._streams: set[Stream] = set()
        self._rooms: dict[str, Room] = {}
        self._changed: dict[str, None] = {}  # lanes
        self._at_work: dict[str, str] = {}  # what the running lanes that were told of do
        self._places: dict[str, object] = {}  # of lanes in which something waits
        self._house: dict[str, bool] = {}
        self._wake = asyncio.Event()
        self._opened = asyncio.Event()  # a stream that was told nothing yet
        self._closed = False
        self.naming = asyncio.Lock()  # held while a lane gets its name and its first message

    # For routes ---------------------------------------------------------------------------

    def open(self, visitor: Visitor, lane: str = "") -> Stream:
        """A stream of what this person may see; raises TooMany."""
        own = sum(one.visitor.person == visitor.person for one in self._streams)
        if self._closed:
            raise TooMany("the gateway is shutting down")
        if own >= PER_PERSON or len(self._streams) >= IN_ALL:
            raise TooMany("too many pages are open; close some of them")
        stream = Stream(visitor, lane)
        self._streams.add(stream)
        if lane and lane not in self._rooms:
            self._rooms[lane] = Room(self._site, lane)
        self._opened.set()
        self._wake.set()
        return stream

    def leave(self, stream: Stream) -> None:
        stream.end()
        self._streams.discard(stream)
        if stream.lane and all(one.lane != stream.lane for one in self._streams):
            self._rooms.pop(stream.lane, None)

    def close(self) -> None:
        """End all streams; none is opened any more."""
        self._closed = True
        for stream in tuple(self._streams):
            stream.end()

    def doubt(self) -> None:
        """Somebody's sign-in ended, or what people may do changed: each stream looks again."""
        for stream in self._streams:
            stream.doubted.set()

    def house_changed(self) -> None:
        """Something that holds for all lanes is different."""
        self._wake.set()

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    # The one task -------------------------------------------------------------------------

    async def run(self) -> None:
        """Tell of changes until cancelled."""
        forget = (
            self._site.parts.runner.on_change(self._lane_changed),
            self._site.local.on_shown(self._was_shown),
        )
        try:
            while True:
                await self._woken()
                await self._safely(self._look())
                await self._rest()
        finally:
            for one in forget:
                one()
            self.close()

    async def _safely(self, work: Awaitable[None]) -> None:
        """After a fault all begin anew: what was not told is told when they come back."""
        if await fault_of(work, "telling the page what changed"):
            for stream in tuple(self._streams):
                stream.end()

    async def _rest(self) -> None:
        """The time between two looks. Who opens a page meanwhile is not kept waiting."""
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._site.clock.sleep(EVERY), name="rest of the page")
            while not timer.done():
                coming = group.create_task(self._opened.wait(), name="next page")
                await asyncio.wait((timer, coming), return_when=asyncio.FIRST_COMPLETED)
                coming.cancel()
                if self._opened.is_set():
                    await self._safely(self._begin_new())

    def _lane_changed(self, lane: str) -> None:
        if self._streams:
            self._changed[lane] = None
            if (room := self._rooms.get(lane)) is not None:
                room.stale = True
            self._wake.set()

    def _was_shown(self, shown: Shown) -> None:
        room = self._rooms.get(shown.lane)
        if shown.kind == "titled":
            self._lane_changed(shown.lane)
        elif room is not None:
            if room.touch(shown.message_id):
                self._changed[shown.lane] = None  # perhaps its first
            self._wake.set()

    async def _woken(self) -> None:
        """Until something changed; while turns run or long texts grow, at most a second."""
        busy = self._at_work or any(room.waits for room in self._rooms.values())
        if not (busy and self._streams):
            await self._wake.wait()
            return
        async with asyncio.TaskGroup() as group:
            waking = group.create_task(self._wake.wait(), name="wake of the page")
            pause = AT_WORK - EVERY if not any(r.waits for r in self._rooms.values()) else EVERY
            timer = group.create_task(self._site.clock.sleep(pause), name="look at the page")
            await asyncio.wait((waking, timer), return_when=asyncio.FIRST_COMPLETED)
            waking.cancel()
            timer.cancel()

    async def _look(self) -> None:
        self._wake.clear()
        if not self._streams:
            self._changed.clear()
            self._at_work.clear()
            self._places.clear()
            return
        changed, self._changed = self._changed, {}
        seen = await self._views(dict.fromkeys((*changed, *self._moved())))
        house = self._house_changed()
        rooms: dict[str, Changed] = {}
        for room in tuple(self._rooms.values()):
            await self._take_from(room, rooms)
        told: dict[tuple[object, ...], bytes | None] = {}
        for stream in tuple(self._streams):
            if stream.begun:
                self._tell(stream, seen, rooms.get(stream.lane), house, told)
        await self._begin_new()

    async def _take_from(self, room: Room, rooms: dict[str, Changed]) -> None:
        """What changed in a thread; one that cannot be read costs no other."""

        async def take() -> None:
            rooms[room.lane] = await room.changes()

        if await fault_of(take(), f"reading the thread {room.lane}"):
            room.stale = True
            for stream in tuple(self._streams):
                if stream.lane == room.lane:
                    stream.end()

    def _moved(self) -> list[str]:
        """Lanes that no commit of their own changed: at another tool, at another place."""
        runner = self._site.parts.runner
        found = [
            lane for lane, doing in self._at_work.items() if straight(runner.doing(lane)) != doing
        ]
        for lane, before in self._places.items():
            view = runner.view(lane)
            if view is None or (view.place, view.paused) != before:
                found.append(lane)
        return found

    async def _views(self, lanes: Iterable[str]) -> dict[str, Seen]:
        wanted = list(lanes)
        if not wanted:
            return {}
        rows = await threads.rows_of(self._site.parts.store, wanted)
        return self._noted(await views(self._site, rows))

    def _noted(self, seen: Sequence[Seen]) -> dict[str, Seen]:
        """Remember what of these lanes changes without a commit."""
        for one in seen:
            lane, shown = one.belonging.row.id, one.shown
            if shown["turn"] is not None:
                self._at_work[lane] = shown["doing"]
            else:
                self._at_work.pop(lane, None)
            view = self._site.parts.runner.view(lane) if shown["waiting"] else None
            if view is not None:
                self._places[lane] = (view.place, view.paused)
            else:
                self._places.pop(lane, None)
        return {one.belonging.row.id: one for one in seen}

    def _house_changed(self) -> dict[str, bool] | None:
        lanes = self._site.parts.runner.lanes
        house = {"paused": lanes.paused, "draining": lanes.draining}
        if house == self._house:
            return None
        self._house = house
        return house

    # Telling ------------------------------------------------------------------------------

    def _tell(
        self,
        stream: Stream,
        seen: dict[str, Seen],
        room: Changed | None,
        house: dict[str, bool] | None,
        told: dict[tuple[object, ...], bytes | None],
    ) -> None:
        people = self._site.parts.people
        theirs_now = {
            lane for lane, one in seen.items() if theirs.sees(people, stream.visitor, one.belonging)
        }
        gone = sorted((seen.keys() & stream.knows) - theirs_now)
        stream.knows |= theirs_now
        stream.knows.difference_update(gone)
        if stream.lane in gone or (stream.lane in seen and stream.lane not in theirs_now):
            stream.end()
            return
        if stream.lane not in stream.knows:
            room = None  # nothing stands there yet
        there = stream.lane in stream.knows
        key = (tuple(sorted(theirs_now)), tuple(gone), stream.lane, there)
        if key not in told:
            body: dict[str, Any] = {"lanes": [seen[lane].shown for lane in sorted(theirs_now)]}
            if gone:
                body["gone"] = gone
            if house is not None:
                body["house"] = house
            if room:
                body |= {"entries": room.entries, "removed": room.removed}
            empty = not (theirs_now or gone or house or room)
            told[key] = None if empty else event("changes", body)
        if (ready := told[key]) is not None:
            stream.put(ready)

    async def _begin_new(self) -> None:
        self._opened.clear()
        for stream in [one for one in self._streams if not (one.begun or one.over)]:
            if await fault_of(self._begin(stream), "showing a page as it is"):
                stream.end()

    async def _begin(self, stream: Stream) -> None:
        """The whole state, for a stream that was just opened."""
        seen = await self.listing(stream.visitor)
        if stream.lane and stream.lane not in seen:
            found = await theirs.belonging(self._site, stream.lane)
            if found is not None:
                if not theirs.sees(self._site.parts.people, stream.visitor, found):
                    stream.end()
                    return
                seen |= self._noted(await views(self._site, [found.row]))
        stream.knows = set(seen)
        body: dict[str, Any] = {
            "lanes": [one.shown for one in seen.values()],
            "house": self._house,
            "now": self._site.clock.now(),
        }
        if stream.lane and (room := self._rooms.get(stream.lane)) is not None:
            if room.waits:
                self._tell_others(stream, await room.changes())
            there = stream.lane in stream.knows
            body |= {"entries": room.entries if there else [], "more": there and room.more}
        stream.begun = True
        stream.put(event("state", body))

    def _tell_others(self, stream: Stream, changed: Changed) -> None:
        """What is read of a thread for a new stream is told to those that look at it already."""
        ready = event(
            "changes", {"lanes": [], "entries": changed.entries, "removed": changed.removed}
        )
        for other in self._streams if changed else ():
            if other.begun and other.lane == stream.lane:
                if other.lane in other.knows:
                    other.put(ready)
                else:  # the thread has just come to be: whether it is for them is looked at
                    other.begun = False
                    self._opened.set()
                    self._wake.set()

    async def listing(self, visitor: Visitor) -> dict[str, Seen]:
        """The lanes somebody sees first: those at which something is, then the newest."""
        store, people = self._site.parts.store, self._site.parts.people
        if visitor.admin:
            rows = await threads.newest(store, LISTED)
            known = {row.id for row in rows}
            busy = [lane for lane in self._site.parts.runner.lanes.busy() if lane not in known]
            rows = [*await threads.rows_of(store, busy), *rows]
        else:
            rows = await theirs.rows_of(self._site, visitor)
            rows.sort(key=lambda row: max(row.created_at, row.ended_at), reverse=True)
        seen = self._noted(await views(self._site, rows[:LISTED]))
        return {
            lane: one for lane, one in seen.items() if theirs.sees(people, visitor, one.belonging)
        }


def event(name: str, body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n".encode()
