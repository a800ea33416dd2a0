"""Faults to order at the fake Telegram, what it recorded, and its flood control.

A fault hits the next calls it is meant for: ``times`` of them (0: all until ``heal``).
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from enum import StrEnum

from tests.fakes.telegram_rules import Json, Refusal


class Way(StrEnum):
    """How a call goes wrong."""

    ANSWER = "answer"  # an answer of our choice; nothing is done
    HANG_BEFORE = "hang_before"  # no answer, nothing done
    HANG_AFTER = "hang_after"  # done, but no answer
    DROP_BEFORE = "drop_before"  # the connection ends, nothing done
    DROP_AFTER = "drop_after"  # done, then the connection ends


@dataclass(slots=True)
class Fault:
    """What shall happen to calls of a method (``*``: any), in one chat or in all."""

    method: str
    way: Way
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    chat: int | None = None
    times: int = 1

    def hits(self, method: str, chat: int | None) -> bool:
        """Whether a call is meant."""
        meant = method == self.method or (self.method == "*" and method != "getUpdates")
        return meant and (self.chat is None or self.chat == chat)


@dataclass(slots=True)
class Call:
    """One call as it came, and what was answered. ``at`` is monotonic."""

    method: str
    fields: Json
    files: dict[str, tuple[str, bytes]]
    at: float
    status: int = 0  # 0: no answer (yet)
    description: str = ""

    @property
    def chat(self) -> int | None:
        """The chat it names, if it names one."""
        value = self.fields.get("chat_id")
        return int(value) if value is not None and str(value).lstrip("-").isdecimal() else None

    @property
    def thread(self) -> int | None:
        """The topic it names, if it names one."""
        value = self.fields.get("message_thread_id")
        return int(value) if value is not None else None

    def plain(self) -> Json:
        """The call as one JSON line; of files only name and size."""
        return {
            "method": self.method,
            "fields": self.fields,
            "files": {key: [name, len(data)] for key, (name, data) in self.files.items()},
            "at": self.at,
            "status": self.status,
            "description": self.description,
        }


@dataclass(slots=True)
class Flood:
    """Telegram's flood control, as far as it is known: sends and edits a chat, a group, in all."""

    chat_burst: int = 5  # a chat may have this many a second
    group_minute: int = 20
    total_second: int = 30
    penalty: int = 3
    sent: defaultdict[int, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    until: dict[int, float] = field(default_factory=dict)

    def count(self, method: str, chat: int | None) -> None:
        """Count a call; refuse it when there are too many. A call inside a penalty prolongs it."""
        if chat is None or not method.startswith(("send", "edit")) or method == "sendChatAction":
            return
        now = time.monotonic()
        if now < self.until.get(chat, 0.0):
            self._refuse(chat, now)
        recent, all_chats = self.sent[chat], self.sent[0]
        for one, seconds in ((recent, 60.0), (all_chats, 1.0)):
            while one and one[0] < now - seconds:
                one.popleft()
        if (
            sum(at > now - 1.0 for at in recent) >= self.chat_burst
            or (chat < 0 and len(recent) >= self.group_minute)
            or len(all_chats) >= self.total_second
        ):
            self._refuse(chat, now)
        recent.append(now)
        all_chats.append(now)

    def _refuse(self, chat: int, now: float) -> None:
        self.until[chat] = now + self.penalty
        raise Refusal(
            f"Too Many Requests: retry after {self.penalty}", 429, retry_after=self.penalty
        )
