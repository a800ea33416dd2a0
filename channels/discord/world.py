"""Keeps what is known of servers, channels and threads in step with the gateway's events.

It must not know what anybody says in them.
"""

from __future__ import annotations

from collections.abc import Iterator

from channels.discord.content import snowflake
from channels.discord.places import Places, spot_of
from channels.discord.threads import Threads
from channels.fields import Json, flag, obj, objects, string
from core.messages import Address, Titled, clean


class World:
    def __init__(self, places: Places, threads: Threads, me: str) -> None:
        self._places = places
        self._threads = threads
        self._me = me

    def changed(self, kind: str, event: Json, now: int) -> Iterator[Titled]:
        """Take an event in; yields a thread's new name. Raises Malformed."""
        match kind:
            case "GUILD_CREATE":
                if not flag(event, "unavailable"):
                    self._places.server(event, self._me)
                    self._threads.rights_changed()
            case "GUILD_DELETE":
                if not flag(event, "unavailable"):  # else it only cannot be reached for a while
                    self._places.leave(snowflake(event, "id"))
            case "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE":
                self._places.role(snowflake(event, "guild_id"), obj(event, "role"), self._me)
                self._threads.rights_changed()
            case "CHANNEL_CREATE" | "CHANNEL_UPDATE":
                self._put(event)
                self._threads.rights_changed()
            case "THREAD_CREATE":
                self._put(event)
            case "THREAD_UPDATE":
                yield from self._renamed(event, now)
            case "CHANNEL_DELETE" | "THREAD_DELETE":
                self._places.remove(snowflake(event, "id"))
            case "THREAD_LIST_SYNC":
                for thread in objects(event, "threads"):
                    self._put(thread, string(event, "guild_id"))

    def _put(self, channel: Json, guild: str = "") -> None:
        spot = spot_of(channel, guild)
        if not spot.direct:
            self._places.put(spot)

    def _renamed(self, event: Json, now: int) -> Iterator[Titled]:
        spot = spot_of(event)
        before = self._places.put(spot) if spot.is_thread else None
        if before is not None and spot.name and before.name != spot.name:
            address = Address("discord", spot.parent, spot.id)
            yield Titled(f"discord:{spot.id}:t{now}", address, clean(spot.name))
