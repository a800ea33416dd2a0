"""What is known of servers, channels and threads: kinds, parents, names, our own roles.

Filled from what the gateway tells; small values, never the platform's whole objects. It must not
call anything, nor know who may talk where.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeVar

from channels.discord.content import snowflake
from channels.fields import Json, Malformed, integer, maybe, objects, string

THREADS_KEPT = 5000
GONE_KEPT = 1000
DENIED_KEPT = 1000

T = TypeVar("T")


class Kind(IntEnum):
    """The kinds of channel that matter here, by Discord's numbers."""

    TEXT = 0
    DIRECT = 1
    NEWS = 5
    NEWS_THREAD = 10
    THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15
    MEDIA = 16


THREADS = frozenset({Kind.NEWS_THREAD, Kind.THREAD, Kind.PRIVATE_THREAD})
POSTS = frozenset({Kind.FORUM, Kind.MEDIA})
OPENS_THREADS = frozenset({Kind.TEXT, Kind.NEWS})


@dataclass(frozen=True, slots=True)
class Spot:
    """A channel or thread. ``guild`` is empty for direct messages, ``parent`` but for threads."""

    id: str
    kind: int
    guild: str = ""
    parent: str = ""
    name: str = ""
    last: int = -1  # its newest message; 0: it has none; -1: Discord did not say

    @property
    def is_thread(self) -> bool:
        return self.kind in THREADS

    @property
    def direct(self) -> bool:
        return self.kind == Kind.DIRECT


def spot_of(channel: Json, guild: str = "") -> Spot:
    """A channel object of Discord. Raises Malformed."""
    kind = integer(channel, "type")
    parent = string(channel, "parent_id") if kind in THREADS else ""
    if kind in THREADS and not parent:
        raise Malformed("a thread without a parent")
    last = string(channel, "last_message_id") or "0"
    return Spot(
        snowflake(channel, "id"),
        kind,
        string(channel, "guild_id") or guild,
        parent,
        string(channel, "name"),
        int(last) if "last_message_id" in channel and last.isdecimal() else -1,
    )


class Places:
    """Everything the bot can see, as the last events said."""

    def __init__(self) -> None:
        self._channels: dict[str, Spot] = {}
        self._threads: OrderedDict[str, Spot] = OrderedDict()
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._denied: OrderedDict[str, float] = OrderedDict()
        self._roles: dict[str, dict[str, str]] = {}  # of a guild: id to name
        self._our_role: dict[str, str] = {}

    def get(self, channel: str) -> Spot | None:
        """What is known of a channel or thread."""
        return self._channels.get(channel) or self._threads.get(channel)

    def was_deleted(self, thread: str) -> bool:
        """Whether Discord said that a thread is gone."""
        return thread in self._gone

    def role_name(self, guild: str, role: str) -> str:
        return self._roles.get(guild, {}).get(role, "")

    def our_role(self, guild: str) -> str:
        """The role that Discord made for the bot; mentioning it mentions us."""
        return self._our_role.get(guild, "")

    # --- what is told ---

    def put(self, spot: Spot) -> Spot | None:
        """Keep a channel or thread; what was known of it before."""
        before = self.get(spot.id)
        self._denied.pop(spot.id, None)
        if spot.is_thread:
            self._gone.pop(spot.id, None)
            if before is not None and not spot.guild:
                spot = replace(spot, guild=before.guild)
            _keep(self._threads, spot.id, spot, THREADS_KEPT)
        else:
            self._channels[spot.id] = spot
        return before

    def remove(self, channel: str) -> None:
        """A channel or thread was deleted; with a channel go its threads."""
        if self._channels.pop(channel, None) is not None:
            inside = [one.id for one in self._threads.values() if one.parent == channel]
        else:
            inside = [channel]
        for thread in inside:
            self._threads.pop(thread, None)
            _keep(self._gone, thread, None, GONE_KEPT)

    def deny(self, channel: str, until: float) -> None:
        """Discord shows us nothing of it; no further asking until then (seconds, monotonic)."""
        _keep(self._denied, channel, until, DENIED_KEPT)

    def denied(self, channel: str, now: float) -> bool:
        return self._denied.get(channel, 0.0) > now

    def server(self, guild: Json, me: str) -> None:
        """All of a server, as it is told after each new session. Raises Malformed."""
        number = snowflake(guild, "id")
        self.leave(number)
        for one in (*objects(guild, "channels"), *objects(guild, "threads")):
            try:
                self.put(spot_of(one, number))
            except Malformed:
                continue  # a kind that is not there yet; asked for when somebody writes in it
        for role in objects(guild, "roles"):
            self.role(number, role, me)

    def leave(self, guild: str) -> None:
        """The bot is not in a server any more, or it is told anew."""
        for known in (self._channels, self._threads):
            for one in [spot.id for spot in known.values() if spot.guild == guild]:
                del known[one]
        self._roles.pop(guild, None)
        self._our_role.pop(guild, None)

    def role(self, guild: str, role: Json, me: str) -> None:
        """A role was made or changed."""
        number = snowflake(role, "id")
        self._roles.setdefault(guild, {})[number] = string(role, "name")
        tags = maybe(role, "tags")
        if tags is not None and string(tags, "bot_id") == me:
            self._our_role[guild] = number


def _keep(kept: OrderedDict[str, T], key: str, value: T, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
