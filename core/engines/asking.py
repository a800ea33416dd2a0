"""What a person is asked about, in full: the command itself, or a tool's input as it stands.

Pure. Nothing is left out: what cannot be stored as it is stands there in a visible form.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection
from pathlib import Path

from core.engines.plain import Json, as_sent, words

COMMAND_MOST = 2_000_000  # characters of a command that a person can be asked about
COMMANDS, PLACES = ("command", "cmd"), ("cwd", "workdir")  # what agents call them; one of each


def whole(told: str) -> str:
    """The text as it is shown; "" when it cannot be shown to anybody in full."""
    return words(told.replace("\0", "␀")) if len(told) <= COMMAND_MOST else ""


def command_lines(raw: Json, folder: Path) -> list[str]:
    """A command with the folder it runs in, if that is another, and everything else of it."""
    named = next((key for key in COMMANDS if raw.get(key)), "")
    command = raw.get(named)
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = shlex.join(command)
    if not isinstance(command, str):
        return [plain_json(raw)] if raw else []
    place = next((key for key in PLACES if isinstance(raw.get(key), str)), "")
    told = {named, place, "description"}
    told |= {key for key in (*COMMANDS, *PLACES) if raw.get(key) is None}
    return [*placed(command, raw.get(place), folder), *rest_of(raw, told)]


def placed(command: str, where: object, folder: Path) -> list[str]:
    """A command, and the folder that it runs in where that is another or could be mistaken.

    A command of several lines could end in words like ours: so ours always stand below it.
    """
    where = where if isinstance(where, str) else str(folder)
    return [command, f"(in {where})"] if "\n" in command or Path(where) != folder else [command]


def rest_of(raw: Json, told: Collection[str]) -> list[str]:
    """What of an input was not told yet."""
    rest = {name: value for name, value in raw.items() if name not in told}
    return [plain_json(rest)] if rest else []


def change(path: object, old: object, new: object) -> str:
    """A change of a file, line by line."""
    lines = [f"write {as_sent(path)}"]
    lines += [f"- {line}" for line in lines_of(old)]
    lines += [f"+ {line}" for line in lines_of(new)]
    return "\n".join(lines)


def lines_of(text: object) -> list[str]:
    """Lines as programs read them: what else might look like an end of one stands in them."""
    text = as_sent(text).removesuffix("\n")
    return text.split("\n") if text else []


def plain_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
