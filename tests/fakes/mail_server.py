"""A real mail server on loopback that keeps what it takes, and can be slow, strict or down.

async with MailServer() as server:
    url = server.url                    # smtp+plain://127.0.0.1:…
    mail = await server.mail(0)         # the first that came, however long that took
    server.code(mail)                   # the code in it
"""

from __future__ import annotations

import asyncio
import email
import email.policy
import re
import ssl
import warnings
from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from types import TracebackType
from typing import Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

WITHIN = 20.0  # seconds


class MailServer:
    """``before``: awaited before each mail is taken. ``answers``: what is said to the next ones."""

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        login: tuple[str, str] | None = None,
        before: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.answers: list[str] = []
        self.port = 0
        self._tls = tls
        self._login = login
        self._before = before
        self._came = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._talks: list[SMTP] = []

    @property
    def url(self) -> str:
        return f"smtp+plain://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, at the same port as before."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._talk, "127.0.0.1", self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for talk in self._talks:
            if isinstance(talk.transport, asyncio.WriteTransport):
                talk.transport.abort()
        self._talks.clear()

    def _talk(self) -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a login without encryption is unsafe
            made = SMTP(
                self,
                hostname="mail.test",
                ident="mail",
                loop=asyncio.get_running_loop(),
                tls_context=self._tls,
                require_starttls=self._tls is not None,
                auth_required=self._login is not None,
                auth_require_tls=self._tls is not None,
                authenticator=self._let_in,
            )
        self._talks.append(made)
        return made

    def _let_in(self, _server: Any, _session: Any, _envelope: Any, _how: str, given: Any) -> Any:
        login = (given.login.decode(), given.password.decode())
        return AuthResult(success=login == self._login, handled=False)

    async def handle_DATA(self, _: SMTP, __: Session, envelope: Envelope) -> str:  # noqa: N802
        if self._before is not None:
            await self._before()
        if self.answers:
            return self.answers.pop(0)
        content = envelope.content
        raw = content if isinstance(content, bytes) else str(content).encode()
        async with self._came:
            mail = email.message_from_bytes(raw, policy=email.policy.default)
            assert isinstance(mail, EmailMessage)
            self.mails.append(mail)
            self.recipients.extend(envelope.rcpt_tos)
            self._came.notify_all()
        return "250 taken"

    async def mail(self, number: int) -> EmailMessage:
        """The mail with this number, the first being 0."""
        async with asyncio.timeout(WITHIN), self._came:
            await self._came.wait_for(lambda: len(self.mails) > number)
        return self.mails[number]

    @staticmethod
    def code(mail: EmailMessage) -> str:
        """The only code in a mail."""
        (found,) = re.findall(r"(?<![0-9])[0-9]{8}(?![0-9])", mail.get_content())
        return str(found)
