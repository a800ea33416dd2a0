"""Typed access to an update's JSON, and text by UTF-16 units as Telegram counts it.

Pure. It must not know what the fields mean.
"""

from __future__ import annotations

from collections.abc import Iterable

from channels.fields import Json as Json
from channels.fields import Malformed as Malformed
from channels.fields import as_object as as_object
from channels.fields import flag as flag
from channels.fields import integer as integer
from channels.fields import maybe as maybe
from channels.fields import maybe_integer as maybe_integer
from channels.fields import number as number
from channels.fields import obj as obj
from channels.fields import objects as objects
from channels.fields import string as string


def units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(_encode(text)) // 2


def piece(text: str, offset: int, length: int) -> str:
    """The part of a text that an entity names; Malformed when it lies outside."""
    raw = _encode(text)
    if offset < 0 or length < 0 or (offset + length) * 2 > len(raw):
        raise Malformed("an entity lies outside of its text")
    return _decode(raw[offset * 2 : (offset + length) * 2])


def replaced(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """The text with each (offset, length, new text) put in; offsets are of the old text."""
    raw = _encode(text)
    kept: list[bytes] = []
    position = 0
    for offset, length, new in sorted(changes):
        if offset * 2 < position:  # overlapping changes: the first one stands
            continue
        kept += (raw[position : offset * 2], _encode(new))
        position = (offset + length) * 2
    kept.append(raw[position:])
    return _decode(b"".join(kept))


def _encode(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _decode(raw: bytes) -> str:
    return raw.decode("utf-16-le", "surrogatepass")
