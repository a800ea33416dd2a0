"""Threads that begin with a message: known before they are there, opened when first written to.

Discord gives a thread the id of the message it begins with, so a lane has its address while nobody
has spent a call on it. It must not know what is written, nor to whom.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from channels.discord.content import thread_name, time_of
from channels.discord.errors import (
    ARCHIVED,
    NO_ACCESS,
    NO_RIGHT,
    THREAD_EXISTS,
    THREADS_AT_MOST,
    UNKNOWN_CHANNEL,
    UNKNOWN_MESSAGE,
    WRONG_KIND,
    ApiError,
    translate,
)
from channels.discord.places import POSTS, Kind, Places, Spot
from channels.discord.rest import Rest
from channels.fields import Malformed, as_object, string
from core.channel import ThreadGone
from core.messages import Address

log = logging.getLogger(__name__)

ARCHIVE_AFTER: Final = 1440  # minutes of silence
PENDING_KEPT = 1000
STUCK_KEPT = 1000
FLAT_FOR = 1800.0  # seconds after which the right to open threads is tried again
BEGUN_WITHIN = 24 * 3600 * 1000  # ms: an older message begins no thread after a restart
_CANNOT = {NO_ACCESS, NO_RIGHT, WRONG_KIND, THREADS_AT_MOST}


@dataclass(slots=True)
class Pending:
    """A thread that is an address only."""

    name: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a call goes, and what it answers there when no thread could be opened."""

    channel: str
    reply_to: str = ""


class Threads:
    def __init__(self, rest: Rest, places: Places) -> None:
        self._rest = rest
        self._places = places
        self._pending: OrderedDict[str, Pending] = OrderedDict()
        self._stuck: OrderedDict[str, None] = OrderedDict()  # answered in the channel instead
        self._flat: dict[str, float] = {}  # channels without the right, until then
        self._told: set[str] = set()

    def begin(self, address: Address, text: str) -> None:
        """A message was accepted whose thread is not there yet."""
        if address.thread not in self._pending and self._places.get(address.thread) is None:
            self._pending[address.thread] = Pending(thread_name(text))
            if len(self._pending) > PENDING_KEPT:
                self._pending.popitem(last=False)

    def flat(self) -> frozenset[str]:
        """Channels in which messages are answered without a thread."""
        now = self._rest.clock.monotonic()
        self._flat = {channel: until for channel, until in self._flat.items() if until > now}
        return frozenset(self._flat)

    def rights_changed(self) -> None:
        """Somebody changed roles or channels: it may work now."""
        self._flat.clear()

    def is_there(self, address: Address) -> bool:
        """Whether a call may go to this address without opening anything."""
        return not address.thread or (
            address.thread not in self._pending and address.thread not in self._stuck
        )

    async def target(self, address: Address, name: str = "") -> Target:
        """Where to write, opening the thread if need be. Raises SendError."""
        if not address.thread:
            return Target(address.chat)
        if self._places.was_deleted(address.thread):
            raise ThreadGone("the thread was deleted")
        if (pending := self._pending.get(address.thread)) is not None:
            async with pending.lock:
                await self._open(address, name or pending.name)
        return self.target_now(address)

    def target_now(self, address: Address) -> Target:
        """Where to write as things stand."""
        if address.thread in self._stuck:
            return Target(address.chat, address.thread)
        return Target(address.thread or address.chat)

    async def mended(self, address: Address, error: ApiError) -> bool:
        """A call into a thread was refused: whether it may be made once more."""
        if error.code == ARCHIVED:
            return await self._wake(address.thread)
        return error.code == UNKNOWN_CHANNEL and await self._recover(address)

    async def _wake(self, thread: str) -> bool:
        """Sending wakes an archived thread by itself, changing a message does not."""
        try:
            await self._rest.edit_channel(thread, archived=False)
        except ApiError:
            return False  # it is locked
        return True

    async def _recover(self, address: Address) -> bool:
        """Discord does not know this thread: whether it could be opened, as after a restart."""
        thread = address.thread
        if not thread.isdecimal() or thread in self._stuck or self._places.was_deleted(thread):
            return False
        if self._places.get(thread) is not None:  # it was there in this life
            self._places.remove(thread)
            return False
        if time_of(int(thread)) < self._rest.now() - BEGUN_WITHIN:
            return False
        try:
            message = as_object(await self._rest.get_message(address.chat, thread), "the message")
            self.begin(address, string(message, "content"))
        except (ApiError, Malformed):
            return False
        return True

    async def _open(self, address: Address, name: str) -> None:
        if address.thread not in self._pending:
            return  # somebody else did, while we waited for it
        try:
            await self._rest.start_thread_with_message(
                address.chat, address.thread, name=name, auto_archive_duration=ARCHIVE_AFTER
            )
        except ApiError as error:
            if error.code == UNKNOWN_MESSAGE or error.code == UNKNOWN_CHANNEL:
                raise ThreadGone("the message that began this thread was deleted") from None
            if error.code != THREAD_EXISTS:
                if error.code not in _CANNOT and error.status != 403:
                    raise translate(error, thread=True) from None
                self._cannot(address, error)
        self._pending.pop(address.thread, None)
        self._opened(address, name)

    def _opened(self, address: Address, name: str) -> None:
        """What is said there may come before the news that the thread is there, or without it."""
        if address.thread not in self._stuck and self._places.get(address.thread) is None:
            parent = self._places.get(address.chat)
            guild = parent.guild if parent is not None else ""
            self._places.put(Spot(address.thread, Kind.THREAD, guild, address.chat, name))

    def _cannot(self, address: Address, error: ApiError) -> None:
        self._stuck[address.thread] = None
        if len(self._stuck) > STUCK_KEPT:
            self._stuck.popitem(last=False)
        self._flat[address.chat] = self._rest.clock.monotonic() + FLAT_FOR
        if address.chat not in self._told:
            self._told.add(address.chat)
            log.warning(
                "discord: no thread can be opened in channel %s (%s), so answers go into the"
                " channel itself; give the bot Create Public Threads and Send Messages in Threads",
                address.chat,
                error.said,
            )

    def kind(self, channel: str) -> int | None:
        """What sort of channel it is, as far as that is known."""
        spot = self._places.get(channel)
        return spot.kind if spot is not None else None

    def home_of(self, address: Address, message_id: str) -> str:
        """The channel in which a message of a lane stands: what began a thread is outside of it."""
        if address.thread in self._stuck or not address.thread:
            return address.chat
        if message_id == address.thread:
            parent = self._places.get(address.chat)
            if parent is None or parent.kind not in POSTS:
                return address.chat
        return address.thread
