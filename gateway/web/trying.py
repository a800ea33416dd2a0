"""*Test now*: whether a channel, an engine or a service works with settings that need not be saved.

The checks are those of ``laneway doctor``, one at a time and with a time limit; they change
nothing. It must not know HTTP, nor what is saved.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from pathlib import Path
from urllib.parse import urlsplit

from channels import registry
from core.clock import Clock
from core.engines.base import Finding
from core.engines.processes import Ledger
from gateway.channel_parts import wanted_channels
from gateway.choices import EngineName
from gateway.config import Settings
from gateway.engine_parts import hearing, make_engines
from gateway.web import mail

log = logging.getLogger("laneway.settings")

WITHIN = 30.0  # seconds
CHANNELS = ("telegram", "slack", "discord")
ENGINES = tuple(name.value for name in EngineName)
MAIL, LETTER, VOICE = "mail", "letter", "transcription"
WHAT = frozenset({*CHANNELS, *ENGINES, MAIL, LETTER, VOICE})


async def tried(
    what: str, settings: Settings, clock: Clock, ledger: Ledger, to: str = "", limit: float = WITHIN
) -> Sequence[Finding]:
    """What a test of one of ``WHAT`` came to. ``to``: where a test mail goes."""
    try:
        async with asyncio.timeout(limit):
            return await _tried(what, settings, clock, ledger, to)
    except TimeoutError:
        why = f"there was no answer within {limit:.0f} seconds"
        return [Finding(what, False, why, "look whether the address is right and reachable")]
    except Exception as fault:  # the border to platforms and engines: a test breaks alone
        log.exception("the test of %s broke", what)
        return [Finding(what, False, f"the test broke ({type(fault).__name__})", "see the log")]


async def _tried(
    what: str, settings: Settings, clock: Clock, ledger: Ledger, to: str
) -> Sequence[Finding]:
    if what in CHANNELS:
        return await _channel(what, settings)
    if what in ENGINES:
        return await _engine(what, settings, clock, ledger)
    if what == VOICE:
        ears = hearing(settings, clock)
        nothing = Finding(what, False, "no service is set", "enter its address first")
        return [await ears.check() if ears else nothing]
    return [await _mail(settings, to if what == LETTER else "")]


async def _channel(name: str, settings: Settings) -> Sequence[Finding]:
    for wanted in wanted_channels(settings):
        if wanted.name == name:
            return [Finding(*one) for one in await registry.CHECKS[name](**wanted.options)]
    needed = "both of its tokens" if name == "slack" else "its token"
    return [Finding(name, False, "it is not set up", f"enter {needed} first")]


async def _engine(name: str, settings: Settings, clock: Clock, ledger: Ledger) -> Sequence[Finding]:
    with tempfile.TemporaryDirectory(prefix="laneway-test-") as elsewhere:
        # What an engine leaves behind at a check is none of the home's.
        apart = replace(settings, home=Path(elsewhere), engine=EngineName(name))
        # Beside the loop: an engine's library may have to be loaded first.
        engines = await asyncio.to_thread(make_engines, apart, clock, ledger)
        try:
            if name not in engines:
                return [Finding(name, False, "it is not set up", "fill in its settings first")]
            return await engines[name].check()
        finally:
            for engine in engines.values():
                await engine.close()


async def _mail(settings: Settings, to: str) -> Finding:
    server = settings.smtp
    if server is None:
        fix = "enter a mail server; without one, codes are printed on the gateway's terminal"
        return Finding("mail", False, "no mail server is set", fix)
    try:
        if not to:
            return Finding("mail", True, await mail.check(server))
        page = urlsplit(settings.web_url).hostname or ""
        sender = mail.sender_of(settings.mail_from, server, page)
        await mail.send(_letter(sender, to), server)
    except mail.NotSent as fault:
        return Finding(
            "mail", False, str(fault), "see the address, name and password of the server"
        )
    return Finding("mail", True, f"a mail to {to} was handed to {server.host}; look for it there")


def _letter(sender: str, to: str) -> EmailMessage:
    letter = EmailMessage()
    letter["From"], letter["To"] = sender, to
    letter["Subject"] = "A test mail of Laneway"
    letter["Date"] = format_datetime(datetime.now(UTC))
    domain = parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    letter["Message-ID"] = f"<{secrets.token_urlsafe(18)}@{domain}>"
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content("Mails of this Laneway arrive. Nothing else needs to be done.\n")
    return letter
