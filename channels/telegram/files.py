"""A received file, from Telegram's server to a path of ours, piece by piece.

It must not decide where files belong, nor what they are for.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx

from channels.telegram.errors import scrub
from channels.telegram.wire import Trust
from core.channel import FileTooBig, NotSent, Refused, Uncertain

_PIECE = 256 * 1024
_TIMES = httpx.Timeout(30.0, connect=10.0)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a file is fetched from; the address holds the token and is never shown."""

    url: str
    token: str
    trust: Trust


async def download(source: Source, name: str, target: Path, most: int) -> None:
    """Stream a file to ``target``; nothing is left there when it fails. Raises SendError."""
    try:
        with await asyncio.to_thread(target.open, "wb") as out:
            await _stream(source, name, out, most)
    except OSError as caught:
        _forget(target)
        raise Refused(f"{name} cannot be stored: {caught.strerror}") from None
    except BaseException:  # cancelled as well: no half file may look like a whole one
        _forget(target)
        raise


async def _stream(source: Source, name: str, out: BinaryIO, most: int) -> None:
    size = 0
    try:
        async with (
            httpx.AsyncClient(timeout=_TIMES, verify=source.trust) as client,
            client.stream("GET", source.url) as answer,
        ):
            if answer.status_code >= 500:
                raise Uncertain(f"Telegram's file server answered {answer.status_code}")
            if answer.status_code != 200:
                raise Refused(f"{name} is not at Telegram any more ({answer.status_code})")
            async for piece in answer.aiter_bytes(_PIECE):
                size += len(piece)
                if size > most:
                    raise FileTooBig(name, most)
                await asyncio.to_thread(out.write, piece)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as caught:
        raise NotSent(scrub(f"Telegram's file server: {caught!r}", source.token)) from None
    except httpx.HTTPError as caught:
        raise Uncertain(scrub(f"Telegram's file server: {caught!r}", source.token)) from None


async def copy(path: Path, name: str, target: Path) -> None:
    """A local Bot API server hands out a path on this machine instead of an address."""
    try:
        await asyncio.to_thread(shutil.copyfile, path, target)
    except OSError as caught:
        _forget(target)
        raise Refused(f"{name} cannot be read: {caught.strerror}") from None


def _forget(target: Path) -> None:
    with suppress(OSError):
        target.unlink(missing_ok=True)
