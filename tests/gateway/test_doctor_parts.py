"""The doctor looks at everything that is set up: the stand-in and the transcription as well."""

from __future__ import annotations

from pathlib import Path

from core.engines.base import Finding
from gateway import config
from gateway.cli import doctor
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
