"""The engines of the settings, and what stands beside them; none starts anything yet.

Each engine but the demo is imported where the settings, or a program that is there, ask for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core.clock import Clock
from core.engines.acp import AcpEngine
from core.engines.base import Engine
from core.engines.claude_program import find_program
from core.engines.codex_program import find_program as find_codex
from core.engines.demo import demo_engine
from core.engines.processes import Ledger
from core.engines.trees import Record
from core.hearing import Hearing
from core.store import rows
from core.store.records import ProcessRow
from core.store.store import Store
from gateway.choices import EngineName
from gateway.config import Settings
from gateway.paths import PRIVATE


class StoreLedger:
    """Keeps records of engine processes in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, record: Record) -> None:
        row = ProcessRow(record.pid, record.created, record.lane, record.marker)
        await self._store.save(rows.process(row))

    def remove(self, record: Record) -> None:
        # Never waited for: a stop and the end of the gateway must not depend on the disk.
        self._store.save_later(rows.remove_process(record.pid, record.created))


def make_engines(settings: Settings, clock: Clock, ledger: Ledger) -> dict[str, Engine]:
    """Every engine that can be chosen here; none of them starts anything yet."""
    env = sorted(settings.engine_env)
    engines: dict[str, Engine] = {"demo": demo_engine(settings.home, clock, ledger, env=env)}
    if settings.acp_command:
        engines["acp"] = AcpEngine(
            EngineName.ACP.value,
            settings.acp_command,
            home=settings.home,
            clock=clock,
            env=env,
            read_only_mode=settings.acp_readonly_mode,
            ledger=ledger,
            grace=settings.stop_grace,
        )
    if settings.openai_base_url:
        engines["openai"] = _chat_engine(settings, clock)
    chosen = {settings.engine, settings.fallback_engine}
    if EngineName.CLAUDE in chosen or settings.claude_command or find_program():
        engines["claude"] = _claude_engine(settings, clock, ledger)
    if EngineName.CODEX in chosen or settings.codex_command or find_codex():
        engines["codex"] = _codex_engine(settings, clock, ledger)
    return engines


def _claude_engine(settings: Settings, clock: Clock, ledger: Ledger) -> Engine:
    from core.engines.claude import ClaudeEngine  # loaded where it is used

    own = [(settings.home, name) for name in PRIVATE]
    return ClaudeEngine(
        settings.claude_command or (find_program() or "claude",),
        home=settings.home,
        clock=clock,
        env=sorted(settings.engine_env),
        private=[*own, (Path.cwd(), ".env")],
        ledger=ledger,
        grace=settings.stop_grace,
    )


def _codex_engine(settings: Settings, clock: Clock, ledger: Ledger) -> Engine:
    from core.engines.codex import CodexEngine  # loaded where it is used
    from core.engines.workspace_tools import reading_tools

    return CodexEngine(
        settings.codex_command or (find_codex() or "codex",),
        home=settings.home,
        clock=clock,
        env=sorted(settings.engine_env),
        private=[settings.home, Path.cwd() / ".env"],
        ledger=ledger,
        grace=settings.stop_grace,
        tools=lambda request: reading_tools(request, (settings.home, Path(".env"))),
    )


def _chat_engine(settings: Settings, clock: Clock) -> Engine:
    from core.engines.openai_http import Bounds, ChatEngine  # loaded where it is used
    from core.engines.workspace_tools import reading_tools

    concealed = (settings.home, Path(".env"))  # whatever folder the workspace is
    return ChatEngine(
        EngineName.OPENAI.value,
        settings.openai_base_url,
        home=settings.home,
        clock=clock,
        key=settings.openai_api_key.reveal() if settings.openai_api_key else "",
        model=settings.openai_model,
        bounds=Bounds(context=settings.openai_context),
        tools=lambda request: reading_tools(request, concealed),
    )


def hearing(settings: Settings, clock: Clock) -> Hearing | None:
    """The service that makes voice notes text, where one is set up."""
    if not settings.transcribe_url:
        return None
    key = settings.transcribe_api_key.reveal() if settings.transcribe_api_key else ""
    return Hearing(settings.transcribe_url, key, settings.transcribe_model, clock)


def fallback(settings: Settings, engines: Mapping[str, Engine]) -> str:
    """The engine that stands in for one that fails; "" none does."""
    name = settings.fallback_engine.value if settings.fallback_engine else ""
    return name if name in engines else ""
