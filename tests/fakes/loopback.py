"""A web server of a test on loopback: it lives as long as the ``async with`` around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from aiohttp import web


class Loopback(ABC):
    """``url`` is known once it runs; ``base`` is what of it all paths begin with."""

    base = ""
    url = ""
    _runner: web.AppRunner | None = None

    @abstractmethod
    def app(self) -> web.Application:
        """What it answers with."""

    async def __aenter__(self) -> Self:
        self._runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{self.base}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
