"""What Slack delivers stands here until it is stored; only then is it acknowledged.

Slack promises no order, not even inside a thread, so messages are held for a moment and handed on
by their own times. While what was missed is still read, what is new waits behind it. It must not
know how payloads arrive, nor what a message starts.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from channels.patience import happens, within
from channels.slack.events import Me, Read, Reading, payload, unreadable
from channels.slack.fields import Json, Malformed
from channels.slack.names import Names
from channels.slack.text import mentioned_in
from core.channel import Intake
from core.clock import Clock
from core.messages import Address, Edit, Incoming, Message, Press

HOLD = 0.25  # seconds a message waits for what may have been said before it
DISK_PATIENCE, GLANCE_EVERY = 2.0, 1.0
WAITING_MOST = 5000  # more is left to Slack, which delivers it again
_SEEN = 5000


@dataclass(slots=True, eq=False)
class _Waiting:
    """One delivery. ``stored`` is set when it may be acknowledged, or never will be."""

    body: object
    read: Read
    stored: asyncio.Future[bool] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    glanced: bool = False


def nothing_held(address: Address) -> bool:
    return False


class Inlet:
    """One for a ``listen``; ``run`` is its only consumer."""

    def __init__(self, me: Me, intake: Intake, names: Names, clock: Clock) -> None:
        self._me = me
        self._intake = intake
        self._names = names
        self._clock = clock
        self._waiting: list[_Waiting] = []
        self._seen: OrderedDict[str, bool] = OrderedDict()  # identity: it addressed us
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        self._held: Callable[[Address], bool] = nothing_held

    @property
    def idle(self) -> bool:
        """Everything that came is stored."""
        return not self._waiting

    def hold(self, held: Callable[[Address], bool]) -> None:
        """Keep back the messages of these places from now on."""
        self._held = held
        self._news.set()

    def reading(self) -> Reading:
        now = self._clock.now()
        return Reading(self._me, self._names.of, now)

    async def offer(self, body: object) -> bool:
        """Whether a payload may be acknowledged: it is stored, or it means nothing to us."""
        read = self._read(body)
        if read is None or self._known(read.incoming):
            return True
        if len(self._waiting) >= WAITING_MOST:
            self._intake.glance([read.incoming])
            return False
        one = _Waiting(body, read)
        self._waiting.append(one)
        self._news.set()
        if not self._ready(one):  # the history may take long, a stop may not
            one.glanced = True
            self._intake.glance([read.incoming])
        if not isinstance(read.incoming, Message | Edit) or _commanded(read.incoming):
            self._urgent.set()
        return await one.stored

    async def run(self) -> None:
        """Store what comes until cancelled; what is not stored then is not acknowledged."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                if any(self._ready(one) for one in self._waiting):
                    await happens(self._clock, self._urgent, HOLD)
                    self._urgent.clear()
                    await self._store([one for one in self._waiting if self._ready(one)])
        finally:
            for one in self._waiting:
                if not one.stored.done():
                    one.stored.set_result(False)
            self._waiting.clear()

    async def store(self, batch: Sequence[Incoming]) -> None:
        """Hand a batch to core; while the disk does not answer, stops behind it are seen."""
        async with asyncio.TaskGroup() as group:
            storing = group.create_task(self._accept(batch), name="slack accept")
            pause = DISK_PATIENCE
            while not await within(self._clock, storing, pause):
                self._glance()
                pause = GLANCE_EVERY
        for one in batch:
            if isinstance(one, Message | Press | Edit):
                self._remember(one)

    # What stands here ---------------------------------------------------------------------

    def _ready(self, one: _Waiting) -> bool:
        incoming = one.read.incoming
        if not isinstance(incoming, Message | Edit) or _commanded(incoming):
            return True
        return not self._held(incoming.address)

    async def _store(self, taken: list[_Waiting]) -> None:
        for one in taken:
            one.glanced = True  # core looks at what it is handed by itself
        await self._names.learn(_people(taken))
        by_identity: dict[str, Read] = {}
        for one in taken:
            read = self._read(one.body) or one.read
            before = by_identity.get(read.incoming.identity)
            by_identity[read.incoming.identity] = read if before is None else _merged(before, read)
        batch = [
            read.incoming
            for read in sorted(by_identity.values(), key=lambda read: read.order)
            if not self._known(read.incoming)
        ]
        if batch:
            await self.store(batch)
        for one in taken:
            self._waiting.remove(one)
            if not one.stored.done():
                one.stored.set_result(True)
        if self._waiting:
            self._news.set()

    async def _accept(self, batch: Sequence[Incoming]) -> None:
        await self._intake.accept(batch)

    def _glance(self) -> None:
        """Show what waits behind the disk, once each, for stops alone."""
        fresh = [one for one in self._waiting if not one.glanced]
        for one in fresh:
            one.glanced = True
        if fresh:
            self._intake.glance([one.read.incoming for one in fresh])

    def _read(self, body: object) -> Read | None:
        """A payload by itself: one that is malformed holds up no other."""
        try:
            return payload(body, self.reading())
        except Malformed as error:
            return Read(unreadable(body, self._me, error), (0, 0))

    # Twins and repetitions ----------------------------------------------------------------

    def _known(self, incoming: Incoming) -> bool:
        """Stored already. A message that did not address us says nothing about its mention."""
        addressed = self._seen.get(incoming.identity)
        return addressed is not None and (addressed or not _addressed(incoming))

    def _remember(self, incoming: Message | Press | Edit) -> None:
        known = self._seen.pop(incoming.identity, False)
        self._seen[incoming.identity] = known or _addressed(incoming)
        if len(self._seen) > _SEEN:
            self._seen.popitem(last=False)


def _commanded(incoming: Incoming) -> bool:
    """A slash command, which waits for nothing."""
    return isinstance(incoming, Message) and bool(incoming.press)


def _addressed(incoming: Incoming) -> bool:
    return not isinstance(incoming, Message) or incoming.addressed or incoming.direct


def _merged(one: Read, other: Read) -> Read:
    """One message out of its twins: each may know what the other does not."""
    first, second = one.incoming, other.incoming
    if not (isinstance(first, Message) and isinstance(second, Message)):
        return one
    fuller = second if second.files and not first.files else first
    addressed = first.addressed or second.addressed
    return replace(one, incoming=replace(fuller, addressed=addressed))


def _people(taken: list[_Waiting]) -> list[str]:
    """Everybody whose name a batch may need."""
    found: list[str] = []
    for one in taken:
        incoming = one.read.incoming
        if isinstance(incoming, Message | Edit | Press):
            found.append(incoming.sender.removeprefix("slack:"))
        body: Json = one.body if isinstance(one.body, dict) else {}
        event = body.get("event")
        if isinstance(event, dict):
            inner = event.get("message") if isinstance(event.get("message"), dict) else event
            text = inner.get("text") if isinstance(inner, dict) else None
            if isinstance(text, str):
                found += mentioned_in(text)
    return found
