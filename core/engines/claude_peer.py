"""What Claude Code reads and writes: objects, one a line, and control requests both ways.

Knows the frame of the messages, not their meaning, no session and no lane.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from core.engines.lines import Lines
from core.engines.plain import Json, mapping
from core.engines.processes import Child

# What tools printed, and pieces of a stream: nothing waits for them.
PASSED_OVER = (b'"type":"user"', b'"type": "user"', b'"type":"stream_event"')


class ClaudePeer:
    """One conversation with one child; a single reader at a time."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._lines = Lines(child, PASSED_OVER)
        self._numbers = itertools.count(1)

    async def read(self) -> Json:
        """The next message. Raises Gone at the end of the output."""
        return await self._lines.read()

    def say(self, content: str | Sequence[Json]) -> str:
        """Hand over a message of the person; its id, or "" when certainly no byte of it left."""
        number = str(uuid.uuid4())
        message: Mapping[str, Any] = {
            "type": "user",
            "message": {"role": "user", "content": content},
            "uuid": number,
            "session_id": "",
            "parent_tool_use_id": None,
        }
        return number if self._lines.write(message) else ""

    def request(self, subtype: str, **fields: object) -> str:
        """Ask the program itself for something; the number that its answer will carry."""
        number = f"laneway-{next(self._numbers)}"
        request = {"subtype": subtype, **fields}
        self._lines.write({"type": "control_request", "request_id": number, "request": request})
        return number

    def reply(self, number: str, response: Json) -> None:
        answer = {"subtype": "success", "request_id": number, "response": response}
        self._lines.write({"type": "control_response", "response": answer})

    def refuse(self, number: str, error: str) -> None:
        answer = {"subtype": "error", "request_id": number, "error": error}
        self._lines.write({"type": "control_response", "response": answer})


def answers(message: Json, number: str) -> bool:
    """Whether a message is the answer to one of our requests."""
    found = message.get("type") == "control_response"
    return found and mapping(message.get("response")).get("request_id") == number
