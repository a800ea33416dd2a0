"""The Slack channel: the port's four methods, wired to connection, calls and files.

The library is imported in this folder and nowhere else. It must not know lanes, people or the
store.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from channels.slack.assistant import Assistant
from channels.slack.blocks import rendered
from channels.slack.calls import RECEIPTS, Calls
from channels.slack.errors import TokenRefused
from channels.slack.events import Me
from channels.slack.files import MOST, download
from channels.slack.listening import Hooks, Listener
from channels.slack.names import Names
from channels.slack.recall import Recalling
from channels.slack.small import SmallTasks
from channels.slack.status import Status
from channels.slack.streams import Where
from channels.slack.web import OFFICIAL, Web
from channels.slack.webhook import Webhook
from core.channel import Action, ChannelLimits, Connection, Done, Hook, Intake
from core.clock import Clock
from core.messages import FileRef, Part

log = logging.getLogger(__name__)

LIMITS = ChannelLimits(
    preview_every_direct=1.5,
    preview_every_group=2.0,
    preview_text=2800,
    typing_every=5.0,  # as often as core likes; only now and then it becomes a call
    file_in=MOST,
    file_out=MOST,
    chat_rate=1.0,
    group_rate=1.0,
    total_rate=8.0,
    finds_sends=True,
    recalls=True,
    stream_text=11_000,
    stream_every=1.0,
    titles=True,
    receipts=RECEIPTS,
)


class SlackChannel:
    """One app in one workspace. Open it as an async context manager; leaving closes it."""

    name = "slack"
    limits = LIMITS

    def __init__(
        self,
        bot_token: str,
        app_token: str,
        clock: Clock,
        api_base: str = OFFICIAL,
        answer_within: float = 15.0,
        streams: str = Where.DIRECT,
        people: frozenset[str] = frozenset(),  # ids, in whose direct chats is looked for the missed
        signing_secret: str = "",  # Slack posts to us instead of Socket Mode
    ) -> None:
        self._tokens = (bot_token, app_token)
        self._clock = clock
        self._base = api_base
        self._answer_within = answer_within
        self._where = Where(streams)
        self._people = people
        self._small = SmallTasks()
        self._signing_secret = signing_secret
        self._hooks: Hooks
        self._listener: Listener | None = None
        self._webhook: Webhook | None = None
        self._me: Me | None = None

    @property
    def hook(self) -> Hook | None:
        """Where Slack posts events; None in Socket Mode."""
        return self._webhook

    async def __aenter__(self) -> Self:
        await self._small.__aenter__()
        self._web = Web(*self._tokens, self._base, self._answer_within, self._clock)
        self._names = Names(self._web, self._clock)
        self._assistant = Assistant(self._web, self._small)
        self._status = Status(self._web, self._small, self._clock)
        recalling = Recalling(self._web, self._names, self._clock)
        self._calls = Calls(self._web, self._status, self._clock, recalling, self._where)
        self._hooks = Hooks(self._known, self._told, self._status.forget)
        if secret := self._signing_secret:
            self._webhook = Webhook(
                self._web, secret, self._names, self._clock, self._hooks, self._people
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._calls.streams.close()
        finally:
            try:
                await self._small.__aexit__(kind, error, trace)
            finally:
                await self._web.close()

    async def listen(self, intake: Intake) -> None:
        """Receive until cancelled."""
        if self._webhook is not None:
            await self._webhook.run(intake)
            return
        self._listener = Listener(
            self._web, self._tokens[1], intake, self._names, self._clock, self._hooks, self._people
        )
        try:
            await self._listener.run()
        finally:
            self._listener = None

    def render(self, markdown: str) -> list[Part]:
        """Markdown as the messages that would be sent."""
        return rendered(markdown)

    async def do(self, action: Action) -> Done:
        """Carry out one action, once."""
        try:
            return await self._calls.do(action)
        except TokenRefused as refused:
            self._lost(str(refused))
            raise

    async def fetch(self, file: FileRef, target: Path) -> None:
        """Download a file of a received message."""
        await download(self._web, file, target)

    async def menu(self, commands: Sequence[tuple[str, str]]) -> None:
        """Slack's only command, /laneway, is part of the app's manifest: nothing to set."""

    def _known(self, me: Me) -> None:
        if self._me != me:
            self._me = me
            log.info("slack: connected as %s in workspace %s", me.user, me.team)

    def _told(self, body: object) -> None:
        if gone := self._assistant.told(body):
            self._lost(gone)

    def _lost(self, reason: str) -> None:
        if (listening := self._webhook or self._listener) is not None:
            listening.report(Connection(reason, fatal=True))
