"""The way of letters out of the house, off the path of requests: nobody can tell from an answer
whether one was sent.

A queue with an end, a few at a time, tried again as long as its code is good. Without a mail
server a code is printed on the gateway's terminal. No code ever gets into the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from core.clock import Clock
from gateway import terminal
from gateway.config import Settings
from gateway.web import mail
from gateway.web.signin_rules import LASTS
from gateway.web.signins import Letter

log = logging.getLogger("laneway.mail")

WAITING_MOST = 200
AT_ONCE = 4
PAUSES = (2.0, 10.0, 30.0, 60.0)  # seconds between tries of one mail


class Post:
    """One for the process. ``settings`` gives those of now."""

    def __init__(
        self, settings: Callable[[], Settings], clock: Clock, pauses: tuple[float, ...] = PAUSES
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._pauses = pauses
        self._waiting: deque[Letter] = deque()
        self._came = asyncio.Event()

    def deliver(self, letter: Letter) -> None:
        """Take a letter; it goes out when its turn comes. Never waits."""
        if len(self._waiting) >= WAITING_MOST:
            log.error("too many mails wait; the oldest, to %s, is dropped", letter.address)
            self._waiting.popleft()
        self._waiting.append(letter)
        self._came.set()

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(self._send_each(), name=f"mail {number}")

    async def _send_each(self) -> None:
        while True:
            while not self._waiting:
                self._came.clear()
                await self._came.wait()
            async with asyncio.TaskGroup() as group:
                # In a task of its own: what waits inside the mail library with a limit of time can
                # lose a cancellation, and this loop would then go on for ever.
                letter = self._waiting.popleft()
                group.create_task(self._send(letter), name="one mail")

    async def _send(self, letter: Letter) -> None:
        """Until it is sent, cannot be, or is of no use any more."""
        tries = 0
        while True:
            settings = self._settings()
            server = settings.smtp
            if server is None:
                terminal.tell(_printed(letter), settings.log_format)
                return
            page = urlsplit(settings.web_url).hostname or ""
            sender = mail.sender_of(settings.mail_from, server, page)
            try:
                await mail.send(mail.written(letter, sender, page), server)
            except mail.NotSent as fault:
                pause = self._pauses[min(tries, len(self._pauses) - 1)]
                tries += 1
                over = self._clock.now() + pause * 1000 - letter.made_at >= LASTS
                if fault.final or over:
                    log.error("no mail to %s: %s. Try laneway doctor", letter.address, fault)
                    return
                log.warning("mail to %s waits %.0f s: %s", letter.address, pause, fault)
                await self._clock.sleep(pause)
            else:
                log.info("a code was mailed to %s", letter.address)
                return


def _printed(letter: Letter) -> str:
    return (
        f"Sign-in code for {letter.address}: {letter.code}\n"
        f"  good for {mail.MINUTES} minutes in the browser that asked"
        f" ({letter.browser}, {letter.network})"
    )
