"""A Discord on loopback, REST and gateway, that keeps the real one's rules.

    fake = FakeDiscord()                        # bot "Gate", one server with two channels, a forum
    async with fake:                            # or await fake.start(port=0) … await fake.stop()
        ... api_base=fake.url, gateway_url=fake.gateway_url, token=fake.token

What people do (all return the message or object that Discord would make of it)
    fake.user_says("hi")                        # Ana (ANA), in her direct messages
    fake.user_says("<@920000000000000001> hi", channel=CHANNEL, user=BEN)
    fake.user_says("and?", channel=thread, reply_to=message)   # further fields as keywords
    fake.user_sends(b"…", "a.txt", content="look")             # mime=…, voice=True
    fake.user_edits(message, "new text"); fake.unfurls(message); fake.user_deletes(message)
    fake.opens_thread("name", CHANNEL)          # announce=False: the bot is not told
    fake.posts("title", "text")                 # in the forum
    fake.press("Allow"); fake.command("status", "text", channel=…)   # the interaction
    fake.archive(thread, locked=True); fake.deletes_thread(thread); fake.renames(thread, "x")

What to look at
    fake.texts(channel), fake.shown(channel)    # what stands there now from the bot, in order
    fake.buttons(message), fake.answers(interaction)
    fake.called("POST", "/messages$")           # calls with .body .files .query .at .status
    fake.identifies, fake.resumes, fake.reactions, fake.typed, fake.commands

What goes wrong
    fake.fail("POST", "/messages$", 403, 50013, "Missing Permissions")
    fake.fail("POST", "/messages$", 429, retry_after=7, everywhere=True)
    fake.hang(…, after=True); fake.drop(…); fake.garble(…); fake.heal()
    fake.pace = Pace(5, 5.0); fake.denied.add((CHANNEL, "create_threads")); fake.flags = 0
    fake.cut(4000); fake.forget_session(); fake.order(7); fake.refuse_lines = 3; fake.mute = True
    fake.expire_links(); fake.token = "another"
    await fake.stop(); await fake.start(fake.port)   # an outage: state and port stay

In a process of its own: ``python -m tests.fakes.discord --port P`` prints one JSON line a call and
is driven by ``POST /control/{say,edit,press,command,thread,fail,heal,cut,forget_session,…}`` with
the same names as keywords; ``GET /control/{messages,calls,channels}`` shows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.fakes.discord_faults import Call as Call
from tests.fakes.discord_faults import Json
from tests.fakes.discord_faults import Pace as Pace
from tests.fakes.discord_wire import Server
from tests.fakes.discord_world import (
    ANA,
    APPLICATION,
    BOT,
    DIRECT,
    EVERYTHING,
    FORUM_CHANNEL,
    GUILD,
    iso,
)
from tests.fakes.discord_world import BEN as BEN
from tests.fakes.discord_world import CHANNEL as CHANNEL
from tests.fakes.discord_world import MAL as MAL
from tests.fakes.discord_world import OTHER as OTHER
from tests.fakes.discord_world import OUR_ROLE as OUR_ROLE
from tests.fakes.discord_world import ROBOT as ROBOT

TOKEN = "OTIwMDAwMDAwMDAwMDAwMDAx.TEST.testtokentesttokentesttokentest"


class FakeDiscord(Server):
    """The server with its control side; the guide is at the top of this file."""

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__(token)

    # --- what people do ---

    def user_says(
        self,
        content: str = "",
        *,
        user: str = ANA,
        channel: str = "",
        reply_to: Json | None = None,
        tell: bool = True,
        ago: float = 0.0,
        **fields: object,
    ) -> Json:
        """A person writes; in direct messages when no channel is named. ``ago``: seconds."""
        channel = channel or str(self.direct(user)["id"])
        if reply_to is not None:
            reference = {"message_id": reply_to["id"], "channel_id": reply_to["channel_id"]}
            fields = {"type": 19, "message_reference": reference, **fields}
            fields.setdefault("referenced_message", dict(reply_to))
        if ago:
            fields.setdefault("number", self.snow(time.time() - ago))
        made = self.message(channel, content, self.people[user], **fields)  # type: ignore[arg-type]
        where = self.channels.get(channel)
        if where is not None and where.get("thread_metadata", {}).get("archived"):
            where["thread_metadata"]["archived"] = False
            self.dispatch("THREAD_UPDATE", dict(where))
        if tell:
            self.api.tell("MESSAGE_CREATE", made)
        return made

    def user_sends(
        self, data: bytes, name: str, *, content: str = "", mime: str = "", **fields: Any
    ) -> Json:
        """A person sends a file; ``size`` claims another one, ``title`` is its real name."""
        voice, claimed = fields.pop("voice", False), fields.pop("size", None)
        carried = self.attachment(name, data, mime or "text/plain; charset=utf-8", self.base)
        if title := fields.pop("title", ""):
            carried["title"] = title
        if claimed is not None:
            carried["size"] = claimed
        flags = 1 << 13 if voice else 0
        return self.user_says(content, attachments=[carried], flags=flags, **fields)

    def user_edits(self, message: Json, content: str) -> Json:
        """A person edits a message."""
        message.update(content=content, edited_timestamp=iso())
        self.api.tell("MESSAGE_UPDATE", message)
        return message

    def unfurls(self, message: Json) -> None:
        """Discord adds the preview of a link: the same event as an edit, without its time."""
        message["embeds"] = [{"type": "link", "url": "https://example.org"}]
        self.api.tell("MESSAGE_UPDATE", message)

    def user_deletes(self, message: Json) -> None:
        del self.messages[message["channel_id"]][message["id"]]
        gone = {"id": message["id"], "channel_id": message["channel_id"], "guild_id": GUILD}
        self.dispatch("MESSAGE_DELETE", gone)

    def opens_thread(
        self, name: str, parent: str = CHANNEL, *, number: str = "", announce: bool = True
    ) -> str:
        """A person opens a thread; its id."""
        made = self.thread(parent, name, number)
        if announce:
            self.dispatch("THREAD_CREATE", {**made, "newly_created": True})
        return str(made["id"])

    def posts(
        self, title: str, content: str, *, user: str = ANA, tell: bool = True
    ) -> tuple[str, Json]:
        """A person writes a post in the forum: its thread's id, which its first message shares."""
        made = self.thread(FORUM_CHANNEL, title, owner=user)
        if tell:
            self.dispatch("THREAD_CREATE", {**made, "newly_created": True})
        said = self.user_says(content, user=user, channel=made["id"], number=made["id"], tell=tell)
        return str(made["id"]), said

    def archive(self, thread: str, locked: bool = False) -> None:
        where = self.channels[thread]
        where["thread_metadata"].update(archived=True, locked=locked, archive_timestamp=iso())
        self.dispatch("THREAD_UPDATE", dict(where))

    def deletes_thread(self, thread: str, tell: bool = True) -> None:
        gone = self.channels.pop(thread)
        self.messages.pop(thread, None)
        if tell:
            keys = ("id", "guild_id", "parent_id", "type")
            self.dispatch("THREAD_DELETE", {key: gone[key] for key in keys})

    def renames(self, thread: str, name: str) -> None:
        self.channels[thread]["name"] = name
        self.dispatch("THREAD_UPDATE", dict(self.channels[thread]))

    def press(self, button: str, *, user: str = ANA, message: Json | None = None) -> Json:
        """A person presses the newest button with that label or id; the interaction."""
        found, custom = self._button(button, message)
        data = {"custom_id": custom, "component_type": 2}
        return self._interact(3, found["channel_id"], user, data, message=found)

    def command(self, name: str, text: str = "", *, channel: str = "", user: str = ANA) -> Json:
        """A person uses an application command."""
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        data = {"id": self.snow(), "name": name, "type": 1, "options": options}
        return self._interact(2, channel or self.direct(user)["id"], user, data)

    def _interact(self, kind: int, channel: str, user: str, data: Json, **fields: object) -> Json:
        where = self.channels[channel]
        token = f"interaction-token-{self.snow()}"
        event: Json = {
            "id": self.snow(),
            "application_id": APPLICATION,
            "type": kind,
            "token": token,
            "version": 1,
            "channel_id": channel,
            "channel": where,
            "data": data,
            "locale": "en-US",
            "app_permissions": EVERYTHING,
            **fields,
        }
        if where["type"] == DIRECT:
            event["user"] = self.people[user]
        else:
            event |= {"guild_id": GUILD, "member": self.member(self.people[user])}
        self.interactions[token] = {
            "began": time.monotonic(),
            "answered": 0,
            "flags": 0,
            "said": [],
            "deleted": False,
        }
        self.dispatch("INTERACTION_CREATE", event)
        return event

    def _button(self, button: str, message: Json | None) -> tuple[Json, str]:
        every = [one for channel in self.messages.values() for one in channel.values()]
        shown = [message] if message is not None else sorted(every, key=_newest, reverse=True)
        for one in shown:
            for key in _buttons(one):
                if button in (key["label"], key["custom_id"]):
                    return one, key["custom_id"]
        if message is not None:  # a button that is gone from the message is pressed all the same
            return message, button
        raise AssertionError(f"no button {button!r} is shown")

    def expire_links(self) -> None:
        """The addresses of all files so far are not good any more."""
        for channel in self.messages.values():
            for message in channel.values():
                for one in message["attachments"]:
                    self.expired.add(one["url"].rpartition("/")[2])

    # --- what to look at ---

    def shown(self, channel: str) -> list[Json]:
        """The bot's messages that stand in a channel, in order."""
        every = sorted(self.messages[channel].values(), key=_newest)
        return [one for one in every if one["author"]["id"] == BOT]

    def texts(self, channel: str) -> list[str]:
        return [one["content"] for one in self.shown(channel)]

    @staticmethod
    def buttons(message: Json) -> list[str]:
        """The labels of a message's buttons."""
        return [key["label"] for key in _buttons(message)]

    def answers(self, interaction: Json) -> list[Json]:
        """What the person who pressed was shown: kind, content, private."""
        said: list[Json] = self.interactions[interaction["token"]]["said"]
        return said

    def called(self, method: str = "", path: str = "") -> list[Call]:
        """The calls whose path matches, in order."""
        return [
            call
            for call in self.calls
            if method in ("", call.method) and re.search(path, call.path)
        ]

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait for something to become true; fails when it does not."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the condition did not become true"
            await asyncio.sleep(0.005)

    # --- driven from another process ---

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/control/{what}", self._show)
        app.router.add_post("/control/{what}", self._control)

    async def _control(self, request: web.Request) -> web.StreamResponse:
        given: Json = await request.json() if request.can_read_body else {}
        match request.match_info["what"]:
            case "say":
                done: object = self.user_says(given.pop("content", ""), **given)
            case "send":
                data = given.pop("data", "").encode()
                done = self.user_sends(data, given.pop("name"), **given)
            case "edit":
                message = self.messages[given["channel"]][given["message_id"]]
                done = self.user_edits(message, given["content"])
            case "thread":
                done = self.opens_thread(**given)
            case "dispatch":
                done = self.dispatch(given["kind"], given["data"])
            case "deny":
                done = self.denied.add((given["channel"], given["right"]))
            case (
                "press" | "command" | "fail" | "hang" | "drop" | "heal" | "cut" | "archive"
                | "forget_session" | "deletes_thread" | "renames" | "expire_links"
            ) as order:  # fmt: skip
                done = getattr(self, order)(**given)
            case other:
                return web.json_response({"error": f"no such order: {other}"}, status=404)
        return web.json_response(done)

    async def _show(self, request: web.Request) -> web.StreamResponse:
        match request.match_info["what"]:
            case "messages":
                every = [one for channel in self.messages.values() for one in channel.values()]
                return web.json_response(sorted(every, key=_newest))
            case "calls":
                return web.json_response([call.plain() for call in self.calls])
            case "channels":
                return web.json_response(list(self.channels.values()))
            case "connected":
                return web.json_response(self.connected)
            case other:
                return web.json_response({"error": f"nothing to show: {other}"}, status=404)


def _newest(message: Json) -> int:
    return int(message["id"])


def _buttons(message: Json) -> list[Json]:
    return [key for row in message.get("components", []) for key in row["components"]]


async def _main() -> None:
    parser = argparse.ArgumentParser(description="a Discord for tests")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default=TOKEN)
    given = parser.parse_args()
    fake = FakeDiscord(given.token)
    fake.told = lambda call: print(json.dumps(call.plain()), flush=True)
    await fake.start(given.port)
    where = {"url": fake.url, "gateway_url": fake.gateway_url, "token": fake.token}
    print(json.dumps(where), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(_main())
    except KeyboardInterrupt:
        print(json.dumps({"stopped": True}), flush=True)
