"""What the fake Discord remembers, and the shapes of its objects."""

from __future__ import annotations

import itertools
import re
import time
from collections import defaultdict
from datetime import UTC, datetime

from tests.fakes.discord_faults import Json, Refusal

EPOCH = 1_420_070_400_000
EVERYTHING = str((1 << 53) - 1)
DIRECT, TEXT, NEWS, THREAD, FORUM = 1, 0, 5, 11, 15
THREADS = (10, 11, 12)
CONTENT_FLAG = 1 << 18
BOT, APPLICATION, OUR_ROLE = "920000000000000001", "920000000000000001", "940000000000000001"
GUILD, CHANNEL, OTHER, FORUM_CHANNEL = (
    "900000000000000001",
    "900000000000000010",
    "900000000000000011",
    "900000000000000015",
)
ANA, BEN, MAL, ROBOT = (
    "910000000000000001",
    "910000000000000002",
    "910000000000000009",
    "930000000000000002",
)
_MENTION = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


def iso(at: float | None = None) -> str:
    """A time as Discord writes it."""
    when = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    return when.isoformat(timespec="microseconds")


class World:
    """Users, channels, messages, commands and interactions."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.flags = CONTENT_FLAG
        self._counter = itertools.count()
        self._last_id = 0
        self.me: Json = {**self._user(BOT, "gate", "Gate"), "bot": True}
        self.people: dict[str, Json] = {
            ANA: self._user(ANA, "ana_d", "Ana"),
            BEN: self._user(BEN, "ben_d", "Ben"),
            MAL: self._user(MAL, "mal_d", "Mal"),
            ROBOT: {**self._user(ROBOT, "robot", "Robot"), "bot": True},
        }
        self.channels: dict[str, Json] = {}
        self.messages: dict[str, dict[str, Json]] = defaultdict(dict)  # channel, id
        self.reactions: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.directs: dict[str, str] = {}  # person to channel
        self.commands: list[Json] = []
        self.interactions: dict[str, Json] = {}  # by token
        self.files: dict[str, bytes] = {}
        self.expired: set[str] = set()
        self.nonces: dict[str, tuple[float, str, str]] = {}
        self.nonce_window = 180.0
        self.denied: set[tuple[str, str]] = set()  # (channel, right)
        self.permissions = EVERYTHING
        self.typed: list[str] = []  # channels in which the typing sign was shown
        for channel, kind, name in (
            (CHANNEL, TEXT, "lab"),
            (OTHER, TEXT, "other"),
            (FORUM_CHANNEL, FORUM, "forum"),
        ):
            self.channels[channel] = self._channel(channel, kind, name)

    # --- ids and shapes ---

    def snow(self, at: float | None = None) -> str:
        """An id of a moment, greater than all before it when that is now."""
        if at is not None:
            return str(((int(at * 1000) - EPOCH) << 22) | next(self._counter) & 0xFFF)
        number = (int(time.time() * 1000) - EPOCH) << 22
        self._last_id = max(number, self._last_id + 1)
        return str(self._last_id)

    @staticmethod
    def _user(number: str, name: str, shown: str) -> Json:
        return {
            "id": number,
            "username": name,
            "discriminator": "0",
            "global_name": shown,
            "avatar": None,
            "bot": False,
            "public_flags": 0,
        }

    def person(self, number: str, name: str) -> Json:
        """Somebody by id, known from now on."""
        return self.people.setdefault(number, self._user(number, name.lower(), name))

    def _channel(self, number: str, kind: int, name: str) -> Json:
        return {
            "id": number,
            "type": kind,
            "name": name,
            "guild_id": GUILD,
            "position": 0,
            "permission_overwrites": [],
            "nsfw": False,
            "parent_id": None,
            "topic": None,
            "last_message_id": None,
            "rate_limit_per_user": 0,
        }

    def guild(self) -> Json:
        """What GUILD_CREATE tells."""
        channels = list(self.channels.values())
        return {
            "id": GUILD,
            "name": "Lab",
            "owner_id": ANA,
            "unavailable": False,
            "roles": self.roles(),
            "emojis": [],
            "features": [],
            "member_count": 3,
            "members": [self.member(self.me)],
            "presences": [],
            "channels": [
                self._bare(one) for one in channels if one["type"] not in (*THREADS, DIRECT)
            ],
            "threads": [
                dict(one)
                for one in channels
                if one["type"] in THREADS and not one["thread_metadata"]["archived"]
            ],
        }

    @staticmethod
    def _bare(channel: Json) -> Json:
        return {key: value for key, value in channel.items() if key != "guild_id"}

    def roles(self) -> list[Json]:
        everyone = {"id": GUILD, "name": "@everyone", "permissions": self.permissions}
        ours = {"id": OUR_ROLE, "name": "Gate", "permissions": "0", "tags": {"bot_id": BOT}}
        other = {"id": "940000000000000002", "name": "Crew", "permissions": "0"}
        return [everyone, ours, other]

    def member(self, user: Json) -> Json:
        roles = [OUR_ROLE] if user["id"] == BOT else []
        return {"user": dict(user), "roles": roles, "nick": None, "joined_at": iso(), "flags": 0}

    def direct(self, person: str) -> Json:
        """The direct chat with somebody, made when it is first used."""
        if person not in self.directs:
            number = self.snow()
            self.directs[person] = number
            self.channels[number] = {
                "id": number,
                "type": DIRECT,
                "last_message_id": None,
                "recipients": [self.people[person]],
            }
        return self.channels[self.directs[person]]

    def thread(
        self, parent: str, name: str, number: str = "", owner: str = ANA, kind: int = THREAD
    ) -> Json:
        """A thread as it is there; telling it is the caller's."""
        now = iso()
        made: Json = {
            "id": number or self.snow(),
            "type": kind,
            "guild_id": GUILD,
            "parent_id": parent,
            "owner_id": owner,
            "name": name,
            "last_message_id": None,
            "message_count": 0,
            "member_count": 1,
            "rate_limit_per_user": 0,
            "flags": 0,
            "applied_tags": [],
            "thread_metadata": {
                "archived": False,
                "auto_archive_duration": 1440,
                "archive_timestamp": now,
                "locked": False,
                "create_timestamp": now,
            },
        }
        self.channels[made["id"]] = made
        return made

    def message(
        self, channel: str, content: str, author: Json, *, number: str = "", **fields: object
    ) -> Json:
        """A message that stands in a channel from now on."""
        number = number or self.snow()
        visible = _CODE.sub("", content)
        mentions = [
            dict(self.me if one == BOT else self.people[one])
            for one in dict.fromkeys(_MENTION.findall(visible))
            if one == BOT or one in self.people
        ]
        made: Json = {
            "id": number,
            "channel_id": channel,
            "author": dict(author),
            "content": content,
            "timestamp": iso(((int(number) >> 22) + EPOCH) / 1000),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": mentions,
            "mention_roles": _ROLE.findall(visible),
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            "flags": 0,
            "components": [],
            **fields,
        }
        self.messages[channel][number] = made
        where = self.channels.get(channel)
        if where is not None:
            where["last_message_id"] = max(number, where["last_message_id"] or "0", key=int)
        return made

    def attachment(self, name: str, data: bytes, mime: str, base: str) -> Json:
        """A file that was uploaded; its address is good until ``expire_links``."""
        number = self.snow()
        self.files[number] = data
        return {
            "id": number,
            "filename": re.sub(r"[^A-Za-z0-9._-]", "_", name),
            "size": len(data),
            "content_type": mime,
            "url": f"{base}/cdn/{number}/{self.snow()}",
        }

    # --- what is refused ---

    def known(self, channel: str) -> Json:
        """A channel that is there and shown to the bot."""
        found = self.channels.get(channel)
        if found is None:
            raise Refusal(404, 10003, "Unknown Channel")
        if self.lacks(found, "view"):
            raise Refusal(403, 50001, "Missing Access")
        return found

    def lacks(self, channel: Json, right: str) -> bool:
        """Whether the bot has no such right there; threads have their parent's."""
        return bool({(channel["id"], right), (channel.get("parent_id"), right)} & self.denied)

    def need(self, channel: Json, right: str) -> None:
        if self.lacks(channel, right):
            raise Refusal(403, 50013, "Missing Permissions")
