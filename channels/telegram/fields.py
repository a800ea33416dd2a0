"""Typed access to the JSON of an update, and text by UTF-16 units as Telegram counts it.

Absent optional fields have a default; a field of the wrong type is Malformed, whatever it is.
Pure. It must not know what the fields mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

Json = Mapping[str, object]


class Malformed(ValueError):
    """An update does not have the shape that Telegram promises."""


def as_object(value: object, what: str) -> Json:
    """The value as a JSON object."""
    if not isinstance(value, dict):
        raise Malformed(f"{what} is no object")
    return cast(Json, value)


def obj(parent: Json, key: str) -> Json:
    """A field that must be there and be an object."""
    if key not in parent:
        raise Malformed(f"{key} is missing")
    return as_object(parent[key], key)


def maybe(parent: Json, key: str) -> Json | None:
    """An object, if the field is there."""
    value = parent.get(key)
    return None if value is None else as_object(value, key)


def objects(parent: Json, key: str) -> list[Json]:
    """A list of objects; none when the field is absent."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed(f"{key} is no list")
    return [as_object(item, f"an item of {key}") for item in value]


def integer(parent: Json, key: str) -> int:
    """A whole number of at most 64 bits that must be there."""
    value = maybe_integer(parent, key)
    if value is None:
        raise Malformed(f"{key} is missing")
    return value


def maybe_integer(parent: Json, key: str) -> int | None:
    """A whole number of at most 64 bits, if the field is there."""
    value = parent.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise Malformed(f"{key} is no whole number")
    return value


def number(parent: Json, key: str) -> float:
    """A number that must be there."""
    value = parent.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise Malformed(f"{key} is no number")
    return float(value)


def string(parent: Json, key: str) -> str:
    """Text; empty when the field is absent."""
    value = parent.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(f"{key} is no text")
    return value


def flag(parent: Json, key: str) -> bool:
    """A truth value; false when the field is absent."""
    value = parent.get(key, False)
    if not isinstance(value, bool):
        raise Malformed(f"{key} is neither true nor false")
    return value


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
