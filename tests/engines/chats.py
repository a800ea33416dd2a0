"""Scenery for tests of the chat-completions engine: a server on loopback, and who asks it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.clock import SystemClock
from core.engines.base import Request, ToolStarted, Usage
from core.engines.openai_http import Bounds, ChatEngine
from tests.contracts.engine_contract import Play, assert_in_order
from tests.fakes.openai_server import MODEL, Answer, ChatServer, Seen

KEY = "sk-very-secret-1234567890"


class HurriedClock(SystemClock):
    """Waits for nothing, and says how long it would have waited."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


@dataclass
class Chats:
    """A home, a workspace, a server and the engine under test."""

    home: Path
    folder: Path
    server: ChatServer
    clock: SystemClock = field(default_factory=HurriedClock)
    turns: int = 0
    engines: list[ChatEngine] = field(default_factory=list)

    def engine(self, **more: Any) -> ChatEngine:
        """A new one, as after a restart; it is used from now on."""
        fields: dict[str, Any] = {
            "home": self.home,
            "clock": self.clock,
            "key": KEY,
            "model": MODEL,
            "jitter": lambda: 1.0,
        }
        url = more.pop("base_url", self.server.base_url)
        bounds = more.pop("bounds", Bounds())
        made = ChatEngine("openai", url, bounds=bounds, **{**fields, **more})
        self.engines.append(made)
        return made

    def play(self, prompt: str, **more: Any) -> Play:
        self.turns += 1
        engine = self.engines[-1] if self.engines else self.engine()
        fields = {"lane": "lane one", "turn": self.turns, "folder": self.folder, "prompt": prompt}
        return Play(engine.run(Request(**{**fields, **more})))

    async def say(self, prompt: str, *script: Answer, **more: Any) -> Play:
        self.server.script += script
        play = self.play(prompt, **more)
        await play.through()
        assert_in_order(play.events)
        return play

    @property
    def last(self) -> Seen:
        return self.server.seen[-1]

    @property
    def waited(self) -> list[float]:
        assert isinstance(self.clock, HurriedClock)
        return self.clock.waited


def used(play: Play) -> Usage:
    """What the turn has used, as it was told last."""
    return [event for event in play.events if isinstance(event, Usage)][-1]


def tools(play: Play) -> list[str]:
    return [event.title for event in play.events if isinstance(event, ToolStarted)]


def told(chats: Chats, role: str = "user") -> list[object]:
    """What the server was handed in the newest request, in one role."""
    return [m["content"] for m in chats.last.messages if m["role"] == role]
