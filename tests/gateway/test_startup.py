"""What a start imports: the libraries of the platform that is set up, and of no other.

Each start is one of Python, since what a process has imported stays imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.starting import ROOT
from tests.fakes.discord import TOKEN as DISCORD_TOKEN
from tests.fakes.slack import APP_TOKEN, BOT_TOKEN
from tests.fakes.telegram import TOKEN as TELEGRAM_TOKEN

NOBODY = "127.0.0.1:9"  # where no server listens
SET_UP = {
    "telegram": {
        "LANEWAY_TELEGRAM_TOKEN": TELEGRAM_TOKEN,
        "LANEWAY_TELEGRAM_API_BASE": f"http://{NOBODY}",
    },
    "slack": {
        "LANEWAY_SLACK_BOT_TOKEN": BOT_TOKEN,
        "LANEWAY_SLACK_APP_TOKEN": APP_TOKEN,
        "LANEWAY_SLACK_API_BASE": f"http://{NOBODY}/api/",
    },
    "discord": {
        "LANEWAY_DISCORD_TOKEN": DISCORD_TOKEN,
        "LANEWAY_DISCORD_API_BASE": f"http://{NOBODY}/api/v10",
        "LANEWAY_DISCORD_GATEWAY_URL": f"ws://{NOBODY}/",
    },
}
NEEDED: dict[str, set[str]] = {
    "": set(),
    "telegram": {"telegram", "httpx", "pyromark"},
    "slack": {"slack_sdk", "slack_bolt", "aiohttp", "pyromark"},
    "discord": {"discord", "aiohttp", "pyromark"},
}
# What somebody may not need; libraries of engines are loaded with the first turn that uses them.
OPTIONAL = {"openai"}.union(*NEEDED.values())

# A whole life of the gateway: until its web side is up and each platform was tried.
LIFE = """
import asyncio, json, sys
from pathlib import Path
from core.clock import SystemClock
from gateway import config
from gateway.app import Gateway

environ = json.loads(sys.argv[1])
made = Gateway(config.load(environ, cwd=Path(environ["LANEWAY_HOME"])), SystemClock())

async def look():
    while "gateway.web.tools" not in sys.modules or any("connecting" in r for r in made.reasons()):
        await asyncio.sleep(0.01)
    made.stop()

async def life():
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        await made.run(lambda: group.create_task(look()))

asyncio.run(life())
print(*{name.partition(".")[0] for name in sys.modules})
"""


@pytest.mark.parametrize("name", NEEDED)
def test_a_start_imports_only_the_libraries_of_the_platform_that_is_set_up(
    tmp_path: Path, name: str
) -> None:
    environ = {"LANEWAY_HOME": str(tmp_path / "home"), "LANEWAY_ENGINE": "demo"}
    environ |= {"LANEWAY_WEB_PORT": "0"} | SET_UP.get(name, {})
    done = subprocess.run(
        [sys.executable, "-c", LIFE, json.dumps(environ)],
        capture_output=True, encoding="utf-8", cwd=ROOT, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & OPTIONAL == NEEDED[name]
