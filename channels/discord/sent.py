"""Which of our sends arrived, so that an uncertain one can be looked for.

Discord keeps a send's nonce for minutes only and shows it in no history, but tells it in the event
of the new message. What neither says is decided by what else stands there since. It must not know
why somebody asks.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from channels.discord.content import id_at
from channels.discord.errors import UNKNOWN_CHANNEL, ApiError, translate
from channels.discord.rest import Rest
from channels.discord.threads import Threads
from channels.fields import Json, Malformed, maybe, objects, string
from core.channel import Find, Refused, Uncertain

KEPT = 5000
PAGE = 100
NONCE_MOST = 25
SLACK = 60_000  # ms that clocks may differ


@dataclass(slots=True)
class Attempt:
    """A send that was tried: where, with which words, and the message it made."""

    channel: str
    text: str
    message_id: str = ""


def nonce_of(nonce: str) -> str:
    """As Discord takes it: at most 25 characters, and the same for the same."""
    if len(nonce) <= NONCE_MOST:
        return nonce
    return hashlib.sha256(nonce.encode()).hexdigest()[:NONCE_MOST]


class Sent:
    def __init__(self, rest: Rest, threads: Threads) -> None:
        self._rest = rest
        self._threads = threads
        self._attempts: OrderedDict[str, Attempt] = OrderedDict()
        self._ours: OrderedDict[str, str] = OrderedDict()  # message id to its nonce
        self.me = ""

    def sending(self, channel: str, nonce: str, text: str) -> None:
        """A send leaves now."""
        if nonce and nonce not in self._attempts:
            self._attempts[nonce] = Attempt(channel, text)
            if len(self._attempts) > KEPT:
                self._attempts.popitem(last=False)

    def arrived(self, nonce: str, message_id: str) -> None:
        """Discord says that this nonce made this message."""
        if not nonce or not message_id:
            return
        attempt = self._attempts.get(nonce)
        if attempt is not None:
            attempt.message_id = message_id
        self._ours[message_id] = nonce
        if len(self._ours) > KEPT:
            self._ours.popitem(last=False)

    def seen(self, message: Json) -> None:
        """A message of ours, as the gateway tells it."""
        nonce = message.get("nonce")
        if isinstance(nonce, str):
            self._attempts.setdefault(nonce, Attempt("", ""))
            self.arrived(nonce, string(message, "id"))

    async def find(self, action: Find) -> str:
        """The message that this nonce made; empty when it is certainly not there."""
        wanted = nonce_of(action.nonce)
        attempt = self._attempts.get(wanted)
        if attempt is not None and attempt.message_id:
            return attempt.message_id
        channel = self._threads.target_now(action.address).channel
        after = id_at(action.since - SLACK)
        try:
            page = await self._rest.logs_from(channel, PAGE, after=after)
        except ApiError as error:
            if error.code == UNKNOWN_CHANNEL:
                return ""  # nothing can be in a thread that is not there
            raise translate(error, bool(action.address.thread)) from None
        if not isinstance(page, list):
            raise Uncertain("Discord's answer holds no messages")
        try:
            ours = [one for one in reversed(objects({"": page}, "")) if self._is_ours(one)]
            unknown: list[Json] = []
            for one in ours:
                nonce = one.get("nonce") or self._ours.get(string(one, "id"))
                if nonce == wanted:
                    return string(one, "id")
                if not nonce:
                    unknown.append(one)
        except Malformed as error:
            raise Uncertain(f"Discord's answer has an odd shape: {error}") from None
        return self._decide(attempt, unknown, len(page) >= PAGE)

    def _is_ours(self, message: Json) -> bool:
        author = maybe(message, "author")
        return author is not None and string(author, "id") == self.me

    @staticmethod
    def _decide(attempt: Attempt | None, unknown: list[Json], more: bool) -> str:
        """Messages of ours of which nobody knows the nonce: is one of them it?"""
        if attempt is not None:
            for one in unknown:
                if string(one, "content") == attempt.text:
                    return string(one, "id")
            if not more:
                return ""
        if unknown or more:
            # Nor could it be later: whoever asks need not ask again.
            raise Refused("it cannot be told which of the bot's messages this was")
        return ""
