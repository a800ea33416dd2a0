"""What is not a message: typing, reactions, a thread's name. Small limits, little harm when late.

It must not know what the signs are about.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from channels.discord.errors import ARCHIVED, UNKNOWN_CHANNEL, UNKNOWN_EMOJI, ApiError, translate
from channels.discord.rest import Rest
from channels.discord.threads import Target, Threads
from core.channel import Forbidden, RateLimited, React
from core.messages import Receipt

RENAMES, RENAME_WINDOW = 2, 600.0  # Discord's own limit, which no header tells
SOON = 2.0  # seconds a reaction's second half waits for its turn
NO_RIGHT_FOR = 600.0  # seconds in which a refused sign is not tried again
KEPT = 2000
_TOO_MANY_REACTIONS = 30010


class Signs:
    def __init__(self, rest: Rest, threads: Threads, receipts: Mapping[Receipt, str]) -> None:
        self._rest = rest
        self._threads = threads
        self._receipts = receipts
        self._standing: OrderedDict[tuple[str, str], str] = OrderedDict()  # our reaction there
        self._refused: dict[tuple[str, str], float] = {}
        self._renamed: OrderedDict[str, deque[float]] = OrderedDict()

    async def typing(self, target: Target) -> None:
        """The typing sign, for ten seconds or until the next message."""
        await self._allowed(
            "typing", target.channel, lambda: self._rest.send_typing(target.channel)
        )

    async def react(self, action: React) -> None:
        """Exactly the reaction of this receipt stands there from us afterwards."""
        number = action.message_id
        if not number.isdecimal():
            return
        channel = self._threads.home_of(action.address, number)
        wanted = self._receipts.get(action.receipt, "")
        key = (channel, number)
        known = self._standing.get(key)
        if wanted and wanted != known:
            await self._sign(channel, partial(self._rest.add_reaction, *key, wanted))
            self._keep(key, wanted)
        # After a restart it is not known which of ours stands there.
        before = [known] if known is not None else [one for one in self._receipts.values() if one]
        if known is None and wanted:
            before = []
        for one in before:
            if one and one != wanted:
                await self._sign(channel, partial(self._rest.remove_own_reaction, *key, one))
        if not wanted:
            self._keep(key, "")

    async def rename(self, thread: str, title: str) -> None:
        """A thread's name. Raises RateLimited before Discord would hold the call for minutes."""
        now = self._rest.clock.monotonic()
        times = self._renamed.setdefault(thread, deque())
        self._renamed.move_to_end(thread)
        if len(self._renamed) > KEPT:
            self._renamed.popitem(last=False)
        while times and times[0] <= now - RENAME_WINDOW:
            times.popleft()
        if len(times) >= RENAMES:
            raise RateLimited(times[0] + RENAME_WINDOW - now)
        times.append(now)
        await self._rest.edit_channel(thread, name=title)

    def _keep(self, key: tuple[str, str], sign: str) -> None:
        self._standing[key] = sign
        self._standing.move_to_end(key)
        if len(self._standing) > KEPT:
            self._standing.popitem(last=False)

    async def _sign(self, channel: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """One reaction more or less; its limit is so small that the next one waits for it."""
        try:
            try:
                await self._allowed("reaction", channel, call)
            except RateLimited as limited:
                if limited.everywhere or limited.retry_after > SOON:
                    raise
                await self._rest.clock.sleep(limited.retry_after)
                await self._allowed("reaction", channel, call)
        except ApiError as error:
            if error.code not in (UNKNOWN_EMOJI, _TOO_MANY_REACTIONS, ARCHIVED, UNKNOWN_CHANNEL):
                raise translate(error, thread=True) from None

    async def _allowed(
        self, kind: str, channel: str, call: Callable[[], Coroutine[Any, Any, Any]]
    ) -> None:
        """Signs come often: where they are refused, that is remembered instead of asked again."""
        now = self._rest.clock.monotonic()
        if self._refused.get((kind, channel), 0.0) > now:
            raise Forbidden(f"the bot lacks the right to show a {kind} sign here")
        try:
            await call()
        except ApiError as error:
            if error.status == 403:
                self._refused = {k: until for k, until in self._refused.items() if until > now}
                self._refused[(kind, channel)] = now + NO_RIGHT_FOR
            raise
