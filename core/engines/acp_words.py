"""The Agent Client Protocol's words and ours: what an agent declares, its modes, its questions.

Pure: plain data in, plain data out. It reads what it knows and passes over the rest, since agents
are newer or older than any schema; nothing here asks for an agent's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.engines.asking import change, command_lines, plain_json, whole
from core.engines.base import Abilities, Approvals, Decision
from core.engines.plain import Json, as_sent, items, mapping, name, words

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


# What an agent declares -------------------------------------------------------------------


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

    def abilities(self, *, read_only: bool, cost: bool | None) -> Abilities:
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
        agent=" ".join(filter(None, (name(info.get("name")), name(info.get("version"))))),
        load=able.get("loadSession") is True,
        resume=session.get("resume") is not None,
        fork=session.get("fork") is not None,
        images=mapping(able.get("promptCapabilities")).get("image") is True,
        http_servers=mapping(able.get("mcpCapabilities")).get("http") is True,
        sign_in=tuple(name(way.get("name")) for way in items(result.get("authMethods"))[:10]),
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


def title_of(call: Json) -> str:
    """What a tool call is called."""
    return name(call.get("title")) or name(call.get("kind")) or "tool"


def command_of(call: Json, folder: Path) -> str:
    """What a tool call will do, in full: the command itself, or its input as it stands.

    What cannot be stored as it is stands there in a visible form, so that nothing is left out;
    "" when it cannot be shown to anybody in full.
    """
    try:
        return whole(_told(call, folder))
    except RecursionError:  # nested without end
        return ""


def _told(call: Json, folder: Path) -> str:
    raw = call.get("rawInput")
    parts = []
    if isinstance(raw, dict):
        parts += command_lines(raw, folder)
    elif raw:
        parts.append(raw if isinstance(raw, str) else plain_json(raw))
    for content in items(call.get("content")):
        if content.get("type") == "diff":
            parts.append(
                change(content.get("path"), content.get("oldText"), content.get("newText"))
            )
    if not parts:
        parts += [as_sent(place.get("path")) for place in items(call.get("locations"))]
    return "\n".join(filter(None, parts)) or as_sent(call.get("title")) or "(not told)"
