"""From raw events to what core is handed: in order, each read by itself, stored before the next.

Discord sends nothing again, so what arrives is stored at once, and what was missed is read from the
history first; what comes meanwhile waits behind it. It must not know who may talk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from channels.discord.content import Me, snowflake
from channels.discord.events import (
    COMMAND,
    COMPONENT,
    Reading,
    read_edit,
    read_interaction,
    read_message,
    unreadable,
)
from channels.discord.gateway import reads_content, who
from channels.discord.history import History
from channels.discord.places import Places, Spot
from channels.discord.press_token import Token
from channels.discord.presses import Presses
from channels.discord.rest import Rest
from channels.discord.sent import Sent
from channels.discord.spots import Spots
from channels.discord.threads import Threads
from channels.discord.world import World
from channels.fields import Json, Malformed, as_object, integer, maybe, string
from channels.patience import within
from core.channel import Connection, Intake, Marks, SendError
from core.messages import Edit, Incoming, Message, Press

log = logging.getLogger(__name__)

BATCH = 50
WAITING_MOST = 5000  # events kept while nothing can be stored; more are read from the history
DISK_PATIENCE, GLANCE_PAUSE = 2.0, 1.0
OVERLAP = 5000  # ms: events of different servers overtake each other
READ_AGAIN = (1.0, 5.0, 15.0, 60.0)  # seconds after the history could not be read
TEXTS_KEPT = 2000
CONTENT_OFF = (
    "discord: the message content intent is off, so in servers only messages that mention the bot"
    " can be read; switch it on (developer portal, Bot, Message Content Intent) and restart"
)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unplaced:
    """An event in a channel that is not known yet."""

    kind: str
    event: Json


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Here the history is read. ``begun``: a connection is new, and works."""

    begun: bool
    fresh: bool  # a new session: what came before it was missed


@dataclass(frozen=True, slots=True)
class Parts:
    """What listening works with, of the channel."""

    rest: Rest
    places: Places
    threads: Threads
    presses: Presses
    sent: Sent
    auto_thread: bool
    people: frozenset[str]  # ids whose direct chats are looked at after a pause


class Listener:
    """One listen()."""

    def __init__(
        self,
        parts: Parts,
        intake: Intake,
        group: asyncio.TaskGroup,
        directs: OrderedDict[str, None],
        up: Callable[[Me], Coroutine[Any, Any, None]],
    ) -> None:
        self._parts = parts
        self._rest = parts.rest
        self._intake = intake
        self._group = group
        self._directs = directs
        self._spots = Spots(parts.rest, parts.places, directs)
        self._up = up
        self._me: Me | None = None
        self._world: World | None = None
        self._waiting: deque[Incoming | Unplaced | CatchUp] = deque()
        self._came = asyncio.Event()
        self._texts: OrderedDict[str, int] = OrderedDict()
        self._reported: Connection | None = None
        self._full = False  # too much waited: what comes is read from the history instead

    def report(self, connection: Connection) -> None:
        """Tell a change of the connection, and only a change."""
        if connection != self._reported:
            self._reported = connection
            self._intake.connection("discord", connection)

    # --- as events arrive; nothing here waits ---

    def arrive(self, kind: str, event: object) -> None:
        """One event of the gateway. Never raises."""
        try:
            self._arrive(kind, as_object(event, kind))
        except Malformed as error:
            log.warning("discord: an event %s cannot be read: %s", kind, error)
            self._put(unreadable(kind, event, error))

    def _arrive(self, kind: str, event: Json) -> None:
        match kind:
            case "READY":
                self._me = who(event)
                self._parts.sent.me = self._me.id
                self._world = World(self._parts.places, self._parts.threads, self._me.id)
                if not reads_content(event):
                    log.warning(CONTENT_OFF)
                self._put(CatchUp(begun=True, fresh=True))
            case "RESUMED":
                self._put(CatchUp(begun=True, fresh=False))
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE" | "INTERACTION_CREATE":
                self._said(kind, event)
            case _:
                if self._world is not None:
                    for titled in self._world.changed(kind, event, self._rest.now()):
                        self._put(titled)

    def _said(self, kind: str, event: Json) -> None:
        if self._me is None:
            return
        if kind == "INTERACTION_CREATE":
            self._put_off(event, self._me)
        elif self._ours(event, self._me):
            self._parts.sent.seen(event)
            return
        spot = self._spots.known(event)
        if spot is None:
            self._put(Unplaced(kind, event))
        elif (incoming := self._read(kind, event, spot)) is not None:
            self._put(incoming)

    def _put_off(self, event: Json, me: Me) -> None:
        """Within three seconds, whatever else there is to do."""
        if (token := _token(event, me)) is not None:
            self._parts.presses.put_off(token, self._group)

    @staticmethod
    def _ours(event: Json, me: Me) -> bool:
        author = maybe(event, "author")
        return author is not None and author.get("id") == me.id

    def _reading(self, me: Me) -> Reading:
        parts = self._parts
        return Reading(me, parts.places, parts.auto_thread, parts.threads.flat())

    def _read(self, kind: str, event: Json, spot: Spot) -> Incoming | None:
        assert self._me is not None
        reading = self._reading(self._me)
        incoming: Message | Edit | Press | None
        if kind == "MESSAGE_CREATE":
            incoming = read_message(event, spot, reading)
        elif kind == "MESSAGE_UPDATE":
            incoming = read_edit(event, spot, reading)
        else:
            incoming = read_interaction(event, spot, reading)
        if isinstance(incoming, Message):
            self._begins(incoming)
        if isinstance(incoming, Message | Edit) and not self._new_text(incoming):
            return None
        return incoming

    def _begins(self, message: Message) -> None:
        if message.address.thread == message.message_id and not message.press:
            self._parts.threads.begin(message.address, message.text)

    def _new_text(self, incoming: Message | Edit) -> bool:
        """An update that leaves the text as it was is no edit: a pin, a link's preview."""
        key = incoming.of if isinstance(incoming, Edit) else incoming.identity
        text = hash(incoming.text)
        same = isinstance(incoming, Edit) and self._texts.get(key) == text
        self._texts[key] = text
        self._texts.move_to_end(key)
        if len(self._texts) > TEXTS_KEPT:
            self._texts.popitem(last=False)
        return not same

    def _put(self, item: Incoming | Unplaced | CatchUp) -> None:
        if len(self._waiting) >= WAITING_MOST and not self._full:
            self._full = True
            self._waiting.append(CatchUp(begun=False, fresh=True))
        if self._full and isinstance(item, Message | Edit | Unplaced) and not _pressed(item):
            return
        self._waiting.append(item)
        self._came.set()

    # --- in order, each stored before the next ---

    async def run(self) -> None:
        """Hand over what arrives, until cancelled."""
        while True:
            await self._came.wait()
            self._came.clear()
            while self._waiting:
                await self._next()

    async def _next(self) -> None:
        first = self._waiting[0]
        if isinstance(first, CatchUp):
            self._waiting.popleft()
            await self._catch_up(first)
            return
        batch: list[Incoming] = []
        while self._waiting and len(batch) < BATCH:
            item = self._waiting[0]
            if isinstance(item, CatchUp):
                break
            self._waiting.popleft()
            if isinstance(item, Unplaced):
                if (found := await self._resolved(item)) is not None:
                    batch.append(found)
            else:
                batch.append(item)
        await self._accept(batch)

    async def _accept(self, batch: list[Incoming]) -> None:
        """Store a batch; while the disk does not take it, stops behind it are looked for."""
        if not batch:
            return
        await self._glancing(self._intake.accept(batch), "discord accept")
        if times := [one.at for one in batch if isinstance(one, Message)]:
            self._intake.reached("discord", min(max(times), self._rest.now()) - OVERLAP)

    async def _glancing(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Do something that everything else waits for, and look for stops behind it."""
        task = self._group.create_task(work, name=name)
        pause = DISK_PATIENCE
        seen: set[int] = set()
        while not await within(self._rest.clock, task, pause):
            fresh = [one for one in self._waiting if id(one) not in seen]
            seen.update(map(id, fresh))
            said: list[Incoming] = [one for one in fresh if isinstance(one, Message | Edit | Press)]
            if said:
                self._intake.glance(said)
            pause = GLANCE_PAUSE
        return task.result()

    async def _resolved(self, item: Unplaced) -> Incoming | None:
        """Where an event is from, asked of Discord; nothing is let in before that is known."""
        try:
            spot = await self._spots.asked(item.event)
            if spot is None:
                self._leave_unanswered(item)
                return None
            return self._read(item.kind, item.event, spot)
        except SendError as error:
            return unreadable(item.kind, item.event, Malformed(f"its channel is unknown: {error}"))
        except Malformed as error:
            return unreadable(item.kind, item.event, error)

    def _leave_unanswered(self, item: Unplaced) -> None:
        """A command from where we may not be: its sign of thinking goes, nothing is said."""
        if item.kind == "INTERACTION_CREATE" and self._me is not None:
            token = _token(item.event, self._me)
            if token is not None and token.command:
                self._group.create_task(
                    self._parts.presses.end(token), name=f"discord press {token.number}"
                )

    # --- what was missed ---

    async def _catch_up(self, item: CatchUp) -> None:
        now = self._rest.now()
        self._full = False
        marks = await self._intake.marks("discord") if item.fresh else None
        if marks is not None and not marks.since:
            self._intake.reached("discord", now)
        if item.begun:
            self.report(Connection())
            if self._me is not None:
                self._group.create_task(self._up(self._me), name="discord connected")
        if marks is None or not marks.since or self._me is None:
            return
        found = await self._glancing(self._missed(marks, self._me), "discord history")
        for one in found:
            if isinstance(one, Message):
                self._begins(one)
        for start in range(0, len(found), BATCH):
            await self._accept(found[start : start + BATCH])
        self._intake.reached("discord", now - OVERLAP)

    async def _missed(self, marks: Marks, me: Me) -> list[Incoming]:
        """What the history has. Nothing newer is let in before it: it would hide what is older."""
        known = {address.chat for address in marks.threads if not address.thread}
        failures = 0
        while True:
            directs = [one for one in self._directs if one not in known]
            history = History(self._rest, self._reading(me), marks)
            try:
                found = await history.missed(directs, sorted(self._parts.people))
            except SendError as error:
                self.report(Connection(f"what was said meanwhile cannot be read yet: {error}"))
                await self._rest.clock.sleep(READ_AGAIN[min(failures, len(READ_AGAIN) - 1)])
                failures += 1
            else:
                self.report(Connection())
                return found


def _token(event: Json, me: Me) -> Token | None:
    """What answers an interaction, if it is of a kind that is for us."""
    kind, secret = integer(event, "type"), string(event, "token")
    if kind not in (COMMAND, COMPONENT) or not secret:
        return None
    return Token(snowflake(event, "id"), secret, me.application, kind == COMMAND)


def _pressed(item: Message | Edit | Unplaced) -> bool:
    """Whether it came as an interaction, which no history has."""
    if isinstance(item, Unplaced):
        return item.kind == "INTERACTION_CREATE"
    return isinstance(item, Message) and bool(item.press)
