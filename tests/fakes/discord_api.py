"""The calls of the fake Discord, each with the rules of the real one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from tests.fakes.discord_faults import Call, Json, Refusal
from tests.fakes.discord_world import (
    APPLICATION,
    DIRECT,
    FORUM,
    GUILD,
    THREADS,
    World,
    iso,
)

TEXT_MOST, FILE_MOST = 2000, 10 * 1024 * 1024
INTERACTION_WITHIN = 3.0
_ROUTES: list[tuple[str, re.Pattern[str], str]] = []
Dispatch = Callable[[str, Json], None]


def route(method: str, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a method of Api as the answer to a call."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))
        _ROUTES.append((method, pattern, function.__name__))
        return function

    return mark


def bad_form(field: str, words: str) -> Refusal:
    errors = {field: {"_errors": [{"code": "BAD", "message": words}]}}
    return Refusal(400, 50035, "Invalid Form Body", errors)


class Api:
    """Carries out calls on the world; what others would see is dispatched."""

    def __init__(self, world: World, dispatch: Dispatch, base: Callable[[], str]) -> None:
        self.world = world
        self._dispatch = dispatch
        self._base = base
        self.interaction_within = INTERACTION_WITHIN
        self.renames: dict[str, list[float]] = {}
        self.starts_left = 1000

    def carry_out(self, call: Call) -> object:
        """The answer; None is 204. Raises Refusal."""
        for method, pattern, name in _ROUTES:
            found = pattern.fullmatch(call.path)
            if found and method == call.method:
                return getattr(self, name)(call, **found.groupdict())
        raise Refusal(404, 0, f"404: Not Found {call.method} {call.path}")

    # --- who we are ---

    @route("GET", "/users/@me")
    def _me(self, call: Call) -> Json:
        return dict(self.world.me)

    @route("GET", "/gateway/bot")
    def _gateway(self, call: Call) -> Json:
        limit = {"total": 1000, "remaining": self.starts_left, "reset_after": 60_000}
        url = self._base().replace("http", "ws", 1)
        return {"url": url, "shards": 1, "session_start_limit": {**limit, "max_concurrency": 1}}

    @route("GET", "/oauth2/applications/@me")
    @route("GET", "/applications/@me")
    def _application(self, call: Call) -> Json:
        return {
            "id": APPLICATION,
            "name": "gate",
            "description": "",
            "icon": None,
            "bot_public": False,
            "bot_require_code_grant": False,
            "verify_key": "k",
            "flags": self.world.flags,
        }

    @route("GET", "/users/@me/guilds")
    def _guilds(self, call: Call) -> list[Json]:
        return [{"id": GUILD, "name": "Lab", "permissions": self.world.permissions}]

    @route("POST", "/users/@me/channels")
    def _direct(self, call: Call) -> Json:
        person = str(call.body["recipient_id"])
        if person not in self.world.people:
            raise Refusal(400, 50033, "Invalid Recipient(s)")
        return dict(self.world.direct(person))

    # --- commands and interactions ---

    @route("GET", "/applications/{app}/commands")
    def _commands(self, call: Call, app: str) -> list[Json]:
        return self.world.commands

    @route("PUT", "/applications/{app}/commands")
    def _set_commands(self, call: Call, app: str) -> list[Json]:
        given: list[Json] = call.body["list"]
        for one in given:
            if not re.fullmatch(r"[-_a-z0-9]{1,32}", one["name"]):
                raise bad_form("name", "is no name")
            if not 1 <= len(one["description"]) <= 100:
                raise bad_form("description", "Must be between 1 and 100 in length.")
        if len(given) > 100:
            raise Refusal(400, 30032, "Maximum number of application commands reached (100).")
        self.world.commands = [
            {"default_member_permissions": None, "nsfw": False, **one, "id": self.world.snow()}
            for one in given
        ]
        return self.world.commands

    @route("POST", "/interactions/{number}/{token}/callback")
    def _callback(self, call: Call, number: str, token: str) -> None:
        interaction = self._interaction(token)
        if time.monotonic() - interaction["began"] > self.interaction_within:
            raise Refusal(404, 10062, "Unknown interaction")
        if interaction["answered"]:
            raise Refusal(400, 40060, "Interaction has already been acknowledged.")
        interaction["answered"] = call.body["type"]
        interaction["flags"] = (call.body.get("data") or {}).get("flags", 0)

    @route("PATCH", "/webhooks/{app}/{token}/messages/@original")
    def _original(self, call: Call, app: str, token: str) -> Json:
        interaction = self._interaction(token, answered=True)
        return self._whisper(interaction, call, "original", interaction["flags"])

    @route("DELETE", "/webhooks/{app}/{token}/messages/@original")
    def _no_original(self, call: Call, app: str, token: str) -> None:
        self._interaction(token, answered=True)["deleted"] = True

    @route("POST", "/webhooks/{app}/{token}")
    def _follow_up(self, call: Call, app: str, token: str) -> Json:
        interaction = self._interaction(token, answered=True)
        return self._whisper(interaction, call, "followup", call.body.get("flags", 0))

    def _whisper(self, interaction: Json, call: Call, kind: str, flags: int) -> Json:
        content = self._content(call)
        said = {"kind": kind, "content": content, "private": bool(flags & 64)}
        interaction["said"].append(said)
        return {"id": self.world.snow(), "content": content}

    def _interaction(self, token: str, answered: bool = False) -> Json:
        found = self.world.interactions.get(token)
        if found is None:
            raise Refusal(404, 10015 if answered else 10062, "Unknown interaction")
        if answered and not found["answered"]:
            raise Refusal(404, 10015, "Unknown Webhook")
        return found

    # --- messages ---

    @route("POST", "/channels/{channel}/typing")
    def _typing(self, call: Call, channel: str) -> None:
        where = self.world.known(channel)
        self._may_send(where)
        self.world.typed.append(channel)

    @route("GET", "/channels/{channel}/messages")
    def _history(self, call: Call, channel: str) -> list[Json]:
        where = self.world.known(channel)
        if self.world.lacks(where, "history"):
            return []
        most = int(call.query.get("limit", 50))
        if not 1 <= most <= 100:
            raise bad_form("limit", "int value should be between 1 and 100.")
        found = sorted(self.world.messages[channel].values(), key=lambda one: int(one["id"]))
        if (after := call.query.get("after")) is not None:
            page = [one for one in found if int(one["id"]) > int(after)][:most]
        else:
            before = int(call.query.get("before") or 2**64)
            page = [one for one in found if int(one["id"]) < before][-most:]
        return [self.seen(one) for one in reversed(page)]

    @route("GET", "/channels/{channel}/messages/{number}")
    def _one(self, call: Call, channel: str, number: str) -> Json:
        self.world.known(channel)
        return self.seen(self._message(channel, number))

    @route("POST", "/channels/{channel}/messages")
    def _post(self, call: Call, channel: str) -> Json:
        where = self.world.known(channel)
        self._may_send(where)
        body = call.body
        content = self._content(call)
        nonce = str(body.get("nonce") or "")
        if len(nonce) > 25:
            raise bad_form("nonce", "Must be 25 or fewer in length.")
        if nonce and body.get("enforce_nonce"):
            made, there, number = self.world.nonces.get(nonce, (0.0, "", ""))
            if made > time.monotonic() - self.world.nonce_window:
                return self.seen(self._message(there, number))
        fields = self._fields(call)
        if reference := body.get("message_reference"):
            replied = self.world.messages[channel].get(reference["message_id"])
            if replied is None and reference.get("fail_if_not_exists", True):
                raise bad_form("message_reference", "Unknown message")
            if replied is not None:
                fields |= {"type": 19, "referenced_message": replied}
                fields["message_reference"] = {**reference, "channel_id": channel}
        message = self.world.message(channel, content, self.world.me, **fields)
        self._quiet(message, body)
        self._unarchive(where)
        if nonce:
            self.world.nonces[nonce] = (time.monotonic(), channel, message["id"])
        self.tell("MESSAGE_CREATE", {**message, **({"nonce": nonce} if nonce else {})})
        return {**self.seen(message), **({"nonce": nonce} if nonce else {})}

    @staticmethod
    def _quiet(message: Json, body: Json) -> None:
        """Whom a message pings: everybody that is named, unless that was ruled out."""
        allowed = body.get("allowed_mentions")
        named = "@everyone" in message["content"] or message["mentions"]
        message["pinged"] = bool(named) and (allowed is None or bool(allowed.get("parse")))

    def _may_send(self, where: Json) -> None:
        right = "send_in_threads" if where["type"] in THREADS else "send"
        if where["type"] == DIRECT:
            if self.world.lacks(where, "send"):
                raise Refusal(403, 50007, "Cannot send messages to this user")
            return
        self.world.need(where, right)
        if where["type"] == FORUM:
            raise Refusal(400, 50008, "Cannot send messages in a non-text channel")
        locked = where["type"] in THREADS and where["thread_metadata"]["locked"]
        if locked and self.world.lacks(where, "manage_threads"):
            raise Refusal(403, 50083, "Thread is archived")

    def _unarchive(self, where: Json) -> None:
        if where["type"] in THREADS and where["thread_metadata"]["archived"]:
            where["thread_metadata"]["archived"] = False
            self._dispatch("THREAD_UPDATE", dict(where))

    def _content(self, call: Call) -> str:
        content = call.body.get("content") or ""
        if len(content) > TEXT_MOST:
            raise bad_form("content", "Must be 2000 or fewer in length.")
        if not content.strip() and not call.files:
            raise Refusal(400, 50006, "Cannot send an empty message")
        return str(content)

    def _fields(self, call: Call) -> Json:
        fields: Json = {"flags": call.body.get("flags", 0)}
        self._check_buttons(call.body.get("components") or [])
        fields["components"] = call.body.get("components") or []
        for name, data in call.files.values():
            if len(data) > FILE_MOST:
                raise Refusal(413, 40005, "Request entity too large")
            kept = self.world.attachment(name, data, "application/octet-stream", self._base())
            fields.setdefault("attachments", []).append(kept)
        return fields

    @staticmethod
    def _check_buttons(rows: list[Json]) -> None:
        if len(rows) > 5:
            raise bad_form("components", "Must be 5 or fewer in length.")
        ids = [button["custom_id"] for row in rows for button in row["components"]]
        if len(ids) != len(set(ids)):
            raise bad_form("components", "Component custom id cannot be duplicated")
        for row in rows:
            if not 1 <= len(row["components"]) <= 5:
                raise bad_form("components", "Must be between 1 and 5 in length.")
            for button in row["components"]:
                if not 1 <= len(button["label"]) <= 80 or not 1 <= len(button["custom_id"]) <= 100:
                    raise bad_form("components", "Must be between 1 and 80 in length.")
                if button["style"] not in (1, 2, 3, 4):
                    raise bad_form("components", "is no style")

    @route("PATCH", "/channels/{channel}/messages/{number}")
    def _edit(self, call: Call, channel: str, number: str) -> Json:
        where = self.world.known(channel)
        message = self._message(channel, number)
        if message["author"]["id"] != self.world.me["id"]:
            raise Refusal(403, 50005, "Cannot edit a message authored by another user")
        if where["type"] in THREADS and where["thread_metadata"]["archived"]:
            raise Refusal(400, 50083, "Thread is archived")
        content = self._content(call)
        self._check_buttons(call.body.get("components") or [])
        message.update(content=content, edited_timestamp=iso())
        if "components" in call.body:
            message["components"] = call.body["components"]
        self.tell("MESSAGE_UPDATE", message)
        return self.seen(message)

    @route("DELETE", "/channels/{channel}/messages/{number}")
    def _delete(self, call: Call, channel: str, number: str) -> None:
        self.world.known(channel)
        self._message(channel, number)
        del self.world.messages[channel][number]
        gone = {"id": number, "channel_id": channel, "guild_id": GUILD}
        self._dispatch("MESSAGE_DELETE", gone)

    @route("PUT", "/channels/{channel}/messages/{number}/reactions/{emoji}/@me")
    def _react(self, call: Call, channel: str, number: str, emoji: str) -> None:
        self.world.need(self.world.known(channel), "react")
        self._message(channel, number)
        if emoji not in self.world.reactions[channel, number]:
            self.world.reactions[channel, number].append(emoji)

    @route("DELETE", "/channels/{channel}/messages/{number}/reactions/{emoji}/@me")
    def _unreact(self, call: Call, channel: str, number: str, emoji: str) -> None:
        self.world.known(channel)
        self._message(channel, number)
        if emoji not in self.world.reactions[channel, number]:
            raise Refusal(404, 10014, "Unknown Emoji")
        self.world.reactions[channel, number].remove(emoji)

    def _message(self, channel: str, number: str) -> Json:
        found = self.world.messages[channel].get(number)
        if found is None:
            raise Refusal(404, 10008, "Unknown Message")
        return found

    def seen(self, message: Json) -> Json:
        """A message as the bot is shown it: without the content that it may not read."""
        shown = {key: value for key, value in message.items() if key != "pinged"}
        for one in shown["attachments"]:
            if one["url"].rpartition("/")[2] in self.world.expired:
                one["url"] = f"{self._base()}/cdn/{one['id']}/{self.world.snow()}"
        direct = self.world.channels.get(message["channel_id"], {}).get("type") == DIRECT
        me = self.world.me["id"]
        ours = message["author"]["id"] == me or any(m["id"] == me for m in message["mentions"])
        if self.world.flags or direct or ours:
            return shown
        return {**shown, "content": "", "attachments": [], "embeds": [], "components": []}

    def tell(self, kind: str, message: Json) -> None:
        """A message's event, with what the gateway adds to it."""
        event = self.seen(message)
        if self.world.channels.get(message["channel_id"], {}).get("guild_id"):
            member = self.world.member(message["author"])
            event |= {"guild_id": GUILD, "member": {k: v for k, v in member.items() if k != "user"}}
        else:
            event["channel_type"] = DIRECT
        self._dispatch(kind, event)

    # --- channels and threads ---

    @route("GET", "/channels/{channel}")
    def _get_channel(self, call: Call, channel: str) -> Json:
        return dict(self.world.known(channel))

    @route("PATCH", "/channels/{channel}")
    def _change(self, call: Call, channel: str) -> Json:
        where = self.world.known(channel)
        if where["type"] not in THREADS:
            self.world.need(where, "manage")
        if "name" in call.body:
            if not 1 <= len(call.body["name"]) <= 100:
                raise bad_form("name", "Must be between 1 and 100 in length.")
            where["name"] = call.body["name"]
        if "archived" in call.body:
            if where["thread_metadata"]["locked"]:
                self.world.need(where, "manage_threads")
            where["thread_metadata"]["archived"] = call.body["archived"]
        self._dispatch("THREAD_UPDATE", dict(where))
        return dict(where)

    @route("POST", "/channels/{channel}/messages/{number}/threads")
    def _thread_of(self, call: Call, channel: str, number: str) -> Json:
        where = self.world.known(channel)
        self.world.need(where, "create_threads")
        if where["type"] not in (0, 5):
            raise Refusal(400, 50024, "Cannot execute action on this channel type")
        message = self._message(channel, number)
        if number in self.world.channels:
            raise Refusal(400, 160004, "A thread has already been created for this message")
        if not 1 <= len(call.body.get("name", "")) <= 100:
            raise bad_form("name", "Must be between 1 and 100 in length.")
        made = self.world.thread(channel, call.body["name"], number, self.world.me["id"])
        message["thread"] = made
        self._dispatch("THREAD_CREATE", {**made, "newly_created": True})
        return dict(made)

    @route("POST", "/channels/{channel}/threads")
    def _thread(self, call: Call, channel: str) -> Json:
        where = self.world.known(channel)
        self.world.need(where, "create_threads")
        post = call.body.get("message")
        if (where["type"] == FORUM) != (post is not None):
            raise bad_form("message", "This field is required")
        made = self.world.thread(channel, call.body["name"], owner=self.world.me["id"])
        self._dispatch("THREAD_CREATE", {**made, "newly_created": True})
        if post is None:
            return dict(made)
        message = self.world.message(made["id"], post["content"], self.world.me, number=made["id"])
        self.tell("MESSAGE_CREATE", message)
        return {**made, "message": message}

    @route("GET", "/guilds/{guild}/threads/active")
    def _active(self, call: Call, guild: str) -> Json:
        return {"threads": self._threads(archived=False), "members": []}

    @route("GET", "/channels/{channel}/threads/archived/public")
    def _archived(self, call: Call, channel: str) -> Json:
        self.world.known(channel)
        found = [one for one in self._threads(archived=True) if one["parent_id"] == channel]
        found.sort(key=lambda one: one["thread_metadata"]["archive_timestamp"], reverse=True)
        most = int(call.query.get("limit", 50))
        return {"threads": found[:most], "members": [], "has_more": len(found) > most}

    def _threads(self, archived: bool) -> list[Json]:
        return [
            dict(one)
            for one in self.world.channels.values()
            if one["type"] in THREADS and one["thread_metadata"]["archived"] == archived
        ]

    @route("GET", "/guilds/{guild}")
    def _guild(self, call: Call, guild: str) -> Json:
        return {"id": GUILD, "name": "Lab", "owner_id": "1", "roles": self.world.roles()}

    @route("GET", "/guilds/{guild}/members/{person}")
    def _member(self, call: Call, guild: str, person: str) -> Json:
        return self.world.member(self.world.me)
