"""Telegram posts its updates to us: told where to, looked after, and let in by the secret.

It heals outages by itself and reports them, also that Telegram does not get through to us; it
never drops what waits at Telegram. It must not know who may talk, nor what a message starts.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from channels.telegram.content import Me
from channels.telegram.errors import TOKEN_REFUSED, TokenRefused
from channels.telegram.fields import Malformed, as_object, integer, maybe_integer, string
from channels.telegram.inbox import PATIENCE, Inbox
from channels.telegram.polling import LEAST_PAUSE, TOKEN_PAUSE, Hooks, growing
from channels.telegram.wire import Wire
from core.channel import (
    Connection,
    Intake,
    NotSent,
    RateLimited,
    Refused,
    Reply,
    SendError,
    Took,
    Uncertain,
)
from core.clock import Clock

log = logging.getLogger(__name__)

SECRET = "x-telegram-bot-api-secret-token"
FIRST_LOOK, LOOK_EVERY = 10.0, 60.0  # seconds from setting it to asking how it goes
COME_AGAIN = 5  # seconds
_MOVED = (
    "another program has changed where Telegram posts this bot's updates, most likely a second"
    " gateway; stop it, or give it a bot of its own"
)


@dataclass(frozen=True, slots=True)
class Posting:
    """Where Telegram is to post updates, and what proves that it is Telegram."""

    url: str
    secret: str = field(repr=False)
    patience: float = PATIENCE  # seconds a post waits until it is to come again


class Webhook:
    """Implements the port's ``Hook``; lives as long as the channel."""

    def __init__(self, wire: Wire, posting: Posting, clock: Clock, hooks: Hooks) -> None:
        self._wire = wire
        self._posting = posting
        self._clock = clock
        self._hooks = hooks
        self._me: Me | None = None
        self._inbox: Inbox | None = None  # while we listen
        self.report: Callable[[Connection], None] = lambda _: None
        self._begin()

    def _begin(self) -> None:
        self._is_set = False
        self._failures = 0
        self._failed_at: int | None = None  # Telegram's time of the last post that failed
        self._unreached = ""  # why Telegram does not get through to us
        self._reported: Connection | None = None

    # What is posted -----------------------------------------------------------------------

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """By the secret, in a time that tells nothing about it."""
        given = headers.get(SECRET, "")
        return hmac.compare_digest(given.encode(), self._posting.secret.encode())

    async def posted(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """One update. It is answered once it is stored."""
        if not self.lets_in(headers):
            return Reply(Took.NOT_OURS)
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            return Reply(Took.NO_SENSE)
        if not isinstance(update, dict):
            return Reply(Took.NO_SENSE)
        inbox = self._inbox
        if inbox is None or not await inbox.offer(update, body):
            return Reply(Took.LATER, again_after=COME_AGAIN)
        if self._unreached:
            self._unreached = ""
            self.report(Connection())
        return Reply(Took.STORED)

    # Looking after it ---------------------------------------------------------------------

    async def run(self, intake: Intake) -> None:
        """Be posted to until cancelled."""
        self._begin()

        def report(connection: Connection) -> None:
            if connection != self._reported:
                self._reported = connection
                intake.connection("telegram", connection)

        self.report = report
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    try:
                        pause = await self._round(intake, group)
                    except SendError as error:
                        pause = self._trouble(error)
                    await self._clock.sleep(pause)
        finally:
            self._inbox = None
            self.report = lambda _: None

    async def _round(self, intake: Intake, group: asyncio.TaskGroup) -> float:
        """Set it, or see how it goes; the seconds until the next look."""
        if self._me is None:
            self._me, facts = await self._wire.me()
            self._hooks.known(self._me, facts)
        if self._inbox is None:  # what is posted from now on is taken, set anew or not
            self._inbox = Inbox(self._me, intake, self._clock, self._posting.patience)
            group.create_task(self._inbox.run(), name="telegram inbox")
        look = LOOK_EVERY if self._is_set else FIRST_LOOK
        if not self._is_set:
            await self._wire.set_webhook(self._posting.url, self._posting.secret)
            self._is_set = True
        elif not await self._goes_well():
            self._failures += 1
            return growing(self._failures)
        self._failures = 0
        self._works(group)
        return look

    def _works(self, group: asyncio.TaskGroup) -> None:
        connection = Connection(self._unreached)
        if connection.up and connection != self._reported:
            group.create_task(self._hooks.up(), name="telegram connected")
        self.report(connection)

    async def _goes_well(self) -> bool:
        """Ask Telegram how posting goes; False when it posts to somebody else by now."""
        try:
            info = as_object(await self._wire.call("getWebhookInfo"), "getWebhookInfo")
            url, waiting = string(info, "url"), integer(info, "pending_update_count")
            failed_at = maybe_integer(info, "last_error_date") or 0
            why = string(info, "last_error_message")
        except Malformed as error:
            raise Uncertain(f"getWebhookInfo: {error}") from None
        if url != self._posting.url:
            log.warning("telegram: %s", _MOVED)
            self.report(Connection(_MOVED))
            self._is_set = False
            return False
        before, self._failed_at = self._failed_at, failed_at
        if not waiting:
            self._unreached = ""
        elif before is not None and failed_at > before:  # the first look tells of earlier ones
            self._unreached = (
                f"Telegram does not get through to {url} ({why[:200] or 'no reason given'});"
                " see that this address leads here from outside, with https"
            )
        return True

    def _trouble(self, error: SendError) -> float:
        """Report what went wrong and say how long to wait."""
        self._failures += 1
        match error:
            case TokenRefused():
                self.report(Connection(TOKEN_REFUSED, fatal=True))
                return TOKEN_PAUSE
            case RateLimited():
                self.report(Connection("Telegram asks us to wait before the next call"))
                return max(LEAST_PAUSE, error.retry_after)
            case Refused():
                words = f"Telegram does not post to {self._posting.url}: {error}"
                self.report(Connection(f"{words}; set another LANEWAY_WEB_URL", fatal=True))
                return TOKEN_PAUSE
            case _:
                what = "cannot be reached" if isinstance(error, NotSent) else "does not answer well"
                self.report(Connection(f"Telegram {what}: {error}"))
                return growing(self._failures)
