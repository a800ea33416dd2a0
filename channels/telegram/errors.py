"""What the library raises becomes the channel port's errors.

The one question that matters: was the call certainly not carried out? It must not decide what
happens next, and no text that leaves here may hold the token (the library's sometimes does).
"""

from __future__ import annotations

import os
import re

import httpx
from telegram import error

from core.channel import (
    ChatMoved,
    Forbidden,
    FormatRefused,
    MessageGone,
    NotSent,
    RateLimited,
    Refused,
    SendError,
    ThreadGone,
    Uncertain,
)

# The library warns at each refused call unless it may hand out its durations as timedeltas.
os.environ.setdefault("PTB_TIMEDELTA", "true")

# What a call may raise beside the library's own errors: an answer of an unexpected shape.
ODD_ANSWER = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
TOKEN_REFUSED = (
    "Telegram refuses the bot token; save a new one (BotFather, /token) on the settings page,"
    " or set it and restart"
)

_NEVER_LEFT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)
_MESSAGE_GONE = (
    "message to edit not found",
    "message_id_invalid",
    "there is no text in the message to edit",
    "message to react not found",
    "message to delete not found",
    "message not found",
)
_THREAD_GONE = (
    "message thread not found",
    "topic closed",
    "topic_closed",
    "topic_deleted",
    "topic_id_invalid",
)
_FORMAT = ("can't parse", "entity", "entities")
_NO_RIGHT = (
    "chat not found",
    "user not found",
    "peer_id_invalid",
    "not enough rights",
    "have no rights",
    "need administrator rights",
    "chat_admin_required",
    "chat_write_forbidden",
    "_forbidden",
    "chat_restricted",
    "user_is_blocked",
)
_RETRY = re.compile(r"retry after (\d+)")
_SHOWN = 300


class TokenRefused(NotSent):
    """The token is not valid any more. Nothing was done, and what is to be said waits for a new
    one: the chats themselves may be as open as ever."""


class Conflicted(Refused):
    """Another poll with this token, or a webhook, takes the updates."""


def translate(caught: error.TelegramError, token: str) -> SendError:
    """The port's error for the library's."""
    said = scrub(str(caught), token)
    match caught:
        case error.RetryAfter():
            seconds = caught.retry_after
            return RateLimited(seconds if isinstance(seconds, int) else seconds.total_seconds())
        case error.ChatMigrated():
            return ChatMoved(str(caught.new_chat_id))
        case error.InvalidToken():
            if "method not found" in said.lower():  # an older Bot API server
                return Refused(f"this Telegram server does not know the call: {said}")
            return TokenRefused(TOKEN_REFUSED)
        case error.Forbidden():
            return Forbidden(said)
        case error.Conflict():
            return Conflicted(said)
        case error.BadRequest():
            return _bad_request(said)
        case _:
            return _network(caught, said)


def scrub(text: str, token: str) -> str:
    """A text for people and logs: short, and without the token or its secret part."""
    secret = token.partition(":")[2]
    for hidden in (token, secret):
        if hidden:
            text = text.replace(hidden, "…")
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _bad_request(said: str) -> SendError:
    words = said.lower()
    for phrases, kind in (
        (_MESSAGE_GONE, MessageGone),
        (_THREAD_GONE, ThreadGone),
        (_FORMAT, FormatRefused),
        (_NO_RIGHT, Forbidden),
    ):
        if any(phrase in words for phrase in phrases):
            return kind(said)
    return Refused(said)


def _network(caught: error.TelegramError, said: str) -> SendError:
    words = said.lower()
    if words.startswith("too many requests"):  # without the parameters that say how long
        found = _RETRY.search(words)
        return RateLimited(float(found.group(1)) if found else 5.0)
    if words.startswith("request entity too large"):
        return Refused("the file is larger than Telegram takes")
    if isinstance(caught.__cause__, _NEVER_LEFT):
        return NotSent(said)
    return Uncertain(said)
