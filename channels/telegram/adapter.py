"""The Telegram channel: the port's four methods, wired to polling, calls and files.

The library is imported in this folder and nowhere else. It must not know lanes, people or the
store.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from telegram import Bot

from channels.markup import telegram as markup
from channels.telegram.calls import Calls
from channels.telegram.connections import Connections
from channels.telegram.content import Me
from channels.telegram.errors import TOKEN_REFUSED, TokenRefused
from channels.telegram.fields import Json, Malformed, as_object, string
from channels.telegram.files import Source, copy, download
from channels.telegram.polling import Hooks, Poller
from channels.telegram.setup import Menu, hints
from channels.telegram.webhook import Posting, Webhook
from channels.telegram.wire import Wire, trust_of
from core.channel import (
    Action,
    ChannelLimits,
    Connection,
    Done,
    FileTooBig,
    Hook,
    Intake,
    Refused,
    Uncertain,
)
from core.clock import Clock
from core.messages import FileRef, Part, Receipt

log = logging.getLogger(__name__)

OFFICIAL = "https://api.telegram.org"
RECEIPTS = {Receipt.RECEIVED: "👀", Receipt.WAITING: "😴", Receipt.FAILED: "💔", Receipt.NONE: ""}
_FILE_IN, _FILE_OUT = 20_000_000, 50_000_000
_FILE_LOCAL = 2_000_000_000  # what a Bot API server of one's own takes and gives


class TelegramChannel:
    """One bot. Open it as an async context manager; leaving closes its connections."""

    name = "telegram"

    def __init__(
        self,
        token: str,
        clock: Clock,
        api_base: str = OFFICIAL,
        answer_within: float = 10.0,
        posting: Posting | None = None,  # instead of polling
    ) -> None:
        base = api_base.rstrip("/")
        self._token = token
        self._clock = clock
        self._files = f"{base}/file/bot{token}"
        self._own_server = own_server = base != OFFICIAL
        self.limits = ChannelLimits(
            titles=True,
            named_threads=True,
            bare_commands=True,
            receipts=RECEIPTS,
            file_in=_FILE_LOCAL if own_server else _FILE_IN,
            file_out=_FILE_LOCAL if own_server else _FILE_OUT,
        )
        self._trust = trust_of(base)
        self._request = Connections(
            connection_pool_size=32,
            connect_timeout=10.0,
            read_timeout=answer_within,
            write_timeout=20.0,
            pool_timeout=10.0,
            media_write_timeout=120.0,
            httpx_kwargs={"verify": self._trust},
        )
        self._wire = Wire(token, base, self._trust)
        # Both requests are ours to close; the library's own set-up would need Telegram to answer.
        self._bot = Bot(
            token,
            base_url=f"{base}/bot",
            base_file_url=f"{base}/file/bot",
            request=self._request,
            get_updates_request=self._request,
        )
        self._calls = Calls(self._bot, RECEIPTS, self.limits.file_out)
        self._menu = Menu(self._wire)
        self._hooks = Hooks(self._known, self._up)
        self._poller: Poller | None = None
        self._webhook: Webhook | None = None
        if posting is not None:
            self._webhook = Webhook(self._wire, posting, clock, self._hooks)

    @property
    def hook(self) -> Hook | None:
        """Where Telegram posts updates; None while they are polled."""
        return self._webhook

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
        await self._request.shutdown()
        await self._wire.close()

    async def listen(self, intake: Intake) -> None:
        """Receive until cancelled."""
        if self._webhook is not None:
            await self._webhook.run(intake)
            return
        self._poller = Poller(self._wire, intake, self._clock, self._hooks)
        try:
            await self._poller.run()
        finally:
            self._poller = None

    def render(self, markdown: str) -> list[Part]:
        """Markdown as the messages that would be sent."""
        rendered = markup.render(markdown)
        return [
            Part(one.text, json.dumps(one.entities, ensure_ascii=False) if one.entities else "")
            for one in rendered
        ]

    async def do(self, action: Action) -> Done:
        """Carry out one action, once."""
        try:
            return await self._calls.do(action)
        except TokenRefused:
            if (listening := self._webhook or self._poller) is not None:
                listening.report(Connection(TOKEN_REFUSED, fatal=True))
            raise

    async def fetch(self, file: FileRef, target: Path) -> None:
        """Download a file of a received message."""
        most = self.limits.file_in
        if file.size is not None and file.size > most:
            raise FileTooBig(file.name, most)
        try:
            answer = as_object(await self._wire.call("getFile", file_id=file.ref), "getFile")
            path = string(answer, "file_path")
        except Refused as refused:
            if "too big" in str(refused).lower():
                raise FileTooBig(file.name, _FILE_IN) from None
            raise
        except Malformed as error:
            raise Uncertain(f"getFile: {error}") from None
        if not path:
            raise Refused(f"Telegram does not hand out {file.name} now; send it again")
        if self._own_server and path.startswith(("/", "file:")):
            await copy(Path(path.removeprefix("file://")), file.name, target)
            return
        source = Source(f"{self._files}/{path}", self._token, self._trust)
        await download(source, file.name, target, most)

    async def menu(self, commands: Sequence[tuple[str, str]]) -> None:
        """Offer commands (name, what it does) in Telegram's menu; now, or once it is reachable."""
        self._menu.want(commands)
        await self._up()

    def _known(self, me: Me, facts: Json) -> None:
        for hint in hints(facts):
            log.info("telegram: %s", hint)

    async def _up(self) -> None:
        if trouble := await self._menu.apply():
            log.warning("telegram: the commands menu could not be set: %s", trouble)
