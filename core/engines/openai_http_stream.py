"""What a chat-completions server sends, read piece by piece: bytes to objects, objects to a reply.

Pure. Servers differ more than the name "compatible" says, so this takes what it can read in any of
their forms: events with and without blank lines between them, with and without an end mark, or one
plain JSON object instead of a stream. Nothing here asks for a server's name.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.engines.base import Text, Thought
from core.engines.plain import Json, as_sent, items, mapping, name, whole_number, words

MOST = 16 * 1024 * 1024  # bytes of one event, and of a plain body
LINES_MOST = 50  # over which one object may go
CALLS_MOST = 64  # tools asked for in one reply
ARGUMENTS_MOST = 1_000_000  # characters of one call's arguments
_OPEN, _CLOSE = "<think>", "</think>"


class Malformed(Exception):
    """What the server sent cannot be read; the message says how."""


class Frames:
    """Bytes of a body to the objects in it."""

    def __init__(self) -> None:
        self.done = False  # the end mark came
        self.whole = False  # it was no stream but one answer
        self._pending: list[bytes] = []  # of a line without its end
        self._held: list[bytes] = []  # data that is no object yet: it may go on in the next line
        self._plain: list[bytes] = []  # lines that are no event: perhaps a plain body
        self._size = 0  # bytes that are held here
        self._kept = 0  # bytes of the plain lines
        self._error = False  # the event is named an error

    def feed(self, data: bytes) -> Iterator[Json]:
        *lines, rest = data.replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._pending.append(line)
            whole = b"".join(self._pending)
            self._pending.clear()
            yield from self._line(whole)
        self._pending.append(rest)
        self._size = sum(map(len, self._pending)) if lines else self._size + len(rest)
        if self._size + self._kept > MOST:
            raise Malformed("it sent a piece that is too large")

    def close(self) -> Iterator[Json]:
        """What is left when the body ended: a last line without its end, or a plain body."""
        yield from self._line(b"".join(self._pending))
        self._pending = []
        if self._held:
            raise Malformed("a piece of its answer is not JSON")
        body = b"\n".join(self._plain).strip()
        if body:
            found = parsed(body)
            if found is None:
                raise Malformed("its answer is neither a stream nor JSON")
            self.whole = True
            yield found

    def _line(self, line: bytes) -> Iterator[Json]:
        match line.removeprefix(BOM_UTF8).split(b":", 1):
            case [b"data", value]:
                yield from self._data(value.strip())
            case [b"event", value]:
                self._error = value.strip() == b"error"
            case [b"" | b"id" | b"retry", _]:
                return  # a comment that keeps the connection alive, or nothing of ours
            case _ if line.strip():
                self._plain.append(line)
                self._kept += len(line)

    def _data(self, value: bytes) -> Iterator[Json]:
        if value == b"[DONE]":
            self.done = True
        elif value:
            found = parsed(value)
            if found is None and self._held:
                found = parsed(b"\n".join((*self._held, value)))
            if found is None:
                self._held.append(value)
                if len(self._held) > LINES_MOST or sum(map(len, self._held)) > MOST:
                    raise Malformed("a piece of its answer is not JSON")
                return
            self._held.clear()
            named, self._error = self._error, False
            yield {"error": found} if named and "error" not in found else found


def parsed(value: bytes) -> Json | None:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


@dataclass(slots=True)
class ToolCall:
    """A tool that the model wants to have called."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    index: int | None = None


@dataclass(slots=True)
class Reply:
    """All that one call has brought so far."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    finish: str = ""
    error: Json | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    begun: bool = False  # something of it was shown
    chosen: bool = False  # there was a choice in it, so it is an answer
    _thinking: _Thinking = field(default_factory=lambda: _Thinking())

    def take(self, chunk: Json) -> Iterator[Text | Thought]:
        """One object of the stream, or the whole answer in one."""
        if chunk.get("error"):
            self.error = _error(chunk["error"])
            return
        self._count(chunk.get("usage"))
        for choice in items(chunk.get("choices"))[:1]:
            self.chosen = True
            said = mapping(choice.get("delta")) or mapping(choice.get("message"))
            for key in ("reasoning_content", "reasoning"):
                if thought := _joined(said.get(key)):
                    yield Thought(thought)
                    break
            yield from self._say(self._thinking.take(_joined(said.get("content"))))
            calls = said.get("tool_calls")
            for call in items([calls] if isinstance(calls, dict) else calls):
                self._call(call)
                self.begun = True
            self.finish = name(choice.get("finish_reason")) or self.finish

    def spent(self) -> tuple[int, int]:
        """Tokens in and out, once: a second time there are none."""
        spent, self.tokens_in, self.tokens_out = (self.tokens_in, self.tokens_out), 0, 0
        return spent

    def rest(self) -> Iterator[Text | Thought]:
        """What was held back when the reply is over."""
        yield from self._say(self._thinking.rest())

    def _say(self, pieces: Sequence[Text | Thought]) -> Iterator[Text | Thought]:
        for piece in pieces:
            if isinstance(piece, Text):
                self.text += piece.delta
                self.begun = True
            yield piece

    def _count(self, usage: object) -> None:
        """Some servers repeat the sum in every piece: the newest is the one that counts."""
        told = mapping(usage)
        if not told:
            return
        tokens_in, tokens_out, total = (
            whole_number(told.get(key)) or 0
            for key in ("prompt_tokens", "completion_tokens", "total_tokens")
        )
        self.tokens_out = tokens_out
        self.tokens_in = tokens_in or max(0, total - tokens_out)

    def _call(self, piece: Json) -> None:
        """Put a piece of a call where it belongs.

        Some servers count calls by index, some give each the index 0, some none at all: a new id,
        or a name where there is one already and no id, begins a new call.
        """
        function = mapping(piece.get("function"))
        index, told, named = (
            whole_number(piece.get("index")),
            name(piece.get("id")),
            name(function.get("name")),
        )
        call = self._slot(index, told, named)
        call.id = call.id or told
        call.name = call.name or named
        arguments = function.get("arguments")
        call.arguments += (
            json.dumps(arguments) if isinstance(arguments, dict) else words(as_sent(arguments))
        )
        if len(call.arguments) > ARGUMENTS_MOST or len(self.calls) > CALLS_MOST:
            raise Malformed("it asks for more tools at once than anybody can use")

    def _slot(self, index: int | None, told: str, named: str) -> ToolCall:
        for call in reversed(self.calls):
            if index is not None and call.index != index:
                continue
            new = told and call.id and told != call.id
            if not new and not (named and not told and index is None and call.name):
                return call
            break
        self.calls.append(ToolCall(index=index))
        return self.calls[-1]


class _Thinking:
    """Takes thoughts out of the text, where a server leaves them at its head in their tags."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._settled = False  # the text has begun, or the thoughts are over

    def take(self, text: str) -> list[Text | Thought]:
        if self._settled or not text:
            return [Text(text)] if text else []
        self._held += text
        if not self._inside:
            head = self._held.lstrip()
            if head.startswith(_OPEN):
                self._inside, self._held = True, head[len(_OPEN) :]
            elif _OPEN.startswith(head):
                return []
            else:
                return self._release()
        before, mark, after = self._held.partition(_CLOSE)
        if mark:
            self._held, self._settled = "", True
            after = after.lstrip()
            return [*_thought(before), *([Text(after)] if after else [])]
        keep = next((n for n in range(len(_CLOSE), 0, -1) if before.endswith(_CLOSE[:n])), 0)
        self._held = before[len(before) - keep :]
        return _thought(before[: len(before) - keep])

    def rest(self) -> list[Text | Thought]:
        if self._inside:
            held, self._held = self._held, ""
            return _thought(held) if not self._settled else []
        return self._release()

    def _release(self) -> list[Text | Thought]:
        held, self._held, self._settled = self._held, "", True
        return [Text(held)] if held else []


def _thought(text: str) -> list[Text | Thought]:
    return [Thought(text)] if text else []


def _joined(content: object) -> str:
    """A text, which some servers send as a list of parts."""
    if isinstance(content, list):
        return "".join(words(part.get("text")) for part in items(content))
    return words(content)


def _error(told: Any) -> Json:
    """An error as an object, however it was told."""
    return told if isinstance(told, dict) else {"message": as_sent(told)}


__all__ = ["Frames", "Malformed", "Reply", "ToolCall", "parsed"]
