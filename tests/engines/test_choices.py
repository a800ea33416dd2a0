"""What engines say they can be set to, for /model and /effort."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiohttp import web

from core.engines import openai_http
from core.engines.base import Choices, Offering
from tests.engines import claude_scenes, scenes
from tests.engines.chats import Chats
from tests.fakes.openai_server import MODEL, Body

Make = Callable[..., scenes.Scene]


async def test_an_agent_of_the_protocol_tells_with_its_first_session(make: Make) -> None:
    scene = make("--models", "small,large", "--efforts", "low,high")
    assert isinstance(scene.engine, Offering)
    assert await scene.engine.choices() == Choices()  # nothing is known yet
    await scene.say("hello")
    assert await scene.engine.choices() == Choices(("small", "large"), ("low", "high"), open=False)


async def test_an_agent_without_models_has_no_choice(make: Make) -> None:
    scene = make()
    await scene.say("hello")
    assert await scene.engine.choices() == Choices(open=False)


async def test_a_chat_server_lists_its_models_once_in_a_while(chats: Chats) -> None:
    asked = 0

    async def models(request: web.Request, body: Body) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.json_response({"data": [{"id": MODEL}, {"id": "large-1"}]})

    chats.server.models = models
    engine = chats.engine()
    assert isinstance(engine, Offering)
    for _ in range(3):
        known = await engine.choices()
    assert (list(known.models), known.open, asked) == ([MODEL, "large-1"], False, 1)


async def test_a_chat_server_that_lists_none_takes_any_model(chats: Chats) -> None:
    async def models(request: web.Request, body: Body) -> web.StreamResponse:
        return web.Response(status=404)

    chats.server.models = models
    known = await chats.engine().choices()
    assert (known.models, known.open) == ((), True)


async def test_the_model_that_is_set_counts_although_its_server_does_not_list_it(
    chats: Chats,
) -> None:
    assert "own-1" in (await chats.engine(model="own-1").choices()).models


async def test_a_chat_server_that_does_not_answer_holds_up_nothing(
    chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_http, "LISTS_WITHIN", 0.1)

    async def models(request: web.Request, body: Body) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    chats.server.models = models
    async with asyncio.timeout(30):
        assert (await chats.engine().choices()).open


async def test_claude_tells_what_it_always_has_and_then_what_it_declared(
    claude: claude_scenes.Make,
) -> None:
    scene = claude()
    before = await scene.engine.choices()
    assert {"opus", "sonnet", "haiku"} <= set(before.models)
    assert "claude" in before.like
    await scene.say("hello")
    told = await scene.engine.choices()
    assert scene.engine.told is not None
    assert list(told.models) == [name for name, _, _ in scene.engine.told.models]
