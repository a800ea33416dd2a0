"""A gateway in this process with its page, and browsers without a screen that use it.

    async with Page(tmp_path) as page:                 # LANEWAY_… settings as keyword arguments
        ana = await page.signed_in("ana@example.org")  # an admin; ben@example.org is a member
        answer = await ana.get("/api/session")

What signing in is like is tested where it is done over HTTP; everywhere else the sign-in is made
directly. ``page.gateway`` is the gateway, ``page.site`` what its routes work with. The gateway's
clock is the real one unless another is given, and its engine the scripted agent of the
end-to-end tests (``/say hello`` and the like, see ``tests/fakes/acp_agent.py``).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from core.clock import Clock, SystemClock
from gateway import config, saved
from gateway.app import Gateway
from gateway.web.access import cookie_name
from gateway.web.site import Site
from tests.end_to_end.house import environment
from tests.fakes.alarm import ClockAlarm

ANA = "web:ana@example.org"
BEN = "web:ben@example.org"
OWNER = "local:owner"


class Page:
    """One gateway with a page."""

    def __init__(self, folder: Path, *, clock: Clock | None = None, **settings: str) -> None:
        self.home = folder / "home"
        self.clock = clock or SystemClock()
        self.settings = {
            "LANEWAY_ADMIN_EMAILS": "ana@example.org",
            "LANEWAY_MEMBER_EMAILS": "ben@example.org,@members.example.org",
            **settings,
        }
        self.gateway: Gateway
        self.site: Site
        self._task: asyncio.Task[None]
        self._browsers: list[httpx.AsyncClient] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.gateway.web_port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for browser in self._browsers:
            await browser.aclose()
        await self.stop()

    async def start(self) -> None:
        """Start, and return when the page is served."""
        environ = environment(self.home, None, LANEWAY_WEB_PORT="0", **self.settings)
        given = {name: value for name, value in environ.items() if value}
        said = config.written(given, self.home)
        loaded = saved.look(given, self.home).settings
        self.gateway = Gateway(
            loaded, self.clock, alarm=lambda: ClockAlarm(self.clock), written=said
        )
        made: asyncio.Future[Site] = asyncio.get_running_loop().create_future()
        self.gateway.on_site = made.set_result
        self._task = asyncio.create_task(self.gateway.run(lambda: None), name="gateway")
        await asyncio.wait((self._task, made), return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            await self._task
        self.site = made.result()

    async def stop(self) -> None:
        self.gateway.stop()
        await self._task

    def browser(self, **headers: str) -> httpx.AsyncClient:
        """A browser that nobody is signed in with; what it changes comes from the page itself."""
        made = httpx.AsyncClient(
            base_url=self.url,
            headers={"Origin": self.url, **headers},
            trust_env=False,
            verify=False,  # there is no TLS, and reading the authorities takes its time
            timeout=30.0,  # a disk of a busy machine takes its time as well
        )
        self._browsers.append(made)
        return made

    async def signed_in(self, who: str) -> httpx.AsyncClient:
        """A browser of somebody: a mailbox, or the built-in owner."""
        person = who if ":" in who else f"web:{who}"
        token = await self.site.accounts.open(person, "a test")
        browser = self.browser()
        browser.cookies.set(cookie_name(self.site.https), token)
        return browser
