"""What a server refuses, in words for people, and what is simply asked again."""

from __future__ import annotations

import pytest

from core.engines.base import Finished, Unsent
from core.engines.openai_http import Bounds
from core.turns import Result
from tests.engines.chats import KEY, Chats
from tests.fakes.openai_server import (
    MODEL,
    frames,
    refuses,
    says,
)

DONE_WELL = Finished(Result.DONE)


# What people are told ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (401, f"Incorrect API key provided: {KEY}", "LANEWAY_OPENAI_API_KEY"),
        (402, "pay first", "used up"),
        (403, "no", "LANEWAY_OPENAI_API_KEY"),
        (404, f"The model {MODEL} does not exist", "LANEWAY_OPENAI_MODEL"),
        (404, "", "LANEWAY_OPENAI_BASE_URL"),
        (413, "Request Entity Too Large", "Shorten the message"),
        (429, "You exceeded your current quota, check billing", "used up"),
        (301, "", "LANEWAY_OPENAI_BASE_URL"),
        (418, "I am a teapot", "I am a teapot"),
    ],
)
async def test_a_refusal_names_what_to_mend_and_never_the_key(
    chats: Chats,
    status: int,
    message: str,
    words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    play = await chats.say("hello", refuses(status, message))
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert words in play.last.error
    assert len(chats.server.seen) == 1, "trying again would not help"
    assert KEY not in play.last.error
    assert KEY not in caplog.text
    assert chats.last.headers["Authorization"] == f"Bearer {KEY}"


async def test_a_model_that_is_refused_as_a_bad_request_is_named(chats: Chats) -> None:
    play = await chats.say("hello", *[refuses(400, f"invalid model: {MODEL}")] * 2)
    assert isinstance(play.last, Finished)
    assert "LANEWAY_OPENAI_MODEL" in play.last.error


async def test_a_key_that_no_header_can_hold_is_told(chats: Chats) -> None:
    chats.engine(key="schlüssel-ключ")
    play = await chats.say("hello")
    assert isinstance(play.last, Unsent)
    assert "its key" in play.last.error
    assert "ключ" not in play.last.error


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    play = await chats.say("hello")
    assert play.last == DONE_WELL


async def test_without_a_key_none_is_sent(chats: Chats) -> None:
    chats.engine(key="")
    await chats.say("hello")
    assert "Authorization" not in chats.last.headers


async def test_without_a_model_nothing_is_asked(chats: Chats) -> None:
    chats.engine(model="")
    play = await chats.say("hello")
    assert isinstance(play.last, Finished)
    assert "/model" in play.last.error
    assert chats.server.seen == []


async def test_a_server_that_is_not_there_leaves_the_prompt_unsent(chats: Chats) -> None:
    chats.engine(base_url="http://127.0.0.1:9/v1")
    play = await chats.say("hello")
    assert isinstance(play.last, Unsent)
    assert "127.0.0.1:9 cannot be reached: connection refused." in play.last.error.lower()
    assert "LANEWAY_OPENAI_BASE_URL" in play.last.error


async def test_a_server_that_says_nothing_ends_the_turn_with_words(chats: Chats) -> None:
    chats.engine(bounds=Bounds(patience=0.05))
    play = await chats.say("hello", frames(hold=True))
    assert isinstance(play.last, Finished)
    assert "did not answer within" in play.last.error
    assert len(chats.server.seen) == 1


# Trying again -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
async def test_a_busy_server_is_asked_again_after_growing_pauses(chats: Chats, status: int) -> None:
    play = await chats.say("hello", *[refuses(status)] * 3, says("Hello"))
    assert play.text == "Hello"
    assert play.last == DONE_WELL
    assert chats.waited == [1.0, 2.0, 4.0]


async def test_a_server_that_stays_busy_is_given_up_with_words(chats: Chats) -> None:
    play = await chats.say("hello", *[refuses(503, "loading the model")] * 9)
    assert isinstance(play.last, Finished)
    assert "does not work at the moment" in play.last.error
    assert "loading the model" in play.last.error
    assert len(chats.server.seen) == 5


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After-Ms": "250"}, 0.25),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, 1.0),
    ],
)
async def test_the_wait_that_a_server_asks_for_is_kept(
    chats: Chats, headers: dict[str, str], waits: float
) -> None:
    play = await chats.say("hello", refuses(429, "slow down", headers), says("Hello"))
    assert play.last == DONE_WELL
    assert chats.waited == [waits]


async def test_a_wait_that_is_too_long_is_told_at_once(chats: Chats) -> None:
    play = await chats.say("hello", refuses(429, "slow down", {"Retry-After": "7200"}))
    assert isinstance(play.last, Finished)
    assert "120 minutes" in play.last.error or "2 hours" in play.last.error
    assert chats.waited == []


async def test_a_connection_that_breaks_before_a_word_is_tried_again(chats: Chats) -> None:
    play = await chats.say("hello", frames(abort=True), says("Hello"))
    assert play.text == "Hello"
    assert play.last == DONE_WELL
