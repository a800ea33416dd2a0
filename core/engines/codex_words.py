"""Codex's words and ours: how it is started, what its threads are told, what its tools are called.

Pure: plain data in, plain data out. It reads what it knows and passes over the rest.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.engines.asking import change, lines_of, placed, plain_json, rest_of, whole
from core.engines.base import Approvals, Request
from core.engines.plain import Json, as_sent, items, mapping, name
from core.engines.workspace_tools import Tool

# What would go round the gateway: work that goes on by itself, programs and servers of others,
# other ways to a person's screen.
SWITCHED_OFF = (
    *("hooks", "plugins", "remote_plugin", "apps", "goals", "memories", "multi_agent"),
    *("multi_agent_v2", "browser_use", "browser_use_external", "computer_use", "in_app_browser"),
    *("skill_mcp_dependency_install", "tool_suggest", "realtime_conversation", "worktrees"),
    *("daemon_auto_start", "sleep_tool"),
    "unbounded_connection_retries",  # it would wait for its service for ever
)
# And for a side answer, whatever could run, write, or look outside of the workspace.
READING_ONLY = ("shell_tool", "unified_exec", "view_image", "image_generation")
SHELL = "shell_tool"
PARSED_MOST = 50_000  # characters of a command that its shell is looked for in
# The system's own. A model may name the shell, and a file of a workspace may be called like one.
SHELLS = frozenset(
    f"{folder}/{shell}"
    for folder in ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
    for shell in ("bash", "sh", "zsh")
)
PROFILE = "laneway"  # our set of permissions, by its name there
HANDED_ON = ("HOME", "PATH", "LANG", "LC_*", "TZ", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR")
POLICY = {Approvals.ASK: "untrusted", Approvals.AUTO: "on-request", Approvals.FULL: "untrusted"}


# Starting it --------------------------------------------------------------------------------


def arguments(
    request: Request, private: Sequence[Path], own: Sequence[Path], mark: str
) -> tuple[str, ...]:
    """The command line after the program. None of it is a secret, for everybody here can see it.

    ``private`` are paths that no command may read; ``own`` are the lane's, wherever they lie, the
    workspace first; links resolved.
    ``mark`` is the variable that every process of a lane is found by.
    """
    off = (*SWITCHED_OFF, *(READING_ONLY if request.read_only else ()))
    settings: dict[str, object] = {f"features.{feature}": False for feature in off}
    # Else it would take the folder for trusted, and settings and servers in it for the person's;
    # the same for a repository that it lies in.
    places = [*own[:1], request.folder]
    above = dict.fromkeys(str(path) for one in places for path in (one, *one.parents))
    settings["projects"] = {path: {"trust_level": "untrusted"} for path in above}
    settings["shell_environment_policy"] = {
        "inherit": "all",
        "ignore_default_excludes": True,
        "include_only": [*HANDED_ON, mark],
    }
    files = {**{str(path): "deny" for path in private}, **{str(path): "write" for path in own}}
    # With paths that nobody may read, even a command that is allowed to leave the sandbox gets no
    # network but what is said here. Where nobody is asked it has to ask for it.
    network = {"enabled": request.approvals is not Approvals.AUTO}
    profile = {"extends": ":workspace", "filesystem": files, "network": network}
    settings[f"permissions.{PROFILE}"] = profile
    settings["features.exec_permission_approvals"] = request.approvals is Approvals.AUTO
    settings["default_permissions"] = PROFILE
    settings["notify"] = []
    settings["agents.enabled"] = False  # some models have them whatever the features say
    if closed_to_the_web(request):  # it searches on the service's side, and nobody would be asked
        settings["web_search"] = "disabled"
    told = [word for key, value in settings.items() for word in ("-c", f"{key}={_toml(value)}")]
    return ("app-server", *told)


def closed_to_the_web(request: Request) -> bool:
    return request.read_only or request.approvals is Approvals.ASK


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


GREETING: Json = {
    "clientInfo": {"name": "laneway", "title": "Laneway", "version": "1"},
    "capabilities": {"experimentalApi": True},
}


def thread(request: Request, servers: Json, off: Sequence[str] = ()) -> Json:
    """What a thread is opened with: begun, resumed or forked. ``off``: servers not to be used."""
    config = {**servers, **{one: {"enabled": False} for one in off}}
    told: dict[str, object] = {
        "cwd": str(request.folder),
        "approvalPolicy": "never" if request.read_only else POLICY[request.approvals],
        "approvalsReviewer": "user",
        "config": {"mcp_servers": config} if config else {},
    }
    told |= {"sandbox": "read-only"} if request.read_only else {"permissions": PROFILE}
    return {**told, **({"model": request.model} if request.model else {})}


def offered(tools: Sequence[Tool]) -> list[Json]:
    """Our own tools, as a thread is told of them; a fork has those of its thread."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.parameters,
        }
        for tool in tools
    ]


def obeyed(opened: Json, request: Request) -> bool:
    """Whether a thread was opened as it was asked for: a version may know less than ours."""
    sandbox = mapping(opened.get("sandbox")).get("type")
    if request.read_only:
        return opened.get("approvalPolicy") == "never" and sandbox == "readOnly"
    profile = mapping(opened.get("activePermissionProfile")).get("id")
    return opened.get("approvalPolicy") == POLICY[request.approvals] and profile == PROFILE


# What it declares ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    efforts: tuple[str, ...] = ()
    effort: str = ""  # the usual one
    usual: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """What the program told of itself, as far as it matters here."""

    version: str = ""
    models: tuple[Model, ...] = ()
    own_model: str = ""  # of its settings
    own_effort: str = ""
    servers: tuple[str, ...] = ()  # tool servers of its settings
    signed_in: bool = True

    def model(self, wanted: str) -> str:
        usual = next((model.name for model in self.models if model.usual), "")
        return wanted or self.own_model or usual

    def effort(self, wanted: str, model: str) -> str:
        """The effort to ask for; "" leaves it to the model."""
        known = self.about(model)
        if wanted or known is None:
            return wanted or self.own_effort
        return self.own_effort if self.own_effort in known.efforts else known.effort

    def about(self, model: str) -> Model | None:
        return next((one for one in self.models if one.name == model), None)


def version(greeted: Json) -> str:
    """From words like ``laneway/0.163.0 (Debian 12; x86_64) …``."""
    return name(as_sent(greeted.get("userAgent")).partition("/")[2].partition(" ")[0])


def models(listed: Json) -> tuple[Model, ...]:
    return tuple(
        Model(
            name(one.get("model") or one.get("id")),
            tuple(
                name(effort.get("reasoningEffort"))
                for effort in items(one.get("supportedReasoningEfforts"))
            ),
            name(one.get("defaultReasoningEffort")),
            one.get("isDefault") is True,
        )
        for one in items(listed.get("data"))[:100]
    )


# Tools --------------------------------------------------------------------------------------


def title_of(item: Json, folder: Path) -> str:
    """What a tool call is called while it runs, in a few words; "" for what is none."""
    match item.get("type"):
        case "commandExecution":
            return name(script(item.get("command")).partition("\n")[0]) or "run a command"
        case "fileChange":
            paths = [_inside(one.get("path"), folder) for one in items(item.get("changes"))]
            more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
            return name(f"change {', '.join(paths[:3])}{more}" if paths else "change files")
        case "mcpToolCall":
            return name(f"{as_sent(item.get('server'))}: {as_sent(item.get('tool'))}")
        case "dynamicToolCall":
            given = mapping(item.get("arguments"))
            what = as_sent(given.get("path")) or as_sent(given.get("text"))
            return name(f"{as_sent(item.get('tool')).replace('_', ' ')} {what}")
        case "webSearch":
            return name(f"search the web for {as_sent(item.get('query'))}")
        case "imageView":
            return name(f"look at {_inside(item.get('path'), folder)}")
        case "imageGeneration":
            return "draw a picture"
        case "collabAgentToolCall":
            return name(f"delegate: {as_sent(item.get('prompt'))}")
        case _:
            return ""


def script(command: object) -> str:
    """A command without the shell that is started for it; anything else as it came."""
    text = as_sent(command)
    if len(text) > PARSED_MOST:
        return text
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    if len(words) == 3 and words[0] in SHELLS and words[1] in ("-lc", "-c"):
        return words[2]
    return text


def _inside(path: object, folder: Path) -> str:
    text = as_sent(path)
    try:
        return str(Path(text).relative_to(folder))
    except ValueError:
        return text


# Questions ----------------------------------------------------------------------------------

ASKED_AS_TEXT = (
    "The questions were shown to the person as text. Their answer comes as the next message: end "
    "your turn now, and do not repeat the questions."
)


def questions(asked: Json) -> Iterator[str]:
    """Questions of the agent for the person, as text for a chat."""
    for question in items(asked.get("questions"))[:10]:
        lines = [f"**{as_sent(question.get('question') or question.get('title')).strip()}**"]
        options = question.get("options")
        for number, option in enumerate(options[:20] if isinstance(options, list) else [], 1):
            one = mapping(option)
            told = (name(one.get("label") or option), name(one.get("description")))
            lines.append(f"{number}. {' – '.join(filter(None, told))}")
        yield "\n".join(lines)


KINDS = {
    "item/commandExecution/requestApproval": "run a command",
    "item/fileChange/requestApproval": "change files",
    "item/permissions/requestApproval": "more permissions",
    "mcpServer/elicitation/request": "call a tool",
}
# Of a question about a command: what is told elsewhere, and what names its place in the turn.
TOLD = frozenset(
    {
        *("threadId", "turnId", "itemId", "approvalId", "startedAtMs", "environmentId", "kind"),
        *("command", "cwd", "commandActions", "reason", "availableDecisions"),
        *("proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments"),
    }
)


def command_of(method: str, asked: Json, item: Json, folder: Path) -> str:
    """What is asked about, in full; "" when it cannot be shown to anybody in full.

    ``item`` is what was told of the tool call that the question is about.
    """
    try:
        match method:
            case "item/commandExecution/requestApproval":
                return whole("\n".join(_command(asked, folder)))
            case "item/fileChange/requestApproval":
                return whole("\n".join(_changes(asked, item)))
            case "item/permissions/requestApproval":
                return whole("\n".join(_permissions(asked)))
            case "mcpServer/elicitation/request":
                return whole("\n".join(_call(asked)))
    except RecursionError:  # nested without end
        pass
    return ""


def _command(asked: Json, folder: Path) -> Iterator[str]:
    command = script(asked.get("command"))
    if command and asked.get("kind", "command") != "command":
        yield f"type into a running program ({as_sent(asked.get('kind'))}):"
    if command:
        yield from placed(command, asked.get("cwd"), folder)
    yield from rest_of({key: one for key, one in asked.items() if one is not None}, TOLD)


def _changes(asked: Json, item: Json) -> Iterator[str]:
    if asked.get("grantRoot"):  # a yes would be for every later change below it as well
        return
    for one in items(item.get("changes")):
        path, diff, kind = as_sent(one.get("path")), one.get("diff"), mapping(one.get("kind"))
        match kind.get("type"):
            case "add":
                yield change(path, "", diff)
            case "delete":
                yield f"delete {path}"
                yield from (f"- {line}" for line in lines_of(diff))
            case _:
                moved = as_sent(kind.get("move_path"))
                yield f"change {path}" + (f", then move it to {moved}" if moved else "")
                yield as_sent(diff)


def _permissions(asked: Json) -> Iterator[str]:
    yield "for the rest of this turn:"
    yield plain_json(mapping(asked.get("permissions")))
    if where := as_sent(asked.get("cwd")):
        yield f"(in {where})"


def _call(asked: Json) -> Iterator[str]:
    if not is_tool_call(asked):  # a form or an address of a server's own is not for the gateway
        return
    yield f"{as_sent(asked.get('serverName'))}: {as_sent(asked.get('message'))}"
    meta = mapping(asked.get("_meta"))
    kept = {key: one for key, one in meta.items() if key not in ("codex_approval_kind", "persist")}
    yield from rest_of(kept, ())


def is_tool_call(asked: Json) -> bool:
    """Whether a server's question is Codex's own: may this tool be called?"""
    kind = mapping(asked.get("_meta")).get("codex_approval_kind")
    return kind == "mcp_tool_call" and asked.get("mode", "form") == "form"


def answer_to(method: str, asked: Json, *, allowed: bool) -> Json:
    """A yes, for this once and exactly this, or a no after which the turn goes on."""
    match method:
        case "item/permissions/requestApproval":
            granted = mapping(asked.get("permissions")) if allowed else {}
            return {"permissions": granted, "scope": "turn"}
        case "mcpServer/elicitation/request":
            return {"action": "accept", "content": {}} if allowed else {"action": "decline"}
        case "item/tool/requestUserInput":
            numbers = [as_sent(one.get("id")) for one in items(asked.get("questions"))]
            return {"answers": {number: {"answers": [ASKED_AS_TEXT]} for number in numbers}}
        case _:
            return {"decision": "accept" if allowed else "decline"}


def kind_of(method: str) -> str:
    """What a person is asked for. It is part of what *always here* remembers, so it says nothing
    that the agent words differently each time."""
    return KINDS[method]
