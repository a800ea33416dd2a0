"""Codex, spoken with through its ``app-server``, one process an active lane.

Knows the engine port and this one program; no lane rule, no channel.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from core.engines.agents import TOOLS, AgentEngine, Upkeep
from core.engines.base import Abilities, Choices, Finding, Request
from core.engines.codex_ends import SIGN_IN
from core.engines.codex_program import INSTALL
from core.engines.codex_run import CodexRun
from core.engines.codex_session import Thread, sandbox
from core.engines.codex_words import Declared, arguments
from core.engines.plain import Json
from core.engines.trees import MARK
from core.engines.workspace_tools import Tools, reading_tools

ABILITIES = Abilities(resume=True, side=True, steer=True, compact=True, cost=False, images=True)


class CodexEngine(AgentEngine[Thread]):
    """The Codex adapter: makes the runs, and knows how the program is started."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        private: Sequence[Path] = (),
        tools: Tools = reading_tools,
        **upkeep: Unpack[Upkeep],
    ) -> None:
        """``private``: paths that no command of it may read. ``tools``: those that a side answer
        reads the workspace with."""
        super().__init__("codex", command, **upkeep)
        self._private = tuple(private)
        self.tools = tools
        self.abilities = ABILITIES
        self.told: Declared | None = None  # at its newest hand-shake
        self.own_servers = frozenset({TOOLS})
        self._first = asyncio.Lock()
        self._set_up = False  # a process of it has got ready once

    def run(self, request: Request) -> CodexRun:
        return CodexRun(self, request)

    async def choices(self, model: str = "") -> Choices:
        """What it told of itself; a provider of the person's own may have other models."""
        if self.told is None:
            return Choices()
        known = [one.name for one in self.told.models]
        about = self.told.about(self.told.model(model))
        return Choices(known, about.efforts if about else (), open=True)

    # What a run needs of its engine ---------------------------------------------------------

    def arguments(self, request: Request) -> tuple[str, ...]:
        """The command line of a new process, after the command itself."""
        env = self._environment("", self._dir)
        home = Path(env.get("HOME", "~")).expanduser()
        login = Path(env.get("CODEX_HOME") or home / ".codex") / "auth.json"
        found = dict.fromkeys(path.resolve() for path in (*self._private, login))
        private = [path for path in found if path.exists()]
        own = [request.folder.resolve(), self._tmp(request.lane).resolve()]
        return arguments(request, private, own, MARK)

    def served(self, request: Request) -> Json:
        """The gateway's tool servers, as a thread is told of them."""
        return {
            server.name: {
                "url": server.url,
                "http_headers": dict(server.headers),
                "default_tools_approval_mode": "approve",
            }
            for server in self._servers(request)
        }

    @contextlib.asynccontextmanager
    async def starting(self) -> AsyncIterator[None]:
        """One after the other until one got ready: the first sets up files that all share."""
        if self._set_up:
            yield
            return
        async with self._first:
            yield
            self._set_up = True

    def never_on_the_side(self) -> None:
        """This program cannot be held to reading only."""
        self.abilities = replace(self.abilities, side=False)

    def now(self) -> int:
        return self._clock.now()

    # The doctor -------------------------------------------------------------------------------

    async def check(self) -> Sequence[Finding]:
        looked: list[Finding] = []

        async def look(opened: Thread) -> None:
            looked.append(await sandbox(opened))

        async def main(request: Request) -> Thread:
            return await self.run(request).try_out(look)

        findings, opened = await self.tried(INSTALL, main)
        if opened is None:
            return findings
        told = self._told(opened.declared)
        return [*findings, *told, *looked, await self._on_the_side()]

    async def _on_the_side(self) -> Finding:
        """Whether it can be held to reading only."""

        async def side(request: Request) -> Thread:
            return await self.run(replace(request, read_only=True)).try_out()

        (*_, last), opened = await self.tried(INSTALL, side)
        title = "codex: side answers"
        if opened is None:
            return Finding(title, False, "none", last.fix)
        return Finding(title, True, "it can be held to reading only")

    def _told(self, found: Declared) -> list[Finding]:
        known = ", ".join(model.name for model in found.models)
        signed = found.signed_in
        return [
            Finding("codex: hand-shake", True, f"version {found.version or 'not told'}"),
            Finding(
                "codex: login",
                signed,
                "an account or key is there" if signed else "none",
                "" if signed else SIGN_IN,
            ),
            Finding("codex: models", True, known or "not told"),
        ]
