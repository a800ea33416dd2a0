"""Where an event is from: known from what the gateway told, or asked of Discord.

Nothing is taken for a direct message because a field is missing: a direct message is let in where
a server's channel is not. It must not know what is said there.
"""

from __future__ import annotations

import logging
from collections import OrderedDict

from channels.discord.content import snowflake
from channels.discord.errors import ApiError, translate
from channels.discord.places import Kind, Places, Spot, spot_of
from channels.discord.rest import Rest
from channels.fields import Json, Malformed, as_object, maybe, maybe_integer, string
from core.channel import SendError

log = logging.getLogger(__name__)

RESOLVE_AGAIN, DENIED_FOR = (1.0, 2.0, 4.0, 8.0), 300.0
DIRECTS_KEPT = 1000


class Spots:
    """``directs`` are the direct chats in which something was said, the last one last."""

    def __init__(self, rest: Rest, places: Places, directs: OrderedDict[str, None]) -> None:
        self._rest = rest
        self._places = places
        self._directs = directs

    def known(self, event: Json) -> Spot | None:
        """The spot of an event as far as it is clear at once. Raises Malformed."""
        channel = snowflake(event, "channel_id")
        if (spot := self._places.get(channel)) is not None:
            return spot
        if string(event, "guild_id"):
            return None
        if channel in self._directs or _kind(event) == Kind.DIRECT:
            return self._direct(channel)
        return None

    async def asked(self, event: Json) -> Spot | None:
        """The spot of any event; None where Discord shows the bot nothing. Raises SendError."""
        if (spot := self.known(event)) is not None:
            return spot
        channel = snowflake(event, "channel_id")
        if string(event, "guild_id"):
            return await self._fetched(channel, RESOLVE_AGAIN)
        try:
            spot = await self._fetched(channel, ())
        except SendError as error:
            log.info("discord: channel %s names no server and cannot be asked: %s", channel, error)
            spot = None
        if spot is not None and not spot.direct:
            return spot
        # Discord names the server of whatever is said in one.
        return self._direct(channel) if _kind(event) in (None, Kind.DIRECT) else None

    def _direct(self, channel: str) -> Spot:
        self._directs[channel] = None
        self._directs.move_to_end(channel)
        if len(self._directs) > DIRECTS_KEPT:
            self._directs.popitem(last=False)
        return Spot(channel, Kind.DIRECT)

    async def _fetched(self, channel: str, pauses: tuple[float, ...]) -> Spot | None:
        places, clock = self._places, self._rest.clock
        if places.denied(channel, clock.monotonic()):
            return None
        for pause in (*pauses, None):
            try:
                answer = await self._rest.patient(lambda: self._rest.get_channel(channel))
                spot = spot_of(as_object(answer, "channel"))
                if not spot.direct:
                    places.put(spot)
                return spot
            except (ApiError, Malformed) as error:
                if isinstance(error, Malformed) or error.status < 500:
                    log.info("discord: channel %s is not shown to the bot: %s", channel, error)
                    places.deny(channel, clock.monotonic() + DENIED_FOR)
                    return None
                if pause is None:
                    raise translate(error) from None
            except SendError:
                if pause is None:
                    raise
            await clock.sleep(pause)
        return None


def _kind(event: Json) -> int | None:
    """The kind of the event's channel, where it is said."""
    channel = maybe(event, "channel")
    told = maybe_integer(event, "channel_type")
    return told if told is not None or channel is None else maybe_integer(channel, "type")
