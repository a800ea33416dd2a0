"""The doctor looks at everything that is set up: the stand-in and the transcription as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engines.base import Finding
from core.messages import Address
from core.store import rows
from core.store.store import Store
from gateway import config
from gateway.cli import doctor
from gateway.paths import DATABASE
from tests.fakes.clock import FakeClock
from tests.fakes.openai_server import MODEL, ChatServer
from tests.fakes.transcriber import Transcriber


async def found(home: Path, **settings: str) -> dict[str, Finding]:
    read = config.load({"LANEWAY_HOME": str(home), **settings}, cwd=home)
    return {one.name: one async for some in doctor._parts(read) for one in some}


async def test_the_engine_that_stands_in_is_checked_as_well(tmp_path: Path) -> None:
    async with ChatServer() as server:
        findings = await found(
            tmp_path,
            LANEWAY_FALLBACK_ENGINE="openai",
            LANEWAY_OPENAI_BASE_URL=server.base_url,
            LANEWAY_OPENAI_MODEL=MODEL,
            LANEWAY_OPENAI_API_KEY="k",
        )
    assert findings["openai: server"].ok
    assert findings["demo: hand-shake"].ok


@pytest.mark.parametrize("how", ["told", "by a thread"])
async def test_an_engine_that_can_be_chosen_is_checked_though_it_is_not_the_gateways(
    tmp_path: Path, how: str
) -> None:
    """A command that is set counts as wanted; so does one that a thread has chosen."""
    settings = {"LANEWAY_CLAUDE_COMMAND": "/nowhere/claude", "LANEWAY_ACP_COMMAND": "/nowhere/acp"}
    if how == "by a thread":
        settings.pop("LANEWAY_ACP_COMMAND")
        await chosen_by_a_thread(tmp_path, "acp")
    findings = await found(tmp_path, **settings)
    assert not findings["claude: program"].ok
    assert findings["demo: hand-shake"].ok
    if how == "told":
        assert not findings["acp: program"].ok
    else:
        assert "not set up" in findings["acp: threads"].detail
        assert "/engine" in findings["acp: threads"].fix


async def test_an_engine_that_a_thread_has_chosen_is_checked(tmp_path: Path) -> None:
    async with ChatServer() as server:
        base = {"LANEWAY_OPENAI_BASE_URL": server.base_url, "LANEWAY_OPENAI_MODEL": MODEL}
        await chosen_by_a_thread(tmp_path, "openai")
        findings = await found(tmp_path, LANEWAY_OPENAI_API_KEY="k", **base)
    assert findings["openai: server"].ok


async def chosen_by_a_thread(home: Path, engine: str) -> None:
    async with Store.open(home / DATABASE, FakeClock()) as store:
        await store.save(
            rows.new_lane("telegram:1", Address("telegram", "1"), True, "", 1),
            rows.lane_setting("telegram:1", "engine", engine),
        )


async def test_the_transcription_is_checked_where_one_is_set_up(tmp_path: Path) -> None:
    async with Transcriber() as service:
        service.script = [(401, "no")]
        findings = await found(
            tmp_path, LANEWAY_TRANSCRIBE_URL=service.url, LANEWAY_TRANSCRIBE_API_KEY="k"
        )
        assert not findings["transcription"].ok
        findings = await found(tmp_path, LANEWAY_TRANSCRIBE_URL=service.url)
        assert findings["transcription"].ok
    assert "transcription" not in await found(tmp_path)
