"""Files between Slack and a path of ours, piece by piece, never in memory as a whole.

It must not decide where files belong, nor what they are for. The token goes only to Slack's own
hosts, whatever address an event names.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

import aiohttp

from channels.slack.errors import LIBRARY, translate
from channels.slack.fields import Malformed, maybe, needed, obj, string
from channels.slack.web import CONNECT, UPLOAD_ANSWER, Web
from core.channel import FileTooBig, Refused, Uncertain
from core.messages import FileRef

MOST = 1_000_000_000
_PIECE = 256 * 1024
_HOPS = 3
_TIMES = aiohttp.ClientTimeout(total=None, connect=CONNECT, sock_connect=CONNECT, sock_read=30.0)
_UPLOAD = aiohttp.ClientTimeout(
    total=None, connect=CONNECT, sock_connect=CONNECT, sock_read=UPLOAD_ANSWER
)
_NO_ACCESS = (
    "Slack does not hand out {name}: it shows its sign-in page instead; give the app the scope"
    " files:read (OAuth & Permissions) and install it again"
)


async def download(web: Web, file: FileRef, target: Path) -> None:
    """Stream a file to ``target``; nothing is left there when it fails. Raises SendError."""
    if file.size is not None and file.size > MOST:
        raise FileTooBig(file.name, MOST)
    ident, _, address = file.ref.partition(" ")
    if not address:
        address = await _address(web, ident, file.name)
    try:
        with await asyncio.to_thread(target.open, "wb") as out:
            await _stream(web, file, address, out)
    except OSError as caught:
        _forget(target)
        raise Refused(f"{file.name} cannot be stored: {caught.strerror}") from None
    except BaseException:  # cancelled as well: no half file may look like a whole one
        _forget(target)
        raise


async def upload(web: Web, path: Path, name: str) -> str:
    """Bring a file to Slack; nobody sees it yet. Its id. Raises SendError."""
    try:
        size = (await asyncio.to_thread(path.stat)).st_size
        if size > MOST:
            raise FileTooBig(name, MOST)
        if not size:
            raise Refused(f"{name} is empty; Slack takes no empty files")
        with await asyncio.to_thread(path.open, "rb") as opened:
            given = await web.call("files.getUploadURLExternal", filename=name, length=size)
            try:
                ident, address = needed(given, "file_id"), needed(given, "upload_url")
            except Malformed as caught:
                raise Uncertain(f"files.getUploadURLExternal: {caught}") from None
            await _put(web, address, opened, size)
    except OSError as caught:
        raise Refused(f"{name} cannot be read: {caught.strerror}") from None
    return ident


async def _put(web: Web, address: str, opened: BinaryIO, size: int) -> None:
    headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
    try:
        async with web.session.post(
            address, data=opened, headers=headers, timeout=_UPLOAD
        ) as answer:
            if answer.status >= 500:
                raise Uncertain(f"Slack's file server answered {answer.status}")
            if answer.status != 200:
                raise Refused(f"Slack's file server refuses the file ({answer.status})")
    except LIBRARY as caught:
        raise translate(caught, "the upload") from None


async def _address(web: Web, ident: str, name: str) -> str:
    """Where a file is, for one whose event does not say."""
    try:
        told = obj(await web.call("files.info", file=ident), "file")
        address = string(told, "url_private_download") or string(told, "url_private")
    except Malformed as caught:
        raise Uncertain(f"files.info: {caught}") from None
    if not address:
        raise Refused(f"Slack does not hand out {name} now; send it again")
    return address


async def _stream(web: Web, file: FileRef, address: str, out: BinaryIO) -> None:
    try:
        for _ in range(_HOPS):
            async with web.session.get(
                address,
                headers={"Authorization": f"Bearer {_token_for(web, address)}"},
                allow_redirects=False,
                timeout=_TIMES,
            ) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    address = urljoin(address, answer.headers.get("Location", ""))
                    continue
                await _receive(answer, file, out)
                return
    except (aiohttp.ClientError, TimeoutError) as caught:  # of the disk's faults the caller tells
        raise translate(caught, "the download") from None
    raise Refused(_NO_ACCESS.format(name=file.name))


async def _receive(answer: aiohttp.ClientResponse, file: FileRef, out: BinaryIO) -> None:
    if answer.status >= 500:
        raise Uncertain(f"Slack's file server answered {answer.status}")
    if answer.status != 200:
        raise Refused(f"{file.name} is not at Slack any more ({answer.status})")
    size = 0
    async for piece in answer.content.iter_chunked(_PIECE):
        if not size and _is_login(answer.content_type, piece, file.mime):
            raise Refused(_NO_ACCESS.format(name=file.name))
        size += len(piece)
        if size > MOST:
            raise FileTooBig(file.name, MOST)
        await asyncio.to_thread(out.write, piece)


def _is_login(content_type: str, start: bytes, mime: str) -> bool:
    """Without the right to read a file Slack answers 200 and a page for people."""
    page = start.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))
    return "html" not in mime and (page or content_type == "text/html")


def _token_for(web: Web, address: str) -> str:
    """The token, for Slack's own hosts and the server that the settings name."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    ours = parts.netloc == web.host
    slacks = parts.scheme == "https" and (host == "slack.com" or host.endswith(".slack.com"))
    if not (ours or slacks):
        raise Refused(f"the file is not at Slack but at {host}; it is not fetched")
    return web.bot_token


def shared_as(told: object, channel: str) -> str:
    """The message that shows an uploaded file in a channel; empty while Slack does not say."""
    try:
        shares = maybe(obj(told, "file"), "shares") or {}  # type: ignore[arg-type]
        for visibility in shares.values():
            if isinstance(visibility, dict):
                for share in visibility.get(channel) or []:
                    return needed(share, "ts")
    except Malformed:
        return ""
    return ""


def _forget(target: Path) -> None:
    with suppress(OSError):
        target.unlink(missing_ok=True)
