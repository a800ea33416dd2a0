"""What ``laneway doctor`` looks at for signing in: the key file, who may, the mail server.

It sends no mail and changes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from core.engines.base import Finding
from gateway.keys import KEY_FILE, Keys
from gateway.settings_table import Settings
from gateway.values import loopback
from gateway.web import mail

PARTS = ("code", "network", "mail", "failure")


def key_file(home: Path) -> list[Finding]:
    """Whether it is a key, and nobody else can read it."""
    path = home / KEY_FILE
    if not path.exists():
        return [Finding("key file", True, f"{path} is made at the first start")]
    try:
        Keys.there(home)
    except ValueError as fault:
        fix = f"put the right {KEY_FILE} back, from where it is kept apart from backups"
        if path.is_file() and not os.access(path, os.R_OK):
            fix = f"give it to the user that laneway runs as, with mode 600; see: ls -l {path}"
        return [Finding("key file", False, str(fault), fix)]
    mode = path.stat().st_mode & 0o777
    closed = mode & 0o077 == 0
    fix = "" if closed else f"chmod 600 {path}"
    return [Finding("key file", closed, f"{path.name}, mode {mode:o}", fix)]


async def signing_in(settings: Settings) -> list[Finding]:
    """Who can sign in on the page, how they come there, and whether their codes arrive."""
    return [_who(settings), *_proxy(settings), await _mail(settings)]


def _who(settings: Settings) -> Finding:
    limits = settings.signin_limits
    off = [name for name in PARTS if getattr(limits, name) is None]
    said = f"; without a limit: {', '.join(off)} (LANEWAY_SIGNIN_LIMITS)" if off else ""
    if not settings.admin_emails and not settings.member_emails:
        detail = "the owner, with a link of: laneway signin"
    else:
        detail = (
            f"addresses or domains on the lists: {len(settings.admin_emails)} of admins,"
            f" {len(settings.member_emails)} of members"
        )
    return Finding("sign-in", True, detail + said)


def _proxy(settings: Settings) -> list[Finding]:
    """A public address and a private listener: somebody is in between, who is not believed."""
    there = urlsplit(settings.web_url).hostname or ""
    hidden = loopback(settings.web_host)
    if not there or loopback(there) or not hidden or settings.trusted_proxies:
        return []
    detail = "everybody seems to come from the proxy in front, and shares its limits"
    fix = "LANEWAY_TRUSTED_PROXIES=127.0.0.1, when the proxy sets X-Forwarded-For"
    return [Finding("proxy", True, detail, fix)]


async def _mail(settings: Settings) -> Finding:
    server = settings.smtp
    if server is None:
        return Finding("mail", True, "no server; codes are printed on the gateway's terminal")
    try:
        detail = await mail.check(server)
    except mail.NotSent as fault:
        return Finding("mail", False, f"{server.host}:{server.port}: {fault}", _fix(fault))
    return Finding("mail", True, detail)


def _fix(fault: mail.NotSent) -> str:
    low = str(fault).lower()
    if "certificate" in low:
        return "use the name that the server's certificate is for, and a certificate that is known"
    if "starttls" in low:
        return "this server does not encrypt at this port: try smtps://, or another port"
    if fault.signin:
        return "see the user and password in LANEWAY_SMTP_URL (special characters are %-encoded)"
    return "see the host and port in LANEWAY_SMTP_URL, and whether this machine may connect there"
