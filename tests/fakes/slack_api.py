"""The methods of the fake Web API: each takes a call's parameters, gives its result or refuses."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable

from tests.fakes.slack_rules import (
    PROMPTS_MOST,
    STATUS_MOST,
    TEXT_MOST,
    UPDATE_TEXT_MOST,
    Json,
    Refusal,
    check_blocks,
    check_message,
)
from tests.fakes.slack_world import BOT_ID, BOT_USER, TEAM, World, order

_CONTENT = ("text", "blocks", "metadata", "attachments")


class Api:
    """One instance a server; all state is the world's. ``base``: where the server is."""

    def __init__(self, world: World, base: Callable[[], str], ticket: Callable[[], str]) -> None:
        self._world = world
        self._base = base
        self._ticket = ticket

    def method(self, name: str) -> Callable[[Json], Json] | None:
        """The method of that name (chat.postMessage is chat_postMessage here), if there is one."""
        found = getattr(self, name.replace(".", "_"), None)
        return found if callable(found) and "." in name else None

    # --- the app ---

    def auth_test(self, p: Json) -> Json:
        return {
            "url": "https://test.slack.com/",
            "team": "Test",
            "user": "laneway",
            "team_id": TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT_ID,
        }

    def apps_connections_open(self, p: Json) -> Json:
        if not self._world.socket_mode:
            raise Refusal("socket_mode_disabled")
        return {"url": self._ticket()}

    def users_info(self, p: Json) -> Json:
        if (person := self._world.people.get(p["user"])) is None:
            raise Refusal("user_not_found")
        return {"user": person}

    def conversations_info(self, p: Json) -> Json:
        return {"channel": self._world.place(p)}

    def conversations_list(self, p: Json) -> Json:
        kinds = str(p.get("types") or "public_channel").split(",")
        of_kind = {"im": "im", "public_channel": "channel", "private_channel": "group"}
        wanted = {of_kind.get(kind, kind) for kind in kinds}
        found = [one for one in self._world.channels.values() if one["type"] in wanted]
        start, limit = int(p.get("cursor") or 0), int(p.get("limit") or 100)
        more = str(start + limit) if len(found) > start + limit else ""
        page = found[start : start + limit]
        return {"channels": page, "response_metadata": {"next_cursor": more}}

    # --- messages ---

    def chat_postMessage(self, p: Json) -> Json:  # noqa: N802 (Slack's name)
        channel = self._writable(p)
        check_message(p, TEXT_MOST)
        message: Json = {
            "type": "message",
            "user": BOT_USER,
            "bot_id": BOT_ID,
            "team": TEAM,
            "ts": self._world.ts(),
        }
        if thread := p.get("thread_ts"):
            self._thread(channel["id"], str(thread))
            message["thread_ts"] = str(thread)
            self._world.status.pop((channel["id"], str(thread)), None)
        message |= {key: p[key] for key in _CONTENT if p.get(key)}
        message.setdefault("text", "")
        self._world.keep(channel["id"], message)
        return {"channel": channel["id"], "ts": message["ts"], "message": dict(message)}

    def chat_postEphemeral(self, p: Json) -> Json:  # noqa: N802
        self._world.place(p)
        check_message(p, TEXT_MOST)
        self._world.ephemerals.append(dict(p))
        return {"message_ts": self._world.ts()}

    def chat_update(self, p: Json) -> Json:
        self._world.place(p)
        message = self._world.own(p, "update")
        if message.get("streaming"):
            raise Refusal("streaming_state_conflict")
        check_message(p, UPDATE_TEXT_MOST)
        message["text"] = p.get("text") or ""
        if "blocks" in p:
            message["blocks"] = p["blocks"] or []
        if "metadata" in p:
            message["metadata"] = p["metadata"]
        message["edited"] = {"user": BOT_USER, "ts": self._world.ts()}
        return {"channel": p["channel"], "ts": p["ts"], "text": message["text"]}

    def chat_delete(self, p: Json) -> Json:
        self._world.place(p)
        self._world.own(p, "delete")
        del self._world.messages[p["channel"], p["ts"]]
        return {"channel": p["channel"], "ts": p["ts"]}

    def _writable(self, p: Json) -> Json:
        channel = self._world.place(p)
        if channel["is_archived"]:
            raise Refusal("is_archived")
        return channel

    def _thread(self, channel: str, thread: str) -> None:
        root = self._world.messages.get((channel, thread))
        if root is None or root.get("thread_ts", thread) != thread:
            raise Refusal("cannot_reply_to_message")

    # --- streams ---

    def chat_startStream(self, p: Json) -> Json:  # noqa: N802
        channel = self._writable(p)
        if not p.get("thread_ts"):
            raise Refusal("invalid_arguments")
        self._thread(channel["id"], str(p["thread_ts"]))
        if not channel["is_im"] and not (p.get("recipient_user_id") and p.get("recipient_team_id")):
            raise Refusal("missing_recipient_user_id")
        message: Json = {
            "type": "message",
            "user": BOT_USER,
            "bot_id": BOT_ID,
            "ts": self._world.ts(),
            "thread_ts": str(p["thread_ts"]),
            "text": p.get("markdown_text") or "",
            "streaming": True,
            "began": time.monotonic(),
        }
        self._world.keep(channel["id"], message)
        self._world.status.pop((channel["id"], message["thread_ts"]), None)
        return {"channel": channel["id"], "ts": message["ts"]}

    def chat_appendStream(self, p: Json) -> Json:  # noqa: N802
        message = self._streaming(p)
        message["text"] += p.get("markdown_text") or ""
        return {"channel": p["channel"], "ts": p["ts"]}

    def chat_stopStream(self, p: Json) -> Json:  # noqa: N802
        message = self._streaming(p)
        message["text"] += p.get("markdown_text") or ""
        message["streaming"] = False
        message["blocks"] = p.get("blocks") or []
        if p.get("metadata"):
            message["metadata"] = p["metadata"]
        return {"channel": p["channel"], "ts": p["ts"], "message": dict(message)}

    def _streaming(self, p: Json) -> Json:
        message = self._world.own(p, "update")
        if not message.get("streaming"):
            raise Refusal("message_not_in_streaming_state")
        if time.monotonic() - message["began"] > self._world.stream_life:
            message["streaming"] = False
            raise Refusal("message_not_in_streaming_state")
        return message

    # --- reading ---

    def conversations_history(self, p: Json) -> Json:
        channel = self._world.place(p)
        found = self._window(self._world.top(channel["id"]), p)
        oldest_only = p.get("oldest") and not p.get("latest")
        return self._page(found if oldest_only else found[::-1], p)

    def conversations_replies(self, p: Json) -> Json:
        channel, root = self._world.place(p)["id"], str(p["ts"])
        messages = self._world.thread(channel, root)
        if not messages or messages[0]["ts"] != root:
            raise Refusal("thread_not_found")
        return self._page([messages[0], *self._window(messages[1:], p)], p)

    def _window(self, messages: list[Json], p: Json) -> list[Json]:
        oldest, latest = order(str(p.get("oldest") or 0)), order(str(p.get("latest") or 10**12))
        if str(p.get("inclusive", "")).lower() in ("1", "true"):
            return [m for m in messages if oldest <= order(m["ts"]) <= latest]
        return [m for m in messages if oldest < order(m["ts"]) < latest]

    def _page(self, messages: list[Json], p: Json) -> Json:
        start = int(base64.b64decode(p["cursor"])) if p.get("cursor") else 0
        limit = min(int(p.get("limit") or 100), 999)
        page, rest = messages[start : start + limit], messages[start + limit :]
        if str(p.get("include_all_metadata", "")).lower() not in ("1", "true"):
            page = [{k: v for k, v in m.items() if k != "metadata"} for m in page]
        cursor = base64.b64encode(str(start + limit).encode()).decode() if rest else ""
        return {
            "messages": page,
            "has_more": bool(rest),
            "response_metadata": {"next_cursor": cursor},
        }

    # --- reactions ---

    def reactions_add(self, p: Json) -> Json:
        if BOT_USER in (users := self._reacted(p)):
            raise Refusal("already_reacted")
        users.add(BOT_USER)
        return {}

    def reactions_remove(self, p: Json) -> Json:
        if BOT_USER not in (users := self._reacted(p)):
            raise Refusal("no_reaction")
        users.discard(BOT_USER)
        return {}

    def _reacted(self, p: Json) -> set[str]:
        self._world.place(p)
        key = (str(p["channel"]), str(p["timestamp"]))
        if key not in self._world.messages:
            raise Refusal("message_not_found")
        return self._world.reactions.setdefault(key, {}).setdefault(str(p["name"]), set())

    # --- assistant threads ---

    def assistant_threads_setStatus(self, p: Json) -> Json:  # noqa: N802
        if len(p["status"]) > STATUS_MOST:
            raise Refusal("invalid_arguments")
        key = self._assistant(p)
        self._world.status[key] = p["status"]
        if not p["status"]:
            del self._world.status[key]
        return {}

    def assistant_threads_setTitle(self, p: Json) -> Json:  # noqa: N802
        key = self._assistant(p)
        if not self._world.channels[key[0]]["is_im"]:
            raise Refusal("invalid_thread_ts")
        self._world.titles[key] = p["title"]
        return {}

    def assistant_threads_setSuggestedPrompts(self, p: Json) -> Json:  # noqa: N802
        if len(p["prompts"]) > PROMPTS_MOST:
            raise Refusal("too_many_prompts")
        self._world.prompts[self._assistant(p)] = p["prompts"]
        return {}

    def _assistant(self, p: Json) -> tuple[str, str]:
        channel, thread = self._world.place(p, "channel_id")["id"], str(p["thread_ts"])
        if (channel, thread) not in self._world.messages:
            raise Refusal("invalid_thread_ts")
        return channel, thread

    # --- files ---

    def files_getUploadURLExternal(self, p: Json) -> Json:  # noqa: N802
        length = int(p["length"])
        if not length or not p.get("filename"):
            raise Refusal("invalid_arguments")
        made = self._world.file(None, str(p["filename"]), "", self._base(), length=length)
        return {"file_id": made["id"], "upload_url": f"{self._base()}/upload/v1/{made['id']}"}

    def files_completeUploadExternal(self, p: Json) -> Json:  # noqa: N802
        channel = self._writable({"channel": p["channel_id"]}) if p.get("channel_id") else None
        if blocks := p.get("blocks"):
            check_blocks(blocks)
            if any(block["type"] not in ("section", "rich_text") for block in blocks):
                raise Refusal("internal_error")
        for one in p["files"]:
            if (self._world.files.get(one["id"]) or {}).get("data") is None:
                raise Refusal("file_not_found")
        if channel is not None:
            self._share(channel["id"], p)
        return {"files": [{"id": one["id"], "title": one.get("title", "")} for one in p["files"]]}

    def _share(self, channel: str, p: Json) -> None:
        message: Json = {
            "type": "message",
            "user": BOT_USER,
            "bot_id": BOT_ID,
            "subtype": "file_share",
            "ts": self._world.ts(),
            "text": p.get("initial_comment") or "",
            "blocks": [] if p.get("initial_comment") else p.get("blocks") or [],
            "client_msg_id": uuid.uuid4().hex,
        }
        if thread := p.get("thread_ts"):
            self._thread(channel, str(thread))
            message["thread_ts"] = str(thread)
        shares: Json = {channel: [{"ts": message["ts"]}]}
        for one in p["files"]:
            kept = self._world.files[one["id"]]
            kept |= {"title": one.get("title", ""), "shares": {"private": shares}}
        message["files"] = [self._world.file_shown(one["id"]) for one in p["files"]]
        self._world.keep(channel, message)

    def files_info(self, p: Json) -> Json:
        if p["file"] not in self._world.files:
            raise Refusal("file_not_found")
        return {"file": self._world.file_shown(p["file"])}
