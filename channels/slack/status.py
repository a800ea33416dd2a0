"""The line "… is working" that Slack shows in a thread until a message comes.

An uncleared status of an assistant thread keeps a person from writing, so every message clears it
and no setting of it may land after that. Once a preview stands in the thread there is no need of
it. It must not know what is being worked on.
"""

from __future__ import annotations

import asyncio

from channels.slack.small import SmallTasks
from channels.slack.web import Web
from core.channel import Done, RateLimited, SendError, Uncertain
from core.clock import Clock
from core.messages import Address

WORKING = "is working on it…"
AGAIN_AFTER = 60.0  # seconds; Slack takes it away after two minutes
SETTLE_TIME = 2.0  # seconds a setting under way is waited for before a message
_KEPT = 500


class Status:
    """``small`` owns the settings under way: the caller may be cancelled, they may not."""

    def __init__(self, web: Web, small: SmallTasks, clock: Clock) -> None:
        self._web = web
        self._small = small
        self._clock = clock
        self._shown: dict[Address, float] = {}  # since when
        self._previews: dict[Address, None] = {}  # where what stands last is a preview
        self._setting: dict[Address, asyncio.Task[None]] = {}
        self._refused: set[bool] = set()  # kinds of chats (direct or not) where there is none

    async def show(self, address: Address) -> Done:
        """Show it; where Slack has none, nothing happens."""
        direct, now = address.chat.startswith("D"), self._clock.monotonic()
        if not address.thread or direct in self._refused or address in self._previews:
            return Done()
        if address in self._setting or now - self._shown.get(address, -AGAIN_AFTER) < AGAIN_AFTER:
            return Done()
        self._shown[address] = now
        if len(self._shown) > _KEPT:
            del self._shown[next(iter(self._shown))]
        task = self._small.start(self._set(address, direct), "slack status")
        self._setting[address] = task
        task.add_done_callback(lambda _: self._setting.pop(address, None))
        await asyncio.shield(task)
        return Done()

    async def settle(self, address: Address) -> None:
        """Wait for a setting under way, so that it cannot land after what comes now."""
        if task := self._setting.get(address):
            await asyncio.wait({task}, timeout=SETTLE_TIME)

    async def clear(self, address: Address) -> None:
        """Take it away, if it may be there: an edit does not."""
        await self.settle(address)
        if address in self._shown:
            self._shown.pop(address, None)
            await self._call(address, "")

    def written(self, address: Address, preview: bool) -> None:
        """A message stands there now; a new one took the status away, at Slack itself."""
        self._shown.pop(address, None)
        self._previews.pop(address, None)
        if preview:
            self._previews[address] = None
            if len(self._previews) > _KEPT:
                del self._previews[next(iter(self._previews))]

    def forget(self, address: Address) -> None:
        """Take away what an earlier process may have left."""
        self._small.start(self._call(address, ""), "slack status of before")

    async def _set(self, address: Address, direct: bool) -> None:
        try:
            await self._web.call(
                "assistant.threads.setStatus",
                channel_id=address.chat,
                thread_ts=address.thread,
                status=WORKING,
            )
        except (RateLimited, Uncertain):
            return
        except SendError:
            self._refused.add(direct)
            self._shown.pop(address, None)

    async def _call(self, address: Address, status: str) -> None:
        try:
            await self._web.call(
                "assistant.threads.setStatus",
                channel_id=address.chat,
                thread_ts=address.thread,
                status=status,
            )
        except SendError:
            return  # it ends by itself after two minutes
