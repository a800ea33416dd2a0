"""What platforms post to the gateway, over HTTP: who is let in, and that nothing is lost."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from gateway import config
from gateway.config import BadSettings
from gateway.web import hooks
from gateway.web.hooks import BODY_MOST
from tests.end_to_end.house import House, process, until
from tests.fakes.ports import free_port
from tests.fakes.slack import ANA_DM, FakeSlack
from tests.fakes.slack_posting import challenge, signed
from tests.fakes.telegram import ANA, FakeTelegram
from tests.web import wire
from tests.web.site import Page

SECRET = "hush-hush_1"
TELEGRAM = "x-telegram-bot-api-secret-token"


def hooked(port: int) -> dict[str, str]:
    return {
        "LANEWAY_TELEGRAM_MODE": "webhook",
        "LANEWAY_TELEGRAM_WEBHOOK_SECRET": SECRET,
        "LANEWAY_WEB_PORT": str(port),
        "LANEWAY_WEB_URL": f"http://127.0.0.1:{port}",
    }


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path, **hooked(free_port())) as running:
        await until(lambda: running.fake.webhook)
        yield running


def poster(house: House, **headers: str) -> httpx.AsyncClient:
    url = f"http://127.0.0.1:{house.running.web_port}"
    return httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, verify=False)


def said(fake: FakeTelegram, text: str) -> bytes:
    """An update that the server does not post by itself."""
    webhook, fake.webhook = fake.webhook, ""
    fake.user_says(text)
    fake.webhook = webhook
    return json.dumps(fake.updates.pop()).encode()


@pytest.mark.parametrize("missing", ["LANEWAY_TELEGRAM_WEBHOOK_SECRET", "LANEWAY_WEB_URL"])
def test_a_start_without_secret_or_address_is_refused(tmp_path: Path, missing: str) -> None:
    given = {"LANEWAY_TELEGRAM_TOKEN": "1:" + "x" * 35, **hooked(1), "LANEWAY_HOME": str(tmp_path)}
    del given[missing]
    with pytest.raises(BadSettings) as refused:
        config.load(given, tmp_path)
    assert missing in str(refused.value)


async def test_a_turn_from_what_telegram_posts(house: House) -> None:
    house.fake.user_says("/say hello")
    await house.fake.until(lambda: house.fake.texts(ANA)[-1:] == ["hello"])
    await until(lambda: not house.fake.updates)
    assert {post.status for post in house.fake.posting.posts} == {200}
    assert not house.fake.called("getUpdates")
    assert house.running.reasons() == []


async def test_only_the_secret_lets_in_and_odd_bodies_hurt_nobody(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    body = said(house.fake, "/say once")
    async with poster(house) as client:

        async def post(content: bytes, secret: str | None) -> int:
            headers = {} if secret is None else {TELEGRAM: secret}
            answer = await client.post("/hooks/telegram", content=content, headers=headers)
            return answer.status_code

        assert await post(body, None) == 401
        assert await post(body, "wrong") == 401
        assert await post(b"x" * (BODY_MOST + 1), SECRET) == 413
        closing = {TELEGRAM: SECRET, "Connection": "close"}
        large = await client.post("/hooks/telegram", content=b"x" * 10_000_000, headers=closing)
        assert large.status_code == 413
        assert await post(b"{not json", SECRET) == 400
        assert await post(b"[]", SECRET) == 400
        assert await post(body, SECRET) == 200
        assert await post(body, SECRET) == 200  # it comes again, and is known
        assert (await client.get("/hooks/telegram")).status_code == 405
        assert (await client.post("/hooks/local", content=body)).status_code == 404
        assert (await client.post("/hooks/slack", content=body)).status_code == 404
        assert (await client.get("/healthz")).status_code == 200
    assert len([line for line in caplog.messages if "refused a post" in line]) == 1
    await house.fake.until(lambda: house.fake.texts(ANA) == ["once"])


async def test_more_posts_at_once_than_are_stored_come_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "AT_ONCE", 0)
    house.fake.user_says("/say after all")
    await house.fake.until(lambda: house.fake.posting.posts)
    refused = house.fake.posting.posts[0]
    assert (refused.status, refused.again_after) == (503, "5")
    monkeypatch.undo()
    await house.fake.until(lambda: house.fake.texts(ANA)[-1:] == ["after all"])


async def test_who_is_slow_holds_no_place_that_somebody_else_needs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "AT_ONCE", 2)
    begun = wire.request(
        "POST", "/hooks/telegram", f"{TELEGRAM}: {SECRET}", "Content-Length: 9", body=b"{"
    )
    async with asyncio.TaskGroup() as group:
        slow = [
            group.create_task(wire.say(house.running.web_port, begun), name=f"slow {n}")
            for n in range(4)
        ]
        await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
        house.fake.user_says("/say quick")
        await house.fake.until(lambda: house.fake.texts(ANA) == ["quick"])
        for _ in range(2):
            house.fake.user_says("/say again")
        await house.fake.until(lambda: house.fake.texts(ANA)[1:] == ["again"] * 2)
        assert {post.status for post in house.fake.posting.posts} == {200}
        for one in slow:
            one.cancel()


async def test_a_wrong_secret_is_refused_before_the_body_is_read(house: House) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 64 * BODY_MOST:
            sent += 65_536
            yield b"x" * 65_536

    async with poster(house) as client:
        try:
            answer = await client.post("/hooks/telegram", content=endless())
        except httpx.TransportError:  # the connection is closed on who goes on sending
            return
    assert answer.status_code == 401


async def test_what_was_posted_while_the_gateway_was_down_comes_again(house: House) -> None:
    await house.stop_gateway()
    house.fake.user_says("/say after all")
    await house.fake.until(lambda: house.fake.posting.posts)
    assert house.fake.posting.posts[0].status == 0
    await house.start_gateway()
    await house.fake.until(lambda: house.fake.texts(ANA)[-1:] == ["after all"])


async def test_a_gateway_that_polls_takes_no_posts(tmp_path: Path) -> None:
    async with FakeTelegram() as fake:
        settings = {"LANEWAY_TELEGRAM_TOKEN": fake.token, "LANEWAY_TELEGRAM_API_BASE": fake.url}
        async with Page(tmp_path, **settings) as page:
            client = page.browser(**{TELEGRAM: SECRET})
            answer = await client.post("/hooks/telegram", content=b"{}")
            assert answer.status_code == 404
            assert "not set up" in answer.json()["error"]


async def test_a_turn_from_what_slack_posts(tmp_path: Path) -> None:
    port = free_port()
    async with FakeSlack() as slack:
        settings = {
            "LANEWAY_SLACK_MODE": "webhook",
            "LANEWAY_SLACK_SIGNING_SECRET": slack.signing_secret,
            "LANEWAY_SLACK_BOT_TOKEN": slack.bot_token,
            "LANEWAY_SLACK_API_BASE": slack.url,
            "LANEWAY_ADMINS": "slack:U0ANA",
            "LANEWAY_WEB_PORT": str(port),
            "LANEWAY_WEB_URL": f"http://127.0.0.1:{port}",
        }
        async with House(tmp_path, **settings) as house:
            slack.request_url = f"http://127.0.0.1:{port}/hooks/slack"
            await until(lambda: not house.running.reasons())
            assert await challenge(slack) == (200, "3eZbrw1aB")
            slack.user_says("/say hello")
            await slack.until(lambda: slack.texts(ANA_DM) == ["hello"])
            command = slack.slash("/laneway", "status")
            await slack.until(lambda: slack.ephemerals and command.acked)
            assert all(one.statuses[-1] == 200 for one in slack.envelopes)
            slack.signing_secret = "another"
            slack.user_says("/say forged")
            await slack.until(lambda: slack.envelopes[-1].statuses[:1] == [401])
            async with poster(house, **signed("another", b"")) as client:
                answer = await client.post("/hooks/slack", content=b"x" * (BODY_MOST + 1))
                assert answer.status_code == 413
        assert slack.texts(ANA_DM) == ["hello"]


async def test_what_was_stored_outlives_a_kill_and_the_secret_is_in_no_line(tmp_path: Path) -> None:
    async with (
        FakeTelegram() as fake,
        process(tmp_path / "home", fake, **hooked(free_port())) as one,
    ):
        fake.user_says("/say begun\n/sleep 30")
        await fake.until(lambda: fake.texts(ANA))
        fake.user_says("/say what waited")
        await fake.until(lambda: not fake.updates)  # it was answered with 200
        await one.end(signal.SIGKILL)
        fake.user_says("/say what came meanwhile")
        await fake.until(lambda: fake.posting.posts[-1].status == 0)
        await one.start()
        await fake.until(lambda: fake.texts(ANA)[-1] == "what came meanwhile")
        assert fake.texts(ANA).count("what waited") == 1
        await one.end(signal.SIGTERM)
        lines = "".join(one.lines)
        assert "setWebhook" in lines
        assert SECRET not in lines
