"""A Slack workspace on loopback that enforces the real one's rules.

    fake = FakeSlack()                          # bot UBOT / BBOT of workspace T0TEST
    async with fake:                            # or await fake.start(port=0) … await fake.stop()
        ... api_base=fake.url, bot_token=fake.bot_token, app_token=fake.app_token

What people do (the message is returned; ``fake.envelopes`` has the deliveries)
    fake.user_says("hi")                        # Ana (ANA), in her direct messages (ANA_DM)
    fake.user_says("<@UBOT> hi", channel=LAB)   # twins: message and app_mention, two envelopes
    fake.user_says("and?", channel=LAB, thread=ts, user=BEN, subtype="thread_broadcast")
    fake.user_sends(b"…", "a.txt", "text/plain", text="look")
    fake.user_edits(message, "new text"); fake.user_deletes(message); fake.unfurl(message)
    fake.press("Allow"); fake.slash("/laneway", "status"); fake.opens_assistant()
    fake.event({…}, event_id="Ev1")             # any event; fake.again(envelope): once more

What to look at
    fake.texts(channel, thread)                 # what stands there now from the bot, in order
    fake.shown(channel, thread)                 # the same as whole messages
    fake.buttons(message)                       # its labels
    fake.reacted(message)                       # the bot's reactions
    fake.called("chat.postMessage")             # calls with .fields .channel .thread .at .status
    fake.ephemerals, fake.status, fake.titles, fake.prompts, fake.files
    envelope.acked_after, .payload_back, .lost, .attempt

What goes wrong
    fake.fail("chat.postMessage", "ratelimited", retry_after=7)
    fake.fail("*", "internal_error", 500, times=3)      # times=0: until fake.heal()
    fake.hang("chat.postMessage", after=True); fake.drop("chat.update"); fake.garble("auth.test")
    fake.refuse_sockets = 2; fake.cut(); await fake.disconnect("warning"); fake.revoke()
    fake.others_connected = 1; fake.tiers = Tiers(); fake.ack_within, fake.retries
    await fake.stop(); await fake.start(fake.port)      # an outage: state and port stay

With ``fake.request_url`` set everything is posted there, signed with ``fake.signing_secret``;
``envelope.statuses`` are the answers; ``slack_posting.challenge(fake)`` asks whose the address is.

In a process of its own: ``python -m tests.fakes.slack --port P`` prints one JSON line a call and is
driven by ``POST /control/{say,send,edit,press,slash,event,fail,hang,drop,heal,cut,revoke}`` with
the same names as keywords; ``GET /control/{messages,calls,envelopes}`` show.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.fakes.slack_faults import Call as Call
from tests.fakes.slack_faults import Tiers as Tiers
from tests.fakes.slack_rules import Json, mentions, shown_text
from tests.fakes.slack_wire import Envelope as Envelope
from tests.fakes.slack_wire import Server
from tests.fakes.slack_world import APP, BOT_ID, BOT_USER, TEAM

BOT_TOKEN = "xoxb-800000000001-TESTtokenTESTtokenTESTtok1"
APP_TOKEN = "xapp-1-A0APP-800000000002-TESTtokenTESTtokenTESTtok2"
ANA, BEN, MAL = "U0ANA", "U0BEN", "U0MAL"
ANA_DM, BEN_DM, MAL_DM = "D0ANA", "D0BEN", "D0MAL"
LAB, QUIET = "C0LAB", "C0QUIET"


class FakeSlack(Server):
    """The server with its control side; the guide is at the top of this file."""

    def __init__(self, bot_token: str = BOT_TOKEN, app_token: str = APP_TOKEN) -> None:
        super().__init__(bot_token, app_token)
        for ident, name, direct in ((ANA, "Ana", ANA_DM), (BEN, "Ben", BEN_DM), (MAL, "M", MAL_DM)):
            self.person(ident, name)
            self.channel(direct, user=ident)
        self.person(BOT_USER, "Laneway", is_bot=True)
        self.channel(LAB, "lab")
        self.channel(QUIET, "quiet", member=False)

    # --- what people do ---

    def user_says(
        self,
        text: str,
        *,
        user: str = ANA,
        channel: str = ANA_DM,
        thread: str = "",
        delivered: bool = True,
        **fields: object,
    ) -> Json:
        """A person writes. A mention in a channel arrives twice, as at the real Slack."""
        message: Json = {
            "type": "message",
            "user": user,
            "text": text,
            "ts": self.ts(),
            "team": TEAM,
            "client_msg_id": str(uuid.uuid4()),
            **({"thread_ts": thread} if thread else {}),
            **fields,
        }
        self.keep(channel, message)
        if delivered:
            for event in self.events_of(message, channel):
                self.event(event)
        return message

    def events_of(self, message: Json, channel: str) -> list[Json]:
        """What Slack tells of a message: the message, and the mention where there is one."""
        kind = self.channel(channel)["type"]
        said = {**message, "channel": channel, "event_ts": message["ts"], "channel_type": kind}
        events = [said]
        if kind != "im" and mentions(message["text"], BOT_USER):
            twin = {k: v for k, v in said.items() if k not in ("channel_type", "subtype")}
            events.append({**twin, "type": "app_mention"})
        return events

    def event(self, event: Json, event_id: str = "", envelope_id: str = "") -> Envelope:
        """Deliver any event."""
        payload = {
            "token": "x",
            "team_id": TEAM,
            "api_app_id": APP,
            "type": "event_callback",
            "event_id": event_id or f"Ev{uuid.uuid4().hex[:9].upper()}",
            "event_time": int(time.time()),
            "event": event,
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
        }
        return self.push("events_api", payload, envelope_id)

    def user_sends(
        self, data: bytes, name: str, mime: str = "text/plain", *, text: str = "", **fields: Any
    ) -> Json:
        """A person sends a file with a text or none."""
        extra = fields.pop("file", {})
        carried = {**self.file(data, name, mime, self.base), **extra}
        return self.user_says(text, subtype="file_share", files=[carried], **fields)

    def user_edits(self, message: Json, text: str) -> Envelope:
        """A person edits a message; a mention in it is announced again."""
        channel, before = self.where(message), dict(message)
        message |= {"text": text, "edited": {"user": message["user"], "ts": self.ts()}}
        envelope = self._changed(channel, message, before)
        for twin in self.events_of(message, channel)[1:]:
            self.event(twin)
        return envelope

    def unfurl(self, message: Json) -> Envelope:
        """Slack adds the preview of a link: a change, but nobody's edit."""
        channel, before = self.where(message), dict(message)
        message["attachments"] = [{"from_url": "https://example.org", "title": "Example"}]
        return self._changed(channel, message, before)

    def _changed(self, channel: str, message: Json, before: Json) -> Envelope:
        return self.event(
            {
                "type": "message",
                "subtype": "message_changed",
                "hidden": True,
                "channel": channel,
                "channel_type": self.channel(channel)["type"],
                "ts": self.ts(),
                "message": dict(message),
                "previous_message": before,
            }
        )

    def user_deletes(self, message: Json) -> Envelope:
        channel = self.where(message)
        del self.messages[channel, message["ts"]]
        return self.event(
            {
                "type": "message",
                "subtype": "message_deleted",
                "channel": channel,
                "channel_type": self.channel(channel)["type"],
                "ts": self.ts(),
                "deleted_ts": message["ts"],
                "previous_message": message,
            }
        )

    def press(self, button: str, *, user: str = ANA, message: Json | None = None) -> Envelope:
        """A person presses a button, named by its label or value."""
        found, element = self._button(button, message)
        channel = self.where(found)
        payload = {
            "type": "block_actions",
            "team": {"id": TEAM},
            "api_app_id": APP,
            "user": {"id": user, "username": user.lower(), "name": user.lower()},
            "channel": {"id": channel},
            "container": {"type": "message", "message_ts": found["ts"], "channel_id": channel},
            "message": found,
            "trigger_id": f"{time.time_ns()}.1",
            "response_url": self.response_url(self.base),
            "actions": [{**element, "type": "button", "block_id": "b", "action_ts": self.ts()}],
        }
        return self.push("interactive", payload)

    def _button(self, button: str, message: Json | None) -> tuple[Json, Json]:
        shown = [message] if message is not None else list(reversed(self.messages.values()))
        for one in shown:
            for element in _elements(one):
                if button in (element["text"]["text"], element["value"]):
                    return one, element
        if message is not None:  # a button that is gone from the message is pressed all the same
            return message, {"action_id": button, "value": button}
        raise AssertionError(f"no button {button!r} is shown")

    def slash(
        self, command: str = "/laneway", text: str = "", *, user: str = ANA, channel: str = ANA_DM
    ) -> Envelope:
        """A person uses a slash command; it knows no thread."""
        payload = {
            "token": "x",
            "team_id": TEAM,
            "team_domain": "test",
            "channel_id": channel,
            "channel_name": "directmessage" if channel[0] == "D" else "lab",
            "user_id": user,
            "user_name": user.lower(),
            "command": command,
            "text": text,
            "api_app_id": APP,
            "trigger_id": f"{time.time_ns()}.2",
            "response_url": self.response_url(self.base),
        }
        return self.push("slash_commands", payload)

    def opens_assistant(self, user: str = ANA, channel: str = ANA_DM) -> str:
        """A person opens a new assistant thread: the id of its root."""
        root = {
            "type": "message",
            "subtype": "assistant_app_thread",
            "user": BOT_USER,
            "bot_id": BOT_ID,
            "text": "New Assistant Thread",
            "ts": self.ts(),
        }
        self.keep(channel, root)
        thread = {"user_id": user, "context": {}, "channel_id": channel, "thread_ts": root["ts"]}
        self.event(
            {"type": "assistant_thread_started", "assistant_thread": thread, "event_ts": self.ts()}
        )
        return str(root["ts"])

    # --- what to look at ---

    def where(self, message: Json) -> str:
        """The channel of a message."""
        return next(c for (c, ts), kept in self.messages.items() if kept["ts"] == message["ts"])

    def shown(self, channel: str, thread: str | None = None) -> list[Json]:
        """The bot's messages that stand in a channel; ``thread=""``: in its main timeline."""
        return [
            m
            for m in self.in_channel(channel)
            if m.get("user") == BOT_USER
            and m.get("subtype") != "assistant_app_thread"
            and (thread is None or _belongs(m, thread))
        ]

    def texts(self, channel: str, thread: str | None = None) -> list[str]:
        """What people read of it."""
        return [shown_text(one) for one in self.shown(channel, thread)]

    @staticmethod
    def buttons(message: Json) -> list[str]:
        return [element["text"]["text"] for element in _elements(message)]

    def reacted(self, message: Json) -> set[str]:
        """The bot's reactions to a message."""
        found = self.reactions.get((self.where(message), message["ts"]), {})
        return {name for name, users in found.items() if BOT_USER in users}

    def called(self, method: str = "", channel: str = "") -> list[Call]:
        """The calls of a method, in order; of one channel, if it is named."""
        return [
            call
            for call in self.calls
            if method in ("", call.method) and channel in ("", call.channel)
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
        done: object = None
        match request.match_info["what"]:
            case "say":
                done = self.user_says(given.pop("text"), **given)
            case "send":
                done = self.user_sends(given.pop("data").encode(), given.pop("name"), **given)
            case "edit":
                key = (given.pop("channel"), given.pop("ts"))
                self.user_edits(self.messages[key], **given)
            case "press":
                self.press(**given)
            case "slash":
                self.slash(**given)
            case "event":
                self.event(**given)
            case "fail" | "hang" | "drop" | "heal" | "cut" | "revoke" as order:
                getattr(self, order)(**given)
            case other:
                return web.json_response({"error": f"no such order: {other}"}, status=404)
        return web.json_response(done)

    async def _show(self, request: web.Request) -> web.StreamResponse:
        match request.match_info["what"]:
            case "messages":
                return web.json_response(
                    [{**m, "channel": c} for (c, _), m in self.messages.items()]
                )
            case "calls":
                return web.json_response([call.plain() for call in self.calls])
            case "envelopes":
                return web.json_response(
                    [
                        {"id": e.id, "type": e.type, "acked": e.acked, "attempt": e.attempt}
                        for e in self.envelopes
                    ]
                )
            case other:
                return web.json_response({"error": f"nothing to show: {other}"}, status=404)


def _elements(message: Json) -> list[Json]:
    blocks = message.get("blocks") or []
    return [e for block in blocks if block["type"] == "actions" for e in block["elements"]]


def _belongs(message: Json, thread: str) -> bool:
    root = message.get("thread_ts", "")
    return bool(root == thread and message["ts"] != thread)


async def _main() -> None:
    parser = argparse.ArgumentParser(description="a Slack workspace for tests")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    fake = FakeSlack()
    fake.told = lambda call: print(json.dumps(call.plain()), flush=True)
    await fake.start(given.port)
    print(
        json.dumps({"url": fake.url, "bot_token": fake.bot_token, "app_token": fake.app_token}),
        flush=True,
    )
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(_main())
    except KeyboardInterrupt:
        print(json.dumps({"stopped": True}), flush=True)
