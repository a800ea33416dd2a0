"""Claude Code, spoken with in its own stream of JSON, one process an active lane.

Knows the engine port and this one program; no lane rule, no channel. Its Python library is not
needed, only the program, and that is found without importing anything.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from core.clock import Clock
from core.engines.agents import AgentEngine, ToolServer, no_servers
from core.engines.base import Abilities, EngineError, EngineUnready, Finding, Request
from core.engines.claude_ends import SIGN_IN
from core.engines.claude_run import ClaudeRun
from core.engines.claude_session import Talk
from core.engines.claude_words import OWN_SOURCES, SWITCHES, arguments
from core.engines.processes import Ledger, resolve

ABILITIES = Abilities(resume=True, side=True, steer=True, compact=True, cost=True, images=True)
INSTALL = (
    "Install Claude Code (npm install -g @anthropic-ai/claude-code, or pip install "
    "'laneway[claude]'), or set LANEWAY_CLAUDE_COMMAND to its full path."
)


def find_program(path: str | None = None) -> str:
    """The program: on PATH, else the one inside the optional library; "" for none."""
    if found := shutil.which("claude", path=path):
        return found
    spec = find_spec("claude_agent_sdk")  # of a package without parents this imports nothing
    for place in spec.submodule_search_locations or () if spec else ():
        program = Path(place) / "_bundled" / "claude"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    return ""


class ClaudeEngine(AgentEngine[Talk]):
    """The Claude Code adapter: makes the runs, and knows how the program is started."""

    abilities = ABILITIES

    def __init__(
        self,
        command: Sequence[str],
        *,
        home: Path,
        clock: Clock,
        env: Sequence[str] = (),
        private: Sequence[Path] = (),
        ledger: Ledger | None = None,
        idle: float = 600.0,
        warm: int = 8,
        handshake: float = 60.0,
        grace: float = 4.0,
        switches: Mapping[str, str] | None = None,
        servers: Callable[[Request], Sequence[ToolServer]] = no_servers,
    ) -> None:
        """``private``: files and folders that no tool of it may look at or change."""
        super().__init__(
            "claude",
            command,
            home=home,
            clock=clock,
            env=env,
            switches={**SWITCHES, **(switches or {})},
            ledger=ledger,
            idle=idle,
            warm=warm,
            handshake=handshake,
            grace=grace,
            servers=servers,
        )
        self._private = tuple(private)

    def run(self, request: Request) -> ClaudeRun:
        return ClaudeRun(self, request)

    def arguments(self, request: Request, fresh: str) -> tuple[str, ...]:
        """The command line of a new process, after the command itself."""
        own = any(word.startswith(OWN_SOURCES.rstrip("=")) for word in self._command)
        closed = [*self._private, *self._account(request)]
        return arguments(request, fresh, closed, own_sources=own)

    def _account(self, request: Request) -> list[Path]:
        """Where its login lies, and for a side answer every conversation of it as well."""
        env = self._environment("", self._dir)
        home = Path(env.get("HOME", "~")).expanduser()
        folder = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        login = [folder / ".credentials.json", home / ".claude.json", folder / ".claude.json"]
        return [folder / "**", *login] if request.read_only else login

    def now(self) -> int:
        return self._clock.now()

    # The doctor -------------------------------------------------------------------------------

    async def check(self) -> Sequence[Finding]:
        env = self._environment("", self._dir)
        try:
            program = resolve(self._command, env)
        except EngineUnready as error:
            return [Finding("claude: program", False, "not found", f"{error} {INSTALL}")]
        findings = [Finding("claude: program", True, program)]
        with tempfile.TemporaryDirectory(prefix="laneway-check-") as folder:
            request = Request(lane="check claude", turn=0, folder=Path(folder), prompt="")
            run = self.run(request)
            try:
                talk = await run.try_out()
            except EngineError as error:
                why = self.plain(str(error))
                return [*findings, Finding("claude: hand-shake", False, "failed", why)]
        return [*findings, *_told(talk)]


def _told(talk: Talk) -> list[Finding]:
    known = ", ".join(model for model, _, _ in talk.declared.models)
    signed = talk.declared.signed_in
    return [
        Finding("claude: hand-shake", True, f"version {talk.declared.version or 'not told'}"),
        Finding(
            "claude: login",
            signed,
            "an account or key is there" if signed else "none",
            "" if signed else SIGN_IN,
        ),
        Finding("claude: models", True, known or "not told"),
    ]
