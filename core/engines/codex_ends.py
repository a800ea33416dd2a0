"""How a turn of Codex ended, in words for the thread. Pure."""

from __future__ import annotations

import re

from core.engines.base import Failure, FailureKind
from core.engines.limits import reached
from core.engines.plain import Json, as_sent, mapping, whole_number, words

SIGN_IN = (
    "Codex is not signed in. Run `codex login` once in a terminal on the gateway's machine, or "
    "with a key `printenv OPENAI_API_KEY | codex login --with-api-key`."
)
TOO_MUCH = (
    "The conversation has become too long for the model. Make it shorter with /compact, or begin "
    "a fresh one with /new."
)
BUSY = (
    "Codex's service has a problem just now{}. Nothing of the conversation is lost: say “go on” in "
    "a while."
)
TOO_FAST = "Codex's service takes no more requests just now: too many were made. Say “go on” later."
SPENT = "The agent stopped: it reached the spending limit it was started with."
NO_CREDIT = "The account that Codex uses has no credit left. Add some, then say “go on”."
SANDBOX = (
    "Codex could not set up its sandbox, so it ran nothing. Look at what it needs with `laneway "
    "doctor`."
)
UNREACHED = (
    "Codex could not reach its service. Nothing of the conversation is lost: say “go on” in a "
    "while. If it stays so, look at the network of the gateway's machine."
)
BROKE_OFF = "The agent broke the turn off by itself."
REQUEST, BROKEN = Failure(FailureKind.REQUEST), Failure(FailureKind.BROKEN)
TRIED = Failure(FailureKind.BUSY, tried=True)  # it tries several times by itself
CONNECTIONS = frozenset(
    {
        *("httpConnectionFailed", "responseStreamConnectionFailed"),
        *("responseStreamDisconnected", "responseTooManyFailedAttempts"),
    }
)
_STATUS = re.compile(r"status (\d{3})")


def why(error: Json, limits: Json, model: str, now: int) -> tuple[str, Failure | None]:
    """Why it failed, and the next step; "" where only its own words can tell.

    ``limits`` is what was last told of the account's limits, ``now`` is in milliseconds.
    """
    kind, status = _kind(error)
    text = said(error).lower()
    if kind == "unauthorized" or status in (401, 403):
        return SIGN_IN, BROKEN
    if kind == "usageLimitExceeded" or "usage limit" in text:
        return _limited(error, limits, now)
    if "quota" in text or "billing" in text or "credits" in text:
        return NO_CREDIT, BROKEN
    if kind == "contextWindowExceeded":
        return TOO_MUCH, REQUEST
    if kind == "sessionBudgetExceeded":
        return SPENT, REQUEST
    if kind == "sandboxError":
        return SANDBOX, BROKEN
    if kind == "rateLimitExceeded" or status == 429:
        return TOO_FAST, TRIED
    if model and (status == 404 or ("model" in text and ("not" in text or "unsupported" in text))):
        unknown = f"Codex cannot use the model “{model}”. "
        return f"{unknown}Set another with /model, or /model default.", REQUEST
    if kind in ("serverOverloaded", "internalServerError") or (status or 0) >= 500:
        return BUSY.format(f" ({status})" if status else ""), TRIED
    if kind in CONNECTIONS and not status:
        return UNREACHED, TRIED
    return "", None


def said(error: Json) -> str:
    """Its own words about the failure; a service's JSON inside of them is read for its message."""
    text = words(error.get("message")).strip()
    found = re.search(r'"message":\s*"((?:[^"\\]|\\.){1,2000})"', text)
    return found[1].replace('\\"', '"') if found else text


def _kind(error: Json) -> tuple[str, int | None]:
    """What kind of failure it calls itself, and the service's HTTP status."""
    info = error.get("codexErrorInfo")
    found = _STATUS.search(as_sent(error.get("message")))
    status = int(found[1]) if found else None
    if isinstance(info, dict) and info:
        kind = next(iter(info))
        return as_sent(kind), whole_number(mapping(info[kind]).get("httpStatusCode")) or status
    return as_sent(info), status


def _limited(error: Json, limits: Json, now: int) -> tuple[str, Failure]:
    """A limit of the account, and until when: the window that is used up, else its own words."""
    windows = [mapping(limits.get(key)) for key in ("primary", "secondary", "individualLimit")]
    ends = [
        whole_number(window.get("resetsAt"))
        for window in windows
        if (whole_number(window.get("usedPercent")) or 0) >= 100
        or window.get("remainingPercent") == 0
    ]
    known = [end for end in ends if end is not None]
    own = re.search(r"try again (?:at|in) ([^.\n]{2,60})", words(error.get("message")), re.I)
    told = f" (it says: try again {own[0][10:].strip()})" if own else ""
    at = max(known, default=None)
    until = at * 1000 if at is not None and at * 1000 > now else None
    said = reached("The account that Codex uses", at, now, told)
    return said, Failure(FailureKind.LIMIT, until)
