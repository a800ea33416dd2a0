"""What Discord answers becomes the channel port's errors.

The one question that matters: was the call certainly not carried out? It must not decide what
happens next, and no text that leaves here may hold the token or an address that holds one.
"""

from __future__ import annotations

from core.channel import (
    Connection,
    Forbidden,
    MessageGone,
    NotSent,
    RateLimited,
    Refused,
    SendError,
    ThreadGone,
    Uncertain,
)

TOKEN_REFUSED = (
    "Discord refuses the bot token; save a new one (developer portal, Bot, Reset Token) on the"
    " settings page, or set it and restart"
)
INTENT_MISSING = (
    "Discord refuses the message content intent; switch it on (developer portal, Bot,"
    " Message Content Intent), then restart"
)
UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, UNKNOWN_EMOJI = 10003, 10008, 10014
UNKNOWN_WEBHOOK, UNKNOWN_INTERACTION, ALREADY_ANSWERED = 10015, 10062, 40060
THREAD_EXISTS, THREADS_AT_MOST, ARCHIVED = 160004, 160006, 50083
NO_ACCESS, NO_RIGHT, WRONG_KIND, CLOSED_DIRECT = 50001, 50013, 50024, 50007
_TOO_LARGE = {40005}
_GONE_CHANNEL = {UNKNOWN_CHANNEL, 10004}
_OLD_EDITS = 30046  # too many edits of an old message: a rate, told without its time
_OLD_EDITS_PAUSE = 60.0
_SHOWN = 300

# Close codes of the gateway after which no retry helps.
FATAL_CLOSES = {
    4004: TOKEN_REFUSED,
    4010: "Discord refuses the connection as a wrong shard; update Laneway and restart",
    4011: "the bot is in too many servers for one connection; remove it from some and restart",
    4012: "Discord does not take this version of its interface any more; update Laneway",
    4013: "Discord does not know an intent that is asked for; update Laneway",
    4014: INTENT_MISSING,
}
_WORDS = {
    CLOSED_DIRECT: "this person does not take direct messages from the bot",
    NO_ACCESS: "the bot cannot see this channel; give it View Channel there",
    NO_RIGHT: "the bot lacks a right in this channel; `laneway doctor` says which",
}


class TokenRefused(NotSent):
    """The token is not valid any more. Nothing was done, and what is to be said waits."""


class ApiError(Exception):
    """Discord's refusal as it came: status, its own code, its words."""

    def __init__(self, status: int, code: int, said: str) -> None:
        super().__init__(f"{status} {code} {said}")
        self.status = status
        self.code = code
        self.said = said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"


def api_error(status: int, body: object) -> ApiError:
    """An answer of 400 and more, whatever it holds."""
    if not isinstance(body, dict):
        return ApiError(status, 0, f"Discord answered {status}")
    code, said = body.get("code"), body.get("message")
    words = said if isinstance(said, str) else f"Discord answered {status}"
    if details := _details(body.get("errors")):
        words = f"{words}: {details}"
    return ApiError(status, code if isinstance(code, int) else 0, words)


def rate_limited(body: object, retry_after: str | None) -> RateLimited:
    """A 429. Without Discord's own body it is the guard before it, and concerns everything."""
    seconds: object = None
    everywhere = True
    if isinstance(body, dict):
        seconds, everywhere = body.get("retry_after"), body.get("global") is True
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        try:
            seconds = float(retry_after or "")
        except ValueError:
            seconds = 5.0 if isinstance(body, dict) else 60.0
    return RateLimited(max(0.0, float(seconds)), everywhere)


def translate(caught: ApiError, thread: bool = False) -> SendError:
    """The port's error for Discord's; ``thread``: the call went into a thread."""
    said = _WORDS.get(caught.code) or caught.said
    if caught.status == 401:
        return TokenRefused(TOKEN_REFUSED)
    if caught.status >= 500:
        return Uncertain(said)
    if caught.code == _OLD_EDITS:
        return RateLimited(_OLD_EDITS_PAUSE)
    if caught.code == UNKNOWN_MESSAGE:
        return MessageGone(said)
    if caught.code in _GONE_CHANNEL:
        return ThreadGone("the thread was deleted") if thread else Forbidden(GONE)
    if caught.code == ARCHIVED:
        return ThreadGone("the thread is locked; a moderator can unlock it")
    if caught.status == 403:
        return Forbidden(said)
    if caught.status == 413 or caught.code in _TOO_LARGE:
        return Refused("the file is larger than Discord takes here")
    return Refused(said)


GONE = "the channel was deleted, or the bot cannot see it any more"


def fatal(code: int) -> Connection | None:
    """What to say about a close code that no retry heals."""
    reason = FATAL_CLOSES.get(code)
    return Connection(reason, fatal=True) if reason else None


def _details(errors: object) -> str:
    """The innermost words of a refused form."""
    if isinstance(errors, dict):
        found = errors.get("_errors")
        if isinstance(found, list):
            said = [one.get("message") for one in found if isinstance(one, dict)]
            return "; ".join(one for one in said if isinstance(one, str))
        inner = [f"{key}: {text}" for key, one in errors.items() if (text := _details(one))]
        return "; ".join(inner)
    return ""
