"""What a chat-completions server refuses, and what to tell people about it.

Pure: a status and a body in, a meaning and plain words out. No key is ever part of them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from core.engines.base import Failure, FailureKind
from core.engines.plain import Json, as_sent, mapping, words

LIMIT_FROM = 120.0  # seconds; who asks to wait longer than that has reached a limit of use
TOLD_MOST = 300  # characters of a server's own words
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")
_CUT = " Say “go on” to have the rest."
CUT_OFF = "The answer was cut off: the connection to the model's server ended before it did."
TOO_MANY_ROUNDS = (
    "The agent stopped: it reached its limit of steps for one turn. Say “go on” to continue."
)
STILL_TOO_LONG = (
    "This is longer than the model can take. Shorten the message, or begin anew with /new."
)
LEFT_OUT = "(This conversation is longer than the model can take: its older half was left out.)\n\n"


class Option(StrEnum):
    """What some servers do not know. Left out when they say so."""

    TOOLS = "tools"
    USAGE = "usage"
    EFFORT = "effort"
    IMAGES = "images"
    SYSTEM = "system"


# How refusals name them, the most telling first.
_NAMED: tuple[tuple[Option, tuple[str, ...]], ...] = (
    (Option.USAGE, ("stream_options", "include_usage")),
    (Option.EFFORT, ("reasoning_effort", "reasoning effort", "reasoning.effort", "thinking")),
    (Option.IMAGES, ("image", "vision", "multimodal", "multi-modal", "mmproj")),
    (Option.SYSTEM, ("system role", "system message", "role: system", "role 'system'")),
    (Option.TOOLS, ("tool", "function call", "function_call")),
)
_TOO_LONG = (
    "context length", "context_length", "context window", "context size", "context_size",
    "maximum context", "too many tokens", "prompt is too long", "input is too long",
    "exceeds the available context", "max_model_len", "reduce the length",
)  # fmt: skip
_NO_MODEL = ("not found", "does not exist", "unknown model", "invalid model", "no such model")
_THIS_ONE = (  # it is not the option that is refused, but what was given this time
    "invalid image", "unsupported image", "could not process", "image size", "too large",
    "failed to load image", "image data",
)  # fmt: skip
_SPENT = ("insufficient_quota", "insufficient quota", "exceeded your current quota", "billing")


class Refused(Exception):
    """The server said no, in a status, in a body or in the middle of a stream.

    ``status`` 0: it told none. ``said``: its own words, short and harmless. ``wait``: seconds.
    """

    def __init__(self, status: int, said: str, code: str = "", wait: float | None = None) -> None:
        super().__init__(said)
        self.status = status
        self.said = said
        self.code = code
        self.wait = wait

    @property
    def transient(self) -> bool:
        """Whether the same may well work a moment later."""
        if self.spent:
            return False
        named = ("overloaded", "rate_limit", "rate limit", "loading model", "try again")
        told = f"{self.code} {self.said}".lower()
        return self.status in TRANSIENT or (not self.status and any(word in told for word in named))

    @property
    def spent(self) -> bool:
        told = f"{self.code} {self.said}".lower()
        return self.status == 402 or any(word in told for word in _SPENT)

    @property
    def too_long(self) -> bool:
        told = f"{self.code} {self.said}".lower()
        return self.status == 413 or (
            self.status in (0, 400, 422, 500) and any(word in told for word in _TOO_LONG)
        )

    @property
    def only_now(self) -> bool:
        """Whether it minds what was given this time, and may take another of its kind."""
        told = f"{self.code} {self.said}".lower()
        return any(word in told for word in _THIS_ONE)

    def names(self, used: Iterable[Option]) -> Option | None:
        """The option among the used ones that it refuses."""
        told = f"{self.code} {self.said}".lower()
        if self.status in (400, 404, 405, 415, 422, 500, 501):
            for option, named in _NAMED:
                if option in set(used) and any(word in told for word in named):
                    return option
        return None


def refused(status: int, body: bytes | Json, headers: Json, now: int, *secrets: str) -> Refused:
    """Read a refusal. ``now`` in ms since 1970; secrets are taken out of the server's words."""
    if isinstance(body, bytes):
        try:
            found = mapping(json.loads(body))
        except (ValueError, RecursionError):
            found = {}
        plain = "" if found else body[:4000].decode("utf-8", "replace")
    else:
        found, plain = body, ""
    inner = mapping(found.get("error")) or found
    said = as_sent(inner.get("message")) or as_sent(found.get("error"))
    said = said or as_sent(found.get("detail")) or _of_page(plain)
    code = inner.get("code")
    if not status and isinstance(code, int) and 400 <= code < 600:
        status = code
    named = " ".join(as_sent(inner.get(key)) for key in ("code", "type", "param")).strip()
    return Refused(status, _harmless(said, secrets), _harmless(named, secrets), wait(headers, now))


def _of_page(text: str) -> str:
    """Words of a body that is not JSON; a web page has none for people."""
    return "" if text.lstrip().startswith("<") else text


def _harmless(text: str, secrets: Iterable[str]) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    text = " ".join(words(text[: 4 * TOLD_MOST]).split())
    return text if len(text) <= TOLD_MOST else text[: TOLD_MOST - 1] + "…"


def secrets_in(base_url: str, key: str) -> tuple[str, ...]:
    """What the server could repeat: the key, and a password of its address as it is handed over.

    A name alone is one: so tokens are written into addresses.
    """
    parts = urlsplit(base_url)
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not name and not password:
        return (key,)
    coded = base64.b64encode(f"{name}:{password}".encode()).decode().rstrip("=")
    return key, coded, password or name


def wait(headers: Json, now: int) -> float | None:
    """Seconds that an answer asks to wait: a number, or a date."""
    exact, told = (as_sent(headers.get(key)).strip() for key in ("retry-after-ms", "retry-after"))
    try:
        if _NUMBER.fullmatch(exact):
            return float(exact) / 1000
        if _NUMBER.fullmatch(told):
            return float(told)
        from email.utils import parsedate_to_datetime  # slow to load, and rarely needed

        return max(0.0, parsedate_to_datetime(told).timestamp() - now / 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def failure(fault: Refused, now: int, *, going_on: bool) -> Failure | None:
    """What kind of refusal it is. ``going_on``: there is an earlier conversation to blame."""
    if fault.status in (401, 402, 403, 405, 407) or fault.spent or 300 <= fault.status < 400:
        return Failure(FailureKind.BROKEN)
    if fault.status == 429 and fault.wait and fault.wait > LIMIT_FROM:
        return Failure(FailureKind.LIMIT, until=now + round(fault.wait * 1000))
    if fault.transient:
        return Failure(FailureKind.BUSY, wait=fault.wait, tried=True)
    about = f"{fault.code} {fault.said}".lower()
    if fault.too_long or fault.status == 404 or any(word in about for word in _NO_MODEL):
        return Failure(FailureKind.REQUEST)
    if fault.status in (400, 422) and going_on and not fault.only_now:
        return Failure(FailureKind.SESSION)
    return None


# For people --------------------------------------------------------------------------------


def explained(fault: Refused, host: str, model: str) -> str:
    """Why a turn failed and what to do, in plain words."""
    said = f" It said: “{fault.said}”" if fault.said else ""
    about = f"{fault.code} {fault.said}".lower()
    match fault.status:
        case 401 | 407:
            return (
                f"The model's server {host} does not accept the key. Ask an admin to check "
                f"LANEWAY_OPENAI_API_KEY.{said}"
            )
        case _ if fault.spent:
            return (
                f"The account at the model's server {host} is used up. Ask an admin to look at "
                f"its plan and payments.{said}"
            )
        case 403:
            return (
                f"The model's server {host} does not let this key use {model}. Ask an admin to "
                f"check LANEWAY_OPENAI_API_KEY and LANEWAY_OPENAI_MODEL.{said}"
            )
        case 400 | 404 | 422 if "model" in about and (
            fault.status == 404 or any(word in about for word in _NO_MODEL)
        ):
            return (
                f"The model's server {host} does not know the model {model}. Choose another with "
                f"/model, or ask an admin to check LANEWAY_OPENAI_MODEL.{said}"
            )
        case 404 | 405:
            return (
                f"{host} has no chat completions at this address. Ask an admin to check "
                "LANEWAY_OPENAI_BASE_URL; it mostly ends in /v1."
            )
        case status if 300 <= status < 400:
            return (
                f"{host} sends us to another address. Ask an admin to set "
                "LANEWAY_OPENAI_BASE_URL to the address where it is now."
            )
        case 429:
            return (
                f"The model's server {host} has too much to do{_in_a_while(fault.wait)}. Say it "
                f"again later.{said}"
            )
        case status if status in TRANSIENT:
            return (
                f"The model's server {host} does not work at the moment (status {status})"
                f"{_in_a_while(fault.wait)}. Say it again later.{said}"
            )
    number = f" (status {fault.status})" if fault.status else ""
    return f"The model's server {host} reported an error{number}.{said}"


def _in_a_while(seconds: float | None) -> str:
    if not seconds or seconds < 1:
        return ""
    if seconds < 100:
        return f" and asks to wait {seconds:.0f} seconds"
    minutes = seconds / 60
    return f" and asks to wait {minutes:.0f} minutes" if minutes < 100 else (
        f" and asks to wait {minutes / 60:.0f} hours"
    )  # fmt: skip


def interrupted(fault: Refused) -> str:
    """Why an answer that has begun does not go on."""
    said = f" It said: “{fault.said}”" if fault.said else ""
    return f"The model's server reported an error in the middle of the answer.{said}{_CUT}"


def cut_off() -> str:
    return CUT_OFF + _CUT


def unreachable(host: str, reason: str) -> str:
    return (
        f"The model's server {host} cannot be reached: {reason}. Ask an admin to check that it "
        "runs, and LANEWAY_OPENAI_BASE_URL."
    )


def silent(host: str, seconds: float) -> str:
    return (
        f"The model's server {host} did not answer within {seconds:.0f} seconds. Say it again; if "
        "that happens often, ask an admin to look at the server."
    )


def finished(reason: str) -> str:
    """Why a finished answer is not whole; "" when it is."""
    match reason:
        case "length" | "max_tokens":
            return "The answer was cut off: it reached the model's limit of length." + _CUT
        case "content_filter" | "safety" | "SAFETY":
            return "The server's filter ended the answer. Try to ask differently."
        case "error":
            return "The model's server ended the answer with an error." + _CUT
    return ""


def effort_left_out(model: str, effort: str) -> str:
    return f"({model} does not take the effort “{effort}”, so it goes without. See /effort.)\n\n"


def host_of(address: str) -> str:
    """What of an address may be told: where it leads, without what may be secret in it."""
    parts = urlsplit(address)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or 'of the model'}{port}"
