"""The Codex adapter on the real program, with a scripted model on loopback.

Run by ``make test-engines``; skipped where LANEWAY_TEST_CODEX does not name the program.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from core.clock import SystemClock
from core.engines.base import Engine, Finished
from core.engines.codex import CodexEngine
from core.turns import Result
from tests.contracts.engine_contract import Act, EngineContract
from tests.engines.codex_scenes import Scene
from tests.fakes.responses_server import ResponsesServer

PROGRAM = os.environ.get("LANEWAY_TEST_CODEX", "")
pytestmark = [
    pytest.mark.skipif(not PROGRAM, reason="LANEWAY_TEST_CODEX names no program"),
    pytest.mark.timeout(120),
]
DONE = Finished(Result.DONE)
MODEL = "gpt-5.5"  # it has every tool under its plain name

CONFIG = """
model = "{model}"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
env_key = "A_KEY_OF_NOBODY"
request_max_retries = 0
stream_max_retries = 0
"""


@pytest.fixture
async def service() -> AsyncIterator[ResponsesServer]:
    async with ResponsesServer(pause=0.05) as server:
        yield server


@pytest.fixture
def person(service: ResponsesServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory of nobody, so that no login or setting of this machine is used.

    It does not lie in the usual temporary folder, where Codex puts no helpers of its own.
    """
    home = Path(tempfile.mkdtemp(prefix=".laneway-test-", dir=Path.home()))
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CONFIG.format(model=MODEL, url=service.url))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("A_KEY_OF_NOBODY", "sk-a-key-of-nobody")
    yield home
    shutil.rmtree(home)


def real(home: Path, **settings: Any) -> CodexEngine:
    env = ("A_KEY_OF_NOBODY",)
    return CodexEngine((PROGRAM,), home=home, clock=SystemClock(), env=env, **settings)


class TestRealCodex(EngineContract):
    prompts: ClassVar[Mapping[Act, str]] = {
        Act.ANSWER: "remember the blue door",
        Act.RECALL: "RECALL",
        Act.HANG: "SLOW 3000",
        Act.APPROVE: 'TOOL exec_command {"cmd": "touch tea.txt"}',
        Act.FAIL: "ERROR 400",
        Act.CRASH: 'TOOL exec_command {"cmd": "kill -9 $PPID", "sandbox_permissions": '
        '"require_escalated"}',
    }
    remembered = "the blue door"

    @pytest.fixture(autouse=True)
    def _person(self, person: Path) -> None:
        self.person = person

    def make_engine(self, home: Path) -> Engine:
        return real(home)


@pytest.fixture
async def scene(tmp_path: Path, person: Path) -> AsyncIterator[Scene]:
    home, folder = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    folder.mkdir()
    (home / "laneway.db").write_text("SECRET")
    made = Scene(home, folder, real(home, private=[home]))
    yield made
    await made.engine.close()
