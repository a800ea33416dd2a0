"""The Telegram server of the tests refuses what the real one refuses."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp
import pytest

from tests.fakes.telegram import ANA, FORUM, SUPERGROUP, FakeTelegram, Flood

Json = dict[str, Any]


class Client:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def __call__(self, method: str, **fields: object) -> Json:
        given = {k: v if isinstance(v, str) else json.dumps(v) for k, v in fields.items()}
        async with self._session.post(f"{self._url}/{method}", data=given) as answer:
            body: Json = await answer.json()
            assert answer.status == (200 if body["ok"] else body["error_code"])
            return body


async def refusal(fake: FakeTelegram, method: str, **fields: object) -> str:
    """What the server says against a call; empty when it carries it out."""
    async with aiohttp.ClientSession() as session:
        body = await Client(session, f"{fake.url}/bot{fake.token}")(method, **fields)
        return str(body.get("description", ""))


@pytest.mark.parametrize(
    ("method", "fields", "said"),
    [
        ("sendMessage", {"text": "x" * 4096}, ""),
        ("sendMessage", {"text": "x" * 4097}, "message is too long"),
        ("sendMessage", {"text": "😀" * 2049}, "message is too long"),
        ("sendMessage", {"text": " \n "}, "message text is empty"),
        ("sendMessage", {"text": "x", "message_thread_id": 1}, "message thread not found"),
        ("sendMessage", {"text": "x", "message_thread_id": 99}, "message thread not found"),
        ("sendMessage", {"text": "*x", "parse_mode": "MarkdownV2"}, "can't parse entities"),
        ("sendChatAction", {"action": "typing", "message_thread_id": 1}, ""),
        ("sendMessageDraft", {"text": "x", "draft_id": 1}, "TEXTDRAFT_PEER_INVALID"),
        ("deleteMessage", {"message_id": 77}, "message to delete not found"),
        ("editMessageText", {"message_id": 77, "text": "x"}, "message to edit not found"),
        ("createForumTopic", {"name": ""}, "TOPIC_TITLE_EMPTY"),
        ("editForumTopic", {"message_thread_id": 9, "name": "x"}, "message thread not found"),
        ("unknownMethod", {}, "method not found"),
    ],
)
async def test_a_call_is_refused_as_telegram_would(method: str, fields: Json, said: str) -> None:
    async with FakeTelegram() as fake:
        got = await refusal(fake, method, chat_id=FORUM, **fields)
    assert (said in got) if said else got == ""


@pytest.mark.parametrize(
    ("entities", "fine"),
    [
        ([{"type": "bold", "offset": 0, "length": 2}], True),
        ([{"type": "bold", "offset": 0, "length": 1}], False),  # half an emoji
        ([{"type": "bold", "offset": 3, "length": 3}], False),
        ([{"type": "blink", "offset": 0, "length": 2}], False),
        ([{"type": "bold", "offset": 0, "length": 2}] * 101, False),
    ],
)
async def test_entities_lie_within_the_text(entities: list[Json], fine: bool) -> None:
    async with FakeTelegram() as fake:
        got = await refusal(fake, "sendMessage", chat_id=ANA, text="😀abc", entities=entities)
    assert (got == "") is fine


@pytest.mark.parametrize(("data", "fine"), [("x" * 64, True), ("é" * 33, False), ("", False)])
async def test_button_data_has_at_most_64_bytes(data: str, fine: bool) -> None:
    keyboard = {"inline_keyboard": [[{"text": "go", "callback_data": data}]]}
    async with FakeTelegram() as fake:
        got = await refusal(fake, "sendMessage", chat_id=ANA, text="x", reply_markup=keyboard)
    assert (got == "") is fine


async def test_blanks_at_both_ends_are_not_kept_and_change_nothing() -> None:
    async with FakeTelegram() as fake:
        bold = [{"type": "bold", "offset": 2, "length": 2}]
        await refusal(fake, "sendMessage", chat_id=ANA, text="  hi  \n", entities=bold)
        (shown,) = fake.shown(ANA)
        assert (shown["text"], shown["entities"][0]["offset"]) == ("hi", 0)
        number = shown["message_id"]
        same = [{"type": "bold", "offset": 0, "length": 2}]
        fields: Json = {"chat_id": ANA, "message_id": number, "text": "hi ", "entities": same}
        assert "not modified" in await refusal(fake, "editMessageText", **fields)


async def test_only_our_own_messages_can_be_edited() -> None:
    async with FakeTelegram() as fake:
        said = fake.user_says("mine")
        fields: Json = {"chat_id": ANA, "message_id": said["message_id"], "text": "yours"}
        assert "can't be edited" in await refusal(fake, "editMessageText", **fields)


async def test_a_reaction_is_one_of_those_that_telegram_allows() -> None:
    async with FakeTelegram() as fake:
        number = fake.user_says("hi")["message_id"]
        for emoji, fine in (("👀", True), ("⏳", False)):
            reaction = [{"type": "emoji", "emoji": emoji}]
            fields: Json = {"chat_id": ANA, "message_id": number, "reaction": reaction}
            assert (await refusal(fake, "setMessageReaction", **fields) == "") is fine


async def test_flood_control_refuses_what_comes_too_fast_and_then_lets_go() -> None:
    async with FakeTelegram() as fake:
        fake.flood = Flood(chat_burst=2, penalty=1)
        got = [await refusal(fake, "sendMessage", chat_id=ANA, text=str(n)) for n in range(3)]
        assert [bool(said) for said in got] == [False, False, True]
        assert await refusal(fake, "sendMessage", chat_id=SUPERGROUP, text="other chat") == ""
        assert fake.texts(ANA) == ["0", "1"]


async def test_it_runs_as_a_process_driven_over_http() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.telegram", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        first = json.loads(await process.stdout.readline())
        async with aiohttp.ClientSession() as session:
            call = Client(session, f"{first['url']}/bot{first['token']}")
            control = f"{first['url']}/control"
            async with session.post(f"{control}/say", json={"text": "hello"}) as answer:
                assert (await answer.json())["text"] == "hello"
            updates = (await call("getUpdates", timeout=0))["result"]
            assert updates[0]["message"]["text"] == "hello"
            order = {"method": "sendMessage", "status": 500}
            async with session.post(f"{control}/fail", json=order) as answer:
                assert answer.status == 200
            assert not (await call("sendMessage", chat_id=ANA, text="no"))["ok"]
            assert (await call("sendMessage", chat_id=ANA, text="yes"))["ok"]
            async with session.get(f"{control}/messages") as answer:
                assert [one["text"] for one in await answer.json()] == ["hello", "yes"]
        lines = [json.loads(await process.stdout.readline()) for _ in range(3)]
        assert [line["method"] for line in lines] == ["getUpdates", "sendMessage", "sendMessage"]
        assert [line["status"] for line in lines] == [200, 500, 200]
    finally:
        process.kill()
        await process.wait()
