"""How a turn of Claude Code ended, in words for the thread.

Pure. A failure of the service calls itself a success, and an interruption an error; so this looks
at what a result says of itself, never at what kind it calls itself.
"""

from __future__ import annotations

import re

from core.engines.base import Failure, FailureKind
from core.engines.limits import reached
from core.engines.plain import Json, as_sent, items, whole_number, words

SIGN_IN = (
    "Claude Code is not signed in. Start `claude` once in a terminal on the gateway's machine and "
    "sign in with /login, or hand it a key: ANTHROPIC_API_KEY in LANEWAY_ENGINE_ENV."
)
NO_CREDIT = "The Claude account has no credit left. Add some, then send your message again."
TOO_MUCH = (
    "The conversation has become too long for the model. Make it shorter with /compact, or begin "
    "a fresh one with /new."
)
BUSY = (
    "Claude's service has a problem just now ({}). Nothing of the conversation is lost: say “go "
    "on” in a while."
)
STEPS = "The agent stopped: it reached its limit of steps for one turn. Say “go on” to continue."
SPENT = "The agent stopped: it reached the spending limit it was started with."
BROKE_OFF = "The agent broke the turn off by itself."
REQUEST, BROKEN = Failure(FailureKind.REQUEST), Failure(FailureKind.BROKEN)
TRIED = Failure(FailureKind.BUSY, tried=True)
_RESET = re.compile(r"limit reached\|(\d{9,11})")
_LIMITED = re.compile(r"(usage|session|weekly|\d-hour|opus|sonnet) limit|hit your limit", re.I)


def failed(result: Json) -> bool:
    """Whether a result is a failure or an interruption."""
    return result.get("is_error") is True or as_sent(result.get("subtype")).startswith("error")


def aborted(result: Json) -> bool:
    return as_sent(result.get("terminal_reason")).startswith("aborted")


def why(
    result: Json, limits: Json, model: str, known: tuple[str, ...], now: int
) -> tuple[str, Failure | None]:
    """Why it failed, and the next step; "" where only its own words can tell.

    ``limits`` is what was last told of the account's limits, ``now`` is in milliseconds.
    """
    text, status = said(result), whole_number(result.get("api_error_status"))
    reason, kind = as_sent(result.get("terminal_reason")), as_sent(result.get("subtype"))
    low = text.lower()
    if "max_turns" in (kind + reason):
        return STEPS, REQUEST
    if "budget" in (kind + reason):
        return SPENT, Failure(FailureKind.SPENT)
    if status in (401, 403) or "/login" in low or "invalid api key" in low or "oauth" in low:
        return SIGN_IN, BROKEN
    if "credit balance" in low:
        return NO_CREDIT, BROKEN
    if "prompt is too long" in low or "context limit" in low:
        return TOO_MUCH, REQUEST
    if _LIMITED.search(text) or limits.get("status") == "rejected":
        return _limited(text, limits, now)
    if model and (status == 404 or "selected model" in low):
        offered = f"; it offers: {', '.join(known)}" if known else ""
        unknown = f"Claude does not know the model “{model}”{offered}. "
        return f"{unknown}Set another with /model, or /model default.", REQUEST
    if status is not None and (status == 429 or status >= 500):
        return BUSY.format(status), TRIED  # it has tried several times by itself
    if status == 400 or "usage policy" in low:  # it would be refused again and again
        return "", Failure(FailureKind.SESSION)
    if aborted(result):
        return BROKE_OFF, None
    return "", None


def said(result: Json) -> str:
    """Its own words about the failure."""
    text = words(result.get("result")).strip()
    if text:
        return text
    errors = result.get("errors")
    told = [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
    told += [as_sent(error.get("message")) for error in items(errors)]
    return words("; ".join(error for error in told[:5] if not error.startswith("[ede_")))


def _limited(text: str, limits: Json, now: int) -> tuple[str, Failure]:
    """A limit of the account, and until when, where that is told (seconds since 1970)."""
    found = _RESET.search(text)
    at = int(found[1]) if found else whole_number(limits.get("resetsAt"))
    until = at * 1000 if at is not None and at * 1000 > now else None
    told = reached("The Claude account", at, now, _own_time(text))
    return told, Failure(FailureKind.LIMIT, until)


def _own_time(text: str) -> str:
    """The time as it says it itself, like “resets 3pm (Europe/Berlin)”."""
    found = re.search(r"resets? (?:at )?([^.\n|]{2,60})", text)
    return f" (it says: resets {found[1].strip()})" if found else ""
