"""Typed access to the JSON that a platform sends.

Absent optional fields have a default; a field of the wrong type is Malformed, whatever it is.
Pure. It must not know any platform, nor what the fields mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

Json = Mapping[str, object]


class Malformed(ValueError):
    """What arrived does not have the shape that its platform promises."""


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


def items(parent: Json, key: str) -> list[object]:
    """A list of anything; none when the field is absent."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed(f"{key} is no list")
    return value


def objects(parent: Json, key: str) -> list[Json]:
    """A list of objects; none when the field is absent."""
    return [as_object(item, f"an item of {key}") for item in items(parent, key)]


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
