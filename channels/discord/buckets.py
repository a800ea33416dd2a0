"""How often Discord may be called, as its answers say; what is over is refused before it leaves.

Pure: seconds that never go back are handed in. It waits for nothing and knows no call's meaning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from core.channel import RateLimited

KEPT = 512  # buckets looked after before those whose time is over are let go
WINDOW = 600.0  # seconds in which Discord counts invalid requests
INVALID_MOST = 3000  # of 10,000 at which it bans the address
INVALID_PAUSE = 60.0


class Bucket:
    """Calls left until a moment; what Discord does not tell is no limit."""

    __slots__ = ("left", "resets_at")

    def __init__(self) -> None:
        self.left = 1
        self.resets_at = 0.0


class Buckets:
    """Everything one token may do: a bucket a route and channel, one hold for all of it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # a route's key to Discord's name of its bucket
        self._buckets: dict[str, Bucket] = {}
        self._held_until = 0.0
        self._invalid: deque[float] = deque()

    def take(self, route: str, major: str, now: float, apart: bool = False) -> None:
        """Count a call that leaves now. Raises RateLimited when it would be refused.

        ``apart``: answers to interactions, which no general limit concerns.
        """
        if not apart:
            if now < self._held_until:
                raise RateLimited(self._held_until - now, everywhere=True)
            if len(self._invalid) >= INVALID_MOST and self._invalid[0] > now - WINDOW:
                raise RateLimited(INVALID_PAUSE, everywhere=True)
        # A route may have been refused before it was known which bucket is its own.
        keys = {f"{route}:{major}", self._key(route, major)}
        current = [one for key in keys if (one := self._buckets.get(key)) and one.resets_at > now]
        if waits := [one.resets_at - now for one in current if one.left <= 0]:
            raise RateLimited(max(waits))
        for bucket in current:
            bucket.left -= 1

    def learn(self, route: str, major: str, headers: Mapping[str, str], now: float) -> None:
        """What an answer says about its bucket."""
        left, after = _number(headers, "X-RateLimit-Remaining"), _reset(headers)
        if left is None or after is None:
            return
        if name := headers.get("X-RateLimit-Bucket"):
            self._names[route] = name
        bucket = self._bucket(route, major, now)
        same_window = now < bucket.resets_at
        # Answers overtake each other: within one window the count only goes down.
        bucket.left = min(bucket.left, int(left)) if same_window else int(left)
        bucket.resets_at = max(bucket.resets_at, now + after) if same_window else now + after

    def refused(self, status: int, now: float) -> None:
        """Discord bans an address that is refused too often, whatever the reason."""
        if status in (401, 403, 429):
            self._invalid.append(now)
            if len(self._invalid) > INVALID_MOST:
                self._invalid.popleft()

    def penalty(self, route: str, major: str, limited: RateLimited, now: float) -> None:
        """A call was refused for its rate: keep to what Discord said, exactly."""
        if limited.everywhere:
            self._held_until = max(self._held_until, now + limited.retry_after)
            return
        bucket = self._bucket(route, major, now)
        bucket.left = 0
        bucket.resets_at = max(bucket.resets_at, now + limited.retry_after)

    def _key(self, route: str, major: str) -> str:
        return f"{self._names.get(route, route)}:{major}"

    def _bucket(self, route: str, major: str, now: float) -> Bucket:
        key = self._key(route, major)
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= KEPT:
                self._buckets = {k: b for k, b in self._buckets.items() if b.resets_at > now}
            bucket = self._buckets[key] = Bucket()
        return bucket


def _number(headers: Mapping[str, str], name: str) -> float | None:
    try:
        value = float(headers[name])
    except (KeyError, ValueError):
        return None
    return value if 0 <= value < 1e9 else None


def _reset(headers: Mapping[str, str]) -> float | None:
    return _number(headers, "X-RateLimit-Reset-After")
