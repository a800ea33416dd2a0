"""Faults to order at the fake Discord, what it recorded, and its rate limits.

A fault hits the next calls it is meant for: ``times`` of them (0: all until ``heal``).
"""

from __future__ import annotations

import re
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class Refusal(Exception):
    """An answer of 400 and more, in Discord's shape."""

    def __init__(
        self, status: int, code: int = 0, message: str = "", errors: Json | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message or f"{status}: refused"
        self.errors = errors
        self.headers: dict[str, str] = {}

    def body(self) -> Json:
        body: Json = {"message": self.message, "code": self.code}
        return body | ({"errors": self.errors} if self.errors else {})


class Limited(Refusal):
    """A 429 as Discord's own servers send it."""

    def __init__(self, retry_after: float, everywhere: bool = False) -> None:
        super().__init__(429, 0, "You are being rate limited.")
        self.retry_after = retry_after
        self.everywhere = everywhere
        scope = "global" if everywhere else "user"
        self.headers = {"Retry-After": str(int(retry_after) + 1), "X-RateLimit-Scope": scope}

    def body(self) -> Json:
        return super().body() | {"retry_after": self.retry_after, "global": self.everywhere}


class Way(StrEnum):
    """How a call goes wrong."""

    ANSWER = "answer"  # an answer of our choice; nothing is done
    HANG_BEFORE = "hang_before"  # no answer, nothing done
    HANG_AFTER = "hang_after"  # done, but no answer
    DROP_BEFORE = "drop_before"  # the connection ends, nothing done
    DROP_AFTER = "drop_after"  # done, then the connection ends


@dataclass(slots=True)
class Fault:
    """What shall happen to calls whose method and path match."""

    method: str
    path: str
    way: Way
    refusal: Refusal | None = None
    raw: bytes | None = None
    times: int = 1

    def hits(self, method: str, path: str) -> bool:
        return self.method in ("*", method) and re.search(self.path, path) is not None


@dataclass(slots=True)
class Call:
    """One call as it came, and what was answered. ``at`` is monotonic."""

    method: str
    path: str
    body: Json
    files: dict[str, tuple[str, bytes]]
    query: dict[str, str]
    at: float
    status: int = 0  # 0: no answer (yet)
    limited: Limited | None = None  # the penalty that it was answered with

    def plain(self) -> Json:
        """The call as one JSON line; of files only name and size."""
        files = {key: [name, len(data)] for key, (name, data) in self.files.items()}
        return {
            "method": self.method,
            "path": self.path,
            "body": self.body,
            "files": files,
            "status": self.status,
        }


@dataclass(slots=True)
class Pace:
    """How many calls of a bucket a channel may have in how many seconds, and all together."""

    calls: int = 1000
    seconds: float = 1.0
    total: int = 10_000  # a second, over everything
    enforced: bool = True
    made: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def count(self, bucket: str) -> dict[str, str]:
        """Count a call; the headers of its answer. Raises Limited when there are too many."""
        now = time.monotonic()
        recent = self._recent(bucket, now, self.seconds)
        after = self.seconds - (now - recent[0]) if recent else self.seconds
        if len(recent) >= self.calls and self.enforced:
            raise self._with_headers(Limited(round(after, 3)), bucket, 0, after)
        everything = self._recent("*", now, 1.0)
        if len(everything) >= self.total and self.enforced:
            raise Limited(round(1.0 - (now - everything[0]), 3), everywhere=True)
        recent.append(now)
        everything.append(now)
        return self._headers(bucket, max(0, self.calls - len(recent)), after)

    def _recent(self, bucket: str, now: float, seconds: float) -> deque[float]:
        made = self.made[bucket]
        while made and made[0] <= now - seconds:
            made.popleft()
        return made

    def _with_headers(self, limited: Limited, bucket: str, left: int, after: float) -> Limited:
        limited.headers |= self._headers(bucket, left, after)
        return limited

    def _headers(self, bucket: str, left: int, after: float) -> dict[str, str]:
        return {
            "X-RateLimit-Bucket": f"b{abs(hash(bucket.partition('|')[0])):x}"[:32],
            "X-RateLimit-Limit": str(self.calls),
            "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": f"{time.time() + after:.3f}",
            "X-RateLimit-Reset-After": f"{after:.3f}",
        }
