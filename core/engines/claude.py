"""Claude Code, spoken with in its own stream of JSON, one process an active lane.

Knows the engine port and this one program; no lane rule, no channel. Its Python library is not
needed, only the program, and that is found without importing anything.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from core.engines.agents import AgentEngine, Upkeep
from core.engines.base import Abilities, Choices, EngineUnready, Finding, Request
from core.engines.claude_ends import SIGN_IN
from core.engines.claude_program import INSTALL
from core.engines.claude_run import ClaudeRun
from core.engines.claude_session import NEEDED, Talk
from core.engines.claude_words import EFFORTS, OWN_SOURCES, SWITCHES, Declared, arguments

ALIASES = ("default", "opus", "sonnet", "haiku")
LIKE = ("claude", "arn:")  # how whole names of models look, whoever serves them
ABILITIES = Abilities(resume=True, side=True, steer=True, compact=True, cost=True, images=True)


class ClaudeEngine(AgentEngine[Talk]):
    """The Claude Code adapter: makes the runs, and knows how the program is started."""

    abilities = ABILITIES

    def __init__(
        self,
        command: Sequence[str],
        *,
        private: Sequence[tuple[Path, str]] = (),
        switches: Mapping[str, str] | None = None,
        **upkeep: Unpack[Upkeep],
    ) -> None:
        """``private``: what no tool of it may look at or change, as folders and names in them
        (``*`` and ``**`` as in a .gitignore)."""
        switches = {**SWITCHES, **(switches or {})}
        super().__init__("claude", command, switches=switches, **upkeep)
        self._private = tuple(private)
        self.told: Declared | None = None  # at the newest hand-shake

    def run(self, request: Request) -> ClaudeRun:
        return ClaudeRun(self, request)

    def arguments(self, request: Request, fresh: str) -> tuple[str, ...]:
        """The command line of a new process, after the command itself."""
        own = any(word.startswith(OWN_SOURCES.rstrip("=")) for word in self._command)
        found = arguments(
            request, fresh, [*self._private, *self._account(request)], own_sources=own
        )
        return (*found, *self._served(request, fresh))

    def _account(self, request: Request) -> list[tuple[Path, str]]:
        """Where its login lies, and for a side answer every conversation of it as well."""
        env = self._environment("", self._dir)
        home = Path(env.get("HOME", "~")).expanduser()
        folder = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        login = [(folder, ".credentials.json"), (home, ".claude.json"), (folder, ".claude.json")]
        return [(folder, "**"), *login] if request.read_only else login

    def _served(self, request: Request, fresh: str) -> list[str]:
        """The gateway's tool servers: in a file, for an argument is seen by everybody here."""
        servers = self._servers(request)
        if not servers:
            return []
        told = {
            server.name: {"type": "http", "url": server.url, "headers": dict(server.headers)}
            for server in servers
        }
        file = self._servers_file(request, fresh)
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w") as written:
                json.dump({"mcpServers": told}, written)
        except OSError as fault:
            raise EngineUnready(
                f"{file} cannot be written: {fault.strerror}. Check the disk of the gateway's "
                "machine."
            ) from fault
        names = ",".join(f"mcp__{server.name}" for server in servers)
        return ["--mcp-config", str(file), "--allowedTools", names]

    def _servers_file(self, request: Request, fresh: str) -> Path:
        return self._tmp(request.lane) / f"servers-{fresh}.json"

    def forget_servers(self, request: Request, fresh: str) -> None:
        """Once the process has read them, or never will."""
        if self._servers(request):
            with contextlib.suppress(OSError):
                self._servers_file(request, fresh).unlink(missing_ok=True)

    async def choices(self, model: str = "") -> Choices:
        """What the program told at its newest hand-shake; before that, what it always has."""
        if self.told is None:
            return Choices(ALIASES, EFFORTS, open=False, like=LIKE)
        models = [value for value, _, _ in self.told.models] or list(ALIASES)
        return Choices(models, self.told.efforts(model.lower()), open=False, like=LIKE)

    def now(self) -> int:
        return self._clock.now()

    # The doctor -------------------------------------------------------------------------------

    async def check(self) -> Sequence[Finding]:
        findings, talk = await self.tried(INSTALL, lambda request: self.run(request).try_out())
        return [*findings, *(_told(talk) if talk else ())]


def _told(talk: Talk) -> list[Finding]:
    found = talk.declared
    known = ", ".join(model for model, _, _ in found.models)
    return [
        Finding(
            "claude: hand-shake",
            True,
            f"version {found.version or 'not told'}",
            ""
            if found.current
            else f"update it to {NEEDED} or newer: older ones give no side "
            "answers, and do not always tell what became of a message into a running turn",
        ),
        Finding(
            "claude: login",
            found.signed_in,
            "an account or key is there" if found.signed_in else "none",
            "" if found.signed_in else SIGN_IN,
        ),
        Finding("claude: models", True, known or "not told"),
    ]
