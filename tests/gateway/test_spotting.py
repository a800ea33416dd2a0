"""What looks like a secret in a command line is found, and what only says where one is, is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import Settings, secrets_of
from gateway.editors import advice, holds_secret, shown
from gateway.settings_table import table
from gateway.spotting import secrets_in
from tests.web.site import Page

COMMAND = next(one for one in table() if one.name == "LANEWAY_ACP_COMMAND")
KEY = "sk-proj-0123456789abcdef"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"agent --key {KEY}", {KEY}),
        (f"agent --api-key={KEY} --acp", {KEY}),
        ("agent --openai.token 'white rabbit'", {"white rabbit"}),
        ("env SOME_PASSWORD=correcthorse agent", {"correcthorse"}),
        ("agent -H 'Authorization: Bearer abcdefgh12345'", {"abcdefgh12345"}),
        ("agent --header 'X-Api-Key: abcdefgh12345'", {"abcdefgh12345"}),
        ("agent --proxy http://ana:p%40ss@example.org", {"p@ss"}),
        ("agent --proxy=http://ana:hidden@example.org", {"hidden"}),
        (f"sh -c 'agent {KEY}'", {KEY}),
        ("agent ghp_0123456789abcdef0123", {"ghp_0123456789abcdef0123"}),
        (f"agent --key '{KEY}", {f"'{KEY}", KEY}),
    ],
)
def test_what_looks_like_a_secret_is_found(line: str, found: set[str]) -> None:
    assert secrets_in(line) == found


@pytest.mark.parametrize(
    "line",
    [
        "gemini --experimental-acp",
        "agent --max-tokens 100000000 --keyboard interactive",
        "agent --key-file /run/secrets/agent.pem --token-env ANTHROPIC_API_KEY",
        "agent --key ~/keys/agent.pem --token ANTHROPIC_API_KEY --secret $MY_SECRET",
        "agent --api-key --verbose-output",
        "agent --token none",
        "env NODE_ENV=production /opt/disk-tools/agent",
        "agent --url https://example.org/keys?a=1",
        "",
    ],
)
def test_what_is_no_secret_is_left_alone(line: str) -> None:
    assert not secrets_in(line)


def test_a_command_line_with_a_secret_is_not_shown_and_says_where_it_belongs() -> None:
    line = f"agent --key {KEY}"
    assert holds_secret(line)
    assert shown(COMMAND, line) == ""
    assert "LANEWAY_ENGINE_ENV" in advice(COMMAND, line)
    assert shown(COMMAND, "agent --acp") == "agent --acp"
    assert advice(COMMAND, "agent --acp") == ""


def test_it_is_among_what_the_log_hides() -> None:
    assert KEY in secrets_of(Settings(acp_command=("agent", "--key", KEY)))


async def test_it_is_nowhere_on_the_page_nor_in_the_audit_nor_open_in_the_database(
    tmp_path: Path,
) -> None:
    async with Page(tmp_path, LANEWAY_CLAUDE_COMMAND=f"claude --key {KEY}2") as page:
        ana = await page.signed_in("ana@example.org")
        body = {"changes": {"LANEWAY_CODEX_COMMAND": f"codex --token {KEY}1"}}
        saved = await ana.post("/api/settings", json=body)
        assert saved.status_code == 200, saved.text
        rows = {
            row["name"]: row
            for group in (await ana.get("/api/settings")).json()["groups"]
            for row in group["settings"]
        }
        assert rows["LANEWAY_CODEX_COMMAND"]["kind"] == "secret"
        for name in ("LANEWAY_CODEX_COMMAND", "LANEWAY_CLAUDE_COMMAND"):
            assert "LANEWAY_ENGINE_ENV" in rows[name]["advice"]
        assert rows["LANEWAY_ACP_COMMAND"]["advice"] == ""
        assert rows["LANEWAY_ACP_COMMAND"]["given"]["value"]
        again = await ana.post("/api/settings", json=body | {"based": {}})
        seen = [saved, again]
        for address in ("/api/settings", "/api/audit", "/metrics", "/audit", "/settings"):
            seen.append(await ana.get(address))
        assert not [one.url for one in seen if KEY in one.text]
        assert page.site.settings.codex_command == ("codex", "--token", f"{KEY}1")
    for file in tmp_path.glob("home/laneway.db*"):
        assert KEY.encode() not in file.read_bytes(), file
