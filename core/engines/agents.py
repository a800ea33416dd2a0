"""What every engine shares that starts an agent program: warm processes, claims, environment.

A lane's process stays warm after a turn that ended well; everything else ends its whole tree. It
knows the engine port and processes, no protocol and no agent by name.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Required, TypedDict, TypeVar

from core.clock import Clock
from core.engines.base import EngineError, EngineUnready, Finding, Request
from core.engines.plain import words
from core.engines.processes import Child, Ledger, NoLedger, environment, missing, resolve, spawn
from core.engines.trees import lane_mark
from core.folders import folder_name

log = logging.getLogger("laneway.engine")

TEND_EVERY = 15.0
TOOLS = "laneway"  # what agents know the gateway's tools by
WORDS_MOST = 20_000  # characters of an agent's error that are looked at


@dataclass(frozen=True, slots=True)
class ToolServer:
    """A tool server of the gateway that an agent may call over HTTP, with a bearer token."""

    name: str
    url: str
    token: str = ""

    @property
    def headers(self) -> Mapping[str, str]:
        """What a request to it needs."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


class Kept(Protocol):
    """A process with an open session, as it is kept between two turns."""

    session: str
    folder: Path
    resumed: bool
    idle_since: float

    @property
    def child(self) -> Child: ...

    @property
    def model(self) -> str: ...


K = TypeVar("K", bound=Kept)


class Upkeep(TypedDict, total=False):
    """How an engine keeps its processes: what every kind takes, as ``AgentEngine`` explains it."""

    home: Required[Path]
    clock: Required[Clock]
    env: Sequence[str]
    ledger: Ledger | None
    idle: float
    warm: int
    handshake: float
    grace: float
    servers: Callable[[Request], Sequence[ToolServer]]


def gateway_tools(request: Request) -> Sequence[ToolServer]:
    """The gateway's own tools, where they are served."""
    box = request.toolbox
    if box is None or not box.url:
        return ()
    return (ToolServer(TOOLS, box.url, box.token),)


class AgentEngine(Generic[K]):
    """Keeps the warm processes of one kind of agent, one a lane."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        home: Path,
        clock: Clock,
        env: Sequence[str] = (),
        switches: Mapping[str, str] | None = None,
        ledger: Ledger | None = None,
        idle: float = 600.0,
        warm: int = 8,
        handshake: float = 60.0,
        grace: float = 4.0,
        servers: Callable[[Request], Sequence[ToolServer]] = gateway_tools,
    ) -> None:
        """``env`` names the variables that the agent is handed, ``switches`` are set beside them.

        ``idle``, ``handshake`` and ``grace`` are seconds, ``warm`` the most idle processes kept.
        """
        self._name = name
        self._command = tuple(command)
        self._home = home
        self._dir = home / "engines" / name
        self._clock = clock
        self._env = tuple(env)
        self._switches = dict(switches or {})
        self._ledger = ledger or NoLedger()
        self._idle = idle
        self._cap = warm
        self._handshake = handshake
        self._servers = servers
        self._warm: dict[str, K] = {}  # by lane, the one idle for longest first
        self._crowded = asyncio.Event()  # more are warm than may be
        self._retiring: list[K] = []  # not warm any more, and not yet ended
        self._busy: set[str] = set()  # lanes and sessions with a running turn
        self._closed = False
        self.grace = grace
        self.totals = Totals(self._dir / "totals")
        self.quarantined: set[str] = set()  # sessions whose processes would not die

    @property
    def name(self) -> str:
        return self._name

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
        for lane, kept in list(self._warm.items()):
            tired = now - kept.idle_since >= self._idle or kept.child.exit_code is not None
            if tired or len(self._warm) > self._cap:
                self._retiring.append(self._warm.pop(lane))

    async def _retire(self) -> None:
        """End all that are to be ended, side by side; again those whose end was cut short."""
        async with asyncio.TaskGroup() as group:
            for kept in self._retiring:
                name = f"end {self._name} {kept.child.pid}"
                group.create_task(self._end(kept), name=name)
        self._retiring = [kept for kept in self._retiring if not kept.child.over]

    async def _end(self, kept: K) -> None:
        if survivors := await kept.child.end(self.grace):
            log.error("%s: idle processes %s would not end", self._name, list(survivors))
            self.quarantined.add(kept.session)

    # What a run needs of its engine ---------------------------------------------------------

    def claim(self, *names: str) -> bool:
        """Take lane and session for one turn; False when a turn is on them already."""
        if self._closed or self._busy.intersection(names):
            return False
        self._busy.update(names)
        return True

    def release(self, *names: str) -> None:
        self._busy.difference_update(names)

    async def take_warm(self, lane: str) -> K | None:
        """The lane's idle process. One that is just being ended must not share its session."""
        for kept in self._retiring:
            if kept.child.record.lane == lane:
                await self._end(kept)
        return self._warm.pop(lane, None)

    async def keep_warm(self, lane: str, kept: K) -> None:
        """Keep a process for the lane's next turn; beyond the cap the longest idle one ends."""
        if self._closed or self._cap < 1:
            await kept.child.end(self.grace)
            return
        kept.idle_since = self._clock.monotonic()
        self._warm[lane] = kept
        if len(self._warm) > self._cap:
            self._crowded.set()

    async def spawn(self, lane: str, folder: Path, *arguments: str) -> Child:
        """Start the program, with further arguments; EngineUnready says why it could not."""
        tmp = self._tmp(lane)
        env = self._environment(lane_mark(self._home, lane), tmp)
        command = (*self._command, *arguments)
        return await spawn(command, folder=folder, env=env, lane=lane, ledger=self._ledger)

    def _tmp(self, lane: str) -> Path:
        """The folder for what is short-lived of a lane's agent; it is there."""
        tmp = self._dir / "tmp" / folder_name(lane)
        try:
            tmp.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as fault:
            raise EngineUnready(
                f"The folder {tmp} cannot be made: {fault.strerror}. Check the disk of the "
                "gateway's machine."
            ) from fault
        return tmp

    def _environment(self, marker: str, tmp: Path) -> dict[str, str]:
        return {**self._switches, **environment(self._env, marker=marker, tmp=tmp)}

    async def tried(
        self, install: str, try_out: Callable[[Request], Awaitable[K]]
    ) -> tuple[list[Finding], K | None]:
        """Whether the program is there and its hand-shake works; for the doctor.

        ``install`` says how to get the program; ``try_out`` opens a session and ends it again.
        """
        env = self._environment("", self._dir)
        try:
            program = resolve(self._command, env)
        except EngineUnready as error:
            return [missing(self._name, error, install)], None
        findings = [Finding(f"{self._name}: program", True, program)]
        with tempfile.TemporaryDirectory(prefix="laneway-check-") as folder:
            request = Request(lane=f"check {self._name}", turn=0, folder=Path(folder), prompt="")
            try:
                return findings, await try_out(request)
            except EngineError as error:
                why = self.plain(str(error))
                failed = Finding(f"{self._name}: hand-shake", False, "failed", why)
                return [*findings, failed], None

    @property
    def patience(self) -> float:
        """Seconds the agent has from its start to an open session."""
        return self._handshake

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


class Totals:
    """What each session has cost so far, kept in small files.

    Agents tell a session's total, and go on counting after a resume; without the last total the
    first turn after a restart would be charged with all that went before.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _file(self, session: str) -> Path:
        return self._folder / hashlib.sha256(session.encode()).hexdigest()[:32]

    def read(self, session: str) -> float | None:
        with contextlib.suppress(OSError, ValueError):
            return float(self._file(session).read_text())
        return None

    def write(self, session: str, total: float) -> None:
        """Whole or not at all. A disk that refuses it costs no turn, only the exact sum of one."""
        file = self._file(session)
        draft = file.with_suffix(".new")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_text(repr(total))
            draft.replace(file)
        except OSError as fault:
            log.warning("what a session has cost could not be kept: %s", fault)
