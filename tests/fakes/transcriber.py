"""A transcription service on loopback: answers as it was told, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web


@dataclass
class Asked:
    """One call as it came."""

    key: str
    model: str
    name: str
    mime: str
    sound: bytes


@dataclass
class Transcriber:
    """``script``: status and body of the next answers; then "hello" for ever."""

    script: list[tuple[int, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    silent: bool = False
    url: str = ""
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=60_000_000)
        app.router.add_post("/v1/audio/transcriptions", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        note = form["file"]
        assert isinstance(note, web.FileField)
        self.asked.append(
            Asked(
                request.headers.get("Authorization", ""),
                str(form["model"]),
                note.filename,
                note.content_type,
                note.file.read(),
            )
        )
        note.file.close()
        if self.silent:
            await asyncio.Event().wait()
        status, body = self.script.pop(0) if self.script else (200, json.dumps({"text": "hello"}))
        return web.Response(status=status, text=body, headers=self.headers)
