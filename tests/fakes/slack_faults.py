"""Faults to order at the fake Slack, what it recorded, and its rate tiers.

A fault hits the next calls of its method: ``times`` of them (0: all until ``heal``).
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from enum import StrEnum

from tests.fakes.slack_rules import Json, Refusal


class Way(StrEnum):
    """How a call goes wrong."""

    ANSWER = "answer"  # an answer of our choice; nothing is done
    HANG_BEFORE = "hang_before"  # no answer, nothing done
    HANG_AFTER = "hang_after"  # done, but no answer
    DROP_BEFORE = "drop_before"  # the connection ends, nothing done
    DROP_AFTER = "drop_after"  # done, then the connection ends


@dataclass(slots=True)
class Fault:
    """What shall happen to calls of a method (``*``: any)."""

    method: str
    way: Way
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1


@dataclass(slots=True)
class Call:
    """One call as it came, and what was answered. ``at`` is monotonic."""

    method: str
    fields: Json
    at: float
    status: int = 0  # 0: no answer (yet)
    error: str = ""

    @property
    def channel(self) -> str:
        return str(self.fields.get("channel") or self.fields.get("channel_id") or "")

    @property
    def thread(self) -> str:
        return str(self.fields.get("thread_ts") or "")

    def plain(self) -> Json:
        return {
            "method": self.method,
            "fields": self.fields,
            "at": self.at,
            "status": self.status,
            "error": self.error,
        }


_TIERS = {
    "apps.connections.open": 20, "auth.test": 200, "chat.update": 50, "chat.delete": 50,
    "chat.startStream": 20, "chat.appendStream": 100, "chat.stopStream": 20,
    "chat.postEphemeral": 100, "conversations.history": 50, "conversations.replies": 50,
    "conversations.info": 50, "conversations.list": 20, "reactions.add": 50, "reactions.remove": 20,
    "users.info": 100, "files.info": 100, "files.getUploadURLExternal": 100,
    "files.completeUploadExternal": 100,
}  # fmt: skip


@dataclass(slots=True)
class Tiers:
    """Slack's limits: calls a minute of each method, and about one message a second a channel."""

    burst: int = 4  # messages a channel may have at once
    penalty: int = 1
    counted: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def count(self, method: str, channel: str) -> None:
        """Count a call; refuse it when there are too many."""
        if method == "chat.postMessage":
            self._take(f"{method} {channel}", self.burst, self.burst)
        elif most := _TIERS.get(method):
            self._take(method, most, 60.0)

    def _take(self, key: str, most: int, seconds: float) -> None:
        now, recent = time.monotonic(), self.counted[key]
        while recent and recent[0] < now - seconds:
            recent.popleft()
        if len(recent) >= most:
            raise Refusal("ratelimited", 429, retry_after=self.penalty)
        recent.append(now)
