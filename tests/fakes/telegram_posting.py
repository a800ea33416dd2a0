"""The fake Telegram's other way to deliver: it posts updates to the address of setWebhook.

As the real one does: the updates of one chat (or of one person's presses) one after the other,
as many at once as ``max_connections`` says; what is not answered with 2xx is posted again.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import aiohttp

from tests.fakes.telegram_rules import Json
from tests.fakes.telegram_world import World, number_of

SECRET = "X-Telegram-Bot-Api-Secret-Token"
SPEED = 100.0  # how many times quicker than the real one it comes again


@dataclass
class Posted:
    """One post, and how it was answered; 0: not at all."""

    update: object
    status: int
    again_after: str = ""
    at: float = field(default_factory=time.monotonic)


class Posting:
    """Runs while the server does."""

    def __init__(self, world: World) -> None:
        self.posts: list[Posted] = []
        self._world = world
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="fake telegram posts")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        under_way: dict[str, asyncio.Task[None]] = {}
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            while True:
                await self._world.came.wait()
                self._world.came.clear()
                if not self._world.webhook:
                    continue
                for update in self._world.waiting(None, 1000):
                    queue = _queue(update)
                    most = self._world.webhook_at_once
                    if queue in under_way or len(under_way) >= most:
                        continue
                    post = group.create_task(self._post(session, update))
                    under_way[queue] = post

                    def over(_: object, queue: str = queue) -> None:
                        under_way.pop(queue, None)
                        self._world.came.set()

                    post.add_done_callback(over)

    async def _post(self, session: aiohttp.ClientSession, update: object) -> None:
        world = self._world
        headers = {SECRET: world.webhook_secret} if world.webhook_secret else {}
        try:
            async with session.post(world.webhook, json=update, headers=headers) as answer:
                status, again = answer.status, answer.headers.get("Retry-After", "")
                why = f"Wrong response from the webhook: {status} {answer.reason}"
        except (aiohttp.ClientError, OSError) as error:
            status, again, why = 0, "", f"Connection failed: {error}"
        self.posts.append(Posted(update, status, again))
        if 200 <= status < 300:
            if update in world.updates:
                world.updates.remove(update)
            return
        world.webhook_error = {
            "last_error_date": int(time.time()),
            "last_error_message": why,
        }
        await asyncio.sleep((float(again) if again.isdecimal() else 5.0) / SPEED)


def _queue(update: object) -> str:
    """Whose updates wait for each other."""
    if isinstance(update, dict):
        for kind in ("message", "edited_message"):
            content = update.get(kind)
            if isinstance(content, dict) and isinstance(content.get("chat"), dict):
                return f"chat {content['chat'].get('id')}"
        query: Json = update.get("callback_query") or {}
        if isinstance(query.get("from"), dict):
            return f"person {query['from'].get('id')}"
    return f"update {number_of(update)}"
