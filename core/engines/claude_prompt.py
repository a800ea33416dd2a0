"""A prompt as content blocks of Claude Code. Reads files, so call it off the loop."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from core import inside
from core.engines.base import Attachment, Request
from core.engines.plain import Json

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_MOST = 3_700_000  # bytes; the service takes 5 MB of base64
PAPER_MOST = 20_000_000  # bytes of a PDF; the service takes 32 MB a request
ALL_MOST = 22_000_000  # bytes of all that is handed over in one prompt


def content(request: Request) -> str | list[Json]:
    """The text, and pictures and PDFs that the service takes; the text names every file's path."""
    text = f"/compact {request.prompt}".strip() if request.compact else request.prompt
    blocks: list[Json] = []
    room = 0 if request.compact else ALL_MOST
    for attachment in request.attachments:
        data = _read(request.folder, attachment, room)
        if data:
            room -= len(data)
            blocks.append(_block(attachment.mime, data))
    return [*blocks, {"type": "text", "text": text}] if blocks else text


def _read(folder: Path, attachment: Attachment, room: int) -> bytes:
    """What can be handed over; the agent opens the rest by its path."""
    picture = attachment.mime in IMAGES
    if not picture and attachment.mime != "application/pdf":
        return b""
    most = min(room, IMAGE_MOST if picture else PAPER_MOST)
    try:
        data = inside.read(folder, attachment.path, most + 1)
    except (inside.NotInside, OSError):
        return b""
    return data if len(data) <= most else b""


def _block(mime: str, data: bytes) -> Json:
    source: dict[str, Any] = {
        "type": "base64",
        "media_type": mime,
        "data": base64.b64encode(data).decode(),
    }
    return {"type": "image" if mime in IMAGES else "document", "source": source}
