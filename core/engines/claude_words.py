"""Claude Code's words and ours: how it is started, what its tools are called, what its models are.

Pure: plain data in, plain data out. It reads what it knows and passes over the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.engines.asking import change, command_lines, plain_json, rest_of, whole
from core.engines.base import Approvals, Request
from core.engines.plain import Json, as_sent, items, mapping, name

SPEAKING = (
    "-p",
    *("--output-format", "stream-json", "--input-format", "stream-json"),
    *("--verbose", "--include-partial-messages"),
    *("--permission-mode", "default", "--permission-prompt-tool", "stdio"),
    "--strict-mcp-config",  # only servers that we, or the admin's command, name
)
OWN_SOURCES = "--setting-sources="  # none: no setting or hook of a workspace or a person leaks in
# Its own clock and its ways to other sessions would go round the gateway.
SWITCHED_OFF = (
    *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "Monitor"),
    *("SendMessage", "ListAgents", "EnterWorktree", "ExitWorktree"),
)
READING = ("Read", "Grep", "Glob")
# Asked about each time, also where Claude Code would call a command harmless by itself.
ALWAYS_ASKED = ("Bash", "Edit", "Write", "NotebookEdit", "WebFetch", "WebSearch")
SWITCHES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    # what it would begin by itself after a turn belongs to no turn
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    # “@/some/file” in a message would be read without anybody's leave
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    # a lane's conversation is the lane's: nothing is noted down beside it
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "ENABLE_TOOL_SEARCH": "false",  # the gateway's tools are few, and known from the start
}
_SPECIAL, _ESCAPED = re.compile(r"[*?\[\]\\!#]"), r"\\\g<0>"
# Its commands that change the conversation behind our back, or itself for everybody here.
FRESH = frozenset({"clear", "reset", "new"})
NOT_HANDED_ON = FRESH | {
    *("resume", "continue", "rename", "branch", "fork", "rewind", "exit", "quit"),
    *("config", "settings", "model", "effort", "fast", "permissions", "allowed-tools", "hooks"),
    *("mcp", "plugin", "plugins", "reload-plugins", "reload-skills", "agents", "memory"),
    *("add-dir", "login", "logout", "output-style", "statusline", "autocompact", "schedule"),
    *("loop", "goal", "update-config", "auto-mode-setup", "team-onboarding", "heapdump"),
    *("__remote-workflow", "workflow-launch-exec", "remote-control", "doctor", "upgrade"),
}
NEWEST_NEEDED = (2, 1, 332)  # older ones know less of what keeps a message or a side answer in
EFFORTS = ("low", "medium", "high", "xhigh", "max")


# Starting it --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setup:
    """What is settled when a process starts. A warm one with another setup is of no use."""

    model: str
    effort: str
    asks: bool
    cap: float | None = None  # dollars; counts what the process spends, so it is for one turn

    @classmethod
    def of(cls, request: Request) -> Setup:
        asks = request.approvals is Approvals.ASK
        return cls(request.model.lower(), request.effort.lower(), asks, request.budget or None)


def arguments(
    request: Request, fresh: str, private: Sequence[tuple[Path, str]], *, own_sources: bool
) -> tuple[str, ...]:
    """The command line after the program, for one process.

    ``fresh`` is the id of a session that begins, a fork included; ``private`` are folders and
    names in them that no tool may look at; ``own_sources``: the admin's command says which
    settings count.
    """
    setup = Setup.of(request)
    found = [*SPEAKING, *(() if own_sources else (OWN_SOURCES,))]
    if request.session:
        found.append(f"--resume={request.session}")
    if request.read_only:
        found += ["--tools", ",".join(READING), "--permission-prompts", "none"]
        found += ["--no-session-persistence", *(["--fork-session"] if request.session else [])]
    else:
        found += ["--disallowedTools", ",".join(SWITCHED_OFF)]
    if not request.session or request.read_only:
        found.append(f"--session-id={fresh}")
    found += [f"--model={setup.model}"] if setup.model else []
    found += [f"--effort={setup.effort}"] if setup.effort else []
    found += [f"--max-budget-usd={setup.cap:.9f}".rstrip("0").rstrip(".")] if setup.cap else []
    found += ["--settings", json.dumps({"permissions": permissions(setup, private)})]
    return tuple(found)


def permissions(setup: Setup, private: Sequence[tuple[Path, str]]) -> Json:
    """Rules beside its own. A path that begins with two slashes is absolute there."""
    closed = []
    for folder, inner in private:
        for place in dict.fromkeys((folder.absolute(), folder.resolve())):
            pattern = f"/{_SPECIAL.sub(_ESCAPED, str(place))}/{inner}"
            closed += [f"Read({pattern})", f"Edit({pattern})"]
    return {"deny": closed, "ask": list(ALWAYS_ASKED) if setup.asks else []}


def not_handed_on(prompt: str) -> str:
    """Why a command of its own is not handed on, and what to do; "" for anything else."""
    text = prompt.lstrip()
    word = text[1:].split(maxsplit=1)[0].lower() if text[:1] == "/" and text[1:2] > " " else ""
    if word in FRESH:
        return "For a fresh conversation, say /new."
    if word in NOT_HANDED_ON:
        return (
            f"/{word} of Claude Code is not handed on: it would change more than this "
            "conversation. /model, /effort and /approvals are set here; for the rest, start "
            "`claude` in a terminal on the gateway's machine."
        )
    return ""


def unmentioned(text: str) -> str:
    """The text for a version that would read “@/some/file” in it without anybody's leave."""
    return re.sub(r"(?:(?<=\s)|^)@(?=\S)", "@ ", text)


# What it declares ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declared:
    """The answer to the hand-shake, as far as it matters here."""

    version: str = ""
    models: tuple[tuple[str, str, tuple[str, ...]], ...] = ()  # name, what it means now, efforts
    account: Json | None = None

    def model(self, wanted: str) -> str:
        """What a name stands for now; a name that is not listed stands for itself."""
        for value, resolved, _ in self.models:
            if value.lower() == (wanted or "default"):
                return resolved or value
        return wanted

    def efforts(self, wanted: str) -> tuple[str, ...]:
        """The efforts of a model; none for a listed one that has no choice of it."""
        for value, resolved, efforts in self.models:
            if (wanted or "default") in (value.lower(), resolved.lower()):
                return efforts
        return EFFORTS

    @property
    def current(self) -> bool:
        """Whether it knows every option and switch that is used here."""
        numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", self.version)
        return numbers is not None and tuple(map(int, numbers.groups())) >= NEWEST_NEEDED

    @property
    def signed_in(self) -> bool:
        """False only when it says so."""
        if self.account is None:
            return True
        ways = [self.account.get(key) for key in ("tokenSource", "apiKeySource")]
        known = [way for way in ways if isinstance(way, str)]
        own = self.account.get("apiProvider", "firstParty") == "firstParty"
        return not own or not known or any(way not in ("none", "") for way in known)


def declared(response: Json) -> Declared:
    models = [
        (
            name(model.get("value")),
            name(model.get("resolvedModel")),
            tuple(name(effort) for effort in model.get("supportedEffortLevels") or ()),
        )
        for model in items(response.get("models"))[:100]
    ]
    account = response.get("account")
    return Declared(
        version=name(response.get("claude_code_version")),
        models=tuple(model for model in models if model[0]),
        account=account if isinstance(account, dict) else None,
    )


# Tools --------------------------------------------------------------------------------------


def title_of(tool: str, call: Json, folder: Path) -> str:
    """What a tool call is called while it runs, in a few words."""
    where = _inside(call.get("file_path") or call.get("notebook_path") or call.get("path"), folder)
    match tool:
        case "Bash":
            said = call.get("description") or as_sent(call.get("command")).partition("\n")[0]
            return name(said) or "run a command"
        case "Read" | "Edit" | "Write":
            return name(f"{tool.lower()} {where}")
        case "NotebookEdit":
            return name(f"edit {where}")
        case "Grep" | "Glob":
            return name(f"search for {as_sent(call.get('pattern'))}")
        case "WebFetch":
            return name(f"fetch {as_sent(call.get('url'))}")
        case "WebSearch":
            return name(f"search the web for {as_sent(call.get('query'))}")
        case "Task" | "Agent":
            return name(f"delegate: {as_sent(call.get('description'))}")
        case _ if tool.startswith("mcp__"):
            return name(tool.removeprefix("mcp__").replace("__", ": ", 1))
        case _:
            return name(tool) or "tool"


KINDS = {
    "Bash": "run a command",
    "Write": "write a file",
    "Edit": "change a file",
    "NotebookEdit": "change a notebook",
    "Read": "read a file",
    "WebFetch": "fetch a page",
    "WebSearch": "search the web",
    "ExitPlanMode": "carry out a plan",
}


def kind_of(tool: str) -> str:
    """What a person is asked for. It is part of what *always here* remembers, so it says nothing
    that the agent words differently each time."""
    return KINDS.get(tool) or title_of(tool, {}, Path())


def _inside(path: object, folder: Path) -> str:
    text = as_sent(path)
    try:
        return str(Path(text).relative_to(folder))
    except ValueError:
        return text


def command_of(tool: str, call: Json, folder: Path) -> str:
    """What a tool call will do, in full; "" when it cannot be shown to anybody in full."""
    try:
        return whole("\n".join(_told(tool, call, folder)) or "(not told)")
    except RecursionError:  # nested without end
        return ""


def _told(tool: str, call: Json, folder: Path) -> list[str]:
    path = call.get("file_path")
    if tool == "Bash" and isinstance(call.get("command"), str):
        return command_lines(call, folder)
    if tool == "Write" and isinstance(path, str):
        rest = rest_of(call, ("file_path", "content"))
        return [change(path, "", call.get("content")), *rest]
    if tool == "Edit" and isinstance(path, str):
        changed = change(path, call.get("old_string"), call.get("new_string"))
        everywhere = ["(wherever it occurs)"] if call.get("replace_all") is True else []
        told = ("file_path", "old_string", "new_string", "replace_all")
        return [changed, *everywhere, *rest_of(call, told)]
    return [f"{tool}\n{plain_json(call)}" if call else tool]


# Questions ----------------------------------------------------------------------------------

ASKED_AS_TEXT = (
    "The questions were shown to the person as text. Their answer comes as the next message: end "
    "your turn now, and do not repeat the questions."
)


def questions(call: Json) -> Iterator[str]:
    """The questions of its form, as text for a chat."""
    for question in items(call.get("questions"))[:10]:
        lines = [f"**{as_sent(question.get('question')).strip()}**"]
        for number, option in enumerate(items(question.get("options"))[:20], 1):
            told = " – ".join(
                filter(None, (name(option.get("label")), name(option.get("description"))))
            )
            lines.append(f"{number}. {told}")
        if question.get("multiSelect") is True:
            lines.append("(More than one can be chosen.)")
        yield "\n".join(lines)


def result_texts(message: Json) -> Sequence[Json]:
    """The blocks of an assistant's or a user's message."""
    content = mapping(message.get("message")).get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
