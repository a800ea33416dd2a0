"""The fake Discord keeps the rules of the real one that the tests lean on."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.fakes.discord import ANA, BOT, CHANNEL, FakeDiscord, Pace


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as one:
        yield one


async def call(fake: FakeDiscord, method: str, path: str, **given: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bot {given.pop('token', fake.token)}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, fake.url + path, **given) as answer,
    ):
        text = await answer.text()
        return answer.status, json.loads(text) if text else None


class TestCalls:
    async def test_another_token_is_refused(self, fake: FakeDiscord) -> None:
        status, _ = await call(fake, "GET", "/users/@me", token="x")
        assert status == 401

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({"content": "x" * 2001}, 50035),
            ({"content": " "}, 50006),
            ({"content": "x", "nonce": "n" * 26}, 50035),
            ({"content": "x", "components": [{"components": []}]}, 50035),
            ({"content": "x", "message_reference": {"message_id": "5"}}, 50035),
        ],
    )
    async def test_a_message_must_be_one(
        self, fake: FakeDiscord, body: dict[str, Any], code: int
    ) -> None:
        status, answer = await call(fake, "POST", f"/channels/{CHANNEL}/messages", json=body)
        assert (status, answer["code"]) == (400, code)
        assert fake.texts(CHANNEL) == []

    async def test_a_nonce_counts_for_its_time_only(self, fake: FakeDiscord) -> None:
        body = {"content": "x", "nonce": "n", "enforce_nonce": True}
        path = f"/channels/{CHANNEL}/messages"
        for _ in range(2):
            await call(fake, "POST", path, json=body)
        assert fake.texts(CHANNEL) == ["x"]
        await call(fake, "POST", path, json={"content": "x", "nonce": "n"})
        assert fake.texts(CHANNEL) == ["x", "x"]
        fake.nonce_window = 0.0
        await call(fake, "POST", path, json=body)
        assert fake.texts(CHANNEL) == ["x", "x", "x"]
        _, page = await call(fake, "GET", path)
        assert all("nonce" not in one for one in page)

    async def test_pings_are_seen_unless_they_are_ruled_out(self, fake: FakeDiscord) -> None:
        path = f"/channels/{CHANNEL}/messages"
        await call(fake, "POST", path, json={"content": f"@everyone <@{ANA}>"})
        quiet = {"content": "@everyone", "allowed_mentions": {"parse": []}}
        await call(fake, "POST", path, json=quiet)
        assert [one["pinged"] for one in fake.shown(CHANNEL)] == [True, False]

    async def test_history_after_an_id_begins_with_the_oldest(self, fake: FakeDiscord) -> None:
        said = [fake.user_says(str(n), channel=CHANNEL) for n in range(5)]
        path = f"/channels/{CHANNEL}/messages?limit=2"
        _, page = await call(fake, "GET", f"{path}&after={said[0]['id']}")
        assert [one["content"] for one in page] == ["2", "1"]
        _, page = await call(fake, "GET", f"{path}&before={said[4]['id']}")
        assert [one["content"] for one in page] == ["3", "2"]
        _, page = await call(fake, "GET", path)
        assert [one["content"] for one in page] == ["4", "3"]

    async def test_limits_are_kept_bucket_by_bucket(self, fake: FakeDiscord) -> None:
        fake.pace = Pace(2, 60.0)
        path = f"/channels/{CHANNEL}/messages"
        statuses = [(await call(fake, "POST", path, json={"content": "x"}))[0] for _ in range(3)]
        assert statuses == [200, 200, 429]
        status, _ = await call(fake, "GET", path)
        assert status == 200

    async def test_content_is_kept_back_without_the_intent(self, fake: FakeDiscord) -> None:
        fake.flags = 0
        path = f"/channels/{CHANNEL}/messages"
        fake.user_says("secret", channel=CHANNEL)
        fake.user_says(f"<@{BOT}> open", channel=CHANNEL)
        _, page = await call(fake, "GET", path)
        assert [one["content"] for one in page] == [f"<@{BOT}> open", ""]


class TestGateway:
    async def test_frames_are_packed_as_asked_for_and_a_resume_tells_what_was_missed(
        self, fake: FakeDiscord
    ) -> None:
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(f"{fake.gateway_url}?compress=zlib-stream") as line:
                unpack = zlib.decompressobj()

                async def frame() -> dict[str, Any]:
                    found: dict[str, Any] = json.loads(
                        unpack.decompress(await line.receive_bytes())
                    )
                    return found

                assert (await frame())["op"] == 10
                identify = {"token": fake.token, "intents": 0}
                await line.send_json({"op": 2, "d": identify})
                ready = await frame()
                assert ready["t"] == "READY"
                assert (await frame())["t"] == "GUILD_CREATE"
            fake.user_says("missed")
            async with session.ws_connect(fake.gateway_url) as line:
                await line.receive_json()
                resume = {"token": fake.token, "session_id": ready["d"]["session_id"], "seq": 2}
                await line.send_json({"op": 6, "d": resume})
                assert (await line.receive_json())["d"]["content"] == "missed"
                assert (await line.receive_json())["t"] == "RESUMED"

    async def test_an_unknown_session_is_invalid(self, fake: FakeDiscord) -> None:
        async with aiohttp.ClientSession() as session, session.ws_connect(fake.gateway_url) as line:
            await line.receive_json()
            resume = {"token": fake.token, "session_id": "x", "seq": 0}
            await line.send_json({"op": 6, "d": resume})
            assert (await line.receive_json())["op"] == 9


class TestControl:
    async def test_another_process_can_play_the_people(self, fake: FakeDiscord) -> None:
        async with aiohttp.ClientSession() as session:
            say = {"content": "hi", "channel": CHANNEL}
            async with session.post(f"{fake.base}/control/say", json=say) as answer:
                said = await answer.json()
            async with session.get(f"{fake.base}/control/messages") as answer:
                shown = await answer.json()
        assert [one["id"] for one in shown] == [said["id"]]
