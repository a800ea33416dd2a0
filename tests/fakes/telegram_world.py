"""What exists at the fake Telegram: people, chats, topics, messages, files, waiting updates."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.fakes.telegram_rules import Json, Refusal

GENERAL = 1
SUPERGROUPS_FROM = -1_000_000_000_000


class World:
    """State only; it survives a stop and start of the server, as Telegram survives ours."""

    def __init__(self, token: str, username: str) -> None:
        number = token.partition(":")[0]
        self.token = token
        self.me: Json = {
            "id": int(number) if number.isdecimal() else 1,
            "is_bot": True,
            "first_name": "Gateway",
            "username": username,
        }
        self.abilities: Json = {
            "can_join_groups": True,
            "can_read_all_group_messages": True,
            "supports_inline_queries": False,
            "has_topics_enabled": True,
            "allows_users_to_create_topics": True,
        }
        self.people: dict[int, Json] = {}
        self.chats: dict[int, Json] = {}
        self.topics: dict[tuple[int, int], str] = {}
        self.closed: set[tuple[int, int]] = set()
        self.messages: dict[tuple[int, int], Json] = {}
        self.reactions: dict[tuple[int, int], list[str]] = {}
        self.drafts: dict[tuple[int, int], tuple[int, str, float]] = {}
        self.files: dict[str, tuple[str, bytes]] = {}
        self.sizes: dict[str, int] = {}  # a size that is only claimed
        self.local_files: Path | None = None  # a folder: getFile answers paths, as a local server
        self.commands: dict[str, list[Json]] = {}
        self.blocked: set[int] = set()
        self.migrated: dict[int, int] = {}
        self.webhook = ""  # where updates are posted to
        self.webhook_secret = ""
        self.webhook_at_once = 40
        self.webhook_error: Json = {}
        self.queries: dict[str, bool] = {}  # presses: answered?
        self.allowed: list[str] | None = None
        self.updates: list[object] = []
        self.came = asyncio.Event()
        self._update_ids: Iterator[int] = itertools.count(910_000_001)
        self._message_ids: defaultdict[int, Iterator[int]] = defaultdict(lambda: itertools.count(1))
        self._file_ids = itertools.count(1)
        self._query_ids = itertools.count(4_000_000_001)
        self._topic_ids = itertools.count(500)

    # --- people, chats, topics ---

    def person(self, user: int | Json) -> Json:
        """A person by id, known or made up."""
        if isinstance(user, dict):
            return user
        return self.people.setdefault(
            user, {"id": user, "is_bot": False, "first_name": f"Person{user % 1000}"}
        )

    def chat(self, chat: int | Json) -> Json:
        """A chat by id: positive ids are private, -100… are supergroups."""
        if isinstance(chat, dict):
            return self.chats.setdefault(chat["id"], chat)
        if chat not in self.chats:
            if chat > 0:
                made = {
                    "id": chat,
                    "type": "private",
                    "first_name": self.person(chat)["first_name"],
                }
            else:
                kind = "supergroup" if chat < SUPERGROUPS_FROM else "group"
                made = {"id": chat, "type": kind, "title": f"Group {-chat % 1000}"}
            self.chats[chat] = made
        return self.chats[chat]

    def topic(self, chat: int, name: str, thread: int | None = None) -> int:
        """A topic that exists; its number."""
        thread = thread or next(self._topic_ids)
        self.topics[chat, thread] = name
        return thread

    def new_chat_id(self, chat: int) -> None:
        """Refuse a chat that has a new id."""
        if (new := self.migrated.get(chat)) is not None:
            raise Refusal(
                "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=new
            )

    # --- messages and updates ---

    def message(self, chat: int, author: Json | None, **content: object) -> Json:
        """A new message of a chat, kept and numbered as Telegram does: each chat by itself."""
        made: Json = {
            "message_id": next(self._message_ids[chat]),
            "date": int(time.time()),
            "chat": self.chat(chat),
            **({"from": author} if author is not None else {}),
            **content,
        }
        return self.keep(made)

    def keep(self, message: Json) -> Json:
        """A message with a number of its own becomes part of its chat."""
        self.messages[message["chat"]["id"], message["message_id"]] = message
        return message

    def placed(self, chat: int, thread: int | None, by_bot: bool = False) -> Json:
        """The fields that put a message into a topic."""
        if not thread or thread == GENERAL:
            return {}
        fields: Json = {"message_thread_id": thread, "is_topic_message": True}
        if not by_bot and chat < 0:  # what people write in a topic points at its beginning
            fields["reply_to_message"] = {
                "message_id": thread,
                "date": 1,
                "chat": self.chat(chat),
                "from": self.me,
                "message_thread_id": thread,
                "is_topic_message": True,
                "forum_topic_created": {"name": self.topics.get((chat, thread), "Topic")},
            }
        return fields

    def update(self, kind: str, content: Json) -> Json:
        """Queue an update."""
        made: Json = {"update_id": next(self._update_ids), kind: content}
        self.push(made)
        return made

    def number_updates_from(self, number: int) -> None:
        """Draw update numbers anew, as Telegram may after a week of silence."""
        self._update_ids = itertools.count(number)

    def push(self, update: object) -> None:
        """Queue anything as an update, and wake who polls."""
        self.updates.append(update)
        self.came.set()

    def waiting(self, offset: int | None, most: int) -> list[object]:
        """Updates not confirmed yet, of the kinds that were asked for."""
        if offset:
            numbers = [number_of(update) for update in self.updates]
            before = [at for at, n in enumerate(numbers) if n is not None and n < offset]
            del self.updates[: before[-1] + 1 if before else 0]
        if self.allowed is not None:
            self.updates = [u for u in self.updates if _kind(u) in (*self.allowed, "")]
        self.came.clear()
        return self.updates[:most]

    def query(self) -> str:
        """The id of a new press."""
        made = str(next(self._query_ids))
        self.queries[made] = False
        return made

    # --- files ---

    def file(self, data: bytes, name: str, mime: str = "", claimed: int | None = None) -> Json:
        """A file at Telegram, as a message carries it."""
        ref = f"FILE{next(self._file_ids)}"
        self.files[ref] = (name, data)
        if claimed is not None:
            self.sizes[ref] = claimed
        carried: Json = {
            "file_id": ref,
            "file_unique_id": f"u{ref}",
            "file_size": self.size(ref),
        }
        if name:
            carried["file_name"] = name
        if mime:
            carried["mime_type"] = mime
        return carried

    def size(self, ref: str) -> int:
        """A file's size, or the one that is claimed for it."""
        return self.sizes.get(ref, len(self.files[ref][1]))


def number_of(update: object) -> int | None:
    """The number of an update, if it has one."""
    number = update.get("update_id") if isinstance(update, dict) else None
    return number if isinstance(number, int) else None


def _kind(update: object) -> str:
    """What an update is about; nothing for those that are malformed on purpose."""
    if not isinstance(update, dict):
        return ""
    return next((key for key in update if key != "update_id"), "")
