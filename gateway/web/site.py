"""What every route works with. Values only: who owns what stands in docs/architecture.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request

from channels.local.channel import LocalChannel
from core.clock import Clock
from gateway.config import Settings
from gateway.keys import Keys
from gateway.living import Living
from gateway.parts import Parts
from gateway.web.accounts import Accounts
from gateway.web.post import Post
from gateway.web.signins import Signins

if TYPE_CHECKING:
    from gateway.web.hub import Hub

_HERE = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")


@dataclass(slots=True)
class Site:
    """One for the process. ``settings`` is replaced when they change."""

    settings: Settings
    parts: Parts
    local: LocalChannel
    clock: Clock
    keys: Keys
    accounts: Accounts
    reasons: Callable[[], list[str]]  # why the gateway cannot do its work now; empty when it can
    living: Living
    signins: Signins
    post: Post
    hub: Hub = field(init=False)  # what is told as it happens; made of all the rest

    @property
    def https(self) -> bool:
        """Whether people come by https, so that cookies may never go without."""
        return self.settings.web_url.startswith("https://")

    def origin(self, request: Request) -> str:
        """The page's own origin, as a browser writes it."""
        if self.settings.web_url:
            parts = urlsplit(self.settings.web_url)
            return f"{parts.scheme}://{parts.netloc}".lower()
        return f"{request.url.scheme}://{request.headers.get('host', '')}".lower()

    def local_origin(self, request: Request) -> str:
        """The origin for a browser on this machine that came straight here; "" for all others.

        Whoever sits here uses the page also where its public address leads elsewhere.
        """
        host, remote = request.headers.get("host", "").lower(), request.client
        direct = remote is not None and remote.host in ("127.0.0.1", "::1")
        if not direct or "x-forwarded-for" in request.headers or not _HERE.fullmatch(host):
            return ""
        return f"http://{host}"


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site
