"""The log says what happened, one line each, and no secret in any form."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from gateway import logs
from gateway.choices import LogFormat, LogLevel
from gateway.settings_table import Settings
from gateway.values import Secret, mail_server
from tests import log_levels

TOKEN = "800000001:TESTtokenTESTtokenTESTtokenTESTtok1"
PASSWORD = "pa/ss w%rd"


@pytest.fixture(autouse=True)
def unchanged_logging() -> Iterator[None]:
    """Whatever a test sets up ends with it."""
    root, hooks = logging.getLogger(), (sys.excepthook, threading.excepthook, sys.unraisablehook)
    handlers = root.handlers[:]
    root.handlers.clear()  # so that those of the test runner are not closed
    with log_levels.given_back():
        yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks


def start(form: LogFormat = LogFormat.TEXT, level: LogLevel = LogLevel.INFO) -> io.StringIO:
    stream = io.StringIO()
    settings = Settings(
        telegram_token=Secret(TOKEN),
        openai_api_key=Secret("sk-key-of-the-engine"),
        openai_base_url="https://user:word-in-address@example.org/v1",
        smtp=mail_server(f"smtps://ana:{quote(PASSWORD, safe='')}@mail.example.org"),
        log_format=form,
        log_level=level,
    )
    logs.set_up(settings, stream)
    return stream


def words_of_secrets() -> list[str]:
    forms = [TOKEN, TOKEN.partition(":")[2], PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD)]
    return [*forms, quote(TOKEN, safe=""), "word-in-address", "sk-key-of-the-engine"]


@pytest.mark.parametrize("form", LogFormat)
def test_no_secret_is_ever_written(form: LogFormat) -> None:
    stream = start(form, LogLevel.DEBUG)
    log = logging.getLogger("anything")
    for secret in words_of_secrets():
        log.debug("in the message %s", secret)
        logging.getLogger("httpx").info("HTTP Request: %s", f"https://api/bot{secret}/getMe")
        log.info("beside it", extra={"address": {"url": secret}})
        try:
            raise ValueError(secret)
        except ValueError:
            log.exception("in a trace")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(f"in a warning {secret}", stacklevel=1)
        sys.excepthook(ValueError, ValueError(secret), None)
    written = stream.getvalue()
    assert written.count("[secret]") >= 6 * len(words_of_secrets())
    for secret in words_of_secrets():
        assert secret not in written
        assert json.dumps(secret)[1:-1] not in written


def test_keys_that_are_only_passed_on_to_an_engine_are_hidden_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = {
        "SOME_API_KEY": "key-of-the-agent",
        "AGENT_PROXY": "http://ana:proxy-pass@proxy.example:8080",
        "BROKEN_ADDRESS": "http://[nowhere",
        "AGENT_TOKEN": "none",
        "AGENT_COLOUR": "turquoise",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = Settings(engine_env=frozenset({*values, "NOT_THERE_KEY"}))
    stream = io.StringIO()
    logs.set_up(settings, stream)
    logging.getLogger("a").warning("401: %s", " ".join(values.values()))
    assert (
        stream.getvalue()
        .strip()
        .endswith(
            "401: [secret] http://ana:[secret]@proxy.example:8080 http://[nowhere none turquoise"
        )
    )


def test_an_exception_of_a_thread_is_in_the_log() -> None:
    stream = start()

    def fail() -> None:
        raise ValueError(TOKEN)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert "uncaught ValueError" in stream.getvalue()
    assert TOKEN not in stream.getvalue()


def test_secrets_that_become_known_later_are_hidden_from_then_on() -> None:
    redact = logs.Redactor()
    assert redact("the token abcdefgh") == "the token abcdefgh"
    redact.add("abcdefgh", "ab")
    assert redact("the token abcdefgh") == "the token [secret]"
    assert redact("about") == "about"


def test_json_is_one_object_a_line_with_the_ids_that_were_given() -> None:
    stream = start(LogFormat.JSON)
    logging.getLogger("core.runner").info(
        "turn %d\nover", 12, extra={"event": "turn", "lane": "7", "turn": 12}
    )
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert line.startswith('{"event":"turn",')
    assert found["message"] == "turn 12\nover"
    assert (found["lane"], found["turn"], found["level"]) == ("7", 12, "info")


def test_text_is_one_line_whatever_people_write() -> None:
    stream = start()
    logging.getLogger("a").info("name %s", "x\n2026 INFO forged: line", extra={"lane": "1\r2"})
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("name x\\n2026 INFO forged: line lane=1\\r2")


@pytest.mark.parametrize("level", LogLevel)
def test_ready_is_said_at_every_level(level: LogLevel, capsys: pytest.CaptureFixture[str]) -> None:
    start(LogFormat.TEXT, level)
    logs.ready(Settings(log_level=level))
    logs.ready(Settings(log_level=level, log_format=LogFormat.JSON), web="http://127.0.0.1:8790")
    text, line = capsys.readouterr().out.splitlines()
    assert text == "ready"
    assert line.startswith('{"event":"ready",')
    assert json.loads(line)["web"] == "http://127.0.0.1:8790"


def test_request_lines_are_only_for_the_debug_level() -> None:
    stream = start()
    logging.getLogger("httpx").info("HTTP Request")
    assert not stream.getvalue()
    stream = start(level=LogLevel.DEBUG)
    logging.getLogger("httpx").info("HTTP Request")
    logging.getLogger("aiosqlite").debug("what somebody wrote")
    assert "HTTP Request" in stream.getvalue()
    assert "somebody" not in stream.getvalue()
