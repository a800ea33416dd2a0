"""The Agent Client Protocol's words and ours: updates → events, requests → approvals, modes.

Pure: plain data in, plain data out. It reads what it knows and passes over the rest, since agents
are newer or older than any schema; nothing here asks for an agent's name.
"""

from __future__ import annotations

import base64
import binascii
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from core.engines.base import (
    Abilities,
    Approvals,
    Decision,
    Event,
    FileMade,
    Text,
    Thought,
    ToolEnded,
    ToolStarted,
    Usage,
)

Json = Mapping[str, Any]

# Modes as agents name them. The first one that an agent declares is set, after every opening of a
# session, because some agents start in a mode that asks nobody. Agents let modes be chosen either
# as session modes or as a configuration option of the category "mode"; the ids are the same.
ASKING_MODES = (
    "default",
    "ask",
    "workspace-write",
    "always-ask",
    "manual",
    "normal",
    "build",
    "code",
    "read-only",
)
FULL_MODES = (  # set only when a person chose never to be asked
    "bypassPermissions",
    "bypass-permissions",
    "full-access",
    "agent-full-access",
    "danger-full-access",
    "full",
    "yolo",
    "autopilot",
)
SELF_APPROVING_MODES = frozenset(
    {*FULL_MODES, "auto", "agent", "acceptEdits", "accept-edits", "autoEdit", "auto-edit"}
)
OPEN_CALLS = 500  # remembered at once; an agent that never ends one shall not fill the memory
IMAGE_SUFFIX = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/svg+xml": ".svg",
}


# What an agent declares -------------------------------------------------------------------


def mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def items(value: object) -> Sequence[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def words(value: object) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Declared:
    """The answer to ``initialize``, as far as it matters here."""

    version: int = 0
    agent: str = ""
    load: bool = False
    resume: bool = False
    fork: bool = False
    images: bool = False
    http_servers: bool = False  # of the model context protocol
    sign_in: tuple[str, ...] = ()  # names of the ways to sign in

    def abilities(self, *, read_only: bool, cost: bool) -> Abilities:
        return Abilities(
            resume=self.resume or self.load,
            side=read_only and self.fork,
            cost=cost,
            images=self.images,
        )


def declared(result: Json) -> Declared:
    able = mapping(result.get("agentCapabilities"))
    session = mapping(able.get("sessionCapabilities"))
    info = mapping(result.get("agentInfo"))
    version = result.get("protocolVersion")
    return Declared(
        version=version if isinstance(version, int) else 0,
        agent=" ".join(filter(None, (words(info.get("name")), words(info.get("version"))))),
        load=able.get("loadSession") is True,
        resume=session.get("resume") is not None,
        fork=session.get("fork") is not None,
        images=mapping(able.get("promptCapabilities")).get("image") is True,
        http_servers=mapping(able.get("mcpCapabilities")).get("http") is True,
        sign_in=tuple(words(way.get("name")) for way in items(result.get("authMethods"))),
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """Something of a session that can be set: its values and the one that holds."""

    option: str  # id of the configuration option; "" for a session mode
    values: tuple[str, ...]
    current: str


@dataclass(frozen=True, slots=True)
class Choices:
    mode: Choice | None = None
    model: Choice | None = None
    effort: Choice | None = None


def choices(result: Json) -> Choices:
    """What ``session/new`` and its like say can be set, from options or from modes."""
    options: dict[str, Choice] = {}
    for option in items(result.get("configOptions")):
        category = words(option.get("category"))
        if category in ("mode", "model", "thought_level"):
            options.setdefault(category, _option(option))
    modes = mapping(result.get("modes"))
    listed = tuple(words(mode.get("id")) for mode in items(modes.get("availableModes")))
    mode = Choice("", listed, words(modes.get("currentModeId"))) if listed else None
    return Choices(options.get("mode", mode), options.get("model"), options.get("thought_level"))


def _option(option: Json) -> Choice:
    values = []
    for entry in items(option.get("options")):
        for value in items(entry.get("options")) or [entry]:  # groups hold their own options
            values.append(words(value.get("value")))
    current = words(option.get("currentValue"))
    return Choice(words(option.get("id")), tuple(values), current)


def mode_for(choice: Choice | None, approvals: Approvals) -> str:
    """The mode a session is put into; "" when there is none to set."""
    if choice is None:
        return ""
    wanted: tuple[str, ...] = FULL_MODES if approvals is Approvals.FULL else ()
    for mode in (*wanted, *ASKING_MODES):
        if mode in choice.values:
            return mode
    return ""


def asks_nobody(choice: Choice | None, mode: str) -> bool:
    """Whether a session would stay in a mode that approves by itself."""
    return choice is not None and not mode and choice.current in SELF_APPROVING_MODES


# Approvals --------------------------------------------------------------------------------


def outcome(options: Sequence[Json], decision: Decision) -> Json:
    """The answer to a permission request. "Always" is never chosen: the gateway remembers that.

    An agent that offers no single yes gets no yes at all.
    """
    kinds = {
        Decision.ALLOW: ("allow_once",),
        Decision.DENY: ("reject_once", "reject_always"),
        Decision.CANCEL: (),
    }[decision]
    for kind in kinds:
        for option in options:
            if option.get("kind") == kind and words(option.get("optionId")):
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
    return {"outcome": {"outcome": "cancelled"}}


def can_allow(options: Sequence[Json]) -> bool:
    return any(option.get("kind") == "allow_once" for option in options)


def command_of(call: Json, folder: Path) -> str:
    """What a tool call will do, in full: the command itself, or its input as it stands."""
    raw = call.get("rawInput")
    parts = []
    if isinstance(raw, dict):
        parts += _raw_input(raw, folder)
    elif raw:
        parts.append(raw if isinstance(raw, str) else _plain_json(raw))
    for content in items(call.get("content")):
        if content.get("type") == "diff":
            parts.append(_diff(content))
    if not parts:
        parts += [words(place.get("path")) for place in items(call.get("locations"))]
    return "\n".join(filter(None, parts)) or words(call.get("title")) or "(not told)"


def _raw_input(raw: Json, folder: Path) -> list[str]:
    command = raw.get("command") or raw.get("cmd")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = shlex.join(command)
    if not isinstance(command, str):
        return [_plain_json(raw)] if raw else []
    parts = [command]
    where = raw.get("cwd") or raw.get("workdir")
    if isinstance(where, str) and Path(where) != folder:
        parts.append(f"(in {where})")
    told = {"command", "cmd", "cwd", "workdir", "description"}
    if rest := {name: value for name, value in raw.items() if name not in told}:
        parts.append(_plain_json(rest))
    return parts


def _diff(content: Json) -> str:
    old, new = content.get("oldText"), content.get("newText")
    lines = [f"write {words(content.get('path'))}"]
    lines += [f"- {line}" for line in words(old).splitlines()]
    lines += [f"+ {line}" for line in words(new).splitlines()]
    return "\n".join(lines)


def _plain_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)


# Updates ----------------------------------------------------------------------------------


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

    spent_before: float | None = None  # the session's total when the turn began
    total: float | None = None  # its newest total
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)  # open tool calls
    _spent: float = 0.0  # of earlier counters of this turn
    _tokens: tuple[int, int] = (0, 0)
    _last: str = ""  # the last character of the answer so far
    _tool_since: bool = False

    def hear(self, update: Json) -> Iterator[Event | Picture]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                yield from self._chunk(mapping(update.get("content")))
            case "agent_thought_chunk":
                yield Thought(words(mapping(update.get("content")).get("text")))
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
                if text := words(content.get("text")):
                    yield Text(self._apart(text) + text)
                    self._last = text[-1]
            case "resource_link":
                if made := _linked(content):
                    yield made
            case "image":
                if picture := _picture(content):
                    yield picture

    def _apart(self, text: str) -> str:
        """Words before and after a tool are two messages of the agent: a paragraph between them."""
        between = self._tool_since and bool(self._last.strip()) and not text[0].isspace()
        self._tool_since = False
        return "\n\n" if between else ""

    def _tool(self, update: Json) -> Iterator[Event]:
        number = words(update.get("toolCallId"))
        known = number in self.calls
        over = update.get("status") in ("completed", "failed")
        if not known and over and update.get("sessionUpdate") == "tool_call_update":
            return  # an afterthought about a call that has ended
        self._remember(number, update)
        call = self.calls[number]
        title = words(call.get("title")) or words(call.get("kind")) or "tool"
        self._tool_since = True
        if not known:
            yield ToolStarted(number, title)
        if over:
            del self.calls[number]
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

    def mention(self, call: Json) -> Iterator[Event]:
        """A tool call that a question tells of; some agents tell of it only there."""
        if words(call.get("toolCallId")) not in self.calls:
            yield from self._tool({**call, "sessionUpdate": "tool_call", "status": "pending"})

    def about(self, call: Json) -> Json:
        """A tool call as a permission request tells it, with what was told before."""
        known = self.calls.get(words(call.get("toolCallId")), {})
        return {**known, **{name: value for name, value in call.items() if value is not None}}

    def count(self, update: Json) -> bool:
        """Take in a session's total cost. A total that falls is a new counter, from zero."""
        cost = mapping(update.get("cost"))
        amount = cost.get("amount")
        if not isinstance(amount, int | float) or cost.get("currency") != "USD":
            return False
        if self.total is not None and amount < self.total:
            self._spent += self.total - (self.spent_before or 0.0)
            self.spent_before = 0.0
        self.total = float(amount)
        return True

    def count_tokens(self, result: Json) -> bool:
        usage = mapping(result.get("usage"))
        numbers = [usage.get(name) for name in ("inputTokens", "outputTokens")]
        if not all(isinstance(number, int) for number in numbers):
            return False
        self._tokens = (usage["inputTokens"], usage["outputTokens"])
        return True

    def usage(self) -> Usage:
        cost = None
        if self.total is not None:
            cost = self._spent + self.total - (self.spent_before or 0.0)
        return Usage(*self._tokens, cost=cost)


def _linked(content: Json) -> FileMade | None:
    uri = urlsplit(words(content.get("uri")))
    if uri.scheme != "file" or uri.netloc not in ("", "localhost") or not uri.path:
        return None
    path = Path(unquote(uri.path))
    return FileMade(path, words(content.get("name")) or path.name)


def _picture(content: Json) -> Picture | None:
    try:
        data = base64.b64decode(words(content.get("data")), validate=True)
    except (binascii.Error, ValueError):
        return None
    return Picture(data, words(content.get("mimeType"))) if data else None
