"""What exists at the fake Slack: people, channels, messages, files, statuses. No wire."""

from __future__ import annotations

import time
import uuid

from tests.fakes.slack_rules import Json, Refusal

TEAM, BOT_USER, BOT_ID, APP = "T0TEST", "UBOT", "BBOT", "A0APP"
SCOPES = (
    "app_mentions:read,assistant:write,channels:history,channels:read,chat:write,commands,"
    "files:read,files:write,groups:history,groups:read,im:history,im:read,im:write,mpim:history,"
    "mpim:read,reactions:read,reactions:write,users:read"
)


class World:
    """All state; it outlives a stop of the server."""

    def __init__(self, bot_token: str, app_token: str) -> None:
        self.bot_token = bot_token
        self.app_token = app_token
        self.scopes = SCOPES
        self.socket_mode = True
        self.people: dict[str, Json] = {}
        self.channels: dict[str, Json] = {}
        self.messages: dict[tuple[str, str], Json] = {}
        self.files: dict[str, Json] = {}
        self.reactions: dict[tuple[str, str], dict[str, set[str]]] = {}
        self.status: dict[tuple[str, str], str] = {}
        self.titles: dict[tuple[str, str], str] = {}
        self.prompts: dict[tuple[str, str], list[Json]] = {}
        self.ephemerals: list[Json] = []
        self.responses: dict[str, int] = {}  # response_url token: uses left
        self.stream_life = 300.0
        self._last = 0

    # --- time ---

    def ts(self) -> str:
        """The next message's id: seconds and microseconds, never twice."""
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    # --- people and places ---

    def person(self, ident: str, name: str = "", **fields: object) -> Json:
        profile = {"display_name": name, "real_name": name}
        known = self.people.setdefault(
            ident, {"id": ident, "name": name.lower(), "is_bot": False, "profile": profile}
        )
        known.update(fields)
        return known

    def channel(self, ident: str, name: str = "", member: bool = True, **fields: object) -> Json:
        """A channel, made the first time it is named; its type follows from its id."""
        kinds = {"D": "im", "G": "group"}
        return self.channels.setdefault(
            ident,
            {
                "id": ident,
                "name": name or ident.lower(),
                "type": kinds.get(ident[0], "channel"),
                "is_im": ident[0] == "D",
                "is_member": member,
                "is_archived": False,
                **fields,
            },
        )

    def place(self, p: Json, key: str = "channel") -> Json:
        """The channel a call names, if the bot may write there."""
        channel = self.channels.get(str(p.get(key, "")))
        if channel is None:
            raise Refusal("channel_not_found")
        if not channel["is_member"]:
            raise Refusal("not_in_channel")
        return channel

    # --- messages ---

    def keep(self, channel: str, message: Json) -> Json:
        self.messages[channel, message["ts"]] = message
        return message

    def in_channel(self, channel: str) -> list[Json]:
        found = [m for (where, _), m in self.messages.items() if where == channel]
        return sorted(found, key=lambda m: order(m["ts"]))

    def top(self, channel: str) -> list[Json]:
        """The main timeline: roots, and replies that were also sent to the channel."""
        return [
            self.with_replies(channel, m)
            for m in self.in_channel(channel)
            if m.get("thread_ts", m["ts"]) == m["ts"] or m.get("subtype") == "thread_broadcast"
        ]

    def thread(self, channel: str, root: str) -> list[Json]:
        return [
            self.with_replies(channel, m)
            for m in self.in_channel(channel)
            if m.get("thread_ts", m["ts"]) == root or m["ts"] == root
        ]

    def with_replies(self, channel: str, message: Json) -> Json:
        """A root as it is read: with the number and the time of its replies."""
        ts = message["ts"]
        if message.get("thread_ts", ts) != ts:
            return message
        replies = [
            m["ts"] for m in self.in_channel(channel) if m.get("thread_ts") == ts and m["ts"] != ts
        ]
        if not replies:
            return message
        return {
            **message,
            "thread_ts": ts,
            "reply_count": len(replies),
            "latest_reply": replies[-1],
        }

    def own(self, p: Json, verb: str) -> Json:
        """A message of the bot that a call names."""
        message = self.messages.get((str(p["channel"]), str(p["ts"])))
        if message is None:
            raise Refusal("message_not_found")
        if message.get("user") != BOT_USER:
            raise Refusal(f"cant_{verb}_message")
        return message

    # --- files ---

    def file(self, data: bytes | None, name: str, mime: str, base: str, **fields: object) -> Json:
        """A file with its bytes; ``None`` while they are not uploaded yet."""
        ident = f"F{len(self.files) + 1:04d}"
        address = f"{base}/files-pri/{ident}"
        self.files[ident] = {
            "id": ident,
            "name": name,
            "mimetype": mime,
            "size": len(data or b""),
            "url_private": address,
            "url_private_download": address,
            "data": data,
            **fields,
        }
        return self.file_shown(ident)

    def file_shown(self, ident: str) -> Json:
        return {key: value for key, value in self.files[ident].items() if key != "data"}

    def response_url(self, base: str) -> str:
        """An address that takes five answers."""
        token = uuid.uuid4().hex
        self.responses[token] = 5
        return f"{base}/response/{token}"


def order(ts: str) -> tuple[int, int]:
    seconds, _, rest = ts.partition(".")
    return int(seconds), int(rest or 0)
