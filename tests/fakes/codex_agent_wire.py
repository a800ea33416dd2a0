"""The scripted Codex's messages and threads; what it does in a turn stands beside it."""

from __future__ import annotations

import os
from typing import Any

from scripted import Kept, Pipes, name

MODELS = [
    ("gpt-9", ["low", "medium", "high"], True),
    ("gpt-9-mini", ["low", "medium"], False),
]
COUNTS = ("inputTokens", "outputTokens")


class Refused(Exception):
    """A request is answered with an error."""

    code = -32600


class Wire(Pipes):
    """Requests are answered, everything else is told."""

    def tell(self, method: str, **params: Any) -> None:
        self.put({"method": method, "params": params})

    def ask(self, number: int, method: str, **params: Any) -> None:
        self.put({"method": method, "id": number, "params": params})

    def answer(self, number: int, result: dict[str, Any]) -> None:
        self.put({"id": number, "result": result})

    def refuse(self, number: int, fault: Refused) -> None:
        self.put({"id": number, "error": {"code": fault.code, "message": str(fault)}})


class Thread:
    """A conversation with what it was opened with."""

    def __init__(self, kept: Kept, told: dict[str, Any], *, keep: bool) -> None:
        self._kept = kept if keep else None
        self.id = f"01a22dc5-{name()[:4]}-7{name()[:3]}-8{name()[:3]}-{name()[:12]}"
        self.told = told
        self.said: list[str] = []
        self.tools: list[str] = [tool["name"] for tool in told.get("dynamicTools") or ()]
        self.total = [0, 0]

    def take_over(self, content: dict[str, Any]) -> None:
        self.said, self.tools, self.total = (content[key] for key in ("said", "tools", "total"))

    def save(self) -> None:
        if self._kept is not None:
            content = {"said": self.said, "tools": self.tools, "total": self.total}
            self._kept.save(self.id, content)

    def usage(self, last: list[int]) -> dict[str, Any]:
        return {
            "total": dict(zip(COUNTS, self.total, strict=True)),
            "last": dict(zip(COUNTS, last, strict=True)),
            "modelContextWindow": 258400,
        }


def opened(thread: Thread, *, old: bool) -> dict[str, Any]:
    """The answer to a thread's opening, as far as anybody looks at it."""
    told = thread.told
    kind = {"read-only": "readOnly"}.get(told.get("sandbox", ""), "workspaceWrite")
    profile = told.get("permissions")
    return {
        "thread": {"id": thread.id, "ephemeral": told.get("ephemeral", False), "turns": []},
        "model": told.get("model") or "gpt-9",
        "cwd": told["cwd"],
        "approvalPolicy": told["approvalPolicy"],
        "sandbox": {"type": kind, "networkAccess": False},
        "activePermissionProfile": {"id": profile} if profile and not old else None,
    }


def models() -> dict[str, Any]:
    listed = [
        {
            "id": model,
            "model": model,
            "isDefault": usual,
            "defaultReasoningEffort": "medium",
            "supportedReasoningEfforts": [{"reasoningEffort": effort} for effort in efforts],
        }
        for model, efforts, usual in MODELS
    ]
    return {"data": listed, "nextCursor": None}


GREETING = {"userAgent": "laneway/0.163.0 (Debian 12.0.0; x86_64) unknown (laneway; 1)"}
GREETING |= {"codexHome": os.environ.get("HOME", "/"), "platformFamily": "unix"}
