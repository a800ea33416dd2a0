"""The doctor looks at the key file and at what signing in needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engines.base import Finding
from gateway import config
from gateway.cli.doctor_signin import key_file, signing_in
from gateway.keys import KEY_FILE, Keys
from tests.fakes.mail_server import MailServer


async def found(home: Path, **settings: str) -> dict[str, Finding]:
    read = config.load({"LANEWAY_HOME": str(home), **settings}, cwd=home)
    return {one.name: one for one in await signing_in(read)}


def test_a_key_file_is_whole_and_closed_to_others(tmp_path: Path) -> None:
    assert key_file(tmp_path)[0].ok
    assert not (tmp_path / KEY_FILE).exists()
    Keys.of(tmp_path)
    assert key_file(tmp_path)[0].ok
    (tmp_path / KEY_FILE).chmod(0o644)
    (opened,) = key_file(tmp_path)
    assert (opened.ok, opened.fix) == (False, f"chmod 600 {tmp_path / KEY_FILE}")
    (tmp_path / KEY_FILE).write_bytes(b"short")
    assert not key_file(tmp_path)[0].ok


async def test_a_mail_server_is_tried_and_gets_no_mail(tmp_path: Path) -> None:
    async with MailServer() as server:
        findings = await found(tmp_path, LANEWAY_SMTP_URL=server.url)
        assert findings["mail"].ok
        assert str(server.port) in findings["mail"].detail
        encrypted = server.url.replace("smtp+plain", "smtp")
        refused = (await found(tmp_path, LANEWAY_SMTP_URL=encrypted))["mail"]
        assert not refused.ok
        assert "smtps://" in refused.fix
        assert not server.mails
    down = (await found(tmp_path, LANEWAY_SMTP_URL=server.url))["mail"]
    assert not down.ok
    assert "host and port" in down.fix


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "laneway signin"),
        ({"LANEWAY_ADMIN_EMAILS": "ana@example.org,@example.com"}, "2 of admins, 0 of members"),
        ({"LANEWAY_SIGNIN_LIMITS": "code=3/15m,mail=1/1h"}, "without a limit: network, failure"),
    ],
)
async def test_it_says_who_can_sign_in(
    tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    finding = (await found(tmp_path, **settings))["sign-in"]
    assert finding.ok
    assert words in finding.detail


async def test_a_proxy_that_nobody_trusts_is_named(tmp_path: Path) -> None:
    public = {"LANEWAY_WEB_URL": "https://lab.example.org"}
    assert "LANEWAY_TRUSTED_PROXIES" in (await found(tmp_path, **public))["proxy"].fix
    for fine in ({"LANEWAY_TRUSTED_PROXIES": "127.0.0.1"}, {"LANEWAY_WEB_HOST": "192.0.2.1"}):
        assert "proxy" not in await found(tmp_path, **public, **fine)
