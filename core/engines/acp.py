"""Any agent that speaks the Agent Client Protocol, one process a lane.

A lane's process stays warm after a turn that ended well and goes on with its session; everything
else ends the whole process tree. Knows the engine port and the protocol, no lane rule, no channel
and no agent by name.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from core.clock import Clock
from core.engines.acp_peer import Peer
from core.engines.acp_plain import words
from core.engines.acp_run import AcpRun
from core.engines.acp_session import Opened, ToolServer, Totals, greet, open_session, set_up
from core.engines.acp_words import Declared
from core.engines.base import (
    Abilities,
    EngineError,
    EngineUnready,
    Event,
    Finding,
    Finished,
    Request,
)
from core.engines.processes import (
    Child,
    Ledger,
    NoLedger,
    environment,
    resolve,
    spawn,
)
from core.engines.trees import lane_mark
from core.folders import folder_name
from core.turns import Result

log = logging.getLogger("laneway.engine")

TEND_EVERY = 15.0
WORDS_MOST = 20_000  # characters of an agent's error that are looked at
WRITE_ATTEMPT = (
    "This is a test of your permissions. Create a file named laneway-test.txt with any content in "
    "the current folder, by whatever tool can do it, and say in one word whether it worked."
)


def _no_servers(request: Request) -> Sequence[ToolServer]:
    return ()


class AcpEngine:
    """The ACP adapter: keeps the warm processes, makes the runs."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        home: Path,
        clock: Clock,
        env: Sequence[str] = (),
        read_only_mode: str = "",
        ledger: Ledger | None = None,
        abilities: Abilities | None = None,
        idle: float = 600.0,
        warm: int = 8,
        handshake: float = 60.0,
        grace: float = 4.0,
        servers: Callable[[Request], Sequence[ToolServer]] = _no_servers,
    ) -> None:
        self._name = name
        self._command = tuple(command)
        self._home = home
        self._dir = home / "engines" / name
        self._clock = clock
        self._env = tuple(env)
        self._read_only_mode = read_only_mode
        self._ledger = ledger or NoLedger()
        self._abilities = abilities or Abilities(resume=True)
        self._idle = idle
        self._cap = warm
        self._handshake = handshake
        self._servers = servers
        self._warm: dict[str, Opened] = {}  # by lane, the one idle for longest first
        self._crowded = asyncio.Event()  # more are warm than may be
        self._retiring: list[Opened] = []  # not warm any more, and not yet ended
        self._busy: set[str] = set()  # lanes and sessions with a running turn
        self._closed = False
        self.grace = grace
        self.totals = Totals(self._dir / "totals")
        self.quarantined: set[str] = set()  # sessions whose processes would not die

    @property
    def name(self) -> str:
        return self._name

    @property
    def abilities(self) -> Abilities:
        """What the agent declared at its newest hand-shake; before the first, the least."""
        return self._abilities

    def run(self, request: Request) -> AcpRun:
        return AcpRun(self, request)

    async def close(self) -> None:
        self._closed = True
        self._retiring += self._warm.values()
        self._warm.clear()
        await self._retire()

    async def tend(self) -> None:
        """End what was idle for too long or is one too many; until cancelled.

        One task of the process runs it, so no turn waits for the end of another lane's agent.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tend_crowd(), name=f"one {self._name} too many")
            while True:
                await self._clock.sleep(TEND_EVERY)
                self._select()
                await self._retire()

    async def _tend_crowd(self) -> None:
        while True:
            await self._crowded.wait()
            self._crowded.clear()
            self._select()
            await self._retire()

    def _select(self) -> None:
        """Move what shall not stay warm to what is to be ended."""
        now = self._clock.monotonic()
        for lane, opened in list(self._warm.items()):
            tired = now - opened.idle_since >= self._idle or opened.child.exit_code is not None
            if tired or len(self._warm) > self._cap:
                self._retiring.append(self._warm.pop(lane))

    async def _retire(self) -> None:
        """End all that are to be ended, side by side; again those whose end was cut short."""
        async with asyncio.TaskGroup() as group:
            for opened in self._retiring:
                name = f"end {self._name} {opened.child.pid}"
                group.create_task(self._end(opened), name=name)
        self._retiring = [opened for opened in self._retiring if not opened.child.over]

    async def _end(self, opened: Opened) -> None:
        if survivors := await opened.child.end(self.grace):
            log.error("%s: idle processes %s would not end", self._name, list(survivors))
            self.quarantined.add(opened.session)

    # What a run needs of its engine ---------------------------------------------------------

    def claim(self, *names: str) -> bool:
        """Take lane and session for one turn; False when a turn is on them already."""
        if self._closed or self._busy.intersection(names):
            return False
        self._busy.update(names)
        return True

    def release(self, *names: str) -> None:
        self._busy.difference_update(names)

    async def take_warm(self, lane: str) -> Opened | None:
        """The lane's idle process. One that is just being ended must not share its session."""
        for opened in self._retiring:
            if opened.child.record.lane == lane:
                await self._end(opened)
        return self._warm.pop(lane, None)

    async def keep_warm(self, lane: str, opened: Opened) -> None:
        """Keep a process for the lane's next turn; beyond the cap the longest idle one ends."""
        if self._closed or self._cap < 1:
            await opened.child.end(self.grace)
            return
        opened.idle_since = self._clock.monotonic()
        self._warm[lane] = opened
        if len(self._warm) > self._cap:
            self._crowded.set()

    async def spawn(self, lane: str, folder: Path) -> Child:
        marker = lane_mark(self._home, lane)
        tmp = self._dir / "tmp" / folder_name(lane)
        try:
            tmp.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as fault:
            raise EngineUnready(
                f"The folder {tmp} cannot be made: {fault.strerror}. Check the disk of the "
                "gateway's machine."
            ) from fault
        env = environment(self._env, marker=marker, tmp=tmp)
        return await spawn(self._command, folder=folder, env=env, lane=lane, ledger=self._ledger)

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
        await self.set_up(opened, request)
        return opened

    async def set_up(self, opened: Opened, request: Request) -> None:
        await set_up(opened, request, self._read_only_mode)

    @property
    def patience(self) -> float:
        """Seconds the agent has from its start to an open session."""
        return self._handshake

    def learn(self, found: Declared, *, cost: bool = False) -> None:
        cost = cost or self._abilities.cost
        self._abilities = found.abilities(read_only=bool(self._read_only_mode), cost=cost)

    def redact(self, text: str) -> str:
        """Without the secrets that the agent was given by name."""
        for name in self._env:
            value = os.environ.get(name, "")
            if len(value) >= 6:  # shorter ones are no secrets, and words of the language
                text = text.replace(value, "…")
        return text

    def plain(self, text: str) -> str:
        """Words of the agent for people: short, whole characters, and without secrets."""
        text = words(self.redact(text[:WORDS_MOST]))
        return text if len(text) <= 600 else text[:599] + "…"

    # The doctor -------------------------------------------------------------------------------

    async def check(self) -> Sequence[Finding]:
        env = environment(self._env, marker="", tmp=self._dir)
        try:
            program = resolve(self._command, env)
        except EngineUnready as error:
            return [Finding(f"{self._name}: program", False, "not found", str(error))]
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
