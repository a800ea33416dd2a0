"""Objects of JSON over a child's pipes, one a line: what every agent protocol here is framed in.

Pull-driven: nothing is read unless somebody asks for the next object, so a flooding agent is held
back by its own pipe. It knows no protocol.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from core.engines.base import EngineError
from core.engines.processes import Child, LineTooLong

log = logging.getLogger("laneway.engine")

Json = Mapping[str, Any]


class Gone(EngineError):
    """The agent's output ended."""


def json_object(line: bytes) -> Json | None:
    """One line as an object; None for what is none (agents also print logs there)."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        if line.strip():
            log.debug("a line of the agent is no message: %.200r", line)
        return None
    return data if isinstance(data, dict) else None


class Lines:
    """One conversation with one child; a single reader at a time."""

    def __init__(self, child: Child, passed_over: Sequence[bytes]) -> None:
        """``passed_over``: of a line too long to be taken that has one of these in its head,
        nobody waits for the content; any other ends the conversation."""
        self.child = child
        self._passed_over = tuple(passed_over)

    async def read(self) -> Json:
        """The next object; what is none is skipped. Raises Gone at the end of the output."""
        while True:
            try:
                line = await self.child.read_line()
            except EOFError as end:
                raise Gone("the agent's output ended") from end
            except LineTooLong as long:
                if any(mark in long.head for mark in self._passed_over):
                    continue
                raise
            if (found := json_object(line)) is not None:
                return found

    def write(self, message: Json) -> bool:
        """Hand a message over without waiting; False when certainly no byte of it left."""
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n"
        return self.child.write(line.encode(errors="replace"))
