"""The Slack workspace of the tests refuses what the real one refuses."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp
import pytest

from tests.fakes.slack import ANA_DM, LAB, QUIET, FakeSlack, Tiers

Json = dict[str, Any]


async def call(fake: FakeSlack, method: str, **fields: object) -> Json:
    """One call as an app makes it."""
    given = {k: v if isinstance(v, str) else json.dumps(v) for k, v in fields.items()}
    token = fake.app_token if method == "apps.connections.open" else fake.bot_token
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{fake.url}{method}", data=given, headers=headers) as answer,
    ):
        body: Json = await answer.json()
        return body | {"status": answer.status, "retry": answer.headers.get("Retry-After")}


def section(text: str = "x") -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(**fields: object) -> Json:
    words = {"type": "plain_text", "text": "OK"}
    element = {"type": "button", "action_id": "a", "value": "a", "text": words, **fields}
    return {"type": "actions", "elements": [element]}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"text": "x" * 40_000}, ""),
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"text": ""}, "no_text"),
        ({"text": "x", "markdown_text": "y"}, "markdown_text_conflict"),
        ({"markdown_text": "y" * 12_001}, "msg_too_long"),
        ({"blocks": [section()] * 50}, ""),
        ({"blocks": [section()] * 51}, "invalid_blocks"),
        ({"blocks": [section("x" * 3_001)]}, "invalid_blocks"),
        ({"blocks": [section("")]}, "invalid_blocks"),
        ({"blocks": [section("x" * 2_900)] * 5}, "msg_blocks_too_long"),
        ({"blocks": [button(text={"type": "plain_text", "text": "x" * 76})]}, "invalid_blocks"),
        ({"blocks": [button(value="x" * 2_001)]}, "invalid_blocks"),
        ({"blocks": [button(style="success")]}, "invalid_blocks"),
        ({"blocks": [{"type": "carousel"}]}, "invalid_blocks"),
        ({"text": "x", "channel": "C0NONE"}, "channel_not_found"),
        ({"text": "x", "channel": QUIET}, "not_in_channel"),
        ({"text": "x", "thread_ts": "1.000001"}, "cannot_reply_to_message"),
    ],
)
async def test_a_message_is_refused_as_slack_would(fields: Json, error: str) -> None:
    async with FakeSlack() as fake:
        said = await call(fake, "chat.postMessage", **{"channel": LAB, **fields})
        assert said.get("error", "") == error
        assert said["status"] == 200


@pytest.mark.parametrize(
    ("method", "fields", "error"),
    [
        ("chat.update", {"ts": "1.000001", "text": "x"}, "message_not_found"),
        ("chat.delete", {"ts": "1.000001"}, "message_not_found"),
        ("chat.startStream", {"thread_ts": ""}, "invalid_arguments"),
        ("chat.appendStream", {"ts": "1.000001"}, "message_not_found"),
        ("conversations.replies", {"ts": "1.000001"}, "thread_not_found"),
        ("reactions.add", {"timestamp": "1.000001", "name": "eyes"}, "message_not_found"),
        ("files.info", {"file": "F9"}, "file_not_found"),
        ("users.info", {"user": "U9"}, "user_not_found"),
        ("unknown.method", {}, "unknown_method"),
        ("chat.postMessage", {"blocks": "no list", "text": "x"}, "invalid_blocks"),
    ],
)
async def test_a_call_is_refused_as_slack_would(method: str, fields: Json, error: str) -> None:
    async with FakeSlack() as fake:
        assert (await call(fake, method, channel=LAB, **fields))["error"] == error


async def test_an_edit_takes_less_text_than_a_message_and_only_ones_own() -> None:
    async with FakeSlack() as fake:
        sent = await call(fake, "chat.postMessage", channel=LAB, text="x")
        said = await call(fake, "chat.update", channel=LAB, ts=sent["ts"], text="x" * 4_001)
        assert said["error"] == "msg_too_long"
        theirs = fake.user_says("mine", channel=LAB)
        said = await call(fake, "chat.update", channel=LAB, ts=theirs["ts"], text="x")
        assert said["error"] == "cant_update_message"


async def test_an_edit_that_leaves_blocks_out_keeps_them() -> None:
    async with FakeSlack() as fake:
        sent = await call(fake, "chat.postMessage", channel=LAB, text="x", blocks=[button()])
        await call(fake, "chat.update", channel=LAB, ts=sent["ts"], text="y")
        assert fake.buttons(fake.shown(LAB)[0]) == ["OK"]
        await call(fake, "chat.update", channel=LAB, ts=sent["ts"], text="y", blocks=[])
        assert fake.buttons(fake.shown(LAB)[0]) == []


async def test_a_stream_dies_after_its_time() -> None:
    async with FakeSlack() as fake:
        root = fake.user_says("begin", channel=ANA_DM)
        place = {"channel": ANA_DM, "thread_ts": root["ts"]}
        ts = (await call(fake, "chat.startStream", **place, markdown_text="a"))["ts"]
        assert (await call(fake, "chat.appendStream", channel=ANA_DM, ts=ts, markdown_text="b"))[
            "ok"
        ]
        said = await call(fake, "chat.update", channel=ANA_DM, ts=ts, text="x")
        assert said["error"] == "streaming_state_conflict"
        fake.stream_life = 0.0
        said = await call(fake, "chat.appendStream", channel=ANA_DM, ts=ts, markdown_text="c")
        assert said["error"] == "message_not_in_streaming_state"
        assert fake.texts(ANA_DM) == ["ab"]
        assert (await call(fake, "chat.update", channel=ANA_DM, ts=ts, text="whole"))["ok"]


async def test_too_many_calls_are_slowed_down() -> None:
    async with FakeSlack() as fake:
        fake.tiers = Tiers(burst=1, penalty=3)
        assert (await call(fake, "chat.postMessage", channel=LAB, text="x"))["ok"]
        said = await call(fake, "chat.postMessage", channel=LAB, text="x")
        assert (said["status"], said["error"], said["retry"]) == (429, "ratelimited", "3")
        assert (await call(fake, "chat.postMessage", channel=ANA_DM, text="x"))["ok"]


async def test_metadata_is_read_only_when_it_is_asked_for() -> None:
    async with FakeSlack() as fake:
        sent = {"event_type": "x", "event_payload": {"n": 1}}
        await call(fake, "chat.postMessage", channel=LAB, text="x", metadata=sent)
        (plain,) = (await call(fake, "conversations.history", channel=LAB))["messages"]
        assert "metadata" not in plain
        (told,) = (
            await call(fake, "conversations.history", channel=LAB, include_all_metadata=True)
        )["messages"]
        assert told["metadata"] == sent


async def test_history_is_read_in_pages() -> None:
    async with FakeSlack() as fake:
        said = [fake.user_says(str(n), channel=LAB)["ts"] for n in range(5)]
        page = await call(fake, "conversations.history", channel=LAB, limit="2")
        assert [m["ts"] for m in page["messages"]] == [said[4], said[3]]
        cursor = page["response_metadata"]["next_cursor"]
        page = await call(fake, "conversations.history", channel=LAB, limit="2", cursor=cursor)
        assert [m["ts"] for m in page["messages"]] == [said[2], said[1]]
        fake.user_says("reply", channel=LAB, thread=said[0])
        thread = await call(fake, "conversations.replies", channel=LAB, ts=said[0])
        assert [m["text"] for m in thread["messages"]] == ["0", "reply"]
        assert thread["messages"][0]["reply_count"] == 1


async def test_a_ticket_is_good_for_one_connection() -> None:
    async with FakeSlack() as fake, aiohttp.ClientSession() as session:
        url = (await call(fake, "apps.connections.open"))["url"]
        async with session.ws_connect(url) as socket:
            assert (await socket.receive_json())["type"] == "hello"
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(url)


async def test_what_is_not_acknowledged_is_delivered_again_three_times_and_then_lost() -> None:
    async with FakeSlack() as fake, aiohttp.ClientSession() as session:
        fake.ack_within, fake.retries = 0.02, (0.0, 0.01, 0.01)
        url = (await call(fake, "apps.connections.open"))["url"]
        async with session.ws_connect(url) as socket:
            await socket.receive_json()
            fake.user_says("hi")
            attempts = [await socket.receive_json() for _ in range(4)]
            assert [one.get("retry_attempt", 0) for one in attempts] == [0, 1, 2, 3]
            (envelope,) = fake.envelopes
            await fake.until(lambda: envelope.lost)
            acked = fake.slash()
            said = await socket.receive_json()
            await socket.send_json({"envelope_id": said["envelope_id"], "payload": {"text": "k"}})
            await fake.until(lambda: acked.acked)
            assert acked.payload_back == {"text": "k"}


async def test_a_response_address_takes_five_answers() -> None:
    async with FakeSlack() as fake, aiohttp.ClientSession() as session:
        fake.slash("/laneway", "help")
        url = fake.envelopes[0].payload["response_url"]
        for status in (200, 200, 200, 200, 200, 404):
            async with session.post(url, json={"text": "x"}) as answer:
                assert answer.status == status


async def test_it_runs_as_a_process_of_its_own() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.slack", stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    told = json.loads(await child.stdout.readline())
    base = told["url"].removesuffix("/api/")
    try:
        async with aiohttp.ClientSession() as session:
            for order, given in (
                ("say", {"text": "<@UBOT> hi", "channel": LAB}),
                ("send", {"data": "x", "name": "a.txt"}),
                ("slash", {"text": "status"}),
                ("fail", {"method": "auth.test", "error": "invalid_auth"}),
            ):
                async with session.post(f"{base}/control/{order}", json=given) as answer:
                    assert answer.status == 200
            async with session.get(f"{base}/control/messages") as answer:
                shown = await answer.json()
            assert [one["text"] for one in shown] == ["<@UBOT> hi", ""]
            async with session.get(f"{base}/control/envelopes") as answer:
                assert len(await answer.json()) == 4
    finally:
        child.terminate()
        await child.wait()
