"""What no well-behaved client sends: bytes on a socket, and what comes back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """The first answer of a connection. ``status`` is 0 when there was none."""

    status: int
    headers: dict[str, str]
    body: bytes


async def say(port: int, *pieces: bytes, within: float = 5.0) -> Answer:
    """Send these bytes, then no more, and read until the other side has closed or is silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(within):
            while not _whole(heard) and (more := await reader.read(65_536)):
                heard += more
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.close()
    return _read(heard)


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    """A request, word for word."""
    lines = (f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", "")
    return "\r\n".join(lines).encode("latin-1") + body


def _whole(heard: bytes) -> bool:
    head, end, body = heard.partition(b"\r\n\r\n")
    if end and head.startswith(b"HTTP/1.1 304"):
        return True
    for line in head.lower().split(b"\r\n"):
        if end and line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return False


def _read(heard: bytes) -> Answer:
    head, _, body = heard.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    status = int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 0
    pairs = (line.partition(":") for line in rest)
    return Answer(status, {name.lower(): value.strip() for name, _, value in pairs}, body)
