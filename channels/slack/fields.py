"""Slack's own shapes of JSON fields, and times as Slack writes them; the rest is as everywhere.

Pure. It must not know what the fields mean.
"""

from __future__ import annotations

import re

from channels.fields import Json, Malformed, as_object, maybe, obj, objects, string

__all__ = [
    "Json", "Malformed", "as_object", "maybe", "maybe_stamp", "milliseconds", "needed", "obj",
    "objects", "order", "size_of", "stamp", "stamp_of", "string",
]  # fmt: skip

_TS = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")


def needed(parent: Json, key: str) -> str:
    """Text that must be there."""
    if not (value := string(parent, key)):
        raise Malformed(f"{key} is missing")
    return value


def stamp(parent: Json, key: str) -> str:
    """A message's id within its channel, such as 1712345600.000300; it must be there."""
    value = needed(parent, key)
    if _TS.fullmatch(value) is None:
        raise Malformed(f"{key} is no time")
    return value


def maybe_stamp(parent: Json, key: str) -> str:
    """The same; empty when the field is absent."""
    return stamp(parent, key) if parent.get(key) else ""


def size_of(parent: Json, key: str) -> int | None:
    """A number of bytes, if the field is there."""
    value = parent.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise Malformed(f"{key} is no size")
    return value


def order(ts: str) -> tuple[int, int]:
    """By which times are compared; they are kept as text."""
    seconds, _, rest = ts.partition(".")
    return int(seconds), int(rest[:6].ljust(6, "0")) if rest else 0


def milliseconds(ts: str) -> int:
    seconds, micros = order(ts)
    return seconds * 1000 + micros // 1000


def stamp_of(at: int) -> str:
    """An instant in milliseconds as Slack writes it."""
    at = max(0, at)
    return f"{at // 1000}.{at % 1000:03d}000"
