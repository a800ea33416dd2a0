"""One update of the Bot API becomes one of our messages, or nothing.

Pure: the same update gives the same result. It must not know how updates arrive, nor the library.
"""

from __future__ import annotations

import hashlib
import json

from channels.telegram.content import (
    Me,
    Words,
    author_name,
    chat_name,
    files_of,
    forward_of,
    line_of,
    person_name,
    quote_of,
    replied_to,
    words_of,
)
from channels.telegram.fields import (
    Json,
    Malformed,
    as_object,
    flag,
    integer,
    maybe,
    maybe_integer,
    obj,
    string,
)
from core.messages import Address, Edit, Incoming, Message, Moved, Press, Titled, Unreadable, clean

KINDS = ("message", "edited_message", "callback_query", "my_chat_member")
GENERAL = "1"
DIRECT_TOPIC = "dm:"  # a person's topic in a channel's direct messages
_ANONYMOUS_ADMIN = 1087968824
_RAW_MOST = 20_000
_LAST_DATE = 2**40
_KINDS = ("message", "edited_message", "callback_query")


def read(update: object, me: Me, now: int) -> Incoming | None:
    """What an update means for us; None when nothing. Raises Malformed."""
    fields = as_object(update, "the update")
    integer(fields, "update_id")
    if (message := maybe(fields, "message")) is not None:
        return _service(message, me) or _message(message, me, now)
    if (message := maybe(fields, "edited_message")) is not None:
        return _edit(message, me)
    if (query := maybe(fields, "callback_query")) is not None:
        return _press(query)
    return None


def unreadable(update: object, me: Me, error: Malformed) -> Unreadable:
    """The same update kept aside, with what is wrong with it."""
    raw = json.dumps(update, ensure_ascii=True)
    number = update_id(update)
    name = hashlib.sha256(raw.encode()).hexdigest()[:16] if number is None else str(number)
    return Unreadable(
        f"telegram:{me.id}:u{name}", "telegram", raw[:_RAW_MOST], str(error), _about(update)
    )


def _about(update: object) -> tuple[str, ...]:
    """Who and where it is from, as far as it has the shape of an update at all."""
    found: dict[str, None] = {}
    for kind in _KINDS:
        part = _part(update, kind)
        for owner in (part, _part(part, "message")):
            for who in ("from", "sender_chat", "chat"):
                ident = _part(owner, who).get("id")
                if isinstance(ident, int) and not isinstance(ident, bool):
                    found[f"telegram:{ident}"] = None
    return tuple(found)


def _part(whole: object, name: str) -> Json:
    part = whole.get(name) if isinstance(whole, dict) else None
    return part if isinstance(part, dict) else {}


def update_id(update: object) -> int | None:
    """The update's number, if it has one."""
    if not isinstance(update, dict):
        return None
    number = update.get("update_id")
    if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 2**63:
        return number
    return None


def _message(message: Json, me: Me, now: int) -> Message | None:
    chat = obj(message, "chat")
    number = integer(message, "message_id")
    sender, name, bot = _author(message, chat)
    words = words_of(message, me)
    files = files_of(message, number)
    text = words.text or clean(line_of(message))
    direct = string(chat, "type") == "private"
    for_other = words.for_other and not direct  # no other bot reads along there
    if for_other or sender == f"telegram:{me.id}" or not (text or files or words.mentioned):
        return None
    quote = forward_of(message, text)
    if quote is not None:  # its words, and whom they address, are not the sender's own
        text, words = "", Words("")
    else:
        quote = quote_of(message, me)
    address = _address(chat, message)
    forum = string(chat, "type") == "supergroup" and flag(message, "is_topic_message")
    date = integer(message, "date")
    if date > _LAST_DATE:
        raise Malformed("date is no date")
    return Message(
        identity=_identity(me, chat, number),
        message_id=str(number),
        address=address,
        sender=sender,
        sender_name=name,
        text=text,
        at=date * 1000 if date > 0 else now,
        direct=direct,
        addressed=words.mentioned or _answers_us(message, me),
        engages=forum and address.thread != GENERAL,
        from_bot=bot,
        files=files,
        quote=quote,
        album=clean(string(message, "media_group_id")),
        title=_title(chat, message),
    )


def _edit(message: Json, me: Me) -> Edit | None:
    chat = obj(message, "chat")
    sender, _, _ = _author(message, chat)
    words = words_of(message, me)
    for_other = words.for_other and string(chat, "type") != "private"
    if for_other or message.get("location") is not None:  # a live location moves on
        return None
    of = _identity(me, chat, integer(message, "message_id"))
    edited = maybe_integer(message, "edit_date") or 0
    return Edit(f"{of}:e{edited}", of, _address(chat, message), sender, words.text)


def _press(query: Json) -> Press | None:
    message, button = maybe(query, "message"), clean(string(query, "data"))
    if message is None or not button:  # a button of an inline message or a game: not ours
        return None
    press = clean(string(query, "id"))
    if not press:
        raise Malformed("id is missing")
    chat, user = obj(message, "chat"), obj(query, "from")
    return Press(
        identity=f"cb:{press}",
        press=press,
        address=_address(chat, message),
        sender=f"telegram:{integer(user, 'id')}",
        sender_name=person_name(user),
        button=button,
        message_id=str(integer(message, "message_id")),
        direct=string(chat, "type") == "private",
    )


def _service(message: Json, me: Me) -> Moved | Titled | None:
    for key, ours_is_old in (("migrate_to_chat_id", True), ("migrate_from_chat_id", False)):
        if (other := maybe_integer(message, key)) is not None:
            chat = obj(message, "chat")
            here = integer(chat, "id")
            old, new = (here, other) if ours_is_old else (other, here)
            identity = _identity(me, chat, integer(message, "message_id"))
            return Moved(identity, "telegram", str(old), str(new))
    for key in ("forum_topic_created", "forum_topic_edited"):
        if (topic := maybe(message, key)) is not None and (name := _topic_name(topic)):
            chat = obj(message, "chat")
            identity = _identity(me, chat, integer(message, "message_id"))
            return Titled(identity, _address(chat, message), name)
    if title := string(message, "new_chat_title"):
        chat = obj(message, "chat")
        identity = _identity(me, chat, integer(message, "message_id"))
        return Titled(identity, _address(chat, message), clean(title))
    return None


def _identity(me: Me, chat: Json, message_id: int) -> str:
    return f"telegram:{me.id}:{integer(chat, 'id')}:{message_id}"


def _address(chat: Json, message: Json) -> Address:
    """The lane's place. The thread id of a reply chain is no topic: sending there would fail."""
    thread = ""
    number = maybe_integer(message, "message_thread_id")
    if (topic := maybe(message, "direct_messages_topic")) is not None:
        thread = f"{DIRECT_TOPIC}{integer(topic, 'topic_id')}"
    elif flag(message, "is_topic_message") and number is not None:
        thread = str(number)
    elif flag(chat, "is_forum") and string(chat, "type") == "supergroup":
        thread = GENERAL
    return Address("telegram", str(integer(chat, "id")), thread)


def _author(message: Json, chat: Json) -> tuple[str, str, bool]:
    """Person, name, and whether it is a bot. Who writes in a chat's name is that chat: nobody."""
    if (sender_chat := maybe(message, "sender_chat")) is not None:
        return f"telegram:{integer(sender_chat, 'id')}", author_name(message), False
    user = obj(message, "from")
    number = integer(user, "id")
    if number == _ANONYMOUS_ADMIN:
        return f"telegram:{integer(chat, 'id')}", chat_name(chat), False
    return f"telegram:{number}", person_name(user), flag(user, "is_bot")


def _answers_us(message: Json, me: Me) -> bool:
    replied = replied_to(message)
    if replied is None or replied.get("sender_chat") is not None:
        return False
    user = maybe(replied, "from")
    return user is not None and integer(user, "id") == me.id


def _title(chat: Json, message: Json) -> str:
    """A topic's name where the update carries it; for everything else the chat's own."""
    if not flag(message, "is_topic_message"):
        return chat_name(chat)
    begun = maybe(message, "reply_to_message")
    topic = maybe(begun, "forum_topic_created") if begun is not None else None
    return _topic_name(topic) if topic is not None else ""


def _topic_name(topic: Json) -> str:
    """The name that somebody gave it; what an app made up by itself is none."""
    return "" if flag(topic, "is_name_implicit") else clean(string(topic, "name"))
