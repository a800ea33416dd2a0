"""One local thread that somebody looks at: what stands in it now, and what has changed in it.

It is read again when its lane changed or something new stands there; of a text that grows only the
new text is taken, and the longer it is the more seldom. Owned by the hub, and used by its task
alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from core.clock import Clock
from core.store.records import DeliveryKind
from gateway.web import threads
from gateway.web.site import Site
from gateway.web.threads import Entry, Page

Json = dict[str, Any]
_OPEN = frozenset({"waiting", "running"})  # receipts
_GOING = frozenset({DeliveryKind.PREVIEW.value, DeliveryKind.WAITING.value})
PAGES = 20  # that may come between two looks
LEFT = 200  # entries before the newest page that are looked after
BESIDE = 20_000  # characters; longer texts are made HTML beside the loop
PACE = 40_000  # characters that cost one more second between two looks at a text that grows


@dataclass(slots=True)
class Changed:
    """Entries as they are now, and the ids of those that are there no more."""

    entries: list[Json] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.entries or self.removed)


class Room:
    """One for each lane that is looked at."""

    def __init__(self, site: Site, lane: str) -> None:
        self.lane = lane
        self.stale = True  # it has to be read
        self.more = False  # something stands before its first entry
        self._site = site
        self._clock: Clock = site.clock
        self._entries: dict[str, tuple[Entry, Json]] = {}
        self._left: dict[str, Entry] = {}  # older ones that can still change; pages may show them
        self._touched: dict[str, None] = {}
        self._due: dict[str, float] = {}  # when a long text may be looked at again

    @property
    def entries(self) -> list[Json]:
        return [shown for _, shown in self._entries.values()]

    def touch(self, message_id: str) -> bool:
        """Something was shown; True if it is a new message."""
        if message_id in self._entries:
            self._touched[message_id] = None
            return False
        self.stale = True
        return True

    @property
    def waits(self) -> bool:
        """Whether something changed that was not told yet."""
        return self.stale or bool(self._touched)

    async def changes(self) -> Changed:
        """What is different since the last call."""
        if self.stale:
            self.stale = False
            self._touched.clear()
            return await self._read()
        changed = Changed()
        now = self._clock.monotonic()
        for ident in [one for one in self._touched if self._due.get(one, 0.0) <= now]:
            del self._touched[ident]
            await self._take(ident, changed)
        return changed

    async def _take(self, ident: str, changed: Changed) -> None:
        known, shown = self._entries.get(ident), self._site.local.shown(ident)
        if known is None or shown is None:
            self.stale = True
            return
        if shown.kind == "deleted" or not (shown.text.strip() or shown.keyboard):
            del self._entries[ident]
            changed.removed.append(ident)
            return
        if shown.kind == "file":
            return
        entry = replace(known[0], text=shown.text, keyboard=shown.keyboard)
        if entry != known[0]:
            changed.entries.append(await self._keep(entry))

    async def _read(self) -> Changed:
        page = await self._reaching()
        self.more = page.more
        before, self._entries = self._entries, {}
        changed = Changed()
        for entry in page.entries:
            known = before.get(entry.id)
            if known is not None and known[0] == entry:
                self._entries[entry.id] = known
            else:
                changed.entries.append(await self._keep(entry))
        first = page.entries[0].at if page.entries and page.more else 0
        for ident, (entry, _) in before.items():
            if ident in self._entries:
                continue
            if entry.at >= first:
                changed.removed.append(ident)
            elif _unsettled(entry):
                self._left[ident] = entry
        await self._look_after(changed)
        for ident in [one for one in self._due if one not in self._entries]:
            del self._due[ident]
        return changed

    async def _reaching(self) -> Page:
        """The newest page, and those before it down to what was told already: it has no gap."""
        page = await threads.read(self._site, self.lane)
        for _ in range(PAGES):
            told = any(one.id in self._entries for one in page.entries)
            if told or not page.more or not self._entries:
                break
            before = await threads.read(self._site, self.lane, page.entries[0].at)
            there = {one.id for one in page.entries}
            earlier = [one for one in before.entries if one.id not in there]
            page = Page((*earlier, *page.entries), before.more)
        return page

    async def _look_after(self, changed: Changed) -> None:
        """What came of entries that the newest page does not reach any more."""
        for ident in [*self._left][:-LEFT]:
            del self._left[ident]
        if not self._left:
            return
        found = await threads.again(self._site, self.lane, [*self._left.values()])
        for ident, entry in found.items():
            if ident in self._entries:
                del self._left[ident]  # it is on the page again
            elif entry is None:
                del self._left[ident]
                changed.removed.append(ident)
            elif entry != self._left[ident]:
                changed.entries.append(await _ready(entry))
                self._left[ident] = entry
            if entry is not None and not _unsettled(entry):
                self._left.pop(ident, None)

    async def _keep(self, entry: Entry) -> Json:
        shown = await _ready(entry)
        self._entries[entry.id] = entry, shown
        self._due[entry.id] = self._clock.monotonic() + len(entry.text) / PACE
        return shown


def _unsettled(entry: Entry) -> bool:
    """Whether it will still change: it waits, runs, grows or can be pressed."""
    return bool(entry.keyboard) or entry.receipt in _OPEN or entry.kind in _GOING


async def _ready(entry: Entry) -> Json:
    """As the page takes it; a long text is made beside the loop."""
    make: Callable[[], Json] = entry.as_json
    return await asyncio.to_thread(make) if len(entry.text) > BESIDE else make()
