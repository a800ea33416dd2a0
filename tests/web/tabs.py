"""A tab without a screen: the stream of events over a real connection, as the page reads it.

    async with Tab(browser, lane) as tab:
        await tab.until(lambda: tab.texts[-1:] == ["hello"])

``lanes`` and ``entries`` are what the page would show; ``told`` are all events in order. What
breaks the connection is the test's business: ``cut`` ends it in the middle.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import httpx

Json = dict[str, Any]
WITHIN = 20.0


class Tab:
    """One stream. Comes back by ``open`` after it was cut."""

    def __init__(self, browser: httpx.AsyncClient, lane: str = "") -> None:
        self.browser = browser
        self.lane = lane
        self.lanes: dict[str, Json] = {}
        self.entries: dict[str, Json] = {}
        self.house: Json = {}
        self.told: list[tuple[str, Json]] = []
        self.beats = 0
        self.status = 0
        self.over = asyncio.Event()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.cut()

    async def open(self) -> None:
        """Begin, and return once the whole state was told."""
        self.over.clear()
        before = len(self.told)
        self._task = asyncio.create_task(self._read(), name="tab")
        await self.until(lambda: len(self.told) > before or self.over.is_set())

    async def cut(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def until(self, true: Callable[[], object], within: float = WITHIN) -> None:
        """Wait until something is shown."""
        async with asyncio.timeout(within):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    @property
    def shown(self) -> list[Json]:
        """The entries of the thread in their order."""
        return sorted(self.entries.values(), key=lambda one: (one["at"], one["id"]))

    @property
    def texts(self) -> list[str]:
        return [text_of(one) for one in self.shown]

    @property
    def answers(self) -> list[str]:
        """What did not come from a person, in plain words."""
        return [text_of(one) for one in self.shown if not one["key"]]

    @property
    def state(self) -> str:
        """Of the lane it looks at."""
        return str(self.lanes.get(self.lane, {}).get("state", ""))

    async def _read(self) -> None:
        address = f"/api/events?lane={self.lane}" if self.lane else "/api/events"
        name = ""
        try:
            async with self.browser.stream("GET", address, timeout=None) as answer:
                self.status = answer.status_code
                async for line in answer.aiter_lines():
                    if line.startswith("event: "):
                        name = line.removeprefix("event: ")
                    elif line.startswith("data: "):
                        self._take(name, json.loads(line.removeprefix("data: ")))
                    elif line.startswith(":"):
                        self.beats += 1
                        self._changed.set()
        except httpx.TransportError:
            pass
        finally:
            self.over.set()
            self._changed.set()

    def _take(self, name: str, body: Json) -> None:
        self.told.append((name, body))
        if name == "state":
            self.lanes.clear()
            self.entries.clear()
        self.house = body.get("house", self.house)
        for gone in body.get("gone", ()):
            self.lanes.pop(gone, None)
        for one in body.get("lanes", ()):
            self.lanes[one["lane"]] = one
        for ident in body.get("removed", ()):
            self.entries.pop(ident, None)
        for one in body.get("entries", ()):
            self.entries[one["id"]] = one
        self._changed.set()


def text_of(entry: Json) -> str:
    """Its words without markup."""
    text = entry["html"].replace('<button type="button" class="copy small">Copy</button>', "")
    plain = html.unescape(re.sub(r"<[^>]+>", " ", text.replace("<br>", "\n")))
    return plain.replace("\u200b", "").strip()  # which keeps names from being mentions


async def say(browser: httpx.AsyncClient, lane: str, text: str, ref: str = "", **more: Any) -> Json:
    """Say something as the page does; it must be taken."""
    answer = await sent(browser, lane, text, ref, **more)
    assert answer.status_code == 200, answer.text
    said: Json = answer.json()
    return said


async def sent(
    browser: httpx.AsyncClient, lane: str, text: str, ref: str = "", **more: Any
) -> httpx.Response:
    """The same, whatever comes of it."""
    body = {"text": text, "id": ref or secrets.token_hex(8), **more}
    return await browser.post(f"/api/lanes/{lane}/say", json=body)


def new_lane() -> str:
    """A name as the page gives them."""
    return f"chat-{secrets.token_hex(10)}"
