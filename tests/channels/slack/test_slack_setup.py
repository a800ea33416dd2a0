"""What the doctor says about the app at Slack, and that the manifest asks for what is used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from channels.registry import ADAPTERS, CHECKS, OPENERS
from channels.slack.setup import NEEDED, USEFUL, Finding
from tests.fakes.slack import FakeSlack

ROOT = Path(__file__).parents[3]


async def findings(fake: FakeSlack, **options: str) -> dict[str, Finding]:
    given = {"bot_token": fake.bot_token, "app_token": fake.app_token, "api_base": fake.url}
    found = await CHECKS["slack"](**(given | options))
    return {one[0]: one for one in found}


def test_slack_is_a_channel_that_can_be_opened_and_checked() -> None:
    assert "slack" in ADAPTERS
    assert "slack" in OPENERS


async def test_a_whole_set_up_is_well() -> None:
    async with FakeSlack() as fake:
        found = await findings(fake)
        assert all(well for _, well, _, _ in found.values())
        assert "laneway (UBOT) in Test" in found["slack bot token"][2]
        assert found["slack socket mode"][2] == "on"
        assert not fake.sockets


@pytest.mark.parametrize(
    ("options", "name", "fix"),
    [
        ({"bot_token": "xoxb-wrong"}, "slack bot token", "Install to Workspace"),
        ({"bot_token": "xapp-swapped"}, "slack bot token", "LANEWAY_SLACK_BOT_TOKEN"),
        ({"app_token": "xapp-wrong"}, "slack app token", "connections:write"),
        ({"app_token": "xoxb-swapped"}, "slack app token", "LANEWAY_SLACK_APP_TOKEN"),
        ({"api_base": "http://127.0.0.1:9/api/"}, "slack bot token", "network"),
    ],
)
async def test_what_is_wrong_is_named_with_what_to_click(
    options: dict[str, str], name: str, fix: str
) -> None:
    async with FakeSlack() as fake:
        _, well, seen, to_do = (await findings(fake, **options))[name]
        assert not well
        assert fix in to_do
        assert not any(token in seen + to_do for token in (fake.bot_token, fake.app_token))


async def test_a_socket_mode_that_is_off_is_named() -> None:
    async with FakeSlack() as fake:
        fake.socket_mode = False
        _, well, _, to_do = (await findings(fake))["slack socket mode"]
        assert not well
        assert "Enable Socket Mode" in to_do


async def test_a_missing_scope_is_named_with_what_it_is_for() -> None:
    async with FakeSlack() as fake:
        fake.scopes = ",".join({*NEEDED, *USEFUL} - {"chat:write"})
        _, well, seen, to_do = (await findings(fake))["slack scopes"]
        assert (well, seen) == (False, "missing: chat:write (answers)")
        assert "Reinstall" in to_do
        fake.scopes = ",".join({*NEEDED, *USEFUL} - {"users:read"})
        _, well, seen, _ = (await findings(fake))["slack scopes"]
        assert (well, seen) == (True, "missing: users:read (people's names)")


def test_the_manifest_asks_for_every_scope_and_event_that_is_used() -> None:
    manifest = (ROOT / "channels" / "slack" / "manifest.yaml").read_text()
    scopes = set(re.findall(r"^ +- ([a-z_]+:[a-z]+|commands)$", manifest, re.MULTILINE))
    assert {*NEEDED, *USEFUL} <= scopes
    events = set(re.findall(r"^ +- ([a-z_]+(?:\.[a-z]+)?)$", manifest, re.MULTILINE))
    wanted = {"app_mention", "message.channels", "message.groups", "message.im", "message.mpim"}
    assert wanted <= events
    assert "socket_mode_enabled: true" in manifest
    assert "command: /laneway" in manifest
