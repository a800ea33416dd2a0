"""What a message of Discord holds: its words, what it answers, its files.

Pure: the same message gives the same result. It must not know how messages arrive, nor the library.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from channels.fields import Json, Malformed, integer, items, maybe, objects, string
from core.messages import FileKind, FileRef, Quote, clean

EPOCH = 1_420_070_400_000  # ms: when Discord's ids begin
TITLE_MOST, TITLE_WISH = 100, 60
VOICE_FLAG = 1 << 13
FORWARD = 1  # the kind of a message reference
NAME_MOST = 200
_ID = re.compile(r"[0-9]{1,20}")
_MENTION = re.compile(r"<(@!?|@&|#)([0-9]{1,20})>")
_EMOJI = re.compile(r"<a?(:[A-Za-z0-9_]{1,64}:)[0-9]{1,20}>")
_COMMAND = re.compile(r"<(/[^:<>\n]{1,100}):[0-9]{1,20}>")
_CODE = re.compile(r"(```.*?```|``.*?``|`[^`\n]*`)", re.DOTALL)

RoleName = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Me:
    """Who we are: the bot's user and its application."""

    id: str
    application: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Names:
    """How the ids of one server read."""

    role: RoleName
    channel: RoleName
    our_role: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """The text without our mention, and whether we were mentioned."""

    text: str
    mentioned: bool = False


def snowflake(parent: Json, key: str) -> str:
    """An id that must be there; digits, of at most 64 bits."""
    value = string(parent, key)
    if not _ID.fullmatch(value) or int(value) >= 2**64:
        raise Malformed(f"{key} is no id")
    return value


def time_of(number: int) -> int:
    """When an id was made, in ms."""
    return (number >> 22) + EPOCH


def id_at(at: int) -> int:
    """An id before all that are made from this instant (ms) on."""
    return (max(0, at - EPOCH) << 22) - 1 if at > EPOCH else 0


def said_at(message: Json) -> int:
    """When a message was said, in ms."""
    stamp = string(message, "timestamp")
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return time_of(int(snowflake(message, "id")))


def person_name(user: Json, member: Json | None = None) -> str:
    """How people see somebody here."""
    nick = string(member, "nick") if member is not None else ""
    name = nick or string(user, "global_name") or string(user, "username")
    return clean(name)[:NAME_MOST]


def words_of(message: Json, me: Me, names: Names) -> Words:
    """A message's text as people read it. Code stays as it is, and mentions nobody."""
    content = clean(string(message, "content"))
    people = {snowflake(one, "id"): person_name(one) for one in objects(message, "mentions")}
    roles = {one for one in items(message, "mention_roles") if isinstance(one, str)}
    mentioned = bool(names.our_role) and names.our_role in roles

    def ours(kind: str, number: str) -> bool:
        return number == me.id if kind in ("@", "@!") else kind == "@&" and number == names.our_role

    def readable(found: re.Match[str]) -> str:
        nonlocal mentioned
        kind, number = found.groups()
        if ours(kind, number):
            mentioned = True
            return "\0"
        if kind == "#":
            name = names.channel(number)
        else:
            name = names.role(number) if kind == "@&" else people.get(number, "")
        sign = "#" if kind == "#" else "@"
        return f"{sign}{name or number}"

    pieces = _CODE.split(content)
    for index in range(0, len(pieces), 2):  # the odd ones are code
        piece = _MENTION.sub(readable, pieces[index])
        pieces[index] = _COMMAND.sub(r"\1", _EMOJI.sub(r"\1", piece))
    return Words(_without_marks("".join(pieces)), mentioned)


def _without_marks(text: str) -> str:
    """Take out where our mention stood, and the comma or spaces that belonged to it."""
    text = re.sub(r"^[\s\0]*\0[,:]?", "", text)
    text = re.sub(r"[ \t]*\0[ \t]*$", "", text)
    return re.sub(r"[ \t]*\0[ \t]*", " ", text).strip()


def line_of(message: Json) -> str:
    """A line for what has no text of its own: stickers and polls."""
    lines = [f"[sticker: {string(one, 'name')}]" for one in objects(message, "sticker_items")]
    if (poll := maybe(message, "poll")) is not None:
        question = maybe(poll, "question")
        answers = [
            string(media, "text")
            for one in objects(poll, "answers")
            if (media := maybe(one, "poll_media")) is not None
        ]
        asked = string(question, "text") if question is not None else ""
        lines.append(f"[poll: {asked} ({' / '.join(answers)})]")
    return clean("\n".join(lines))


def files_of(message: Json, where: str, number: str) -> tuple[FileRef, ...]:
    """The files of a message; the reference names the message, as addresses of files expire."""
    flags = message.get("flags")
    voice = isinstance(flags, int) and bool(flags & VOICE_FLAG)
    return tuple(_file(one, where, number, voice) for one in objects(message, "attachments"))


def _file(attachment: Json, where: str, number: str, voice: bool) -> FileRef:
    mime = string(attachment, "content_type").partition(";")[0]
    name = clean(string(attachment, "filename")) or "file"
    if title := clean(string(attachment, "title")):  # the real name, without its ending
        dot = name.rfind(".")
        ending = name[dot:] if dot > 0 else ""
        name = title if title.endswith(ending) else title + ending
    size = attachment.get("size")
    return FileRef(
        f"{where}/{number}/{snowflake(attachment, 'id')}",
        FileKind.VOICE if voice else _kind(mime),
        name[:NAME_MOST],
        mime,
        size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
    )


def _kind(mime: str) -> FileKind:
    kinds = {"image": FileKind.IMAGE, "audio": FileKind.AUDIO, "video": FileKind.VIDEO}
    return kinds.get(mime.partition("/")[0], FileKind.DOCUMENT)


def quote_of(message: Json, me: Me, names: Names) -> tuple[Quote | None, bool]:
    """What a message answers, and whether that is ours."""
    replied = maybe(message, "referenced_message")
    if replied is None:
        return None, False
    author = maybe(replied, "author")
    by_us = author is not None and string(author, "id") == me.id
    where, number = string(replied, "channel_id"), snowflake(replied, "id")
    text = words_of(replied, me, names).text or line_of(replied)
    files = files_of(replied, where, number)
    if not text and not files:
        return None, by_us
    return Quote(text, person_name(author) if author is not None else "", files=files), by_us


def forward_of(message: Json, me: Me, names: Names, where: str) -> Quote | None:
    """A forwarded message: its words are not the sender's own."""
    reference = maybe(message, "message_reference")
    if reference is None or reference.get("type") != FORWARD:
        return None
    number = snowflake(message, "id")
    for one in objects(message, "message_snapshots"):
        if (inner := maybe(one, "message")) is not None:
            text = words_of(inner, me, names).text or line_of(inner)
            return Quote(text, files=files_of(inner, where, number), forwarded=True)
    return None


def thread_name(text: str) -> str:
    """A thread's name: the message's first words, whole ones where that is possible."""
    line = " ".join(re.sub(r"[`*_~|>#]+", " ", text).split())
    if len(line) > TITLE_WISH:
        cut = line[:TITLE_WISH].rsplit(" ", 1)[0]
        line = f"{cut or line[:TITLE_WISH]}…"
    return line[:TITLE_MOST] or "A question"


def kind_of(message: Json) -> int:
    """Discord's number for what sort of message it is."""
    return integer(message, "type") if "type" in message else 0
