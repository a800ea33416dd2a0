"""One payload of Slack becomes one of our messages, or nothing.

Pure: the same payload gives the same result. It must not know how payloads arrive, nor the library.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from channels.slack.fields import (
    Json,
    Malformed,
    as_object,
    maybe,
    maybe_stamp,
    milliseconds,
    needed,
    obj,
    objects,
    order,
    size_of,
    stamp,
    string,
)
from channels.slack.text import Words, read
from core.messages import (
    Address,
    Edit,
    FileKind,
    FileRef,
    Incoming,
    Message,
    Press,
    Quote,
    Unreadable,
    clean,
)

# What a person writes; everything else that Slack calls a message is news about the channel.
WRITTEN = ("", "file_share", "thread_broadcast", "me_message", "bot_message")
GONE = ("tombstone", "hidden_by_limit")  # files that are there in name only
_SLACKBOT = "USLACKBOT"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")
_RAW_MOST = 20_000
_LAST = (99_999_999_999, 0)


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself, as auth.test names it."""

    team: str
    user: str
    bot: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What is needed to read a payload beside the payload."""

    me: Me
    name_of: Callable[[str], str]  # empty while a person's name is not known
    now: int  # ms


@dataclass(frozen=True, slots=True)
class Read:
    """What a payload means for us, and where it stands in Slack's order."""

    incoming: Incoming
    order: tuple[int, int]


def payload(body: object, reading: Reading) -> Read | None:
    """What a payload means for us; None when nothing. Raises Malformed."""
    fields = as_object(body, "the payload")
    match string(fields, "type"):
        case "event_callback":
            return event(obj(fields, "event"), reading)
        case "block_actions":
            return _press(fields, reading.me)
        case _ if fields.get("command") is not None:
            return Read(_command(fields, reading), _LAST)
        case _:
            return None


def event(fields: Json, reading: Reading) -> Read | None:
    """An event of a message or a mention."""
    kind, subtype = string(fields, "type"), string(fields, "subtype")
    if kind not in ("message", "app_mention"):
        return None
    if kind == "message" and subtype == "message_changed":
        return _edit(fields, reading)
    if kind == "app_mention" and maybe(fields, "edited") is not None:
        return None  # told again because of an edit, which comes by itself and begins nothing
    said = message(fields, needed(fields, "channel"), reading, mention=kind == "app_mention")
    return Read(said, order(said.message_id)) if said is not None else None


def message(
    fields: Json, channel: str, reading: Reading, *, mention: bool = False
) -> Message | None:
    """A message, told of or read from the history; None when it is not somebody's words."""
    me = reading.me
    if string(fields, "subtype") not in WRITTEN or _ours(fields, me):
        return None
    ts = stamp(fields, "ts")
    sender, bot = _author(fields)
    words = _words(fields, reading)
    files, quote = _files(fields), _quote(fields, reading)
    mention = mention or words.mentioned
    if not (words.text or files or quote or mention):
        return None
    address = address_of(channel, ts, maybe_stamp(fields, "thread_ts"))
    direct = is_direct(channel)
    return Message(
        identity=identity(me, channel, ts),
        message_id=ts,
        address=address,
        sender=f"slack:{sender}",
        sender_name=_name(fields, sender, reading),
        text=words.text,
        at=milliseconds(ts),
        direct=direct,
        addressed=mention,
        engages=not direct,
        from_bot=bot,
        files=files,
        quote=quote,
    )


def unreadable(body: object, me: Me, error: Malformed) -> Unreadable:
    """The same payload kept aside, with what is wrong with it."""
    raw = json.dumps(body, ensure_ascii=True, default=str)
    name = hashlib.sha256(raw.encode()).hexdigest()[:16]
    if isinstance(body, dict) and isinstance(body.get("event_id"), str):
        name = body["event_id"][:64]
    return Unreadable(
        f"slack:{me.team}:unreadable:{name}", "slack", raw[:_RAW_MOST], str(error), _about(body)
    )


def identity(me: Me, channel: str, ts: str) -> str:
    """The message's, however often and in whatever kind of event it comes."""
    return f"slack:{me.team}:{channel}:{ts}"


def is_direct(channel: str) -> bool:
    return channel.startswith("D")


def address_of(channel: str, ts: str, thread: str) -> Address:
    """A channel's message opens a thread, which is the lane; a direct chat is one lane until
    somebody writes in a thread of it.
    """
    if is_direct(channel):
        return Address("slack", channel, thread if thread != ts else "")
    return Address("slack", channel, thread or ts)


def _edit(fields: Json, reading: Reading) -> Read | None:
    """A person's edit. The previews of links change a message too, but nobody wrote them."""
    me, channel, new = reading.me, needed(fields, "channel"), obj(fields, "message")
    edited, old = maybe(new, "edited"), maybe(fields, "previous_message")
    if string(new, "subtype") not in WRITTEN or _ours(new, me):
        return None
    if old is not None and string(old, "text") == string(new, "text"):
        return None
    if old is None and edited is None:
        return None
    ts, at = stamp(new, "ts"), stamp(edited, "ts") if edited else stamp(fields, "ts")
    of = identity(me, channel, ts)
    words = _words(new, reading)
    address = address_of(channel, ts, maybe_stamp(new, "thread_ts"))
    edit = Edit(f"{of}:e{at}", of, address, f"slack:{_author(new)[0]}", words.text)
    return Read(edit, order(at))


def _press(fields: Json, me: Me) -> Read | None:
    pressed = next(iter(objects(fields, "actions")), None)
    container, shown = maybe(fields, "container") or {}, maybe(fields, "message") or {}
    if pressed is None or string(pressed, "type") not in ("", "button"):
        return None
    button = clean(string(pressed, "value") or string(pressed, "action_id"))
    if not button or string(container, "type") not in ("", "message"):  # of somewhere else
        return None
    channel = string(maybe(fields, "channel") or {}, "id") or needed(container, "channel_id")
    ts = maybe_stamp(container, "message_ts") or stamp(shown, "ts")
    thread = maybe_stamp(shown, "thread_ts") or maybe_stamp(container, "thread_ts")
    user = obj(fields, "user")
    person = needed(user, "id")
    at = maybe_stamp(pressed, "action_ts")
    press = Press(
        identity=_once(me, "press", fields, channel, ts, person, button, at),
        press=press_token(string(fields, "response_url"), channel, person, thread),
        address=Address("slack", channel, thread if not is_direct(channel) or thread != ts else ""),
        sender=f"slack:{person}",
        sender_name=clean(string(user, "name")) or person,
        button=button,
        message_id=ts,
        direct=is_direct(channel),
    )
    return Read(press, order(at) if at else _LAST)


def _command(fields: Json, reading: Reading) -> Message:
    """``/laneway help`` is our ``/help``. Slack takes none inside a thread."""
    channel, person = needed(fields, "channel_id"), needed(fields, "user_id")
    given = read(string(fields, "text"), reading.me.user, reading.name_of).text.lstrip("/!")
    return Message(
        identity=_once(reading.me, "command", fields, channel, person, given),
        message_id="",
        address=Address("slack", channel),
        sender=f"slack:{person}",
        sender_name=reading.name_of(person) or clean(string(fields, "user_name")) or person,
        text=f"/{given or 'help'}",
        at=reading.now,
        direct=is_direct(channel),
        addressed=True,
        no_thread=not is_direct(channel),
        press=press_token(string(fields, "response_url"), channel, person, ""),
    )


def _once(me: Me, kind: str, fields: Json, *about: str) -> str:
    """The identity of what is no message. Each has a trigger of its own, and an address for its
    answer; what it is about tells apart those of a Slack that repeats them.
    """
    trigger, url = string(fields, "trigger_id"), string(fields, "response_url")
    told = hashlib.sha256(json.dumps([trigger, url, *about]).encode()).hexdigest()
    return f"slack:{me.team}:{kind}:{told[:32]}"


def press_token(response_url: str, channel: str, user: str, thread: str) -> str:
    """How the one who pressed is answered: Slack's address for it, and the way around it."""
    return json.dumps([response_url, channel, user, thread])


def _ours(fields: Json, me: Me) -> bool:
    return string(fields, "user") == me.user or (
        bool(me.bot) and string(fields, "bot_id") == me.bot
    )


def _author(fields: Json) -> tuple[str, bool]:
    """Who wrote it, and whether that is a program."""
    user, bot = string(fields, "user"), string(fields, "bot_id")
    if not (user or bot):
        raise Malformed("user is missing")
    return user or bot, bool(bot) or user == _SLACKBOT


def _name(fields: Json, sender: str, reading: Reading) -> str:
    shown = maybe(fields, "user_profile") or maybe(fields, "bot_profile") or {}
    names = (
        reading.name_of(sender),
        string(shown, "display_name"),
        string(shown, "real_name"),
        string(shown, "name"),
        string(fields, "username"),
    )
    return clean(next(filter(None, names), sender))


def _words(fields: Json, reading: Reading) -> Words:
    """The text; of a program that wrote none, what stands in its attachments."""
    text = string(fields, "text")
    if not text and string(fields, "bot_id"):
        shown = [a for a in objects(fields, "attachments") if not _shared(a)]
        text = "\n".join(filter(None, (string(a, "text") or string(a, "fallback") for a in shown)))
    words = read(text, reading.me.user, reading.name_of)
    elsewhere = [_link(one) for one in objects(fields, "files") if _elsewhere(one)]
    return replace(words, text="\n".join(filter(None, (words.text, *elsewhere))))


def _elsewhere(file: Json) -> bool:
    """Whether a file lies at another service, so that Slack has nothing but its address."""
    return string(file, "mode") == "external" or file.get("is_external") is True


def _link(file: Json) -> str:
    address = clean(string(file, "url_private") or string(file, "external_url"))
    name = " ".join(clean(string(file, "title") or string(file, "name")).split())
    return f"[{name}]({address})" if name and address else name or address


def _shared(attachment: Json) -> bool:
    return attachment.get("is_share") is True or attachment.get("is_msg_unfurl") is True


def _quote(fields: Json, reading: Reading) -> Quote | None:
    """A message that was shared into this one."""
    for shared in filter(_shared, objects(fields, "attachments")):
        words = read(string(shared, "text"), reading.me.user, reading.name_of)
        return Quote(
            text=words.text,
            author=clean(string(shared, "author_name")),
            origin=clean(string(shared, "channel_name")),
            forwarded=shared.get("is_share") is True,
            files=_files(shared),
        )
    return None


def _files(fields: Json) -> tuple[FileRef, ...]:
    """Those that Slack hands out."""
    there = (one for one in objects(fields, "files") if string(one, "mode") not in GONE)
    return tuple(_file(one) for one in there if not _elsewhere(one))


def _file(fields: Json) -> FileRef:
    ident, mime = needed(fields, "id"), clean(string(fields, "mimetype"))
    address = string(fields, "url_private_download") or string(fields, "url_private")
    if string(fields, "file_access") == "check_file_info":  # of another workspace: ask first
        address = ""
    name = _UNSAFE.sub("", clean(string(fields, "name") or string(fields, "title"))).strip()
    return FileRef(
        ref=f"{ident} {address}".strip(),
        kind=_kind(mime, string(fields, "subtype")),
        name=name or ident,
        mime=mime,
        size=size_of(fields, "size"),
    )


def _kind(mime: str, subtype: str) -> FileKind:
    if subtype == "slack_audio":
        return FileKind.VOICE
    match mime.partition("/")[0]:
        case "image":
            return FileKind.IMAGE
        case "audio":
            return FileKind.AUDIO
        case "video":
            return FileKind.VIDEO
        case _:
            return FileKind.DOCUMENT


def _about(body: object) -> tuple[str, ...]:
    """Who and where it is from, as far as it has the shape of a payload at all."""
    found: dict[str, None] = {}
    inner = _part(body, "event") or _part(body, "")
    for part in (inner, _part(inner, "message"), _part(inner, "user"), _part(inner, "channel")):
        for key in ("user", "bot_id", "user_id", "channel", "channel_id", "id"):
            ident = part.get(key)
            if isinstance(ident, str) and re.fullmatch(r"[A-Z][A-Z0-9]{1,20}", ident):
                found[f"slack:{ident}"] = None
    return tuple(found)


def _part(whole: object, name: str) -> Json:
    part = whole.get(name) if name and isinstance(whole, dict) else whole
    return part if isinstance(part, dict) else {}
