"""A prompt as blocks of the Agent Client Protocol. Reads files, so call it off the loop."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from core.engines.base import Attachment, Request

IMAGE_LIMIT = 10 * 1024 * 1024  # larger ones are linked, not handed over


def blocks(request: Request, *, images: bool) -> list[Mapping[str, Any]]:
    """The text, images where the agent takes them, and links to all other files."""
    made: list[Mapping[str, Any]] = [{"type": "text", "text": request.prompt}]
    for attachment in request.attachments:
        made.append(_image(attachment) if images and _fits(attachment) else _link(attachment))
    return made


def _fits(attachment: Attachment) -> bool:
    try:
        size = attachment.path.stat().st_size
    except OSError:
        return False
    return attachment.mime.startswith("image/") and size <= IMAGE_LIMIT


def _image(attachment: Attachment) -> Mapping[str, Any]:
    data = base64.b64encode(attachment.path.read_bytes()).decode()
    return {"type": "image", "mimeType": attachment.mime, "data": data}


def _link(attachment: Attachment) -> Mapping[str, Any]:
    return {
        "type": "resource_link",
        "uri": attachment.path.absolute().as_uri(),
        "name": attachment.path.name,
        "mimeType": attachment.mime,
    }
