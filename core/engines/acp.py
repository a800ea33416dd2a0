"""Any agent that speaks the Agent Client Protocol, one process a lane.

Its processes come and go as those of every agent program (``agents.py``). Knows the engine port
and the protocol, no lane rule, no channel and no agent by name.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from core.engines.acp_run import AcpRun
from core.engines.acp_session import Opened, greet, open_session, set_up
from core.engines.acp_words import Choices as SessionChoices
from core.engines.acp_words import Declared
from core.engines.agents import AgentEngine, Upkeep
from core.engines.base import (
    Abilities,
    Choices,
    EngineError,
    EngineUnready,
    Event,
    Finding,
    Finished,
    Request,
)
from core.engines.processes import (
    Child,
    environment,
    missing,
    resolve,
)
from core.engines.rpc import Peer
from core.turns import Result

WRITE_ATTEMPT = (
    "This is a test of your permissions. Create a file named laneway-test.txt with any content in "
    "the current folder, by whatever tool can do it, and say in one word whether it worked."
)


class AcpEngine(AgentEngine[Opened]):
    """The ACP adapter: makes the runs, and opens their sessions."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        read_only_mode: str = "",
        abilities: Abilities | None = None,
        **upkeep: Unpack[Upkeep],
    ) -> None:
        super().__init__(name, command, **upkeep)
        self._read_only_mode = read_only_mode
        self._abilities = abilities or Abilities(resume=True, cost=None)
        self._offers: SessionChoices | None = None

    @property
    def abilities(self) -> Abilities:
        """What the agent declared at its newest hand-shake; before the first, the least."""
        return self._abilities

    def run(self, request: Request) -> AcpRun:
        return AcpRun(self, request)

    # What a run needs of its engine ---------------------------------------------------------

    async def open(self, child: Child, request: Request) -> Opened:
        """Hand-shake and session in a new process."""
        peer = Peer(child)
        found = await greet(peer)
        self.learn(found)
        if request.session in self.quarantined:
            request = replace(request, session="")
        opened = await open_session(peer, found, request, self._servers(request))
        if opened.resumed and opened.spent is None:
            opened.spent = await asyncio.to_thread(self.totals.read, opened.session)
        self._offers = opened.choices
        await self.set_up(opened, request)
        return opened

    async def set_up(self, opened: Opened, request: Request) -> None:
        await set_up(opened, request, self._read_only_mode)

    async def choices(self, model: str = "") -> Choices:
        """What the agent told at its newest session; before the first one nothing is known."""
        if self._offers is None:
            return Choices()
        models, efforts = self._offers.model, self._offers.effort
        return Choices(
            models.values if models else (), efforts.values if efforts else (), open=False
        )

    def now(self) -> int:
        return self._clock.now()

    def learn(self, found: Declared, *, cost: bool | None = None) -> None:
        """``cost``: whether a turn has told what it cost; None: nothing new is known of that."""
        cost = self._abilities.cost if cost is None else cost
        self._abilities = found.abilities(read_only=bool(self._read_only_mode), cost=cost)

    # The doctor -------------------------------------------------------------------------------

    async def check(self) -> Sequence[Finding]:
        env = environment(self._env, marker="", tmp=self._dir)
        try:
            program = resolve(self._command, env)
        except EngineUnready as error:
            return [missing(self._name, error)]
        findings = [Finding(f"{self._name}: program", True, program)]
        with tempfile.TemporaryDirectory(prefix="laneway-check-") as folder:
            request = Request(lane=f"check {self._name}", turn=0, folder=Path(folder), prompt="")
            try:
                child = await self.spawn(request.lane, request.folder)
                try:
                    async with asyncio.timeout(self._handshake):
                        opened = await self.open(child, request)
                finally:
                    await child.end(min(self.grace, 2.0))
            except (EngineError, TimeoutError) as error:
                why = self.plain(str(error)) or "It did not answer in time."
                return [*findings, Finding(f"{self._name}: hand-shake", False, "failed", why)]
        return [*findings, *self._told(opened)]

    async def prove_read_only(self, patience: float = 180.0) -> Finding:
        """Ask the agent in its read-only mode to write a file, and look whether it could.

        This is a turn of the agent's model, so it is for the doctor only.
        """
        name = f"{self._name}: read-only mode"
        with tempfile.TemporaryDirectory(prefix="laneway-check-") as made:
            folder = Path(made)
            run = self.run(Request(f"check {self._name}", 0, folder, WRITE_ATTEMPT, read_only=True))
            last: Event | None = None
            try:
                async with asyncio.timeout(patience), aclosing(run.events()) as events:
                    async for event in events:
                        last = event
            except TimeoutError:
                return Finding(name, False, "not proven", "It did not answer; try again later.")
            if await asyncio.to_thread(lambda: any(folder.iterdir())):
                return Finding(
                    name, False, f"it wrote a file in “{self._read_only_mode}”",
                    "Name a mode in LANEWAY_ACP_READONLY_MODE that cannot write, or none.",
                )  # fmt: skip
            if last != Finished(Result.DONE):
                why = getattr(last, "error", "") or "The turn did not end well."
                return Finding(name, False, "not proven", why)
        return Finding(name, True, f"“{self._read_only_mode}” could not write a file")

    def _told(self, opened: Opened) -> list[Finding]:
        mode = opened.choices.mode
        modes = self.plain(", ".join(mode.values)) if mode else ""
        can = [
            word
            for word, able in (
                ("resume", self._abilities.resume),
                ("fork", opened.declared.fork),
                ("images", self._abilities.images),
            )
            if able
        ]
        findings = [
            Finding(f"{self._name}: hand-shake", True, opened.declared.agent or "ok"),
            Finding(f"{self._name}: abilities", True, ", ".join(can) or "none"),
            Finding(f"{self._name}: modes", True, modes or "none"),
        ]
        if self._read_only_mode:
            known = mode is not None and self._read_only_mode in mode.values
            findings.append(
                Finding(
                    f"{self._name}: read-only mode",
                    known,
                    self._read_only_mode,
                    "" if known else "Set LANEWAY_ACP_READONLY_MODE to one of the modes above.",
                )
            )
        return findings
