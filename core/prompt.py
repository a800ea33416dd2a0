"""What an agent is given to read: the messages of a turn as one text, and where their files lie.

Pure. Everything a person wrote reaches the agent once, in order; what others wrote before is
marked as quotation. It must not know engines, platforms or how files are fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from core.folders import folder_name, safe_name
from core.messages import FileKind, FileRef
from core.store.records import MessageRow
from core.wording import VOICE_REMARK, label

INBOX = PurePosixPath("inbox")
PASTE = "paste:"  # group keys of split texts; the other group keys are albums
_BLANKS = re.compile(r"\s+")
_PICTURES = "picture"
_NOUNS = {
    FileKind.IMAGE: _PICTURES,
    FileKind.DOCUMENT: "file",
    FileKind.VOICE: "voice note",
    FileKind.AUDIO: "recording",
    FileKind.VIDEO: "video",
}
HEARD = "(voice note, transcribed)"
CONTINUE_NOTE = (
    "(You were cut off by a restart while working on the message below. "
    "Go on where you stopped; repeat nothing that is done already.)"
)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A file of a message, and where in the workspace it is to be saved."""

    file: FileRef
    path: PurePosixPath  # inside the workspace
    message: int  # seq
    beside: bool = False  # of the message that is replied to: the reply means something without


def incoming(messages: Sequence[MessageRow]) -> list[Incoming]:
    """All files of a turn in order; the same messages always give the same paths."""
    found: list[Incoming] = []
    for said in messages:
        quote = said.quote
        for number, file in enumerate((*said.files, *(quote.files if quote else ())), 1):
            beside = number > len(said.files) and quote is not None and not quote.forwarded
            found.append(Incoming(file, _path(said, number, file), said.seq, beside))
    return found


def label_of(text: str, files: Sequence[FileRef]) -> str:
    """The words that stand for a message in notices."""
    if text.strip():
        return label(text)
    if files:
        return label(files[0].name or _NOUNS[files[0].kind])
    return ""


def build(
    messages: Sequence[MessageRow],
    *,
    group: bool,
    missing: Mapping[PurePosixPath, str] | None = None,
    heard: Mapping[PurePosixPath, str] | None = None,
) -> str:
    """The prompt. ``group``: several people talk there, so each is named.

    ``missing`` gives the reason, in plain words, for files that could not be saved; ``heard`` is
    what is said in voice notes.
    """
    files = _Files(missing or {}, heard or {})
    lone = len(messages) == 1
    blocks: list[str] = []
    for key, pieces in groupby(messages, key=lambda said: (said.album, said.person)):
        if key[0]:
            blocks.append(_block(list(pieces), group, files, lone))
        else:
            blocks.extend(_block([said], group, files, lone) for said in pieces)
    return "\n\n".join(block for block in blocks if block)


def says_more(messages: Sequence[MessageRow]) -> bool:
    """Whether there is anything in the messages besides voice notes."""
    return any(
        said.text.strip()
        or any(file.kind is not FileKind.VOICE for file in said.files)
        or (said.quote is not None and said.quote.text.strip())
        for said in messages
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """What became of the files, by where they are to be saved."""

    missing: Mapping[PurePosixPath, str]
    heard: Mapping[PurePosixPath, str]


def _block(pieces: Sequence[MessageRow], group: bool, known: _Files, lone: bool) -> str:
    """What was sent as one: a message, an album, or a text that was split."""
    paragraphs = [quote for said in pieces if (quote := _quotation(said))]
    album = len(pieces) > 1 and not pieces[0].album.startswith(PASTE)
    text = "" if album else "\n".join(said.text for said in pieces if said.text.strip())
    spoken = _spoken(pieces, known)
    files = _files(pieces, known, captions=album)
    if spoken and not text:  # they are the message
        text, spoken = spoken[0], spoken[1:]
    if text:
        # A text that starts with a slash is meant for the engine's own commands.
        bare = lone and text.startswith("/") and not paragraphs
        paragraphs.append(text if bare or not group else f"{_name(pieces[0])}: {text}")
    elif group and files:
        paragraphs.append(f"{_name(pieces[0])} sent:")
    paragraphs.extend(spoken)
    paragraphs.extend(files)
    return "\n\n".join(paragraphs)


def _spoken(pieces: Sequence[MessageRow], known: _Files) -> list[str]:
    """What was said in voice notes, marked as what it is."""
    return [
        f"{HEARD} {known.heard[path]}"
        for said in pieces
        for number, file in enumerate(said.files, 1)
        if (path := _path(said, number, file)) in known.heard
    ]


def _quotation(said: MessageRow) -> str:
    quote = said.quote
    if quote is None or not (quote.text.strip() or quote.files):
        return ""
    verb = "Forwarded" if quote.forwarded else "Quotation"
    author = f" from {_one_line(quote.author)}" if quote.author else ""
    origin = f', in "{_one_line(quote.origin)}"' if quote.origin else ""
    head = f"[{verb}{author}{origin}; what follows after > is what they wrote, for context]"
    lines = [f"> {line}" for line in quote.text.strip().splitlines()]
    return "\n".join((head, *lines))


def _files(pieces: Sequence[MessageRow], known: _Files, *, captions: bool) -> list[str]:
    """One line a file. In an album each keeps its own caption, by number."""
    lines: list[str] = []
    unheard = False
    numbers: dict[str, int] = {}
    several = sum(len(said.files) for said in pieces) > 1
    for said in pieces:
        for number, file in enumerate(said.files, 1):
            noun = _NOUNS[file.kind]
            numbers[noun] = numbers.get(noun, 0) + 1
            name = f"{noun} {numbers[noun]}" if several else f"Attached {noun}"
            caption = said.text if captions and number == 1 else ""
            path = _path(said, number, file)
            lines.append(_file_line(name, caption, path, known.missing.get(path, "")))
            unheard |= file.kind is FileKind.VOICE and path not in known.heard
        if captions and said.text.strip() and not said.files:
            lines.append(said.text)
    if unheard:
        lines.append(VOICE_REMARK)
    for said in pieces:
        for number, file in enumerate(said.quote.files if said.quote else (), len(said.files) + 1):
            path = _path(said, number, file)
            name = f"{_NOUNS[file.kind]} of the quoted message"
            lines.append(_file_line(name, "", path, known.missing.get(path, "")))
            if path in known.heard:
                lines += [f"> {line}" for line in f"{HEARD} {known.heard[path]}".splitlines()]
    return ["\n".join(lines)] if lines else []


def _file_line(name: str, caption: str, path: PurePosixPath, missing: str) -> str:
    where = f"could not be taken: {missing}" if missing else str(path)
    return f"{name}: {caption} ({where})" if caption.strip() else f"{name}: {where}"


def _path(said: MessageRow, number: int, file: FileRef) -> PurePosixPath:
    # The numbers make it unique, and the same each time it is asked for.
    name = f"{said.seq}-{number}-{safe_name(file.name or _NOUNS[file.kind])}"
    return INBOX / folder_name(said.lane) / name


def _name(said: MessageRow) -> str:
    return _one_line(said.person_name) or said.person


def _one_line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()[:80]
