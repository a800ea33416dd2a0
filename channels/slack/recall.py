"""What was said in a thread before somebody called us into it.

It must not know what the words are used for.
"""

from __future__ import annotations

import logging

from channels.slack.events import Me, Reading, message
from channels.slack.fields import (
    Json,
    Malformed,
    maybe,
    maybe_stamp,
    milliseconds,
    objects,
    order,
    string,
)
from channels.slack.names import Names
from channels.slack.text import mentioned_in, read
from channels.slack.web import Web
from core.channel import Recall, Refused, Said
from core.clock import Clock

log = logging.getLogger(__name__)

PAGE, PAGES = 200, 3
REPLIES = "conversations.replies"
PATIENCE = 5.0  # seconds a penalty is waited for: somebody waits for the answer


class Recalling:
    def __init__(self, web: Web, names: Names, clock: Clock) -> None:
        self._web = web
        self._names = names
        self._clock = clock

    async def before(self, action: Recall) -> tuple[Said, ...]:
        """How the thread began, and what was said last before the message. Raises SendError."""
        found = await self._replies(action)
        await self._names.learn([*(str(one.get("user", "")) for one in found), *_named(found)])
        me = Me(self._web.team, self._web.user, "")
        reading = Reading(me, self._names.of, self._clock.now())
        root = [one for one in found if one.get("ts") == action.address.thread]
        rest = [one for one in found if one.get("ts") != action.address.thread]
        said = [_said(one, action.address.chat, reading) for one in rest]
        last = [one for one in said if one is not None][-action.most :]
        first = [_said(one, action.address.chat, reading, ours=True) for one in root]
        return (*(one for one in first if one is not None), *last)

    async def _replies(self, action: Recall) -> list[Json]:
        """Messages of the thread before this one; of very long threads the first ones."""
        found: list[Json] = []
        cursor = ""
        for _ in range(PAGES):
            await self._web.when_free(REPLIES, PATIENCE)
            page = await self._web.call(
                REPLIES,
                channel=action.address.chat,
                ts=action.address.thread,
                latest=action.before or None,
                limit=PAGE,
                cursor=cursor or None,
            )
            try:
                found += [one for one in objects(page, "messages") if maybe_stamp(one, "ts")]
                cursor = string(maybe(page, "response_metadata") or {}, "next_cursor")
            except Malformed as error:
                raise Refused(f"Slack's history has an odd shape: {error}") from None
            if not cursor:
                break
        if not action.before:
            return found
        return [one for one in found if order(str(one["ts"])) < order(action.before)]


def _said(fields: Json, chat: str, reading: Reading, ours: bool = False) -> Said | None:
    try:
        one = message(fields, chat, reading)
    except Malformed as error:
        log.debug("slack: a message of a thread cannot be read: %s", error)
        return None
    if one is None:
        mine = ours and string(fields, "user") == reading.me.user
        words = read(string(fields, "text"), reading.me.user, reading.name_of).text if mine else ""
        return _told("you", words, fields) if words else None
    files = [f"[file {file.name}]" for file in one.files]
    quote = one.quote.text if one.quote is not None else ""
    text = "\n".join(filter(None, (one.text, quote, *files)))
    return _told(one.sender_name, text, fields) if text else None


def _told(author: str, text: str, fields: Json) -> Said:
    ts = str(fields["ts"])
    return Said(author, text, ts, milliseconds(ts))


def _named(found: list[Json]) -> list[str]:
    return [user for one in found for user in mentioned_in(str(one.get("text", "")))]
