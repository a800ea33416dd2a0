"""The scripted Claude Code's pipes, questions and sessions; what it does stands beside it."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

MODELS = [
    ("default", "claude-opus-9", ["low", "medium", "high", "xhigh", "max"]),
    ("opus", "claude-opus-9", ["low", "medium", "high", "xhigh", "max"]),
    ("haiku", "claude-haiku-9", ["low", "high"]),
]
TOOLS = ["AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "Read", "SendMessage", "Task", "Write"]


def name() -> str:
    return os.urandom(8).hex()


class Wire:
    """Objects out, one a line; objects in by a thread of its own."""

    def __init__(self, log: str) -> None:
        self._lock = threading.Lock()
        self._log = log
        self._held: bytearray | None = None
        self.session = ""

    def hold(self) -> None:
        """From here on what is sent comes out as one, by ``release``."""
        self._held = bytearray()

    def release(self) -> None:
        held, self._held = bytes(self._held or b""), None
        self.raw(held)

    def send(self, kind: str, **fields: Any) -> None:
        message = {"type": kind, **fields, "session_id": self.session, "uuid": name()}
        self.raw(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        with self._lock:
            if self._held is not None:
                self._held += data
                return
            while data:
                data = data[os.write(1, data) :]

    def listen(self, hear: Callable[[dict[str, Any]], None], over: Callable[[], None]) -> None:
        for line in sys.stdin.buffer:
            if self._log:
                with open(self._log, "ab") as file:
                    file.write(line)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            hear(message)
        over()


class Session:
    """A conversation, kept in a file: what was said, and what it has cost."""

    def __init__(self, folder: str, number: str, keep: bool) -> None:
        self._folder, self._keep = folder, keep
        self.number = number
        self.said: list[str] = []
        self.total = 0.0

    def load(self, number: str) -> bool:
        path = os.path.join(self._folder, f"{number}.json")
        if not os.path.exists(path):
            return False
        with open(path) as file:
            kept = json.load(file)
        self.said, self.total = kept["said"], kept["total"]
        return True

    def save(self) -> None:
        if not self._keep:
            return
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, f"{self.number}.json")
        with open(f"{path}.part", "w") as file:
            json.dump({"said": self.said, "total": self.total}, file)
        os.replace(f"{path}.part", path)


def hand_shake(signed_out: bool, plain: bool) -> dict[str, Any]:
    """The answer to ``initialize``, as far as anybody looks at it."""
    way = "none" if signed_out else "ANTHROPIC_API_KEY"
    return {
        "commands": [],
        "models": [
            {"value": value, "resolvedModel": meant, "supportedEffortLevels": efforts}
            for value, meant, efforts in MODELS
        ],
        "account": {"tokenSource": "none", "apiKeySource": way, "apiProvider": "firstParty"},
        **({} if plain else {"claude_code_version": "2.1.332"}),
        "pid": os.getpid(),
    }
