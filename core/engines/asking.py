"""What a person is asked about, in full: the command itself, or a tool's input as it stands.

Pure. Nothing is left out: what cannot be stored as it is stands there in a visible form.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection
from pathlib import Path

from core.engines.acp_plain import Json, as_sent, words

COMMAND_MOST = 2_000_000  # characters of a command that a person can be asked about
TOLD = frozenset({"command", "cmd", "cwd", "workdir", "description"})


def whole(told: str) -> str:
    """The text as it is shown; "" when it cannot be shown to anybody in full."""
    return words(told.replace("\0", "␀")) if len(told) <= COMMAND_MOST else ""


def command_lines(raw: Json, folder: Path) -> list[str]:
    """A command with the folder it runs in, if that is another, and everything else of it."""
    command = raw.get("command") or raw.get("cmd")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = shlex.join(command)
    if not isinstance(command, str):
        return [plain_json(raw)] if raw else []
    parts = [command]
    where = raw.get("cwd") or raw.get("workdir")
    if isinstance(where, str) and Path(where) != folder:
        parts.append(f"(in {where})")
    return [*parts, *rest_of(raw, TOLD)]


def rest_of(raw: Json, told: Collection[str]) -> list[str]:
    """What of an input was not told yet."""
    rest = {name: value for name, value in raw.items() if name not in told}
    return [plain_json(rest)] if rest else []


def change(path: object, old: object, new: object) -> str:
    """A change of a file, line by line."""
    lines = [f"write {as_sent(path)}"]
    lines += [f"- {line}" for line in as_sent(old).splitlines()]
    lines += [f"+ {line}" for line in as_sent(new).splitlines()]
    return "\n".join(lines)


def plain_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
