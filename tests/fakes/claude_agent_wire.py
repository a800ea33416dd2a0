"""The scripted Claude Code's pipes, questions and sessions; what it does stands beside it."""

from __future__ import annotations

import os
from typing import Any

from scripted import Kept, Pipes, name

MODELS = [
    ("default", "claude-opus-9", ["low", "medium", "high", "xhigh", "max"]),
    ("opus", "claude-opus-9", ["low", "medium", "high", "xhigh", "max"]),
    ("haiku", "claude-haiku-9", ["low", "high"]),
]
TOOLS = ["AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "Read", "SendMessage", "Task", "Write"]


class Wire(Pipes):
    """Every message names its session."""

    session = ""

    def send(self, kind: str, **fields: Any) -> None:
        self.put({"type": kind, **fields, "session_id": self.session, "uuid": name()})


class Session:
    """A conversation: what was said, and what it has cost."""

    def __init__(self, folder: str, number: str, keep: bool) -> None:
        self._kept = Kept(folder)
        self._keep = keep
        self.number = number
        self.said: list[str] = []
        self.total = 0.0

    def load(self, number: str) -> bool:
        kept = self._kept.load(number)
        if kept is not None:
            self.said, self.total = kept["said"], kept["total"]
        return kept is not None

    def save(self) -> None:
        if self._keep:
            self._kept.save(self.number, {"said": self.said, "total": self.total})


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
