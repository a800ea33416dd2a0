"""The Discord channel: the port's four methods, wired to gateway, calls and files.

The library is imported in this folder and nowhere else. It must not know lanes, people or the
store.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from discord.http import Route

from channels.discord.calls import Calls
from channels.discord.content import Me
from channels.discord.errors import TOKEN_REFUSED, TokenRefused
from channels.discord.files import fetch
from channels.discord.gateway import Gateway, Hooks, Timing
from channels.discord.listening import Listener, Parts
from channels.discord.menu import Menu
from channels.discord.places import Places
from channels.discord.presses import Presses
from channels.discord.recall import Recalling
from channels.discord.rest import Rest
from channels.discord.sent import Sent
from channels.discord.signs import Signs
from channels.discord.threads import Threads
from channels.markup import discord as markup
from core.channel import Action, ChannelLimits, Connection, Done, Intake
from core.clock import Clock
from core.messages import FileRef, Part, Receipt

log = logging.getLogger(__name__)

OFFICIAL = "https://discord.com/api/v10"
RECEIPTS = {Receipt.RECEIVED: "👀", Receipt.WAITING: "⏳", Receipt.FAILED: "⚠️", Receipt.NONE: ""}
LIMITS = ChannelLimits(
    preview_every_direct=1.2,
    preview_every_group=1.2,
    preview_text=1900,
    typing_every=8.0,
    file_in=50_000_000,
    file_out=10 * 1024 * 1024,
    paste_units=1800,
    chat_rate=1.0,
    group_rate=2.0,  # of each thread, as at Discord; sends and edits have a limit each
    threads_share_rate=False,
    total_rate=40.0,
    idempotent_sends=True,
    finds_sends=True,
    recalls=True,
    titles=True,
    receipts=RECEIPTS,
)


class DiscordChannel:
    """One bot. Open it inside a running loop as an async context manager."""

    name = "discord"
    limits = LIMITS

    def __init__(
        self,
        token: str,
        clock: Clock,
        api_base: str = OFFICIAL,
        gateway_url: str = "",
        auto_thread: bool = True,
        people: frozenset[str] = frozenset(),
        answer_within: float = 15.0,
        timing: Timing = Timing(),  # noqa: B008 -- a frozen value
    ) -> None:
        Route.BASE = api_base.rstrip("/")  # the library has one for the whole process
        self._gateway_url = gateway_url
        self._timing = timing
        self._rest = Rest(token, clock, answer_within)
        self._places = Places()
        self._threads = Threads(self._rest, self._places)
        self._presses = Presses(self._rest)
        self._sent = Sent(self._rest, self._threads)
        signs = Signs(self._rest, self._threads, RECEIPTS)
        self._calls = Calls(
            self._rest,
            self._threads,
            self._presses,
            self._sent,
            signs,
            Recalling(self._rest, self._places, lambda: self._me),
            self.limits.file_out,
        )
        self._menu = Menu(self._rest)
        self._directs: OrderedDict[str, None] = OrderedDict()
        self._parts = Parts(
            self._rest,
            self._places,
            self._threads,
            self._presses,
            self._sent,
            auto_thread,
            people,
        )
        self._me: Me | None = None
        self._token_refused = False
        self._listener: Listener | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give back the connections; nothing can be sent after it."""
        await self._rest.close()

    async def listen(self, intake: Intake) -> None:
        """Receive until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                listener = Listener(self._parts, intake, group, self._directs, self._up)
                self._listener = listener
                hooks = Hooks(listener.arrive, listener.report)
                gateway = Gateway(self._rest, self._gateway_url, hooks, self._timing)
                group.create_task(gateway.run(), name="discord gateway")
                group.create_task(listener.run(), name="discord events")
        finally:
            self._listener = None

    def render(self, markdown: str) -> list[Part]:
        """Markdown as the messages that would be sent."""
        return [Part(text) for text in markup.render(markdown)]

    async def do(self, action: Action) -> Done:
        """Carry out one action, once."""
        try:
            done = await self._calls.do(action)
        except TokenRefused:
            self._token_refused = True
            if self._listener is not None:
                self._listener.report(Connection(TOKEN_REFUSED, fatal=True))
            raise
        if self._token_refused:
            self._token_refused = False
            if self._listener is not None:
                self._listener.report(Connection())
        return done

    async def fetch(self, file: FileRef, target: Path) -> None:
        """Download a file of a received message."""
        await fetch(self._rest, file, target, self.limits.file_in)

    async def menu(self, commands: Sequence[tuple[str, str]]) -> None:
        """Offer commands (name, what it does) as application commands, once Discord is there."""
        self._menu.want(commands)
        if self._me is not None:
            await self._up(self._me)

    async def _up(self, me: Me) -> None:
        self._me = me
        if trouble := await self._menu.apply(me.application):
            log.warning("discord: the commands could not be set: %s", trouble)
