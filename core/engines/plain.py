"""Reading plain data of an agent: whatever it sent, what leaves here can be stored and shown.

Texts are whole characters, and texts and numbers end somewhere. Knows JSON and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.messages import clean

Json = Mapping[str, Any]

NAME_MOST = 200  # characters of ids, titles and names
ENDING_MOST = 12
TOKENS_MOST = 2**53
COST_MOST = 1e9


def mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def items(value: object) -> Sequence[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def words(value: object) -> str:
    """A text as it can be stored; NUL and halves of characters are what agents also send."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() and "\0" not in value else clean(value)


def name(value: object) -> str:
    """A short text of one line: an id, a title, a file's name."""
    text = " ".join(words(as_sent(value)[: 4 * NAME_MOST]).split())
    return text if len(text) <= NAME_MOST else text[: NAME_MOST - 1] + "…"


def file_name(value: object) -> str:
    """A file's name; a long one keeps its ending, by which people and programs know its kind."""
    whole = " ".join(words(as_sent(value)[: 4 * NAME_MOST]).split())
    stem, dot, ending = whole.rpartition(".")
    if len(whole) <= NAME_MOST or not dot or len(ending) > ENDING_MOST:
        return name(whole)
    return f"{stem[: NAME_MOST - len(ending) - 2]}….{ending}"


def session_id(result: Json) -> str:
    """The id of an opened session; "" for none that could be stored and given back as it is."""
    found = result.get("sessionId")
    return words(found) if words(found) == found and len(found) <= 4 * NAME_MOST else ""


def money(value: object) -> float | None:
    """A sum of money that can be one."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value > COST_MOST:
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def whole_number(value: object) -> int | None:
    """A count that can be one."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= TOKENS_MOST else None


def as_sent(value: object) -> str:
    """As it came, halves of characters included."""
    return value if isinstance(value, str) else ""
