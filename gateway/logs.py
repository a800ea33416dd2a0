"""The log: text for people or one JSON object a line, and no secret in either.

Secrets are taken out of the finished line, so that it does not matter who wrote them: a library's
request line, an argument, a traceback. It must not know what the messages are about.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import IO
from urllib.parse import quote, quote_plus, unquote, urlsplit

from gateway.choices import LogFormat
from gateway.cli.border import plain, safe_json
from gateway.config import Settings, secrets_of

HIDDEN = "[secret]"
_SHORTEST = 4  # shorter ones are in every other word
_SHORTEST_HANDED_ON = 8  # of what a name makes a secret: it may be a word such as "none"
_NAMES_SECRET = re.compile("KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# These write a line a request or statement; that is for whoever looks for a fault in them.
CHATTY = ("httpx", "httpcore", "telegram", "apscheduler", "uvicorn.access", "asyncio")
NEVER_BELOW_INFO = ("aiosqlite",)  # its debug lines carry what people wrote

log = logging.getLogger(__name__)


class Redactor:
    """Takes known secrets out of text, also in the forms that addresses and JSON give them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        for secret in secrets:
            if len(secret) >= _SHORTEST:
                self._forms.update(_forms(secret))
        longest_first = sorted(self._forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if self._forms else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub(HIDDEN, text) if self._pattern else text


def _forms(secret: str) -> set[str]:
    raw = secret.encode()
    return {
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        repr(secret)[1:-1],
        json.dumps(secret)[1:-1],
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }


class TextFormat(logging.Formatter):
    """``2026-11-30T09:00:00.000+01:00 INFO core.runner: words lane=7 turn=12``"""

    def format(self, record: logging.LogRecord) -> str:
        words = [_at(record), record.levelname, f"{record.name}:", _one_line(record.getMessage())]
        words += [f"{name}={_one_line(str(value))}" for name, value in _extra(record).items()]
        line = " ".join(words)
        return f"{line}\n{plain(trace)}" if (trace := _trace(record)) else line


class JsonFormat(logging.Formatter):
    """One object a line; what was given as ``extra`` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        extra = _extra(record)
        fields: dict[str, object] = {}
        if "event" in extra:
            fields["event"] = extra.pop("event")
        fields |= {"at": _at(record), "level": record.levelname.lower(), "logger": record.name}
        fields |= {"message": record.getMessage(), **extra}
        if trace := _trace(record):
            fields["trace"] = trace
        return safe_json(json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str))


class SafeHandler(logging.StreamHandler[IO[str]]):
    """Writes lines that a redactor has been over."""

    def __init__(self, stream: IO[str], form: LogFormat, redact: Redactor) -> None:
        super().__init__(stream)
        self.write_as(form)
        self._redact = redact

    def write_as(self, form: LogFormat) -> None:
        self.setFormatter(JsonFormat() if form is LogFormat.JSON else TextFormat())

    def hide(self, *secrets: str) -> None:
        """Hide these as well from now on."""
        self._redact.add(*secrets)

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """A record that cannot be written is named without its words, which may be secret."""
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            sys.stderr.write(f"a log line of {record.name}:{record.lineno} cannot be written\n")


def set_up(settings: Settings, stream: IO[str] | None = None) -> Redactor:
    """Send every record, warning and uncaught exception of the process to one safe handler.

    What is added to the returned redactor later is hidden from then on.
    """
    redact = Redactor(_secrets(settings))
    handler = SafeHandler(stream or sys.stdout, settings.log_format, redact)
    logging.basicConfig(handlers=[handler], force=True)
    logging.captureWarnings(True)
    _set_levels(settings)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable
    return redact


def renew(settings: Settings) -> None:
    """Go by other settings from now on; what was a secret before stays hidden."""
    if hide(_secrets(settings)):
        _set_levels(settings)
    for handler in _ours():
        handler.write_as(settings.log_format)


def hide(secrets: Iterable[str]) -> bool:
    """Hide these as well from now on; False when the log is not set up by us."""
    ours = _ours()
    for handler in ours:
        handler.hide(*secrets)
    return bool(ours)


def _ours() -> list[SafeHandler]:
    return [one for one in logging.getLogger().handlers if isinstance(one, SafeHandler)]


def _secrets(settings: Settings) -> set[str]:
    return {*secrets_of(settings), *handed_on(settings, os.environ)}


def _set_levels(settings: Settings) -> None:
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.getLogger().setLevel(level)
    quiet = level if level < logging.INFO else max(level, logging.WARNING)
    for name in CHATTY:
        logging.getLogger(name).setLevel(quiet)
    for name in NEVER_BELOW_INFO:
        logging.getLogger(name).setLevel(max(level, logging.INFO))


def handed_on(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """Secrets of the engines, which we only pass on; an engine may say them in what it prints."""
    for name in settings.engine_env:
        value = environ.get(name, "")
        if _NAMES_SECRET.search(name) and len(value) >= _SHORTEST_HANDED_ON:
            yield value
        elif "://" in value:
            yield from filter(None, [_password(value)])


def _password(address: str) -> str:
    try:
        return unquote(urlsplit(address).password or "")
    except ValueError:  # no address after all
        return ""


def ready(settings: Settings, stream: IO[str] | None = None, **fields: object) -> None:
    """Say that everything is up, in the words that scripts wait for, whatever the level is."""
    line = "ready"
    if settings.log_format is LogFormat.JSON:
        facts = {"name": __name__, "levelname": "INFO", "msg": line, "event": line, **fields}
        line = JsonFormat().format(logging.makeLogRecord(facts))
    with suppress(OSError):  # a full disk, say: nobody reads it, and people are answered
        print(line, file=stream or sys.stdout, flush=True)


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _OWN}


_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _one_line(text: str) -> str:
    """Nobody's words can start a line that looks like one of ours, or look like other words."""
    return plain(_UNSAFE.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text))


def _trace(record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info and record.exc_info[0] is not None:
        parts.append("".join(traceback.format_exception(*record.exc_info)))
    elif record.exc_text:
        parts.append(record.exc_text)
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(part.rstrip() for part in parts)


def _uncaught(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        log.critical("uncaught %s", kind.__name__, exc_info=(kind, error, where))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
        _uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    if args.exc_value is not None:
        _uncaught(args.exc_type, args.exc_value, args.exc_traceback)
