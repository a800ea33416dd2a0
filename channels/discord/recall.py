"""What was said in a thread before somebody called us into it.

It must not know what the words are used for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from channels.discord.content import Me, snowflake, time_of
from channels.discord.errors import ApiError, translate
from channels.discord.events import Reading, read_message
from channels.discord.places import Kind, Places, Spot
from channels.discord.rest import Rest
from channels.fields import Json, Malformed, maybe, string
from core.channel import NotSent, Recall, Said
from core.messages import Address

log = logging.getLogger(__name__)


class Recalling:
    """``me``: who we are, once Discord has told."""

    def __init__(self, rest: Rest, places: Places, me: Callable[[], Me | None]) -> None:
        self._rest = rest
        self._places = places
        self._me = me

    async def before(self, action: Recall) -> tuple[Said, ...]:
        """How the thread began, and what was said last before the message. Raises SendError."""
        me, address = self._me(), action.address
        if me is None:
            raise NotSent("Discord has not told yet who we are")
        try:
            found = await self._rest.logs_from(
                address.thread, action.most, before=action.before or None
            )
        except ApiError as error:
            raise translate(error, thread=True) from None
        last = sorted(
            ({**one} for one in found if str(one.get("id", "")).isdecimal()),
            key=lambda one: int(str(one["id"])),
        )
        root: Json | None = None
        if not any(one["id"] == address.thread for one in last):
            root = await self._root(address)
        reading = Reading(me, self._places, auto_thread=False)
        spot = self._places.get(address.thread) or Spot(
            address.thread, Kind.THREAD, parent=address.chat
        )
        told = [_said(one, spot, reading, ours=one["id"] == address.thread) for one in last]
        first = _said(root, spot, reading, ours=True) if root is not None else None
        return tuple(one for one in (first, *told) if one is not None)

    async def _root(self, address: Address) -> Json | None:
        """The thread's first message: of a channel's message it has the id, and stands there."""
        for channel in (address.thread, address.chat):
            try:
                root: object = await self._rest.get_message(channel, address.thread)
            except ApiError:
                continue  # not there, or not for us
            if isinstance(root, dict):
                return root
        return None


def _said(raw: Json, spot: Spot, reading: Reading, ours: bool = False) -> Said | None:
    try:
        number = snowflake(raw, "id")
        at = time_of(int(number))
        one = read_message(raw, spot, reading)
        if one is None:
            author = maybe(raw, "author") or {}
            mine = ours and string(author, "id") == reading.me.id
            words = string(raw, "content") if mine else ""
            return Said("you", words, number, at) if words else None
    except Malformed as error:
        log.debug("discord: a message of a thread cannot be read: %s", error)
        return None
    files = [f"[file {file.name}]" for file in one.files]
    quote = one.quote.text if one.quote is not None and one.quote.forwarded else ""
    text = "\n".join(filter(None, (one.text, quote, *files)))
    return Said(one.sender_name, text, number, at) if text else None
