"""The methods of the fake Bot API: each takes a call's parameters, gives its result or refuses."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from tests.fakes.telegram_rules import (
    CAPTION_MOST,
    DOWNLOAD_MOST,
    PHOTO_MOST,
    TEXT_MOST,
    UPLOAD_MOST,
    Json,
    Refusal,
    check_keyboard,
    check_reactions,
    shown_text,
    units,
)
from tests.fakes.telegram_world import GENERAL, World

Files = dict[str, tuple[str, bytes]]
_MEDIA = ("photo", "document", "voice", "audio", "video", "animation")
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF")


class Api:
    """One instance a server; all state is the world's."""

    def __init__(self, world: World) -> None:
        self._world = world

    def method(self, name: str) -> Callable[[Json, Files], object] | None:
        """The method of that name (sendMessage is send_message here), if this API has it."""
        found = getattr(self, re.sub(r"(?=[A-Z])", "_", name).lower(), None)
        return found if callable(found) and not name.startswith("_") and name != "method" else None

    # --- the bot ---

    def get_me(self, p: Json, _: Files) -> object:
        return {**self._world.me, **self._world.abilities}

    def set_webhook(self, p: Json, _: Files) -> object:
        url, at_once = str(p.get("url", "")), int(p.get("max_connections") or 40)
        if url and not re.match(r"https?://", url):
            raise Refusal("Bad Request: bad webhook: HTTPS url must be provided for webhook")
        if not 1 <= at_once <= 100:
            raise Refusal("Bad Request: bad webhook: max_connections is out of range")
        secret = str(p.get("secret_token") or "")
        if not re.fullmatch(r"[A-Za-z0-9_-]{0,256}", secret):
            raise Refusal("Bad Request: secret token contains unallowed characters")
        world = self._world
        world.webhook, world.webhook_secret, world.webhook_at_once = url, secret, at_once
        world.webhook_error = {}
        if isinstance(p.get("allowed_updates"), list):
            world.allowed = p["allowed_updates"] or None
        if str(p.get("drop_pending_updates")).lower() == "true":
            world.updates.clear()
        world.came.set()
        return True

    def delete_webhook(self, p: Json, _: Files) -> object:
        self._world.webhook = ""
        if str(p.get("drop_pending_updates")).lower() == "true":
            self._world.updates.clear()
        return True

    def get_webhook_info(self, p: Json, _: Files) -> object:
        world = self._world
        return {
            "url": world.webhook,
            "has_custom_certificate": False,
            "pending_update_count": len(world.updates),
            "max_connections": world.webhook_at_once,
            **world.webhook_error,
        }

    def set_my_commands(self, p: Json, _: Files) -> object:
        for command in p["commands"]:
            if (
                not 1 <= len(command["command"]) <= 32
                or not 1 <= len(command["description"]) <= 256
            ):
                raise Refusal("Bad Request: BOT_COMMAND_INVALID")
        if len(p["commands"]) > 100:
            raise Refusal("Bad Request: BOT_COMMANDS_TOO_MUCH")
        self._world.commands[_scope(p)] = p["commands"]
        return True

    def get_my_commands(self, p: Json, _: Files) -> object:
        return self._world.commands.get(_scope(p), [])

    # --- messages ---

    def send_message(self, p: Json, _: Files) -> object:
        chat, placed = self._place(p)
        text, entities = self._words(p, "text", TEXT_MOST, "message")
        if not text:
            raise Refusal("Bad Request: message text is empty")
        content: Json = {"text": text, **({"entities": entities} if entities else {})}
        return self._sent(chat, p, placed, content)

    def send_message_draft(self, p: Json, _: Files) -> object:
        chat = self._chat(p)
        if chat < 0:
            raise Refusal("Bad Request: TEXTDRAFT_PEER_INVALID")
        if not int(p.get("draft_id") or 0):
            raise Refusal("Bad Request: draft_id must be non-zero")
        text, _entities = self._words(p, "text", TEXT_MOST, "message")
        key = (chat, int(p.get("message_thread_id") or 0))
        self._world.drafts[key] = (int(p["draft_id"]), text, time.monotonic())
        return True

    def send_photo(self, p: Json, files: Files) -> object:
        return self._send_media("photo", p, files)

    def send_document(self, p: Json, files: Files) -> object:
        return self._send_media("document", p, files)

    def send_voice(self, p: Json, files: Files) -> object:
        return self._send_media("voice", p, files)

    def send_audio(self, p: Json, files: Files) -> object:
        return self._send_media("audio", p, files)

    def send_video(self, p: Json, files: Files) -> object:
        return self._send_media("video", p, files)

    def edit_message_text(self, p: Json, _: Files) -> object:
        message = self._own(p, "edit")
        if "text" not in message:
            raise Refusal("Bad Request: there is no text in the message to edit")
        text, entities = self._words(p, "text", TEXT_MOST, "message")
        if not text:
            raise Refusal("Bad Request: message text is empty")
        keyboard = check_keyboard(p.get("reply_markup"))
        new = (text, entities, keyboard)
        if new == (message["text"], message.get("entities", []), message.get("reply_markup")):
            raise Refusal(_NOT_MODIFIED)
        for key in ("entities", "reply_markup"):
            message.pop(key, None)  # an edit without a keyboard takes the old one away
        message.update(text=text, edit_date=int(time.time()))
        if entities:
            message["entities"] = entities
        if keyboard:
            message["reply_markup"] = keyboard
        return message

    def edit_message_reply_markup(self, p: Json, _: Files) -> object:
        message = self._own(p, "edit")
        keyboard = check_keyboard(p.get("reply_markup"))
        if keyboard == message.get("reply_markup"):
            raise Refusal(_NOT_MODIFIED)
        message.pop("reply_markup", None)
        if keyboard:
            message["reply_markup"] = keyboard
        return message

    def delete_message(self, p: Json, _: Files) -> object:
        key = (self._chat(p), int(p["message_id"]))
        if self._world.messages.pop(key, None) is None:
            raise Refusal("Bad Request: message to delete not found")
        return True

    def send_chat_action(self, p: Json, _: Files) -> object:
        chat = self._chat(p)
        thread = int(p.get("message_thread_id") or 0)
        if thread and thread != GENERAL:
            self._topic(chat, thread)
        return True

    def set_message_reaction(self, p: Json, _: Files) -> object:
        key = (self._chat(p), int(p["message_id"]))
        if key not in self._world.messages:
            raise Refusal("Bad Request: message to react not found")
        self._world.reactions[key] = check_reactions(p.get("reaction") or [])
        return True

    def answer_callback_query(self, p: Json, _: Files) -> object:
        query = str(p.get("callback_query_id"))
        if len(str(p.get("text") or "")) > 200:
            raise Refusal("Bad Request: MESSAGE_TOO_LONG")
        if self._world.queries.get(query, True):
            raise Refusal(
                "Bad Request: query is too old and response timeout expired or query ID is invalid"
            )
        self._world.queries[query] = True
        return True

    # --- topics ---

    def create_forum_topic(self, p: Json, _: Files) -> object:
        chat, name = self._chat(p), _topic_name(p)
        if chat < 0 and not self._world.chat(chat).get("is_forum"):
            raise Refusal("Bad Request: the chat is not a forum")
        thread = self._world.topic(chat, name)
        return {"message_thread_id": thread, "name": name, "icon_color": 7322096}

    def edit_forum_topic(self, p: Json, _: Files) -> object:
        chat, thread, name = self._chat(p), int(p["message_thread_id"]), _topic_name(p)
        self._topic(chat, thread)
        if self._world.topics[chat, thread] == name:
            raise Refusal("Bad Request: TOPIC_NOT_MODIFIED")
        self._world.topics[chat, thread] = name
        return True

    def edit_general_forum_topic(self, p: Json, _: Files) -> object:
        chat, name = self._chat(p), _topic_name(p)
        if self._world.topics.get((chat, GENERAL)) == name:
            raise Refusal("Bad Request: TOPIC_NOT_MODIFIED")
        self._world.topics[chat, GENERAL] = name
        return True

    # --- files ---

    def get_file(self, p: Json, _: Files) -> object:
        ref = str(p.get("file_id"))
        if ref not in self._world.files:
            raise Refusal("Bad Request: wrong file_id or the file is temporarily unavailable")
        size = self._world.size(ref)
        found: Json = {"file_id": ref, "file_unique_id": f"u{ref}", "file_size": size}
        if (folder := self._world.local_files) is not None:
            path = folder / ref
            path.write_bytes(self._world.files[ref][1])
            return {**found, "file_path": str(path)}
        if size > DOWNLOAD_MOST:
            raise Refusal("Bad Request: file is too big")
        return {**found, "file_path": f"documents/{ref}"}

    # --- what the methods share ---

    def _chat(self, p: Json) -> int:
        chat = int(p["chat_id"])
        self._world.new_chat_id(chat)
        if chat in self._world.blocked:
            if chat > 0:
                raise Refusal("Forbidden: bot was blocked by the user", 403)
            raise Refusal("Forbidden: bot was kicked from the supergroup chat", 403)
        return chat

    def _topic(self, chat: int, thread: int) -> None:
        if (chat, thread) not in self._world.topics:
            raise Refusal("Bad Request: message thread not found")

    def _place(self, p: Json) -> tuple[int, Json]:
        """The chat and topic of a send; General is there only without its id."""
        chat = self._chat(p)
        thread = int(p.get("message_thread_id") or 0)
        if thread:
            self._topic(chat, thread if thread != GENERAL else -1)
            if (chat, thread) in self._world.closed:
                raise Refusal("Bad Request: TOPIC_CLOSED")
        return chat, self._world.placed(chat, thread, by_bot=True)

    def _words(self, p: Json, key: str, most: int, what: str) -> tuple[str, list[Json]]:
        if p.get("parse_mode"):
            raise Refusal("Bad Request: can't parse entities: this server takes entities only")
        entities = p.get("entities" if key == "text" else "caption_entities") or []
        return shown_text(str(p.get(key) or ""), entities, most, what)

    def _sent(self, chat: int, p: Json, placed: Json, content: Json) -> Json:
        if (keyboard := check_keyboard(p.get("reply_markup"))) is not None:
            content["reply_markup"] = keyboard
        if reply := p.get("reply_parameters"):
            quoted = self._world.messages.get((chat, int(reply["message_id"])))
            if quoted is not None:
                content["reply_to_message"] = {
                    k: v for k, v in quoted.items() if k != "reply_to_message"
                }
            elif not reply.get("allow_sending_without_reply"):
                raise Refusal("Bad Request: message to be replied not found")
        for key in [key for key in self._world.drafts if key[0] == chat]:
            del self._world.drafts[key]  # a real message takes the draft's place
        return self._world.message(chat, self._world.me, **placed, **content)

    def _send_media(self, kind: str, p: Json, files: Files) -> Json:
        chat, placed = self._place(p)
        if not files:
            raise Refusal(f"Bad Request: there is no {kind} in the request")
        name, data = next(iter(files.values()))
        if len(data) > UPLOAD_MOST:
            raise Refusal("Request Entity Too Large", 413)
        if not data:
            raise Refusal("Bad Request: file must be non-empty")
        caption, entities = self._words(p, "caption", CAPTION_MOST, "message caption")
        content: Json = {"caption": caption} if caption else {}
        if entities:
            content["caption_entities"] = entities
        if kind == "photo":
            if len(data) > PHOTO_MOST:
                raise Refusal("Bad Request: PHOTO_SAVE_FILE_INVALID")
            if not data.startswith(_PICTURES):
                raise Refusal("Bad Request: IMAGE_PROCESS_FAILED")
            size = {"width": 90, "height": 90}
            content["photo"] = [{**self._world.file(data, ""), **size}]
        else:
            content[kind] = self._world.file(data, name)
        return self._sent(chat, p, placed, content)

    def _own(self, p: Json, verb: str) -> Json:
        """A message of ours; no other can be edited."""
        found: dict[str, Any] | None = self._world.messages.get(
            (self._chat(p), int(p["message_id"]))
        )
        if found is None:
            raise Refusal(f"Bad Request: message to {verb} not found")
        if found.get("from", {}).get("id") != self._world.me["id"]:
            raise Refusal(f"Bad Request: message can't be {verb}ed")
        return found


_NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are"
    " exactly the same as a current content and reply markup of the message"
)


def _scope(p: Json) -> str:
    scope = p.get("scope") or {"type": "default"}
    return str(scope["type"])


def _topic_name(p: Json) -> str:
    name = str(p.get("name") or "").strip()
    if not 1 <= units(name) <= 128:
        raise Refusal("Bad Request: TOPIC_TITLE_EMPTY")
    return name
