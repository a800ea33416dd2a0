"""Tools that an engine without tools of its own gives its model: read, list and search files.

They reach regular files of the workspace only, write nothing, and every answer is bounded. The
gateway's own tools join them (``with_toolbox``). Nothing here knows a server or a model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from core import inside
from core.engines.base import Request, Toolbox, ToolSpec
from core.engines.plain import Json, as_sent, whole_number, words

READ_MOST = 512 * 1024  # bytes of a file that are looked at
ANSWER_MOST = 24_000  # characters of one answer
LINES = 400  # of a file, unless more are asked for
ENTRIES = 400  # of a list
MATCHES = 100
SEARCH_SECONDS = 5.0
FILES_MOST = 20_000  # that one search looks into
LINE_MOST = 300  # characters of a found line
SKIPPED = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__", ".mypy_cache"})


class ToolFailed(Exception):
    """The tool could not do it; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that a model can call. ``call`` takes its arguments and answers in words."""

    name: str
    description: str
    parameters: Json  # a JSON schema
    title: Callable[[Json], str]  # what people see while it runs
    call: Callable[[Json], Awaitable[str]]  # raises ToolFailed


Tools = Callable[[Request], Sequence[Tool]]
"""The tools of one turn; those of a side answer (``read_only``) must not change anything."""


def reading_tools(request: Request, hidden: Sequence[Path] = ()) -> Sequence[Tool]:
    """Read, list and search in the turn's workspace; ``hidden`` paths are not there for them."""
    files = _Files(request.folder, hidden)
    path = _text("path inside the workspace, like docs/notes.md")
    return (
        Tool(
            "read_file",
            "Read a text file of the workspace. Long files come in parts: ask for the next with "
            "first_line.",
            _schema(path=path, first_line=_number("1 for the start"), required=["path"]),
            lambda told: f"read {_path_of(told)}",
            lambda told: asyncio.to_thread(files.read, told),
        ),
        Tool(
            "list_files",
            "List files and folders of the workspace, all those below a folder.",
            _schema(path=_text("a folder; empty for the whole workspace")),
            lambda told: f"list {_path_of(told)}",
            lambda told: asyncio.to_thread(files.entries, told),
        ),
        Tool(
            "search_files",
            "Find a text in the files of the workspace; capitals make no difference.",
            _schema(
                text=_text("what to find, as it stands there"),
                path=_text("only below this folder; empty for the whole workspace"),
                required=["text"],
            ),
            lambda told: f"search “{as_sent(told.get('text'))[:60]}”",
            lambda told: asyncio.to_thread(files.search, told),
        ),
    )


def with_toolbox(tools: Sequence[Tool], request: Request) -> Sequence[Tool]:
    """These and what the gateway offers the turn; of two with one name the gateway's counts."""
    box = request.toolbox
    if box is None:
        return tools
    offered = [_offered(box, spec) for spec in box.offered()]
    names = {tool.name for tool in offered}
    return (*(tool for tool in tools if tool.name not in names), *offered)


def _offered(box: Toolbox, spec: ToolSpec) -> Tool:
    async def call(told: Json) -> str:
        reply = await box.call(spec.name, told)
        if reply.failed:
            raise ToolFailed(reply.text)
        return reply.text

    title = spec.name.replace("_", " ")
    return Tool(spec.name, spec.description, spec.schema, lambda _: title, call)


class _Files:
    """The workspace as a model sees it. Works off the loop."""

    def __init__(self, root: Path, hidden: Sequence[Path]) -> None:
        self._root = root
        resolved = root.resolve()
        outside = [path.resolve() for path in hidden]
        self._hidden = [path for path in outside if not resolved.is_relative_to(path)]

    def read(self, told: Json) -> str:
        path = self._path(told)
        try:
            if self._conceals(path):
                raise inside.NotInside(str(path))
            data = inside.read(self._root, Path(path), READ_MOST + 1, self._hidden)
        except (inside.NotInside, OSError) as fault:
            raise ToolFailed(f"There is no file {path} that can be read here.") from fault
        if b"\0" in data[:4096]:
            raise ToolFailed(f"{path} is not a text file.")
        lines = data[:READ_MOST].decode("utf-8", "replace").splitlines()
        first = max(1, whole_number(told.get("first_line")) or 1)
        shown = _bounded(lines[first - 1 : first - 1 + LINES])
        end = first - 1 + len(shown)
        note = f"\n(lines {first} to {end} of {len(lines)})" if end < len(lines) else ""
        cut = "\n(the file is longer than can be read here)" if len(data) > READ_MOST else ""
        return "\n".join(shown) + note + cut or "(empty)"

    def entries(self, told: Json) -> str:
        found: list[str] = []
        for where, folders, names in self._walk(told):
            found += [f"{where / name}/" for name in folders] + [str(where / n) for n in names]
            if len(found) > ENTRIES:
                more = "(and more: ask for a folder of it)"
                return "\n".join([*_bounded(sorted(found[:ENTRIES])), more])
        return "\n".join(_bounded(sorted(found))) or "(empty)"

    def search(self, told: Json) -> str:
        wanted = words(told.get("text")).strip("\n").casefold()
        if not wanted.strip():
            raise ToolFailed("Say what to find in “text”.")
        until = time.monotonic() + SEARCH_SECONDS
        found: list[str] = []
        looked = 0
        for where, _, names in self._walk(told):
            for name in names:
                looked += 1
                found += self._matches(where / name, wanted)
                if len(found) >= MATCHES or looked >= FILES_MOST or time.monotonic() > until:
                    return "\n".join([*_bounded(found[:MATCHES]), "(perhaps more; search below a"
                                      " folder, or for a longer text)"])  # fmt: skip
        return "\n".join(_bounded(found)) or "(nothing found)"

    def _matches(self, path: PurePosixPath, wanted: str) -> Iterator[str]:
        try:
            data = inside.read(self._root, Path(path), READ_MOST, self._hidden)
        except (inside.NotInside, OSError):
            return
        if b"\0" in data[:4096]:
            return
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if wanted in line.casefold():
                yield f"{path}:{number}: {line.strip()[:LINE_MOST]}"

    def _walk(self, told: Json) -> Iterator[tuple[PurePosixPath, list[str], list[str]]]:
        path = self._path(told)
        try:
            if self._conceals(path):
                raise inside.NotInside(str(path))
            for where, folders, names in inside.walk(self._root, path):
                folders[:] = [
                    name
                    for name in folders
                    if name not in SKIPPED and not self._conceals(where / name)
                ]
                yield where, folders, [n for n in names if not self._conceals(where / n)]
        except (inside.NotInside, OSError) as fault:
            raise ToolFailed(f"There is no folder {path} that can be looked into here.") from fault

    def _path(self, told: Json) -> PurePosixPath:
        """The path that was asked for, from the workspace on; models also say it in full."""
        path = _path_of(told)
        return path.relative_to(self._root) if path.is_relative_to(self._root) else path

    def _conceals(self, path: PurePosixPath) -> bool:
        if not self._hidden:
            return False
        try:
            resolved = (self._root / path).resolve()
        except (OSError, RuntimeError, ValueError):
            return True
        return any(resolved.is_relative_to(hidden) for hidden in self._hidden)


def _bounded(lines: Sequence[str]) -> list[str]:
    """The first lines, as many as fit into an answer; a single long one is cut."""
    kept: list[str] = []
    left = ANSWER_MOST
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            if not kept:
                kept.append(line[:ANSWER_MOST] + " …")
            break
        kept.append(line)
    return kept


def _path_of(told: Json) -> PurePosixPath:
    return PurePosixPath(words(told.get("path")).strip() or ".")


def _schema(*, required: Sequence[str] = (), **properties: Json) -> Json:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, "required": list(required)} if required else made


def _text(meaning: str) -> Json:
    return {"type": "string", "description": meaning}


def _number(meaning: str) -> Json:
    return {"type": "integer", "description": meaning}
