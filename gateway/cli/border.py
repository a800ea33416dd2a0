"""The border to the terminal: what agents and strangers wrote is printed as text, never obeyed.

Control characters could move the cursor, hide lines or change the window; they stand as escapes.
"""

from __future__ import annotations

import json
import re
from typing import Any

_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # but tab and line end
_BEYOND_JSON = re.compile("[\x7f-\x9f\ud800-\udfff]")  # what json.dumps leaves as it is


def harmless(text: str) -> str:
    """The text as it may be printed."""
    return _CONTROL.sub(_escape, text.replace("\r\n", "\n").replace("\r", "\n"))


def as_json(value: Any) -> str:
    """JSON as it may be printed; it means the same."""
    shown = json.dumps(value, ensure_ascii=False, indent=2)
    return _BEYOND_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", shown)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
