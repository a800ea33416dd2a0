"""One event of Discord's gateway becomes one of our messages, or nothing.

Pure: the same event gives the same result. It must not know how events arrive, nor the library.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from channels.discord.content import (
    Me,
    Names,
    files_of,
    forward_of,
    kind_of,
    line_of,
    person_name,
    quote_of,
    said_at,
    snowflake,
    thread_name,
    time_of,
    words_of,
)
from channels.discord.places import OPENS_THREADS, Places, Spot
from channels.discord.press_token import Token
from channels.fields import Json, Malformed, flag, integer, maybe, obj, objects, string
from core.messages import Address, Edit, Message, Press, Unreadable, clean

DEFAULT, REPLY = 0, 19  # the kinds of message that people write
COMMAND, COMPONENT = 2, 3  # the kinds of interaction that are for us
OPTION = "text"  # the one option of every command
_RAW_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading an event depends on beside the event."""

    me: Me
    places: Places
    auto_thread: bool
    flat: frozenset[str] = frozenset()  # channels in which no thread can be opened

    def names(self, guild: str) -> Names:
        """How ids of a server read."""
        places = self.places

        def channel(number: str) -> str:
            spot = places.get(number)
            return spot.name if spot is not None else ""

        return Names(lambda role: places.role_name(guild, role), channel, places.our_role(guild))

    def begins(self, spot: Spot) -> bool:
        """Whether a message that is for us begins a thread there."""
        opens = spot.kind in OPENS_THREADS and not spot.is_thread
        return self.auto_thread and opens and spot.id not in self.flat

    def address(self, spot: Spot, number: str, addressed: bool) -> Address:
        """The lane. A message that is for us in a text channel begins the thread of its own id."""
        if spot.is_thread:
            return Address("discord", spot.parent, spot.id)
        if addressed and self.begins(spot):
            return Address("discord", spot.id, number)
        return Address("discord", spot.id)


def read_message(message: Json, spot: Spot, reading: Reading) -> Message | None:
    """A message of somebody; None when it is ours, or none that people write. Raises Malformed."""
    number, author = snowflake(message, "id"), obj(message, "author")
    sender, me = snowflake(author, "id"), reading.me
    if sender == me.id or kind_of(message) not in (DEFAULT, REPLY) or flag(author, "system"):
        return None
    names = reading.names(spot.guild)
    words = words_of(message, me, names)
    text = words.text or line_of(message)
    quote = forward_of(message, me, names, spot.id)
    by_us = False
    if quote is None:
        quote, by_us = quote_of(message, me, names)
    files = files_of(message, spot.id, number)
    addressed = words.mentioned or by_us
    if not (text or files or addressed or (quote is not None and quote.forwarded)):
        return None
    address = reading.address(spot, number, addressed)
    member = maybe(message, "member")
    return Message(
        identity=f"discord:{number}",
        message_id=number,
        address=address,
        sender=f"discord:{sender}",
        sender_name=person_name(author, member),
        text=text,
        at=said_at(message),
        direct=spot.direct,
        addressed=addressed,
        engages=bool(address.thread),
        from_bot=flag(author, "bot") or bool(string(message, "webhook_id")),
        files=files,
        quote=quote,
        title=_title(spot, address, text, author),
    )


def read_edit(message: Json, spot: Spot, reading: Reading) -> Edit | None:
    """A changed text. Previews of links and pins come as the same event, and are no edits."""
    edited = string(message, "edited_timestamp")
    if "content" not in message or "author" not in message:
        return None
    if not edited and "edited_timestamp" in message:
        return None
    number, author = snowflake(message, "id"), obj(message, "author")
    sender = snowflake(author, "id")
    if sender == reading.me.id or kind_of(message) not in (DEFAULT, REPLY):
        return None
    words = words_of(message, reading.me, reading.names(spot.guild))
    _, by_us = quote_of(message, reading.me, reading.names(spot.guild))
    address = reading.address(spot, number, words.mentioned or by_us)
    of = f"discord:{number}"
    when = clean(edited) or hashlib.sha256(words.text.encode()).hexdigest()[:16]
    return Edit(f"{of}:e{when}", of, address, f"discord:{sender}", words.text)


def read_interaction(event: Json, spot: Spot, reading: Reading) -> Press | Message | None:
    """A pressed button, or an application command as the message it stands for."""
    kind = integer(event, "type")
    if kind not in (COMMAND, COMPONENT):
        return None
    number, data = snowflake(event, "id"), obj(event, "data")
    member = maybe(event, "member")
    user = obj(member, "user") if member is not None else obj(event, "user")
    sender, name = f"discord:{snowflake(user, 'id')}", person_name(user, member)
    address = reading.address(spot, number, False)
    token = Token(number, string(event, "token"), reading.me.application, kind == COMMAND)
    if not token.secret:
        raise Malformed("token is missing")
    if kind == COMPONENT:
        button = clean(string(data, "custom_id"))
        message = obj(event, "message")
        return Press(
            identity=f"discord:{number}",
            press=str(token),
            address=address,
            sender=sender,
            sender_name=name,
            button=button,
            message_id=snowflake(message, "id"),
            direct=spot.direct,
        )
    given = [string(one, "value") for one in objects(data, "options") if one.get("name") == OPTION]
    return Message(
        identity=f"discord:{number}",
        message_id=number,
        address=address,
        sender=sender,
        sender_name=name,
        text=clean(" ".join((f"/{string(data, 'name')}", *given)).strip()),
        at=time_of(int(number)),
        direct=spot.direct,
        addressed=True,
        engages=bool(address.thread),
        from_bot=flag(user, "bot"),
        title=spot.name,
        press=str(token),
        no_thread=reading.begins(spot),
    )


def unreadable(kind: str, event: object, error: Malformed) -> Unreadable:
    """An event kept aside, with what is wrong with it."""
    raw = json.dumps(event, ensure_ascii=True, default=str)
    name = hashlib.sha256(f"{kind} {raw}".encode()).hexdigest()[:16]
    return Unreadable(
        f"discord:x{name}", "discord", f"{kind} {raw}"[:_RAW_MOST], str(error), _about(event)
    )


def _about(event: object) -> tuple[str, ...]:
    """Who and where it is from, as far as it has the shape of an event at all."""
    if not isinstance(event, dict):
        return ()
    found = [event.get("channel_id")]
    member = event.get("member")
    for one in (event.get("author"), event.get("user"), member):
        inner = one.get("user") if isinstance(one, dict) and "user" in one else one
        if isinstance(inner, dict):
            found.append(inner.get("id"))
    return tuple(f"discord:{one}" for one in found if isinstance(one, str) and one.isdecimal())


def _title(spot: Spot, address: Address, text: str, author: Json) -> str:
    if spot.direct:
        return person_name(author)
    if address.thread and not spot.is_thread:
        return thread_name(text)
    return clean(spot.name)
