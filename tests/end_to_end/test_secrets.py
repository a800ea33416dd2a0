"""No secret of the gateway is written anywhere: not at debug level, by no library, in no fault."""

import asyncio
import signal
from pathlib import Path

from tests.end_to_end.shell import Shell
from tests.fakes.telegram import ANA, FORUM, TOKEN, FakeTelegram

HALF = TOKEN.partition(":")[2]
KEY = "sk-engine-key-0123456789"
PASSWORD = "mail-pass-word-987"
SECRETS = {
    "LANEWAY_OPENAI_API_KEY": KEY,
    "LANEWAY_SMTP_URL": f"smtp://ana:{PASSWORD}@mail.example:587",
    "LANEWAY_SLACK_SIGNING_SECRET": "slack-signing-0123456789",
    "LANEWAY_METRICS_TOKEN": "metrics-token-0123456789",
    "LANEWAY_TRANSCRIBE_API_KEY": "transcribe-key-0123456789",
}
HIDDEN = (TOKEN, HALF, PASSWORD, *(secret for secret in SECRETS.values() if "//" not in secret))


def nothing_leaked(*texts: str) -> None:
    for text in texts:
        for secret in HIDDEN:
            assert secret not in text


async def test_faults_of_every_kind_at_debug_level_show_no_secret(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with FakeTelegram() as fake:
        shell = Shell(
            home,
            fake,
            LANEWAY_LOG_LEVEL="debug",
            LANEWAY_LOG_FORMAT="text",
            **SECRETS,
            LANEWAY_MAIL_FROM="laneway@example.org",
        )
        child = await shell.start("run")
        fake.user_says("/say hello\n/stderr 100")
        await fake.until(lambda: fake.texts(ANA) == ["hello"])
        fake.fail("sendMessage", 500, "Internal Server Error")
        fake.garble("getUpdates")
        fake.push_raw({"update_id": "no number", "message": 7})
        fake.user_sends(b"x", "a.txt", caption="/say file")
        await fake.until(lambda: fake.called("getFile"))
        fake.drop("editMessageText", after=True)
        fake.user_says("@gw_bot /say more", chat=FORUM, thread=36)
        await fake.until(lambda: fake.texts(FORUM, 36) == ["more"])
        fake.user_says("/say half\n/crash")
        await fake.until(lambda: any("failed" in text for text in fake.texts(ANA)))
        await fake.stop()  # connection errors name addresses
        assert child.stdout is not None
        await asyncio.sleep(1.2)
        child.send_signal(signal.SIGTERM)
        out, err = await child.communicate()
        assert child.returncode == 0
        assert b"getUpdates" in out  # the debug level does show requests
        nothing_leaked(out.decode(), err.decode())
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    nothing_leaked(*(content.decode(errors="replace") for content in files))
