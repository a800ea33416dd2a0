"""What was said in each conversation with a chat-completions server: one file of lines a session.

The server remembers nothing, so this does. A message is a line, appended and made durable before
the next step, so that a kill at any moment costs at most the line that was being written. Nothing
here talks to a server; the functions at the end are pure. It does the disk's work: call the class
off the loop.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from core.engines.plain import Json, as_sent, items

CUT_OFF = "(This was cut off.)"
LEFT_OUT = "(Left out, because it was too long. Ask for it again if you need it.)"
_EMPTY = 60  # tokens of an answer of which nothing can be spared
BEFORE = 0  # the turn of a summary, which no turn that runs again may take for its own
IMAGE = "image_file"  # a picture is kept as its path, and read when it is sent
IMAGE_TOKENS = 1000
_SESSION = re.compile(r"chat-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Said:
    """One message and the turn that it belongs to."""

    turn: int
    message: Json


class Histories:
    """The files. One turn at a time writes to a session; side answers only read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self) -> str:
        """Make an empty one; its id. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        session = f"chat-{secrets.token_hex(8)}"
        self._put(session, b"")
        return session

    def read(self, session: str) -> list[Said] | None:
        """All of it, oldest first; None when there is none of this name. Raises OSError."""
        if not _SESSION.fullmatch(session):
            return None
        try:
            lines = self._path(session).read_bytes().splitlines()
        except FileNotFoundError:
            return None
        return [said for line in lines if (said := _said(line)) is not None]

    def append(self, session: str, said: Iterable[Said]) -> None:
        """Add to it, durably. Raises OSError."""
        with self._path(session).open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":  # a line that was cut off stays one of its own
                    file.write(b"\n")
            file.write(_lines(said))
            file.flush()
            os.fsync(file.fileno())

    def replace(self, session: str, said: Iterable[Said]) -> None:
        """Have this instead, all or nothing. Raises OSError."""
        self._put(session, _lines(said))

    def _put(self, session: str, content: bytes) -> None:
        path = self._path(session)
        new = path.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _path(self, session: str) -> Path:
        return self._folder / f"{session}.jsonl"


def _lines(said: Iterable[Said]) -> bytes:
    return b"".join(
        json.dumps({"turn": one.turn, **one.message}, ensure_ascii=False).encode() + b"\n"
        for one in said
    )


def _said(line: bytes) -> Said | None:
    """A line; one that was cut off, or is empty, is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("turn"), int):
        return None
    turn = found.pop("turn")
    return Said(turn, found)


# Pure: what of it is sent ------------------------------------------------------------------


def turns_of(history: Iterable[Said]) -> list[list[Said]]:
    return [list(said) for _, said in groupby(history, key=lambda said: said.turn)]


def fitting(history: Sequence[Said], most: int) -> list[Said]:
    """The newest turns, whole, that are at most so many tokens; always the last one.

    Where that one is larger by itself, its oldest answers of tools are emptied.
    """
    kept: list[list[Said]] = []
    for turn in reversed(turns_of(history)):
        size = tokens(turn)
        if kept and size > most:
            break
        if size > most:
            return _emptied(turn, size - most)
        most -= size
        kept.insert(0, turn)
    return [said for turn in kept for said in turn]


def newer_half(history: Sequence[Said]) -> list[Said]:
    """Without the older half of the turns; of a single one, only its tools' newest answer stays.

    Where that is the only one, it goes as well.
    """
    turns = turns_of(history)
    if len(turns) == 1:
        answers = [said for said in turns[0] if said.message.get("role") == "tool"]
        return _emptied(turns[0], tokens(answers[:-1] or answers))
    return [said for turn in turns[(len(turns) + 1) // 2 :] for said in turn]


def _emptied(turn: Sequence[Said], excess: int) -> list[Said]:
    """The same turn without the oldest answers of tools, until so many tokens are spared."""
    made = []
    for said in turn:
        if excess > 0 and said.message.get("role") == "tool" and tokens([said]) > _EMPTY:
            spared = Said(said.turn, {**said.message, "content": LEFT_OUT})
            excess -= tokens([said])
            said = spared
        made.append(said)
    return made


def tokens(history: Iterable[Said]) -> int:
    """About how many tokens it is, rather too many than too few."""
    total = 0
    for said in history:
        content = said.message.get("content")
        pictures = sum(part.get("type") == IMAGE for part in items(content))
        total += 8 + len(json.dumps(said.message, ensure_ascii=False).encode()) // 3
        total += IMAGE_TOKENS * pictures
    return total


def mended(history: Iterable[Said], current: int) -> list[Json]:
    """The messages as every server takes them: an answer to each call, and one to each turn.

    What a kill cut off has neither. ``current`` is the turn that is being answered now.
    """
    made: list[Json] = []
    for turn in turns_of(history):
        unanswered: list[str] = []  # calls
        for message in [said.message for said in turn]:
            if message.get("role") == "tool":
                if message.get("tool_call_id") not in unanswered:
                    continue
                unanswered.remove(as_sent(message["tool_call_id"]))
            else:
                made += _cut_off(unanswered)
                unanswered = [as_sent(call.get("id")) for call in items(message.get("tool_calls"))]
            made.append(message)
        made += _cut_off(unanswered)
        if made and turn[0].turn != current and made[-1].get("role") != "assistant":
            made.append({"role": "assistant", "content": CUT_OFF})
    return made


def _cut_off(calls: Iterable[str]) -> list[Json]:
    return [{"role": "tool", "tool_call_id": call, "content": CUT_OFF} for call in calls]


def without_tools(messages: Iterable[Json]) -> Sequence[Json]:
    """The same conversation for a server that knows no tools."""
    made: list[dict[str, Any]] = []
    for message in messages:
        if message.get("role") == "tool":
            continue
        plain = {key: value for key, value in message.items() if key != "tool_calls"}
        if made and plain.get("role") == made[-1].get("role") == "assistant":
            both = (made[-1].get("content"), plain.get("content"))
            made[-1]["content"] = "\n\n".join(str(one) for one in both if one)
        else:
            made.append(plain)
    for plain in made:
        if plain.get("role") == "assistant":
            plain["content"] = plain.get("content") or CUT_OFF
    return made
