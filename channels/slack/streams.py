"""Texts that grow by themselves at Slack, while an agent's words flow.

A stream is a message to which text can only be added. It shows neither a button nor what goes on,
so it lasts while words come: when they stop for some seconds, or when Slack would end it, it
becomes a message like any other. In a channel only one person would see it grow, so by default
streams are for threads of direct messages. Where Slack refuses one, everything is shown by edits.
It must not know what comes after a stream has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from channels.slack.fields import Json, Malformed, needed
from channels.slack.text import escape
from core.channel import (
    Forbidden,
    FormatRefused,
    MessageGone,
    RateLimited,
    Refused,
    SendError,
    Stream,
    Uncertain,
)
from core.clock import Clock
from core.messages import Address

log = logging.getLogger(__name__)

TEXT_MOST = 11_000  # characters of the wire; Slack takes 12,000 of them
LIFE = 230.0  # seconds; Slack ends a stream after five minutes, and leaves it broken
QUIET = 8.0  # seconds without a word after which people want to see what goes on
WAIT_MORE = 5.0  # seconds for the first words, after which what goes on is shown without one
STARTS, START_RATE = 6.0, 0.2  # at once, and a second: Slack takes 20 starts and ends a minute
OPEN_MOST = 15  # so many may have to end in the same minute
APPENDS, APPEND_RATE = 10.0, 1.4  # Slack takes 100 a minute, all threads together
REFUSED_FOR = 3600.0  # seconds after which it is tried again
END_TIME = 2.0  # seconds for the ends of all streams when the gateway stops
_KEPT = 500
_NOT_STREAMING = "message_not_in_streaming_state"
_THIS_PLACE = ("not_in_channel", "channel_not_found")  # says nothing about others
CONFLICT = "streaming_state_conflict"

Call = Callable[..., Coroutine[Any, Any, Json]]


class Where(StrEnum):
    """In which threads a growing text is streamed."""

    OFF = "off"
    DIRECT = "direct"
    EVERYWHERE = "everywhere"


@dataclass(slots=True, eq=False)
class _Open:
    """A stream that is running. ``sent`` is its text as Slack has it."""

    chat: str
    nonce: str
    sent: str
    began: float
    grew: float
    doubtful: bool = False  # what was added last may or may not be there


@dataclass(slots=True)
class _Bucket:
    """So many calls at once, and so many a second after that."""

    most: float
    rate: float
    at: float
    left: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.most

    def take(self, now: float) -> bool:
        self.left = min(self.most, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


class Streams:
    """``call`` makes one call of the Web API; ``mark`` is the metadata of a nonce's message."""

    def __init__(
        self, call: Call, mark: Callable[[str], Json], team: Callable[[], str], clock: Clock,
        where: Where,
    ) -> None:  # fmt: skip
        self._call = call
        self._mark = mark
        self._team = team
        self._clock = clock
        self._where = where
        self._open: dict[str, _Open] = {}  # by message
        self._known: OrderedDict[str, None] = OrderedDict()  # messages that are or were streams
        self._waiting: OrderedDict[str, float] = OrderedDict()  # nonces without a word, since when
        self._refused: dict[bool, float] = {}  # of direct chats or not, until when
        now = clock.monotonic()
        self._starts = _Bucket(STARTS, START_RATE, now)
        self._appends = _Bucket(APPENDS, APPEND_RATE, now)

    def takes(self, action: Stream) -> bool:
        """Whether a message that is still to be made can be a stream, once there are words."""
        address, direct = action.address, _direct(action.address)
        allowed = self._where is Where.EVERYWHERE or (direct and self._where is Where.DIRECT)
        if not (allowed and address.thread) or not (direct or self._recipient(action)):
            return False
        if self._refused.get(direct, 0.0) > self._clock.monotonic():
            return False
        return len(escape(action.text)) <= TEXT_MOST and len(self._open) < OPEN_MOST

    def waits(self, action: Stream) -> bool:
        """Whether the first words are worth waiting for a little longer."""
        now = self._clock.monotonic()
        since = self._waiting.setdefault(action.nonce, now)
        if len(self._waiting) > _KEPT:
            self._waiting.popitem(last=False)
        return now - since < WAIT_MORE

    async def start(self, action: Stream) -> str:
        """The new message's id; empty: it cannot be a stream. Raises NotSent and Uncertain."""
        now = self._clock.monotonic()
        if not self._starts.take(now):
            return ""
        text, direct = escape(action.text), _direct(action.address)
        whose = {} if direct else {
            "recipient_user_id": self._recipient(action), "recipient_team_id": self._team(),
        }  # fmt: skip
        try:
            made = await self._call(
                "chat.startStream",
                channel=action.address.chat,
                thread_ts=action.address.thread,
                markdown_text=text,
                **whose,
            )
            message_id = needed(made, "ts")
        except Malformed as caught:
            raise Uncertain(f"chat.startStream: {caught}") from None
        except (RateLimited, FormatRefused, MessageGone):
            return ""
        except (Refused, Forbidden) as error:
            if str(error).startswith(_THIS_PLACE):
                return ""
            kind = "direct messages" if direct else "channels"
            log.info("slack: texts in %s are shown by edits, not streamed: %s", kind, error)
            self._refused[direct] = now + REFUSED_FOR
            return ""
        self._open[message_id] = _Open(action.address.chat, action.nonce, text, now, now)
        self._know(message_id)
        return message_id

    async def grow(self, action: Stream) -> bool:
        """Add what is new. False: it is no stream (any more), or should end now."""
        one = self._open.get(action.message_id)
        if one is None:
            return False
        now, text = self._clock.monotonic(), escape(action.text)
        over = one.doubtful or now - one.began > LIFE or not text.startswith(one.sent)
        if over or len(text) > TEXT_MOST:
            return False
        new = text[len(one.sent) :]
        if not new.strip():
            return now - one.grew < QUIET
        if not self._appends.take(now):
            return True  # the next one adds it
        try:
            await self._call(
                "chat.appendStream", channel=one.chat, ts=action.message_id, markdown_text=new
            )
        except RateLimited:
            raise
        except SendError as error:
            one.doubtful = True
            if isinstance(error, Uncertain | MessageGone):
                raise
            log.debug("slack: nothing can be added to a stream: %s", error)
            return False
        except asyncio.CancelledError:
            one.doubtful = True
            raise
        one.sent, one.grew = text, now
        return True

    async def end(self, message_id: str) -> None:
        """End the stream of a message, if it is one that runs. Raises SendError."""
        if one := self._open.get(message_id):
            await self.stop(one.chat, message_id, one.nonce)

    async def stop(self, chat: str, message_id: str, nonce: str) -> None:
        """End a stream, of this process or an earlier one; it may have ended by itself."""
        self._know(message_id)
        try:
            await self._call(
                "chat.stopStream", channel=chat, ts=message_id, metadata=self._mark(nonce)
            )
        except (Refused, Forbidden, FormatRefused) as error:
            if str(error) != _NOT_STREAMING:
                log.info("slack: a stream could not be ended: %s", error)
        except MessageGone:
            self._open.pop(message_id, None)
            raise
        self._open.pop(message_id, None)

    def forget(self, message_id: str) -> None:
        """The message is gone."""
        self._open.pop(message_id, None)

    def was(self, message_id: str) -> bool:
        """Whether this message is known to be or have been a stream."""
        return message_id in self._known

    async def close(self) -> None:
        """End what runs; the messages are finished by the next process."""
        try:
            async with asyncio.timeout(END_TIME):
                for message_id in [*self._open]:
                    try:
                        await self.end(message_id)
                    except SendError as error:
                        log.debug("slack: a stream was left running: %s", error)
        except TimeoutError:
            log.debug("slack: %d streams were left running", len(self._open))

    def _know(self, message_id: str) -> None:
        self._known[message_id] = None
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)

    @staticmethod
    def _recipient(action: Stream) -> str:
        channel, _, user = action.person.partition(":")
        return user if channel == "slack" else ""


def _direct(address: Address) -> bool:
    return address.chat.startswith("D")
