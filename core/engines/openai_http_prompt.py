"""What is sent to a chat-completions server: the request of one call, made from the history.

Reads the pictures of the workspace, so call ``body`` off the loop. It knows no connection.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import inside
from core.engines.base import Attachment, Request
from core.engines.openai_http_history import BEFORE, IMAGE, Said, mended, turns_of, without_tools
from core.engines.openai_http_words import Option
from core.engines.plain import Json, as_sent, items
from core.engines.workspace_tools import Tool

COMPACT = "/compact"  # said to the agent itself, as to agents that know this command
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PICTURE_MOST = 10 * 1024 * 1024  # bytes; a larger one is only named
PICTURE_TURNS = 3  # newest turns whose pictures are sent again
SUMMARISE = (
    "Write a summary of our conversation so far, for yourself: it will stand in place of the "
    "conversation. Keep goals, decisions, facts, names, numbers and paths, what is done and what "
    "is still open. Leave out what no longer matters. Write nothing but the summary."
)
_SYSTEM = "You answer in a chat thread. Write Markdown, and be as brief as the question allows. "
_READ = (
    "Your tools can look at the files of this thread's workspace. They cannot change files or run "
    "programs; say so when you are asked to."
)
_NOTHING = "You have no tools: you cannot look at files or run programs."


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of the model, before it is written down for the wire."""

    model: str
    turn: int
    folder: Path
    history: Sequence[Said]
    options: Collection[Option]
    tools: Sequence[Tool] = ()
    effort: str = ""


def asked(request: Request) -> Said:
    """A person's message as it is kept: pictures by their path."""
    pictures = [part for file in request.attachments if (part := _kept(file, request.folder))]
    if not pictures:
        return Said(request.turn, {"role": "user", "content": request.prompt})
    text = {"type": "text", "text": request.prompt}
    return Said(request.turn, {"role": "user", "content": [text, *pictures]})


def _kept(file: Attachment, folder: Path) -> Json | None:
    if file.mime not in PICTURES or not file.path.is_relative_to(folder):
        return None
    return {"type": IMAGE, "path": str(file.path.relative_to(folder)), "mime": file.mime}


def compacting(request: Request) -> bool:
    """Whether the history is to become shorter, instead of an answer."""
    return request.compact or (request.prompt.strip() == COMPACT and not request.read_only)


def summarise(request: Request) -> Said:
    """The question for a summary, with what a person wants kept in it."""
    wanted = request.prompt.strip().removeprefix(COMPACT).strip()
    matters = f"\n\nAbove all it must keep: {wanted}" if wanted else ""
    return Said(request.turn, {"role": "user", "content": SUMMARISE + matters})


def summary_turn(summary: str) -> list[Said]:
    """What stands in place of a conversation that was compacted."""
    return [
        Said(BEFORE, {"role": "user", "content": "What has happened so far?"}),
        Said(BEFORE, {"role": "assistant", "content": summary}),
    ]


def body(ask: Ask) -> Json:
    """The request as it goes over the wire."""
    tools = ask.tools if Option.TOOLS in ask.options else ()
    messages: Sequence[Json] = mended(ask.history, ask.turn)
    if not tools:
        messages = without_tools(messages)
    recent = {said[0].turn for said in turns_of(ask.history)[-PICTURE_TURNS:]}
    shown = {id(said.message) for said in ask.history if said.turn in recent}
    pictures = Option.IMAGES in ask.options
    made: dict[str, Any] = {
        "model": ask.model,
        "messages": [
            *_system(ask, bool(tools)),
            *(_wired(one, ask.folder, pictures and id(one) in shown) for one in messages),
        ],
        "stream": True,
    }
    if tools:
        made["tools"] = [_told(tool) for tool in tools]
    if Option.USAGE in ask.options:
        made["stream_options"] = {"include_usage": True}
    if ask.effort and Option.EFFORT in ask.options:
        made["reasoning_effort"] = ask.effort
    return made


def _system(ask: Ask, tools: bool) -> Iterable[Json]:
    if Option.SYSTEM in ask.options:
        yield {"role": "system", "content": _SYSTEM + (_READ if tools else _NOTHING)}


def _told(tool: Tool) -> Json:
    told = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": told}


def _wired(message: Json, folder: Path, pictures: bool) -> Json:
    """A message with its pictures in it, or as plain text."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    text = "\n\n".join(as_sent(part.get("text")) for part in items(content) if "text" in part)
    found = [_picture(part, folder) for part in items(content) if part.get("type") == IMAGE]
    blocks = [block for block in found if block] if pictures else []
    whole = [{"type": "text", "text": text}, *blocks] if blocks else text
    return {**message, "content": whole}


def _picture(part: Json, folder: Path) -> Json | None:
    """A picture as a data address; None when it is gone or too large (the text names it)."""
    try:
        data = inside.read(folder, Path(as_sent(part.get("path"))), PICTURE_MOST + 1)
    except (inside.NotInside, OSError):
        return None
    if len(data) > PICTURE_MOST:
        return None
    address = f"data:{as_sent(part.get('mime'))};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": address}}
