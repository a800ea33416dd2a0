"""The command line as a person uses it: child processes with a home of their own."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.end_to_end.house import environment
from tests.end_to_end.starting import PIPE, Child, start
from tests.fakes.telegram import FakeTelegram

WITHIN = 30.0
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended and what it wrote."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """``await shell("say", "hello")`` is ``laneway say hello`` with these settings."""

    def __init__(self, home: Path, fake: FakeTelegram | None = None, **settings: str) -> None:
        self.home = home
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self.environ: Mapping[str, str] = inherited | environment(home, fake, **settings)

    async def __call__(self, *words: str, text: str = "") -> Done:
        child = await self.start(*words)
        async with asyncio.timeout(WITHIN):
            out, err = await child.communicate(text.encode())
        return Done(child.returncode or 0, out.decode(), err.decode())

    async def start(self, *words: str) -> Child:
        """The running child; for what has to be looked at meanwhile."""
        return await start(words, self.environ, stdin=PIPE)
