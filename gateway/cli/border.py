"""The border to the terminal: what agents and strangers wrote is printed as text, never obeyed.

Control characters could move the cursor, hide lines or change the window, signs of direction could
make words look like others, and signs that nobody sees could make two names look the same. They
stand as escapes; what a language needs to be read stays. Pure; it must not know where it prints.
"""

from __future__ import annotations

import json
import re
from typing import Any

# All but tab and line end, what turns the reading order by force, and what no writing uses.
_STEERING = (
    "\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202d\u202e\u206a-\u206f\ufff9-\ufffb\ud800-\udfff"
)
# Nobody sees these, or takes them for a blank; names and rows have no use for them.
_UNSEEN = (
    "\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f"
    "\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_JOINING = "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_PICTURES = "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"

_STEERS = re.compile(f"[{_STEERING}]")
_DIRECTS = re.compile("[\u202a-\u202c\u2066-\u2069]")
_HIDES = re.compile(f"[{_STEERING}{_UNSEEN}]")
# Words of Persian and many of India hold such joints, and so do families, flags and hearts.
_NEEDED = re.compile(
    f"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    f"|(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])"
    f"|(?<=[{_PICTURES}©®])\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    "|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f"
)
_OPENS = {"\u202a": "\u202c", "\u202b": "\u202c"} | dict.fromkeys("\u2066\u2067\u2068", "\u2069")


def harmless(text: str, *, growing: bool = False) -> str:
    """A running text as it may be printed, in lines of its own.

    A direction that is begun has to end in its line. ``growing``: the last line goes on.
    """
    text = _STEERS.sub(_escape, _lines(text))
    if not _DIRECTS.search(text):
        return text
    *lines, last = text.split("\n")
    return "\n".join([*map(_directed, lines), _directed(last, growing)])


def plain(text: str) -> str:
    """Words among our own, such as a name: nothing in them that is not seen. Lines stay lines."""
    pieces, at = [], 0
    text = _lines(text)
    for found in _NEEDED.finditer(text):
        pieces += [_HIDES.sub(_escape, text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*pieces, _HIDES.sub(_escape, text[at:])])


def one_line(text: str) -> str:
    """The same as one line, for a row of a table."""
    return plain(" ".join(text.split()))


def as_json(value: Any, indent: int = 2) -> str:
    """JSON as it may be printed; it means the same."""
    return safe_json(json.dumps(value, ensure_ascii=False, indent=indent))


def safe_json(text: str) -> str:
    """The same of what is JSON already."""
    return _HIDES.sub(lambda found: json.dumps(found[0])[1:-1], text)  # in strings only


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _directed(line: str, growing: bool = False) -> str:
    """A line in which every direction that is begun ends, and none ends that was not begun."""
    begun: list[tuple[int, str]] = []
    lone: set[int] = set()
    for found in _DIRECTS.finditer(line):
        at, sign = found.start(), found[0]
        if sign in _OPENS:
            begun.append((at, _OPENS[sign]))
        elif begun and begun[-1][1] == sign:
            begun.pop()
        else:
            lone.add(at)
    if not growing:
        lone.update(at for at, _ in begun)
    return _DIRECTS.sub(lambda found: _escape(found) if found.start() in lone else found[0], line)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
