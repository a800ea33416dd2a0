"""A prompt as the input of a turn of Codex. Looks at files, so call it off the loop."""

from __future__ import annotations

from core.engines.base import Attachment, Request
from core.engines.plain import Json

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_MOST = 20_000_000  # bytes; Codex makes them smaller before it sends them


def content(request: Request) -> list[Json]:
    """The text, and pictures by their path; the text names every file's path."""
    pictures = [one for one in request.attachments if one.mime in IMAGES and _fits(one)]
    return [*({"type": "localImage", "path": str(one.path)} for one in pictures),
            *said(request.prompt)]  # fmt: skip


def said(text: str) -> list[Json]:
    """Words of a person as input."""
    return [{"type": "text", "text": text}]


def _fits(attachment: Attachment) -> bool:
    try:
        return 0 < attachment.path.stat().st_size <= IMAGE_MOST
    except OSError:
        return False
