"""A prompt as blocks of the Agent Client Protocol. Reads files, so call it off the loop."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core import inside
from core.engines.base import Attachment, Request

# What every service behind an agent takes; one it does not take would spoil the conversation.
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_LIMIT = 10 * 1024 * 1024  # larger ones are linked, not handed over


def blocks(request: Request, *, images: bool) -> list[Mapping[str, Any]]:
    """The text, images where the agent takes them, and links to all other files."""
    made: list[Mapping[str, Any]] = [{"type": "text", "text": request.prompt}]
    for attachment in request.attachments:
        data = _picture(request.folder, attachment) if images else b""
        made.append(_image(attachment, data) if data else _link(attachment))
    return made


def _picture(folder: Path, attachment: Attachment) -> bytes:
    """Its bytes, where it can be handed over; the agent opens the rest by its link."""
    if attachment.mime not in IMAGES:
        return b""
    try:
        data = inside.read(folder, attachment.path, IMAGE_LIMIT + 1)
    except (inside.NotInside, OSError):
        return b""
    return data if len(data) <= IMAGE_LIMIT else b""


def _image(attachment: Attachment, data: bytes) -> Mapping[str, Any]:
    return {
        "type": "image",
        "mimeType": attachment.mime,
        "data": base64.b64encode(data).decode(),
    }


def _link(attachment: Attachment) -> Mapping[str, Any]:
    return {
        "type": "resource_link",
        "uri": attachment.path.absolute().as_uri(),
        "name": attachment.path.name,
        "mimeType": attachment.mime,
    }
