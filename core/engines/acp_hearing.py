"""What an agent says while it works, as events: its answer, thoughts, tools, files and costs.

Pure: plain data in, events out. One ``Ear`` listens to one turn and remembers just enough to make
sense of the next update. What it yields is bounded, in size and, of files, in number.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from core.engines.acp_words import title_of
from core.engines.base import Event, FileMade, Thought, ToolEnded, ToolStarted, Usage
from core.engines.plain import (
    Json,
    as_sent,
    file_name,
    items,
    mapping,
    money,
    name,
    whole_number,
    words,
)
from core.engines.speech import Meter, Speech

OPEN_CALLS = 500  # remembered at once; an agent that never ends one shall not fill the memory
THOUGHT_MOST = 4000  # characters of one piece
FILES_MOST = 100  # files and pictures of one turn
TOO_MANY_FILES = "\n\n(More than 100 files were made in this turn; the later ones were not sent.)"
IMAGE_SUFFIX = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/svg+xml": ".svg",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """An image in the answer; the run saves it into the workspace and makes it a file."""

    data: bytes
    mime: str

    @property
    def suffix(self) -> str:
        return IMAGE_SUFFIX.get(self.mime, ".bin")


@dataclass(slots=True)
class Ear:
    """Listens to the updates of one turn; remembers just enough to make sense of the next."""

    meter: Meter = field(default_factory=Meter)  # of the session's total cost
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)  # open tool calls
    _ended: dict[str, None] = field(default_factory=dict)  # calls, the newest last
    _tokens: tuple[int, int] = (0, 0)
    _speech: Speech = field(default_factory=Speech)
    _files: int = 0

    def hear(self, update: Json) -> Iterator[Event | Picture]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                yield from self._chunk(mapping(update.get("content")))
            case "agent_thought_chunk":
                yield Thought(words(mapping(update.get("content")).get("text"))[:THOUGHT_MOST])
            case "tool_call" | "tool_call_update":
                yield from self._tool(update)
            case "usage_update":
                if self.count(update):
                    yield self.usage()
            case _:
                return  # plans, commands, titles: noise to a turn

    def _chunk(self, content: Json) -> Iterator[Event | Picture]:
        match content.get("type"):
            case "text":
                yield from self._speech.say(as_sent(content.get("text")))
            case "resource_link":
                if made := _linked(content):
                    yield from self._hand_over(made)
            case "image":
                if picture := _picture(content):
                    yield from self._hand_over(picture)

    def _hand_over(self, made: FileMade | Picture) -> Iterator[Event | Picture]:
        self._files += 1
        if self._files <= FILES_MOST:
            yield made
        elif self._files == FILES_MOST + 1:
            yield from self._speech.say(TOO_MANY_FILES)

    def _tool(self, update: Json) -> Iterator[Event]:
        number = name(update.get("toolCallId"))
        known = number in self.calls
        over = update.get("status") in ("completed", "failed")
        late = over and not known and update.get("sessionUpdate") == "tool_call_update"
        if late and (not number or number in self._ended):
            return  # an afterthought about a call that has ended
        self._remember(number, update)
        call = self.calls[number]
        title = title_of(call)
        self._speech.apart()
        if not known:
            yield ToolStarted(number, title)
        if over:
            del self.calls[number]
            self._keep_ended(number)
            yield ToolEnded(number, title, failed=update.get("status") == "failed")

    def _remember(self, number: str, update: Json) -> None:
        """Keep what a later question may need to be shown; what a tool printed is not ours."""
        told = {
            name: value
            for name, value in update.items()
            if name in ("title", "kind", "rawInput", "locations", "content") and value is not None
        }
        if "content" in told:
            told["content"] = [c for c in items(told["content"]) if c.get("type") == "diff"]
        self.calls.setdefault(number, {}).update(told)
        while len(self.calls) > OPEN_CALLS:
            del self.calls[next(iter(self.calls))]

    def _keep_ended(self, number: str) -> None:
        """Some agents tell of a call only when it is over: that is news, what follows is not."""
        self._ended[number] = None
        while len(self._ended) > OPEN_CALLS:
            del self._ended[next(iter(self._ended))]

    def mention(self, call: Json) -> Iterator[Event]:
        """A tool call that a question tells of; some agents tell of it only there."""
        if name(call.get("toolCallId")) not in self.calls:
            yield from self._tool({**call, "sessionUpdate": "tool_call", "status": "pending"})

    def about(self, call: Json) -> Json:
        """A tool call as a permission request tells it, with what was told before."""
        known = self.calls.get(name(call.get("toolCallId")), {})
        return {**known, **{name: value for name, value in call.items() if value is not None}}

    def count(self, update: Json) -> bool:
        """Take in a session's total cost."""
        cost = mapping(update.get("cost"))
        amount = money(cost.get("amount"))
        if amount is None or cost.get("currency") != "USD":
            return False
        self.meter.count(amount)
        return True

    def count_tokens(self, result: Json) -> bool:
        usage = mapping(result.get("usage"))
        came, went = whole_number(usage.get("inputTokens")), whole_number(usage.get("outputTokens"))
        if came is None or went is None:
            return False
        self._tokens = (came, went)
        return True

    def usage(self) -> Usage:
        return Usage(*self._tokens, cost=self.meter.cost)


def _linked(content: Json) -> FileMade | None:
    link = as_sent(content.get("uri"))
    try:
        uri = urlsplit(link)
    except ValueError:
        return None
    if uri.scheme != "file" or uri.netloc not in ("", "localhost") or not uri.path:
        return None
    path = unquote(uri.path)
    if words(path) != path:
        return None  # no file has such a name
    shown = file_name(content.get("name")) or file_name(Path(path).name)
    return FileMade(Path(path), shown or "file")


def _picture(content: Json) -> Picture | None:
    try:
        data = base64.b64decode(words(content.get("data")), validate=True)
    except (binascii.Error, ValueError):
        return None
    return Picture(data, words(content.get("mimeType"))) if data else None
