"""What was said in a thread before an agent was called into it: context for its first turn there.

Asked of the platform once, when a conversation begins in the middle of a thread; without an answer
in time the turn runs without. It must not know engines, or how a platform reads its threads.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence

from core.channel import Channel, Recall, Said, SendError
from core.messages import Address

log = logging.getLogger("laneway.turn")

MOST = 10  # messages, beside the one that began the thread
PATIENCE = 8.0  # seconds; a person waits for this
FIRST_MOST, EACH_MOST = 3000, 1000  # characters of the message that began it, and of each other
_HEAD = (
    "[This thread had begun before you were called into it; "
    "what follows after > was said there, for context]"
)
_BLANKS = re.compile(r"\s+")


async def said_before(channel: Channel, address: Address, message_id: str) -> str:
    """The words for a prompt; empty where nothing was said, or nothing can be known."""
    begins = not address.thread or address.thread == message_id or not message_id
    if begins or not channel.limits.recalls:
        return ""
    try:
        async with asyncio.timeout(PATIENCE):
            done = await channel.do(Recall(address, message_id, MOST))
    except (SendError, TimeoutError) as fault:
        log.info("what was said before in %s is not known: %s", address, fault)
        return ""
    return quotation(done.said)


def quotation(said: Sequence[Said]) -> str:
    """Marked as quoted, each with its author. Pure."""
    lines: list[str] = []
    for number, one in enumerate(said):
        text = one.text.strip()
        most = EACH_MOST if number else FIRST_MOST
        text = text if len(text) <= most else text[: most - 1] + "…"
        author = _BLANKS.sub(" ", one.author).strip()[:80]
        lines += [f"> {line}" for line in f"{author}: {text}".splitlines()]
    return "\n".join((_HEAD, *lines)) if lines else ""
