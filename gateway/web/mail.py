"""Mails with codes: what they say, and how one is handed to the mail server.

Nothing that a stranger wrote gets into a mail: the address was checked, the browser is a name from
a list, and no link in it signs anybody in. It must not know who asked, the store, or HTTP.
"""

from __future__ import annotations

import base64
import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING

from gateway.values import MailServer, Tls

if TYPE_CHECKING:
    import aiosmtplib

    from gateway.web.signins import Letter

TIMEOUT = 20.0  # seconds for each step of talking to the server
MINUTES = 10
NO_SIGNIN = (530, 534, 535, 538)  # RFC 4954: sign in first, or otherwise, or rightly


class NotSent(Exception):
    """The mail was not taken; the message says why.

    ``final``: trying again is of no use. ``signin``: the server does not take our name and
    password, or none at all.
    """

    def __init__(self, why: str, final: bool, signin: bool = False) -> None:
        super().__init__(why)
        self.final = final
        self.signin = signin


def sender_of(mail_from: str, server: MailServer, page: str) -> str:
    """Who the mails are from, where LANEWAY_MAIL_FROM does not say it."""
    if mail_from:
        return mail_from
    if "@" in server.user:
        return server.user
    host = page or server.host
    return f"laneway@{host}" if host.rpartition(".")[2].isalpha() else "laneway@localhost"


def written(letter: Letter, sender: str, page: str) -> EmailMessage:
    """The mail of a letter. ``page``: the host that the page is reached by, for people to see.

    Raises NotSent when ``sender`` is none that a mail can have.
    """
    mail = EmailMessage()
    mail["From"] = author = _author(sender)
    mail["To"] = Address(addr_spec=letter.address)
    mail["Subject"] = "Your sign-in code for Laneway"
    at = datetime.fromtimestamp(letter.made_at / 1000, UTC)
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{secrets.token_urlsafe(18)}@{author.domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    where = f" at {page}" if page else ""
    mail.set_content(
        f"Your code to sign in to Laneway{where}:\n\n"
        f"    {letter.code}\n\n"
        f"It is good for {MINUTES} minutes, once, and only in the browser that asked for it.\n\n"
        f"Asked for at {at:%H:%M} UTC with {letter.browser}, from {letter.network}.\n"
        "If that was not you, do nothing: nobody can sign in without this code.\n"
        "Tell it to nobody; nobody from Laneway asks for it.\n"
    )
    return mail


def _author(sender: str) -> Address:
    """``Name <address>`` or an address; the name may hold any sign."""
    name, found, address = sender.rpartition("<")
    try:
        made = Address(name.strip().strip('"'), addr_spec=address.rstrip(">") if found else sender)
    except (HeaderParseError, ValueError, IndexError) as fault:
        raise NotSent("LANEWAY_MAIL_FROM is no address that mails can be from", True) from fault
    return made


async def send(mail: EmailMessage, server: MailServer) -> None:
    """Hand a mail to the server; raises NotSent."""
    import aiosmtplib

    try:
        async with connection(server) as client:
            await client.send_message(mail)
    except aiosmtplib.SMTPRecipientsRefused as fault:
        final = all(one.code >= 500 for one in fault.recipients)
        raise NotSent("the server takes no mail for this address", final) from fault
    except aiosmtplib.SMTPResponseException as fault:
        raise NotSent(_said(fault, server), fault.code >= 500) from fault
    except (aiosmtplib.SMTPException, OSError, ValueError) as fault:
        raise NotSent(str(fault) or type(fault).__name__, final=False) from fault


async def check(server: MailServer) -> str:
    """Connect, encrypt and log in as a mail would, and send none; returns how. Raises NotSent."""
    import aiosmtplib

    try:
        async with connection(server) as client:
            await client.noop()
    except aiosmtplib.SMTPResponseException as fault:
        signin = fault.code in NO_SIGNIN
        raise NotSent(_said(fault, server), fault.code >= 500, signin) from fault
    except aiosmtplib.SMTPConnectError as fault:  # names the host, which may have any name
        raise NotSent(str(fault), final=False) from fault
    except (aiosmtplib.SMTPException, OSError, ValueError) as fault:
        said = str(fault) or type(fault).__name__
        raise NotSent(said, final=False, signin="auth" in said.lower()) from fault
    how = {Tls.STARTTLS: "encrypted", Tls.TLS: "encrypted", Tls.NONE: "not encrypted"}[server.tls]
    return f"{server.host}:{server.port}, {how}" + (", signed in" if server.user else "")


@asynccontextmanager
async def connection(server: MailServer) -> AsyncIterator[aiosmtplib.SMTP]:
    """One that is encrypted as the setting says, with a certificate that is good, or fails.

    STARTTLS is never skipped because a server, or somebody in between, does not offer it. Whoever
    leaves early, or is cancelled, does not wait for the server once more.
    """
    import aiosmtplib

    encrypted = server.tls is not Tls.NONE
    client = aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        username=server.user or None,
        password=server.password.reveal() if server.user else None,
        use_tls=server.tls is Tls.TLS,
        start_tls=server.tls is Tls.STARTTLS,
        tls_context=ssl.create_default_context() if encrypted else None,
        timeout=TIMEOUT,
    )
    try:
        await client.connect()
        yield client
        with suppress(aiosmtplib.SMTPException):  # what was to be done is done
            await client.quit()
    finally:
        client.close()


def _said(fault: aiosmtplib.SMTPResponseException, server: MailServer) -> str:
    """The server's words, without the password: some repeat the line they did not like."""
    words = " ".join(str(fault.message).split())
    password = server.password.reveal()
    if password:
        for form in _spelled(server.user, password):
            words = words.replace(form, "…")
    return f"the server said {fault.code} {words[:200]}"


def _spelled(user: str, password: str) -> list[str]:
    """A password as it is, and as AUTH LOGIN and AUTH PLAIN hand it over."""
    sent = (password, f"\0{user}\0{password}", f"{user}\0{user}\0{password}")
    coded = [base64.b64encode(one.encode()).decode().rstrip("=") for one in sent]
    return [*coded, password]
