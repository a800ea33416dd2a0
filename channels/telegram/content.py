"""What a Telegram message carries: its words, its files, and what it quotes.

Pure. It must not know who wrote to whom, nor what is done with a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from channels.telegram.fields import (
    Json,
    Malformed,
    as_object,
    flag,
    integer,
    maybe,
    maybe_integer,
    number,
    objects,
    piece,
    replaced,
    string,
)
from core.messages import FileKind, FileRef, Quote, clean

_COMMAND = re.compile(r"/([A-Za-z0-9_]+)@([A-Za-z0-9_]+)")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")
_FORMS = (
    ("document", FileKind.DOCUMENT, ""),
    ("voice", FileKind.VOICE, ".ogg"),
    ("audio", FileKind.AUDIO, ".mp3"),
    ("video", FileKind.VIDEO, ".mp4"),
    ("video_note", FileKind.VIDEO, ".mp4"),
    ("animation", FileKind.VIDEO, ".mp4"),
)


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself, as getMe names it."""

    id: int
    username: str
    name: str


@dataclass(frozen=True, slots=True)
class Words:
    """A message's text without our mention, and to whom it was said."""

    text: str
    mentioned: bool = False
    for_other: bool = False  # a command that names another bot


def words_of(message: Json, me: Me) -> Words:
    """Text or caption; links with a hidden address are written out, our mention is taken out."""
    text, entities = string(message, "text"), objects(message, "entities")
    if not text:
        text, entities = string(message, "caption"), objects(message, "caption_entities")
    changes: list[tuple[int, int, str]] = []
    mentioned = False
    for entity in entities:
        offset, length = integer(entity, "offset"), integer(entity, "length")
        shown = piece(text, offset, length)
        match string(entity, "type"):
            case "mention" if shown.casefold() == f"@{me.username}".casefold():
                mine = True
            case "text_mention":
                mine = integer(obj_user(entity), "id") == me.id
            case "text_link":
                mine = False
                if (address := string(entity, "url")) and address != shown:
                    changes.append((offset, length, f"[{shown}]({address})"))
            case _:
                mine = False
        if mine:
            mentioned = True
            changes.append(_without(text, offset, length))
    named = any(string(entity, "type") == "bot_command" for entity in entities)
    return _own_command(replaced(text, changes), mentioned, named, me)


def obj_user(entity: Json) -> Json:
    """Whom a mention without a user name means."""
    return as_object(entity.get("user"), "user")


def _without(text: str, offset: int, length: int) -> tuple[int, int, str]:
    """The change that takes a mention out, with what only belonged to it."""
    rest = replaced(text, [(0, offset + length, "")])
    before = piece(text, 0, offset)
    gap = re.match(r"[,:]?[ \t]+|[,:](?=\n|$)", rest) if not before.strip() else None
    if gap is None and (not before or before[-1].isspace()):
        gap = re.match(r"[ \t]+", rest)
    return offset, length + (len(gap.group()) if gap else 0), ""


def _own_command(text: str, mentioned: bool, named: bool, me: Me) -> Words:
    """A command with a bot's name behind it: ours loses the name, another's is not for us."""
    found = _COMMAND.match(text)
    if found is not None:
        name, bot = found.groups()
        if bot.casefold() == me.username.casefold():
            return Words(clean(f"/{name}{text[found.end() :]}").strip(), True)
        if named or bot.casefold().endswith("bot"):
            return Words(clean(text), mentioned, for_other=True)
    return Words(clean(text).strip(), mentioned)


def files_of(message: Json, number_of: int) -> tuple[FileRef, ...]:
    """The file a message carries; of a photo the largest size."""
    if photos := objects(message, "photo"):
        best = max(photos, key=lambda p: maybe_integer(p, "width") or 0)
        return (_file(best, FileKind.IMAGE, f"photo_{number_of}.jpg", "image/jpeg"),)
    if (sticker := maybe(message, "sticker")) is not None:
        moving = flag(sticker, "is_animated") or flag(sticker, "is_video")
        kind = FileKind.DOCUMENT if moving else FileKind.IMAGE
        suffix = ".tgs" if flag(sticker, "is_animated") else ".webm" if moving else ".webp"
        mime = "" if moving else "image/webp"
        return (_file(sticker, kind, f"sticker_{number_of}{suffix}", mime),)
    for name, kind, suffix in _FORMS:
        if name == "document" and message.get("animation") is not None:
            continue  # an animation comes as a document as well
        if (carried := maybe(message, name)) is not None:
            return (_file(carried, kind, f"{name}_{number_of}{suffix}"),)
    return ()


def _file(carried: Json, kind: FileKind, name: str, mime: str = "") -> FileRef:
    ref = string(carried, "file_id")
    if not ref:
        raise Malformed("file_id is missing")
    mime = string(carried, "mime_type") or mime
    if kind is FileKind.DOCUMENT and mime in ("image/jpeg", "image/png", "image/webp", "image/gif"):
        kind = FileKind.IMAGE
    size = maybe_integer(carried, "file_size")
    return FileRef(clean(ref), kind, _plain_name(string(carried, "file_name")) or name, mime, size)


def _plain_name(name: str) -> str:
    """A file's name as its sender gave it, fit to be one step of a path."""
    name = _UNSAFE.sub("", clean(name)).replace("\\", "/").rsplit("/", 1)[-1].strip(" .")
    if len(name) <= 120:
        return name
    stem, dot, suffix = name.rpartition(".")
    return f"{stem[: 119 - len(suffix)]}.{suffix}" if dot and len(suffix) < 12 else name[:120]


def line_of(message: Json) -> str:
    """What has neither text nor file, said in one line; empty for service messages."""
    if (venue := maybe(message, "venue")) is not None:
        where = _position(as_object(venue.get("location"), "location"))
        return f"Place: {string(venue, 'title')}, {string(venue, 'address')} ({where})"
    if (location := maybe(message, "location")) is not None:
        return f"Location: {_position(location)}"
    if (contact := maybe(message, "contact")) is not None:
        return f"Contact: {person_name(contact)}, {string(contact, 'phone_number')}"
    if (poll := maybe(message, "poll")) is not None:
        choices = " / ".join(string(option, "text") for option in objects(poll, "options"))
        return f"Poll: {string(poll, 'question')} ({choices})"
    if (dice := maybe(message, "dice")) is not None:
        return f"Dice: {string(dice, 'emoji')} {integer(dice, 'value')}"
    if (checklist := maybe(message, "checklist")) is not None:
        tasks = (f"- {string(task, 'text')}" for task in objects(checklist, "tasks"))
        return "\n".join((f"Checklist: {string(checklist, 'title')}", *tasks))
    if message.get("story") is not None:
        return "A story (Telegram does not show stories to bots)"
    return ""


def _position(location: Json) -> str:
    return f"{number(location, 'latitude'):.6f}, {number(location, 'longitude'):.6f}"


def quote_of(message: Json, me: Me) -> Quote | None:
    """What the message replies to, or quotes of another chat."""
    chosen = maybe(message, "quote")
    text = string(chosen, "text") if chosen is not None else ""
    if (external := maybe(message, "external_reply")) is not None:
        author, origin = _origin(as_object(external.get("origin"), "origin"))
        if (chat := maybe(external, "chat")) is not None:
            origin = chat_name(chat)
        files = files_of(external, maybe_integer(external, "message_id") or 0)
        return Quote(clean(text) or clean(line_of(external)), author, origin, files=files)
    replied = replied_to(message)
    if replied is None:
        return Quote(clean(text)) if text else None
    said = string(replied, "text") or string(replied, "caption") or line_of(replied)
    return Quote(
        clean(text or said),
        author_name(replied),
        files=files_of(replied, integer(replied, "message_id")),
    )


def forward_of(message: Json, text: str) -> Quote | None:
    """The words of a forwarded message: they are not its sender's."""
    origin = maybe(message, "forward_origin")
    if origin is None:
        return None
    author, title = _origin(origin)
    return Quote(text, author, title, forwarded=True)


def replied_to(message: Json) -> Json | None:
    """The message replied to. In a topic every message points at the topic's beginning: none."""
    replied = maybe(message, "reply_to_message")
    if replied is None or replied.get("forum_topic_created") is not None:
        return None
    if flag(message, "is_topic_message"):
        thread = maybe_integer(message, "message_thread_id")
        if integer(replied, "message_id") == thread:
            return None
    return replied


def _origin(origin: Json) -> tuple[str, str]:
    """Who wrote a forwarded or quoted message, and in which chat, as far as Telegram says."""
    match string(origin, "type"):
        case "user":
            return person_name(as_object(origin.get("sender_user"), "sender_user")), ""
        case "hidden_user":
            return clean(string(origin, "sender_user_name")), ""
        case "chat":
            title = chat_name(as_object(origin.get("sender_chat"), "sender_chat"))
        case "channel":
            title = chat_name(as_object(origin.get("chat"), "chat"))
        case _:
            title = ""
    return clean(string(origin, "author_signature")), title


def author_name(message: Json) -> str:
    """Who wrote a message, as people see it; empty where Telegram does not say."""
    if (chat := maybe(message, "sender_chat")) is not None:
        return chat_name(chat)
    user = maybe(message, "from")
    return person_name(user) if user is not None else ""


def person_name(user: Json) -> str:
    """First and last name, else the user name."""
    name = f"{string(user, 'first_name')} {string(user, 'last_name')}".strip()
    return clean(name or string(user, "username"))


def chat_name(chat: Json) -> str:
    """A chat's title; of a private chat the person's name."""
    return clean(string(chat, "title")) or person_name(chat)
