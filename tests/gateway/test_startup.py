"""What a start imports: what it uses, of the platform that is set up, and of no other.

Each start is one of Python, since what a process has imported stays imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec

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
OURS = {"core", "gateway", "channels"}
# All that a gateway without platforms needs of others until messages are taken.
AT_READY = {"aiosqlite", "cronsim", "dotenv", "psutil", "tzdata", "tzlocal"}
# Of Python's own, what takes long to load; the page needs some of it, beside the loop, later.
HEAVY = {"email", "html", "http", "multiprocessing", "tomllib", "unittest", "xml"}
# Loaded with the first job, mail, secret or look at figures, if ever.
WITH_USE = {"acp", "aiosmtplib", "apscheduler", "cryptography", "prometheus_client"}
# Finding a program on the machine is all that is done for an engine that nobody chose.
FINDERS = {"claude_program", "codex_program"}

# A whole life of the gateway: until its web side is up and each platform was tried.
LIFE = """
import sys
begun = set(sys.modules)
import asyncio, json
from pathlib import Path
from core.clock import SystemClock
from gateway import config
from gateway.app import Gateway

environ = json.loads(sys.argv[1])
made = Gateway(config.load(environ, cwd=Path(environ["LANEWAY_HOME"])), SystemClock())
loaded = {}

async def look():
    while "gateway.web.tools" not in sys.modules or any("connecting" in r for r in made.reasons()):
        await asyncio.sleep(0.01)
    made.stop()

async def life():
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        def ready():
            loaded["ready"] = sorted(set(sys.modules) - begun)
            group.create_task(look())
        await made.run(ready)

asyncio.run(life())
loaded["end"] = sorted(set(sys.modules) - begun)
print(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, list[str]]]:
    """What was loaded when messages were taken ("ready"), and in the end, with this platform."""

    @cache
    def live(name: str) -> dict[str, list[str]]:
        home = tmp_path_factory.mktemp("start") / "home"
        environ = {"LANEWAY_HOME": str(home), "LANEWAY_ENGINE": "demo"}
        environ |= {"LANEWAY_WEB_PORT": "0"} | SET_UP.get(name, {})
        done = subprocess.run(
            [sys.executable, "-c", LIFE, json.dumps(environ)],
            capture_output=True, encoding="utf-8", cwd=ROOT, timeout=90,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        loaded: dict[str, list[str]] = json.loads(done.stdout)
        return loaded

    return live


def packages(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("name", NEEDED)
def test_a_start_imports_only_the_libraries_of_the_platform_that_is_set_up(
    lived: Callable[[str], dict[str, list[str]]], name: str
) -> None:
    assert packages(lived(name)["end"]) & OPTIONAL == NEEDED[name]


def test_what_is_not_used_at_once_is_not_loaded_before_messages_are_taken(
    lived: Callable[[str], dict[str, list[str]]],
) -> None:
    loaded = packages(lived("")["ready"])
    others = {one for one in loaded - OURS - sys.stdlib_module_names if not one.startswith("_")}
    assert others <= AT_READY
    assert not loaded & HEAVY


def test_what_may_never_be_used_is_not_loaded_by_a_start(
    lived: Callable[[str], dict[str, list[str]]],
) -> None:
    ends = lived("")["end"]
    assert all(find_spec(one) for one in WITH_USE), "a name that is none proves nothing"
    assert not packages(ends) & WITH_USE
    engines = {one.stem for one in (ROOT / "core" / "engines").glob("*.py")}
    unchosen = {one for one in engines if one.startswith(("claude", "codex", "openai"))} - FINDERS
    assert {"claude", "codex", "openai_http"} < unchosen
    assert not {f"core.engines.{one}" for one in unchosen}.intersection(ends)
