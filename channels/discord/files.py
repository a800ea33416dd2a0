"""A received file, from Discord to a path of ours, piece by piece.

The addresses of files expire within a day, so the message is asked for a fresh one. It must not
decide where files belong, nor what they are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp

from channels.discord.errors import ApiError, translate
from channels.discord.rest import Rest
from channels.fields import Json, Malformed, as_object, maybe, objects, string
from core.channel import FileTooBig, Forbidden, MessageGone, NotSent, Refused, Uncertain
from core.messages import FileRef

_PIECE = 256 * 1024
_TIMES = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=30.0)


async def fetch(rest: Rest, file: FileRef, target: Path, most: int) -> None:
    """Download a file; nothing is left at ``target`` when it fails. Raises SendError."""
    if file.size is not None and file.size > most:
        raise FileTooBig(file.name, most)
    url = await _address(rest, file)
    try:
        await _download(rest, url, file.name, target, most)
    except OSError as caught:
        _forget(target)
        raise Refused(f"{file.name} cannot be stored: {caught.strerror}") from None
    except BaseException:  # cancelled as well: no half file may look like a whole one
        _forget(target)
        raise


async def _address(rest: Rest, file: FileRef) -> str:
    where, _, rest_of = file.ref.partition("/")
    number, _, attachment = rest_of.partition("/")
    if not (where.isdecimal() and number.isdecimal() and attachment.isdecimal()):
        raise Refused(f"{file.name} is no file on Discord")
    try:
        message = as_object(await rest.get_message(where, number), "the message")
        for one in _attachments(message):
            if one.get("id") == attachment and string(one, "url"):
                return string(one, "url")
    except ApiError as error:
        refusal = translate(error)
        if isinstance(refusal, MessageGone | Forbidden):
            raise Refused(f"the message with {file.name} is not there any more") from None
        raise refusal from None
    except Malformed as error:
        raise Uncertain(f"Discord's answer has an odd shape: {error}") from None
    raise Refused(f"{file.name} was taken out of its message")


def _attachments(message: Json) -> Iterator[Json]:
    """A message's own files, and those it forwards."""
    yield from objects(message, "attachments")
    for one in objects(message, "message_snapshots"):
        if (inner := maybe(one, "message")) is not None:
            yield from objects(inner, "attachments")


async def _download(rest: Rest, url: str, name: str, target: Path, most: int) -> None:
    size = 0
    try:
        async with rest.session.get(url, timeout=_TIMES) as answer:
            if answer.status >= 500:
                raise Uncertain(f"Discord's file server answered {answer.status}")
            if answer.status != 200:
                raise Refused(f"{name} is not at Discord any more ({answer.status})")
            with await asyncio.to_thread(target.open, "wb") as out:
                async for piece in answer.content.iter_chunked(_PIECE):
                    size += len(piece)
                    if size > most:
                        raise FileTooBig(name, most)
                    await asyncio.to_thread(out.write, piece)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as caught:
        raise NotSent(f"Discord's file server: {type(caught).__name__}") from None
    except (aiohttp.ClientError, TimeoutError, ValueError) as caught:
        raise Uncertain(f"Discord's file server: {type(caught).__name__}") from None


def _forget(target: Path) -> None:
    with suppress(OSError):
        target.unlink(missing_ok=True)
