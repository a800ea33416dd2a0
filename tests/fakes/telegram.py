"""A Telegram Bot API server on loopback that enforces the real API's rules.

    fake = FakeTelegram()                       # bot @gw_bot, id 800000001
    async with fake:                            # or await fake.start(port=0) … await fake.stop()
        ... api_base=fake.url, token=fake.token

What people do (all return the message or update that Telegram would make of it)
    fake.user_says("hi")                        # Ana (ANA), in her private chat
    fake.user_says("hi", user=BEN, chat=GROUP)  # commands and @mentions are marked by themselves
    fake.user_says("hi", chat=FORUM, thread=36) # a topic; without thread: General
    fake.user_says("and?", reply_to=message)    # further fields of a message as keywords
    fake.user_sends(b"…", "a.txt", caption="look", kind="document")   # photo, voice, …
    fake.user_sends_album(["before", "", "after"])
    fake.user_edits(message, "new text")
    fake.press("Allow")                         # the newest button with that label, or its data
    fake.migrate(GROUP, NEW_GROUP)              # the group becomes a supergroup
    fake.push_raw({"update_id": 5, …})          # any update, malformed ones too

What to look at
    fake.texts(chat, thread)                    # what stands there now from the bot, in order
    fake.shown(chat, thread)                    # the same as whole messages
    fake.buttons(message)                       # its labels
    fake.called("sendMessage", chat=…)          # calls with .fields .thread .at .status
    await fake.until(lambda: fake.texts(ANA) == ["done"])

What goes wrong
    fake.fail("sendMessage", 429, "Too Many Requests: retry after 7", retry_after=7, chat=ANA)
    fake.fail("getUpdates", 500, times=3)       # times=0: until fake.heal()
    fake.hang("sendMessage", after=True)        # carried out, but never answered
    fake.drop("editMessageText"); fake.garble("getUpdates")
    fake.blocked.add(chat); fake.flood = Flood(); fake.revoke(); fake.close_topic(chat, thread)
    await fake.stop(); await fake.start(fake.port)   # an outage: state and port stay

With setWebhook updates are posted instead: ``fake.webhook``, ``fake.webhook_secret``; how each post
was answered stands in ``fake.posting.posts`` (.update .status .again_after).

In a process of its own: ``python -m tests.fakes.telegram --port P`` prints one JSON line a call and
is driven by ``POST /control/{say,send,album,edit,press,push,fail,hang,drop,garble,heal,migrate,
topic}`` with the same names as keywords; ``GET /control/messages`` and ``/control/calls`` show.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from tests.fakes.telegram_faults import Call as Call
from tests.fakes.telegram_faults import Flood as Flood
from tests.fakes.telegram_rules import Json, written_entities
from tests.fakes.telegram_wire import Server
from tests.fakes.telegram_world import GENERAL

TOKEN = "800000001:TESTtokenTESTtokenTESTtokenTESTtok1"
BOT, ANA, BEN, MAL = 800_000_001, 700_000_001, 700_000_002, 700_000_009
FORUM, GROUP, SUPERGROUP = -1_001_900_000_001, -900_000_077, -1_001_900_000_002


class FakeTelegram(Server):
    """The server with its control side; the guide is at the top of this file."""

    def __init__(self, token: str = TOKEN, username: str = "gw_bot") -> None:
        super().__init__(token, username)
        for number, name, user in ((ANA, "Ana", "ana_t"), (BEN, "Ben", "ben_t"), (MAL, "Mal", "")):
            self.people[number] = {"id": number, "is_bot": False, "first_name": name}
            if user:
                self.people[number]["username"] = user
        self.chat({"id": FORUM, "type": "supergroup", "title": "Lab", "is_forum": True})
        self.chat({"id": GROUP, "type": "group", "title": "Old group"})
        self.chat({"id": SUPERGROUP, "type": "supergroup", "title": "Talk"})

    # --- what people do ---

    def user_says(
        self,
        text: str | None = None,
        *,
        user: int | Json = ANA,
        chat: int | Json | None = None,
        thread: int | None = None,
        reply_to: Json | None = None,
        **fields: object,
    ) -> Json:
        """A person writes; in the private chat when no other is named."""
        author = self.person(user)
        where = self.chat(author["id"] if chat is None else chat)["id"]
        if thread and thread != GENERAL and (where, thread) not in self.topics:
            self.topic(where, f"Topic {thread}", thread)
        content: Json = self.placed(where, thread)
        if text is not None:
            content["text"] = text
            if entities := written_entities(text):
                content["entities"] = entities
        if reply_to is not None:
            content["reply_to_message"] = {
                key: value for key, value in reply_to.items() if key != "reply_to_message"
            }
        message = self.message(where, author, **{**content, **fields})
        self.keep(message)  # also under a number that the caller gave
        self.update("message", message)
        return message

    def user_sends(
        self, data: bytes, name: str = "", *, kind: str = "document", **fields: Any
    ) -> Json:
        """A person sends a file; ``size`` claims another one, ``mime`` names its type."""
        mime, claimed = str(fields.pop("mime", "")), fields.pop("size", None)
        caption = fields.pop("caption", "")
        carried = self.file(data, name, mime, claimed)
        if kind in ("voice", "audio", "video", "video_note"):
            carried["duration"] = 8
        content: Json = {kind: carried}
        if kind == "photo":
            small = {**self.file(data[:1], ""), "width": 9, "height": 9}
            content = {kind: [small, {**carried, "width": 90, "height": 90}]}
        if caption:
            content |= {"caption": caption, "caption_entities": written_entities(caption)}
        return self.user_says(None, **{**fields, **content})

    def user_sends_album(self, captions: Sequence[str], **fields: Any) -> list[Json]:
        """Photos sent as one, with a caption or none each."""
        group = str(time.monotonic_ns())
        return [
            self.user_sends(
                b"\x89PNG picture", kind="photo", caption=one, media_group_id=group, **fields
            )
            for one in captions
        ]

    def user_edits(self, message: Json, text: str, **fields: object) -> Json:
        """A person edits a message; the same text is an edit as well."""
        message.update(text=text, edit_date=int(time.time()), entities=written_entities(text))
        message.update(fields)
        return self.update("edited_message", dict(message))

    def press(
        self,
        button: str,
        *,
        user: int | Json = ANA,
        chat: int | None = None,
        message: Json | None = None,
        reachable: bool = True,
    ) -> str:
        """A person presses a button, named by label or data; the id of the press."""
        found, data = self._button(button, chat, message)
        query = self.query()
        if not reachable:
            found = {"chat": found["chat"], "message_id": found["message_id"], "date": 0}
        content = {"id": query, "from": self.person(user), "chat_instance": "1", "data": data}
        self.update("callback_query", {**content, "message": found})
        return query

    def _button(self, button: str, chat: int | None, message: Json | None) -> tuple[Json, str]:
        shown = [message] if message is not None else list(reversed(self.messages.values()))
        for one in shown:
            if chat is not None and one["chat"]["id"] != chat:
                continue
            for row in one.get("reply_markup", {}).get("inline_keyboard", []):
                for key in row:
                    if button in (key["text"], key["callback_data"]):
                        return one, key["callback_data"]
        if message is not None:  # a button that is gone from the message is pressed all the same
            return message, button
        raise AssertionError(f"no button {button!r} is shown")

    def migrate(self, old: int, new: int, announce: bool = True) -> None:
        """A group becomes a supergroup: its old id is refused from now on."""
        self.migrated[old] = new
        title = self.chat(old).get("title", "")
        moved = self.chat({"id": new, "type": "supergroup", "title": title})
        if announce:
            there = self.message(old, None, migrate_to_chat_id=new, sender_chat=self.chat(old))
            here = self.message(new, None, migrate_from_chat_id=old, sender_chat=moved)
            self.update("message", there)
            self.update("message", here)

    def push_raw(self, update: object) -> None:
        """Any update as it is; its message becomes one of the chat, its press can be answered."""
        if isinstance(update, dict):
            message, query = update.get("message"), update.get("callback_query")
            if isinstance(message, dict) and isinstance(message.get("chat"), dict):
                chat, number = message["chat"].get("id"), message.get("message_id")
                if isinstance(chat, int) and isinstance(number, int):
                    self.chats.setdefault(chat, message["chat"])
                    self.messages[chat, number] = message
                    if message.get("is_topic_message"):
                        thread = message.get("message_thread_id")
                        self.topics.setdefault((chat, thread), f"Topic {thread}")
            if isinstance(query, dict) and isinstance(query.get("id"), str):
                self.queries.setdefault(query["id"], False)
        self.push(update)

    # --- what to look at ---

    def shown(self, chat: int, thread: int | None = None) -> list[Json]:
        """The bot's messages that stand in a chat (of a topic, if one is named), in order."""
        return [
            message
            for (where, _), message in sorted(self.messages.items())
            if where == chat
            and message.get("from", {}).get("id") == self.me["id"]
            and (thread is None or (message.get("message_thread_id") or GENERAL) == thread)
        ]

    def texts(self, chat: int, thread: int | None = None) -> list[str]:
        """The texts, or captions, of what is shown."""
        return [one.get("text", one.get("caption", "")) for one in self.shown(chat, thread)]

    @staticmethod
    def buttons(message: Json) -> list[str]:
        """The labels of a message's buttons."""
        rows = message.get("reply_markup", {}).get("inline_keyboard", [])
        return [key["text"] for row in rows for key in row]

    def called(self, method: str = "", chat: int | None = None) -> list[Call]:
        """The calls of a method, in order; of one chat, if it is named."""
        return [
            call
            for call in self.calls
            if method in ("", call.method) and (chat is None or call.chat == chat)
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
                done: object = self.user_says(given.pop("text", None), **given)
            case "send":
                data = given.pop("data", "").encode()
                done = self.user_sends(data, given.pop("name", ""), **given)
            case "album":
                done = self.user_sends_album(**given)
            case "edit":
                key = (int(given.pop("chat")), int(given.pop("message_id")))
                done = self.user_edits(self.messages[key], **given)
            case "press":
                done = self.press(**given)
            case "push":
                done = self.push_raw(given)
            case "topic":
                done = self.topic(**given)
            case "fail" | "hang" | "drop" | "heal" | "migrate" | "revoke" as order:
                done = getattr(self, order)(**given)
            case "garble":
                done = self.garble(given["method"], times=given.get("times", 1))
            case other:
                return web.json_response({"error": f"no such order: {other}"}, status=404)
        return web.json_response(done)

    async def _show(self, request: web.Request) -> web.StreamResponse:
        match request.match_info["what"]:
            case "messages":
                return web.json_response([one for _, one in sorted(self.messages.items())])
            case "calls":
                return web.json_response([call.plain() for call in self.calls])
            case "waiting":
                return web.json_response(len(self.updates))
            case other:
                return web.json_response({"error": f"nothing to show: {other}"}, status=404)


async def _main() -> None:
    parser = argparse.ArgumentParser(description="a Telegram Bot API server for tests")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default=TOKEN)
    given = parser.parse_args()
    fake = FakeTelegram(given.token)
    fake.told = lambda call: print(json.dumps(call.plain()), flush=True)
    await fake.start(given.port)
    print(json.dumps({"url": fake.url, "token": fake.token}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(_main())
    except KeyboardInterrupt:
        print(json.dumps({"stopped": True}), flush=True)
