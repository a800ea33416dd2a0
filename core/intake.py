"""Everything that comes in: who may speak, what is a command, what becomes a turn.

The channels hand in what they received; when ``accept`` returns, whatever has an effect is durable.
Strangers and messages that are not for us leave no trace but a line in the log. It must not know
platforms, engines or the lane rules; what a command or a button does stands in files of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from core import addressing, commands, handing, moving, wording
from core.accepting import Batch
from core.addressing import Spoken
from core.answering import Answering
from core.arriving import Arriving
from core.channel import Connection, Marks
from core.door import Door
from core.editing import Editing
from core.ground import Ground
from core.guard import fault_of, guarded
from core.holding import Holding
from core.items import Item
from core.lane_ids import channel_of
from core.marking import Marking
from core.messages import (
    Address,
    Edit,
    Incoming,
    Message,
    Missed,
    Moved,
    Press,
    Titled,
    Unreadable,
    clean,
)
from core.missed import Missing
from core.people import Person, Role
from core.pressing import Pressing
from core.showing import Action
from core.stopping import Stopping
from core.store import reads, rows, threads
from core.store.errors import Closed
from core.store.records import LaneRow
from core.turns import Origin, Turn

log = logging.getLogger("laneway.intake")

ERROR_MOST = 2000  # characters that are kept of a fault


class Intake:
    """Implements the channels' port. One for the process."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.connections: dict[str, Connection] = {}
        self._arriving = Arriving(ground)
        self._answering = Answering(ground, self._arriving)
        self._pressing = Pressing(ground, self._answering, self._arriving)
        self._holding = Holding(ground, self._arriving)
        self._editing = Editing(ground, self._holding)
        self._marking = Marking(ground)
        self._missing = Missing(ground, self._marking.runs_from)
        self._door = Door(ground)
        self._stopping = Stopping(ground)
        self._group: asyncio.TaskGroup | None = None

    # Life ---------------------------------------------------------------------------------

    async def resume(self) -> None:
        """Take over what an earlier process left; before any channel listens."""
        await self.ground.people.load(self.ground.store)
        await self._holding.resume()
        await self._marking.resume()

    async def take_up(self, channel: str) -> None:
        """The same for a channel that was not set up until now, before it listens."""
        await self._holding.resume(channel)

    async def run(self) -> None:
        """Close groups when their time is over; until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            guarded(group, self._marking.run(), "marks")
            await self._holding.run(group)

    async def go_on(self, turn: int) -> None:
        """Press *continue* for a cut-off turn by itself, once, before what waits in its lane.

        What went on like this already and is cut off again may be what cuts it off: then a person
        decides, or it would go on for ever.
        """
        old = await reads.turn(self.ground.store, turn)
        if old is not None and old.origin is Origin.CONTINUE:
            log.warning("turn %d was cut off again; it goes on when somebody presses", turn)
            return
        lane = await reads.lane(self.ground.store, old.lane) if old else None
        if old is not None and lane is not None:
            told = await self._pressing.once_more(lane, old, Action.CONTINUE, first=True)
            log.info("turn %d goes on after the restart: %s", turn, told)

    async def released(self) -> None:
        """Pieces that a restored backup held back are gathered on from now."""
        await self._holding.released()

    async def queue_up(self, side: Turn, request: str) -> str:
        """A request of a side answer for the main conversation; why it cannot be, or ""."""
        return await handing.queue_up(self.ground, self._arriving, side, request)

    async def moved(self, address: Address, new_chat: str) -> None:
        """A chat moved, as a send found out."""
        async with self.ground.lock(address.channel):
            await moving.moved(self.ground, address.channel, address.chat, new_chat, None)
            self._stopping.forget_lanes()

    # The port -----------------------------------------------------------------------------

    async def accept(self, incoming: Sequence[Incoming]) -> None:
        """Store everything of one batch that has an effect; returns once it is durable."""
        if not incoming:
            return
        await self._stopping.first(incoming)
        self._holding.forget()
        batch = Batch(_channel(incoming[0]), self.ground, self._stopping.note_lane)
        with self._marking.accepting(batch.channel, incoming):
            async with self.ground.lock(batch.channel):
                for one in incoming:
                    await self._alone(one, batch)
                await batch.flush()
                self._holding.begin(batch.channel)

    async def _alone(self, one: Incoming, batch: Batch) -> None:
        """The border of what came in: whatever it breaks, the rest of its batch is taken.

        It would come again and again until it is known, so it is set aside.
        """
        try:
            await self._one(one, batch)
        except Closed:
            raise
        except Exception as fault:
            log.exception("set aside %s", one.identity)
            await batch.flush()
            if await reads.seen(self.ground.store, one.identity):
                return  # it broke after it was stored, so it has had its effect
            error = clean(f"{type(fault).__name__}: {fault}")[:ERROR_MOST]
            row = rows.set_aside(clean(one.identity), self.ground.clock.now(), error)
            await self.ground.take(Item(rows=(row,)))
            await fault_of(self._tell_of(one), f"telling of {one.identity}")

    async def _tell_of(self, one: Incoming) -> None:
        """Who meant us with what was set aside is told; others need not know."""
        if isinstance(one, Press):
            self._pressing.tell(one, wording.PRESS_BROKE)
        if not isinstance(one, Message):
            return
        address, people = self.ground.people.now_at(one.address), self.ground.people
        known = people.person(one.sender, one.sender_name, one.from_bot).role
        if known and self.ground.may_here(address, one.direct):
            self._door.say(one, wording.PRESS_BROKE)
            lane = await reads.lane_at(self.ground.store, address)
            meant = addressing.addressed(one, lane, None, False, self.ground.clock.now())
            if lane is not None and meant:
                await self.ground.not_taken(lane.id)

    def glance(self, incoming: Sequence[Incoming]) -> None:
        """Carry out stops without storing anything; for while ``accept`` waits for the disk."""
        self._stopping.glance(incoming, self._group)

    async def marks(self, channel: str) -> Marks:
        """Where to go on reading, for a platform that does not send again what was missed."""
        return await self._marking.marks(channel)

    def reached(self, channel: str, at: int) -> None:
        """Everything up to ``at`` (ms, the platform's clock) was handed to ``accept``."""
        self._marking.reached(channel, at)

    def connection(self, channel: str, connection: Connection) -> None:
        """Report a change of the connection; ``readyz`` and the log say it."""
        before = self.connections.get(channel)
        self.connections[channel] = connection
        if connection.up:
            self._holding.begin(channel)
        if before == connection:
            return
        if connection.up:
            log.info("%s: connected", channel)
        else:
            level = logging.ERROR if connection.fatal else logging.WARNING
            log.log(level, "%s: not connected: %s", channel, connection.reason)

    # One at a time ------------------------------------------------------------------------

    async def _one(self, one: Incoming, batch: Batch) -> None:
        match one:
            case Message():
                await self._message(one, batch)
            case Edit():
                await batch.flush()
                await self._editing.edit(one)
            case Press():
                await batch.flush()
                await self._press(one)
            case Titled():
                await self._titled(one, batch)
            case Unreadable():
                self._unreadable(one, batch)
            case Missed():
                await batch.flush()
                await self._missing.missed(one)
                batch.forget(self.ground.people.now_at(one.address))
            case Moved(identity, channel, old, new):
                await batch.flush()
                await moving.moved(self.ground, channel, old, new, identity)
                batch.forget_all()
                self._stopping.forget_lanes()

    def _unreadable(self, one: Unreadable, batch: Batch) -> None:
        """Kept where somebody we know may miss it; strangers leave nothing behind."""
        if not any(map(self.ground.people.knows, one.about)):
            log.warning("dropped %s, from nobody who is known: %s", one.identity, one.error)
            return
        log.error("set aside %s: %s", one.identity, one.error)
        now = self.ground.clock.now()
        row = rows.unreadable(one.identity, one.channel, clean(one.raw), clean(one.error), now)
        batch.add(Item(one.identity, rows=(row,)))

    async def _message(self, message: Message, batch: Batch) -> None:
        message = replace(message, address=self.ground.people.now_at(message.address))
        people = self.ground.people
        person = people.person(message.sender, message.sender_name, message.from_bot)
        chosen = bool(message.press)
        spoken = addressing.command(message.text, commands.NAMES, message.direct, chosen)
        if not person.role:
            await self._stranger(message, spoken, batch)
            return
        lane = await batch.lane(message.address)
        bare = self.ground.limits(message.address.channel).bare_commands
        now = self.ground.clock.now()
        for_us = addressing.addressed(message, lane, spoken, bare, now)
        if not self.ground.may_here(message.address, message.direct):
            asks = spoken is not None and spoken.name == "whoami" and person.admin
            if not (asks and for_us):
                self._door.unlisted(message)
                return
        if not for_us and not await self._goes_on(message, lane, spoken):
            return
        if not message.direct and addressing.others_command(message.text, commands.NAMES):
            return
        if message.from_bot and not self._door.bot_may(message, spoken):
            return
        if spoken is not None and not message.album:
            if chosen and not spoken.known:
                self._door.say(message, commands.nearest_chosen(spoken.name))
                return
            if message.no_thread and not commands.anywhere(spoken.name, spoken.args):
                self._door.say(message, wording.in_a_thread(spoken.name))
                return
            lane = lane or self._new_lane(message)
            await self._command(message, lane, person, spoken, batch)
            return
        for piece in (*self._holding.claim(message), message):
            await self._prompt(piece, await batch.lane(message.address), batch)
        if chosen:
            await batch.flush()
            self._door.say(message, wording.TAKEN_PRESS)

    async def _goes_on(self, message: Message, lane: LaneRow | None, spoken: Spoken | None) -> bool:
        """Whether it is a piece of something whose earlier piece was for us."""
        if message.from_bot or (spoken is not None and not message.album):
            return False
        if lane is not None and await self._holding.goes_on(lane, message):
            return True
        self._holding.keep(message)
        return False

    def _new_lane(self, message: Message) -> LaneRow:
        title = clean(message.title) or self.ground.names.of(message.address)
        return self.ground.new_lane(message.address, message.direct, title, message.sender)

    async def _stranger(self, message: Message, spoken: Spoken | None, batch: Batch) -> None:
        """Silence; but somebody unknown can ask, in a direct message, who they are."""
        if not self._door.stranger(message, spoken):
            return
        await batch.flush()
        lane = await batch.lane(message.address)
        new = lane is None
        lane = lane or self.ground.new_lane(message.address, True, "", message.sender)
        item = await self._answering.pairing(message, lane, new)
        if item is not None:
            await self.ground.take(item)
        self._door.say(message, wording.TAKEN_PRESS if item else wording.STRANGER_PRESS)

    # Prompts ------------------------------------------------------------------------------

    async def _prompt(self, message: Message, lane: LaneRow | None, batch: Batch) -> None:
        new = lane is None or batch.makes(lane.id)
        lane = lane or self._new_lane(message)
        told = self._arriving.told(message, lane)
        written = self._arriving.lane_rows(message, lane, new)
        batch.becomes(message, lane, new=new)
        if told:
            reply_to = "" if message.press else message.message_id
            notice = self.ground.showing.text(lane.id, told, reply_to=reply_to)
            if self.ground.limits(batch.channel).history:
                written = (*written, threads.spoken(message, lane.id))
            batch.add(Item(message.identity, rows=written, deliveries=notice))
            return
        text = addressing.prompt_text(message.text)
        groups = self._holding.of(lane.id)
        key = groups.key_for(message, self.ground.limits(batch.channel))
        row = self._arriving.row(message, lane, text, key)
        if not key and not groups.entries:
            batch.add(
                self._arriving.arrived(lane, [row], identity=message.identity, written=written)
            )
            return
        await batch.flush()
        await self._holding.hold(lane, row, written)

    # Commands -----------------------------------------------------------------------------

    async def _command(
        self, message: Message, lane: LaneRow, person: Person, spoken: Spoken, batch: Batch
    ) -> None:
        await batch.flush()
        await self._holding.close_of(lane.id, message.sender)
        fresh = await reads.lane(self.ground.store, lane.id)
        first = self._stopping.first_found(message.identity)
        answered = await self._answering.command(
            message, fresh or lane, fresh is None, person, spoken, first
        )
        (new,) = await self.ground.take(answered.item)
        batch.forget(message.address)  # it may have changed
        if not new:
            return
        if answered.private:
            self._door.show(message, answered.private)
        else:
            self._door.say(message, wording.TAKEN_PRESS)
        if answered.answer.act:
            log.info("%s", answered.answer.act.told(person.id))
        if answered.answer.title:
            self.ground.says.retitle(lane.id, answered.answer.title)
        if answered.answer.jobs:
            self.ground.jobs_changed()
        if answered.answer.reload:
            await self.ground.people.load(self.ground.store)

    async def on_page(self, lane: LaneRow, person: Person, name: str, args: str = "") -> str:
        """A command that somebody gave for a lane elsewhere, on the page; its thread is told.

        Returns what the command answers; "" where the thread is told by the rules alone.
        """
        async with self.ground.lock(channel_of(lane.id)):
            fresh = await reads.lane(self.ground.store, lane.id) or lane
            answer = await self._answering.answer(fresh, person, Spoken(name, args))
            item = self._answering.pressed(f"page:{self.ground.new_id()}", fresh, answer, "")
            await self.ground.take(item)
        if answer.act is not None:
            log.info("%s", answer.act.told(person.id))
        return answer.text

    # Edits, presses, titles ---------------------------------------------------------------

    async def _press(self, press: Press) -> None:
        people = self.ground.people
        address = people.now_at(press.address)
        press = replace(press, address=address)
        person = people.person(press.sender, press.sender_name)
        if person.role and (
            person.role is Role.ADMIN or self.ground.may_here(address, press.direct)
        ):
            await self._pressing.press(press, person)
            return
        self._door.knock(press.sender, address.place)
        self._pressing.tell(press, wording.STRANGER_PRESS)

    async def _titled(self, titled: Titled, batch: Batch) -> None:
        lane = await batch.lane(self.ground.people.now_at(titled.address))
        title = clean(titled.title)
        if lane is None:
            self.ground.names.keep(self.ground.people.now_at(titled.address), title)
        elif title and lane.title != title:
            row = rows.lane_setting(lane.id, "title", title)
            batch.add(Item(titled.identity, rows=(row,)))
            batch.keep(lane.address, replace(lane, title=title))


def _channel(one: Incoming) -> str:
    return one.channel if isinstance(one, Moved | Unreadable) else one.address.channel
