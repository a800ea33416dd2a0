"""What was said in a thread, read back for the agent that works there.

The store knows what was said to the gateway and what was answered. Where the platform can tell what
else was said in the thread, it is asked; which of the two it is stands above the messages. It must
not know who reads it, or how a platform reads its threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from core.channel import Channel, Recall, Said, SendError
from core.messages import Address
from core.store import reads
from core.store.store import Reader
from core.turns import Turn

log = logging.getLogger("laneway.tools")

PATIENCE = 8.0  # seconds the platform has to answer
EACH_MOST = 2_000  # characters of each message
NOTHING = "Nothing was said here before."
ALL = "Read from the thread itself, and from what is stored here of your own answers:"
DIRECT = "What is stored here of this chat:"
STORED = (
    "Only what is stored here: what was said to you and what you answered. What people said in this"
    " thread among themselves is not in it:"
)
UNTOLD = (
    "The platform could not be asked for the whole thread just now, so this is only what is stored"
    " here:"
)


@dataclass(frozen=True, slots=True)
class _Line:
    at: int  # ms
    text: str


async def read_back(
    store: Reader, channel_of: Callable[[str], Channel], turn: Turn, limit: int
) -> str:
    """The newest messages, oldest first, without those of the running turn."""
    lane = await reads.lane(store, turn.lane)
    said = await reads.messages_of_lane(store, turn.lane, limit)
    over = await reads.turns_of(store, turn.lane, limit)
    own = {one.message_id for one in await reads.messages_of(store, [turn.id])}
    lines = [
        _Line(one.at, f"{one.person_name or one.person}: {one.text}")
        for one in reversed(said)
        if one.turn != turn.id and one.text.strip()
    ]
    lines += [_Line(one.ended_at or 0, f"agent: {one.answer}") for one in over[::-1] if one.answer]
    channel = channel_of(turn.lane)
    if lane is None or not lane.address.thread or not channel.limits.recalls:
        return _told(lines, limit, DIRECT if lane is None or lane.direct else STORED)
    known = own | {one.message_id for one in said}
    recalled = await _recalled(channel, lane.address, limit)
    if recalled is None:
        return _told(lines, limit, UNTOLD)
    return _told([*lines, *_unknown(recalled, known)], limit, ALL)


async def _recalled(channel: Channel, address: Address, limit: int) -> Sequence[Said] | None:
    try:
        async with asyncio.timeout(PATIENCE):
            return (await channel.do(Recall(address, "", limit))).said
    except (SendError, TimeoutError) as fault:
        log.info("what was said in %s cannot be read: %s", address, fault)
        return None


def _unknown(recalled: Sequence[Said], known: Collection[str]) -> list[_Line]:
    return [
        _Line(one.at, f"{' '.join(one.author.split())}: {one.text}")
        for one in recalled
        if one.message_id not in known and one.text.strip()
    ]


def _told(lines: Sequence[_Line], limit: int, head: str) -> str:
    newest = sorted(lines, key=lambda line: line.at)[-limit:]
    shown = [f"[{_when(line.at)}] {_short(line.text)}" for line in newest]
    return "\n\n".join(filter(None, (head, *(shown or [NOTHING]))))


def _when(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _short(text: str) -> str:
    return text if len(text) <= EACH_MOST else f"{text[:EACH_MOST]}… ({len(text)} characters)"
