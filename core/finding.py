"""Sends that may have arrived: when one may be repeated, and asking the platform whether it did.

It must not know what is sent, nor what follows from the answer.
"""

from __future__ import annotations

from core.calls import Calls, Place
from core.channel import ChannelLimits, Find

NONCE_TIME = 120.0  # seconds for which a platform is trusted to know a repetition
FIND_AFTER = 3.0  # seconds a request that nobody waits for any more has to arrive
CLOCKS_APART = 60_000  # ms by which the platform's clock may be behind ours
PREVIEW_NONCE = "p."  # and the number of its record


def nonce_of(delivery: int, created_at: int, preview: bool = False) -> str:
    """The same for every try, in this process and the next; short enough for every platform."""
    return f"{PREVIEW_NONCE if preview else ''}{delivery:x}.{created_at:x}"


def delivery_of(nonce: str) -> int | None:
    """The number of the delivery, or of the preview's record, that a send was made for."""
    number = nonce.removeprefix(PREVIEW_NONCE).partition(".")[0]
    return int(number, 16) if number else None


def repeatable(limits: ChannelLimits, age: float) -> bool:
    """Whether a send whose first try is ``age`` seconds old makes no second message if repeated."""
    return limits.idempotent_sends and 0 <= age < NONCE_TIME


async def found(
    calls: Calls, place: Place, nonce: str, created_at: int, streamed: bool = False
) -> str:
    """The id of the message that came of it; empty: none did. Raises SendError."""
    find = Find(place.address, nonce, created_at - CLOCKS_APART, streamed)
    return (await calls.do(place.channel, find)).message_id
