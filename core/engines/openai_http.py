"""Any server that speaks OpenAI's chat completions over HTTP; no process is started.

Such a server remembers nothing and does nothing: history, tools and retries are ours. Knows the
engine port, no lane rule, no channel, and no server by name.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.clock import Clock
from core.engines.base import Abilities, Choices, Finding, Request
from core.engines.openai_http_history import Histories
from core.engines.openai_http_run import ChatRun
from core.engines.openai_http_server import Lost, NotSent, Server
from core.engines.openai_http_stream import parsed
from core.engines.openai_http_words import Refused, explained
from core.engines.plain import Json, items, mapping, name
from core.engines.workspace_tools import Tool, Tools, reading_tools, with_toolbox

BASE_FIX = "Check LANEWAY_OPENAI_BASE_URL; it mostly ends in /v1."
KEY_FIX = "Check LANEWAY_OPENAI_API_KEY."
MODEL_FIX = "Set LANEWAY_OPENAI_MODEL to one that the server has, like {some}."
EFFORTS = ("minimal", "low", "medium", "high", "xhigh")
LISTED_FOR = 300.0  # seconds a server's list of models counts
LISTS_WITHIN = 1.0  # seconds it has to tell it, while a command waits
NAMED = 5  # models that are named when the one that is set is not there


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a turn goes."""

    context: int = 32_000  # tokens of history that are sent, by our estimate
    rounds: int = 40  # calls of the model in one turn
    tries: int = 5  # of one call that the server does not take, before anything was shown
    pause: float = 1.0  # seconds before the second try; doubled each time, with jitter
    longest: float = 120.0  # seconds that a server may ask to wait; longer is told at once
    patience: float = 300.0  # seconds without a byte; a model may have to be loaded first


class ChatEngine:
    """The adapter: keeps the connections and histories, makes the runs."""

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        home: Path,
        clock: Clock,
        key: str = "",
        model: str = "",
        bounds: Bounds = Bounds(),
        tools: Tools = reading_tools,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._name = name
        self._busy: set[str] = set()  # lanes and sessions with a running turn
        self._closed = False
        self._tools = tools
        self._listed: list[str] | None = None  # models of the server
        self._listed_at = 0.0
        self.clock = clock
        self.model = model
        self.bounds = bounds
        self.jitter = jitter
        self.server = Server(base_url, key, clock, bounds.patience)
        self.histories = Histories(home / "engines" / name / "sessions")

    @property
    def name(self) -> str:
        return self._name

    @property
    def abilities(self) -> Abilities:
        return Abilities(resume=True, side=True, compact=True, images=True)

    def run(self, request: Request) -> ChatRun:
        return ChatRun(self, request)

    async def tend(self) -> None:
        """Nothing is kept warm but connections, which end by themselves."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        self._closed = True
        await self.server.close()

    # What a run needs of its engine ---------------------------------------------------------

    def claim(self, *names: str) -> bool:
        """Take lane and session for one turn; False when a turn is on them already."""
        if self._closed or self._busy.intersection(names):
            return False
        self._busy.update(names)
        return True

    def release(self, *names: str) -> None:
        self._busy.difference_update(names)

    def tools(self, request: Request) -> Sequence[Tool]:
        """Those that look at files, and what the gateway offers the turn."""
        return with_toolbox(self._tools(request), request)

    async def choices(self, model: str = "") -> Choices:
        """The server's own list, asked for now and then; a server may tell none."""
        now = self.clock.monotonic()
        if self._listed is None or now - self._listed_at >= LISTED_FOR:
            try:
                async with asyncio.timeout(LISTS_WITHIN):
                    self._listed = models_of(parsed(await self.server.get("/models")))
                    self._listed_at = now
            except (TimeoutError, NotSent, Lost, Refused):
                return Choices(efforts=EFFORTS)
        models = list(self._listed)
        if self.model and models and self.model not in models:
            models.insert(0, self.model)
        return Choices(models, EFFORTS, open=not models)

    # The doctor -------------------------------------------------------------------------------

    async def check(self) -> Sequence[Finding]:
        reached, key = f"{self._name}: server", f"{self._name}: key"
        try:
            listed = parsed(await self.server.get("/models"))
        except (NotSent, Lost) as fault:
            return [Finding(reached, False, str(fault), BASE_FIX)]
        except Refused as fault:
            if fault.status in (401, 403):
                why = explained(fault, self.server.host, self.model)
                return [Finding(reached, True, self.server.host), Finding(key, False, why, KEY_FIX)]
            if fault.status in (404, 405, 501):
                told = f"{self.server.host} answers, and does not list its models"
                return [Finding(reached, True, told), *self._named(None)]
            why = explained(fault, self.server.host, self.model)
            return [Finding(reached, False, why, BASE_FIX)]
        if listed is None:
            told = f"{self.server.host} answers with something else than JSON"
            return [Finding(reached, False, told, BASE_FIX)]
        models = models_of(listed)
        return [
            Finding(reached, True, self.server.host),
            Finding(key, True, "accepted"),
            *self._named(models),
        ]

    def _named(self, models: Sequence[str] | None) -> list[Finding]:
        """Whether the model that is set is one of the server's; None: it tells none."""
        title = f"{self._name}: model"
        if not self.model:
            fix = MODEL_FIX.format(some=", ".join((models or ["…"])[:NAMED]))
            return [Finding(title, False, "none is set", fix)]
        if models and self.model not in models:
            fix = MODEL_FIX.format(some=", ".join(models[:NAMED]))
            return [Finding(title, False, f"the server does not have {self.model}", fix)]
        return [Finding(title, True, self.model if models else f"{self.model}, not proven")]


def models_of(listed: Json | None) -> list[str]:
    """The names in a server's list of models; some call it one way, some another."""
    found = items((listed or {}).get("data")) or items((listed or {}).get("models"))
    named = (name(mapping(one).get("id")) or name(mapping(one).get("name")) for one in found)
    return [one for one in named if one]


__all__ = ["Bounds", "ChatEngine"]
