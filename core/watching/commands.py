"""A look at what a command prints and how it ends. It and all it started is gone afterwards.

It runs by itself, in a process session of its own, with the same short list of environment
variables as an agent. Nothing can be typed into it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.engines.base import EngineError
from core.engines.processes import Child, Ledger, environment, spawn
from core.engines.trees import lane_mark
from core.watch_rules import Seen, Unseen

MOST = 1024 * 1024  # bytes of output
SHELL = ("/bin/sh", "-c")
LINGERING = 0.25  # seconds that what it left behind may hold its error output
_PIECE = 64 * 1024


class _TooMuch(Exception):
    """It prints more than is taken."""


@dataclass(slots=True)
class CommandLook:
    """``env``: names of variables that are handed on. ``limit``: seconds of the machine's time."""

    home: Path
    ledger: Ledger
    env: Sequence[str] = ()
    limit: float = 60.0
    most: int = MOST

    async def look(self, command: str, lane: str, folder: Path) -> Seen | Unseen:
        tmp = self.home / "watching"
        try:
            await asyncio.to_thread(tmp.mkdir, parents=True, exist_ok=True, mode=0o700)
        except OSError as fault:
            return Unseen(f"its folder cannot be made ({fault.strerror})")
        env = environment(self.env, marker=lane_mark(self.home, lane), tmp=tmp)
        try:
            child = await self._started(command, lane, folder, env)
        except EngineError as fault:
            return Unseen(str(fault))
        try:
            async with asyncio.timeout(self.limit):
                child.close_stdin()
                output = await self._output(child)
                while not await child.exited(self.limit):
                    pass
                noise = await child.last_words(LINGERING)
        except TimeoutError:
            return Unseen(f"the command took longer than {self.limit:g} seconds and was ended")
        except _TooMuch:
            return Unseen(f"the command printed more than {self.most // 1024} kB and was ended")
        except OSError as fault:
            return Unseen(f"its output cannot be read ({fault.strerror})")
        finally:
            await child.end(0.0)
        return Seen(output.decode(errors="replace"), child.exit_code, size=len(output), noise=noise)

    async def _started(
        self, command: str, lane: str, folder: Path, env: Mapping[str, str]
    ) -> Child:
        """A start is never given up half-way: that would leave its pipes and the process behind."""
        words = (*SHELL, command)
        starting = asyncio.create_task(
            spawn(words, folder=folder, env=env, lane=lane, ledger=self.ledger),
            name="start of a watched command",
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(EngineError):
                child = await starting
                await child.end(0.0)
            raise

    async def _output(self, child: Child) -> bytes:
        output = b""
        while piece := await child.read(_PIECE):
            output += piece
            if len(output) > self.most:
                raise _TooMuch
        return output
