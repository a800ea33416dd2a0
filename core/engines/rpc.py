"""JSON-RPC over a child's pipes, one object a line, as agents frame it.

Pull-driven: nothing is read unless somebody asks for the next message, so a flooding agent is held
back by its own pipe. Knows no session, no event and no lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core.engines.base import EngineError
from core.engines.lines import Gone, Json, Lines, json_object
from core.engines.processes import Child

METHOD_NOT_FOUND = -32601
UPDATES = b'"session/update"'  # of ACP: output of a tool, say; nothing waits for it
VERSION: Json = {"jsonrpc": "2.0"}


class Refused(EngineError):
    """The agent answered a request with an error."""

    def __init__(self, code: int, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail

    @property
    def sign_in(self) -> bool:
        """It wants an account first; -32000 is also used for other errors, so read the words."""
        words = str(self).lower()
        return "auth" in words or "log in" in words or "login" in words or "sign in" in words


@dataclass(frozen=True, slots=True)
class Note:
    """A notification: an update, or noise."""

    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of the agent; it waits for ``reply`` or ``refuse``."""

    id: int | str
    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Response:
    """The outcome of one of our requests."""

    id: int | str
    result: Json = field(default_factory=dict)
    error: Refused | None = None


Incoming = Note | Ask | Response


class Peer:
    """One conversation with one child; a single reader at a time."""

    def __init__(
        self, child: Child, passed_over: Sequence[bytes] = (UPDATES,), version: Json = VERSION
    ) -> None:
        """``passed_over``: marks in the head of a line too long to be taken for whose content
        nobody waits; ``version`` stands in every message of ours."""
        self.child = child
        self._lines = Lines(child, passed_over)
        self._version = version
        self._last = 0

    def request(self, method: str, params: Json) -> int | None:
        """Send a request; its number, or None when certainly no byte of it left."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        return self._last if self._write(message) else None

    def notify(self, method: str, params: Json) -> None:
        self._write({"method": method, "params": params})

    def reply(self, ask: int | str, result: Json) -> None:
        self._write({"id": ask, "result": result})

    def refuse(self, ask: int | str, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self._write({"id": ask, "error": error})

    async def call(
        self, method: str, params: Json, meanwhile: Callable[[Note | Ask], None]
    ) -> Json:
        """A request and its result; what comes in between goes to ``meanwhile``."""
        number = self.request(method, params)
        if number is None:
            raise Gone("the agent is gone")
        while True:
            message = await self.read()
            if not isinstance(message, Response):
                meanwhile(message)
            elif message.id == number:
                if message.error is not None:
                    raise message.error
                return message.result

    async def read(self) -> Incoming:
        """The next message; what is none is skipped. Raises Gone at the end of the output."""
        while True:
            if (message := _message(await self._lines.read())) is not None:
                return message

    def _write(self, message: Json) -> bool:
        return self._lines.write({**self._version, **message})


def parse(line: bytes) -> Incoming | None:
    """One line as a message; None for what is not one."""
    data = json_object(line)
    return None if data is None else _message(data)


def _message(data: Json) -> Incoming | None:
    number, method = data.get("id"), data.get("method")
    params = data.get("params")
    params = params if isinstance(params, dict) else {}
    if isinstance(method, str):
        if isinstance(number, int | str):
            return Ask(number, method, params)
        return Note(method, params)
    if not isinstance(number, int | str):
        return None
    result, error = data.get("result"), data.get("error")
    if error is not None:
        return Response(number, error=_refusal(error))
    return Response(number, result if isinstance(result, dict) else {})


def _refusal(error: object) -> Refused:
    if not isinstance(error, dict):
        return Refused(0, "an unreadable error")
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    detail = data.get("details") or data.get("message") if isinstance(data, dict) else data
    return Refused(
        code if isinstance(code, int) else 0,
        message if isinstance(message, str) and message else "an error without words",
        detail if isinstance(detail, str) else "",
    )
