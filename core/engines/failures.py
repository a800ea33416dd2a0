"""What kind of failure an agent's own words tell of, where it names none. Pure.

Agents put what their model's service said into one line. Only what is certain is read out of it:
a failure that is taken for another would be tried again in vain, or hold a whole engine.
"""

from __future__ import annotations

import re

from core.engines.base import Failure, FailureKind

_STATUS = re.compile(r"(?:status|code|error|http)\D{0,12}\b(4\d\d|5\d\d)\b", re.I)
_LIMIT = re.compile(
    r"(usage|session|weekly|daily|\d-hour) limit|hit your limit|limit reached"
    r"|exceeded your current quota|insufficient[_ ]quota|quota exceeded",
    re.I,
)
_BUSY = re.compile(
    r"overloaded|rate.?limit|too many requests|try again later|temporarily unavailable"
    r"|service unavailable|connection (?:reset|error|closed)|econnreset|etimedout|timed out",
    re.I,
)
_LOST = re.compile(
    r"(session|conversation|thread) (was )?(not found|unknown|does not exist|expired)"
    r"|(unknown|invalid|no such) (session|conversation)|no conversation found"
    r"|tool_use.{0,40}without.{0,20}tool_result",
    re.I,
)
_EPOCH = re.compile(r"(?:reset\w*|until|limit reached)\D{0,12}(\d{10})\b", re.I)
_WAIT = re.compile(
    r"(?:retry|try again)[ -](?:after|in)\D{0,4}(\d{1,6})(?:\.\d+)? ?(ms|m|h)?", re.I
)
_BUSY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_UNIT = {"ms": 0.001, "m": 60.0, "h": 3600.0}


def of_words(text: str, now: int) -> Failure | None:
    """``now`` in ms since 1970; None where the words tell nothing certain."""
    text = text[:4000]
    if _LIMIT.search(text):
        found = _EPOCH.search(text)
        until = int(found[1]) * 1000 if found else None
        wait = _wait(text)
        if until is None and wait is not None:
            until = now + round(wait * 1000)
        return Failure(FailureKind.LIMIT, until=until)
    status = _STATUS.search(text)
    if _BUSY.search(text) or (status and int(status[1]) in _BUSY_STATUS):
        return Failure(FailureKind.BUSY, wait=_wait(text))
    if status and int(status[1]) in (401, 403):
        return Failure(FailureKind.BROKEN)
    if _LOST.search(text):
        return Failure(FailureKind.SESSION)
    return None


def _wait(text: str) -> float | None:
    found = _WAIT.search(text)
    return int(found[1]) * _UNIT.get((found[2] or "").lower(), 1.0) if found else None
