"""Engines at work: looked after in a task each, exchanged when their settings change.

A turn ends on the engine it began with; new turns take the new one, and the old one is closed when
nothing runs on it any more. It must not know what an engine is made of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from core.clock import Clock
from core.engines.base import Engine

log = logging.getLogger("laneway")

LOOK_EVERY = 0.25  # seconds between two looks whether an old engine is still used


class Tending:
    """One for the process. ``engines`` are those of all parts, and kept up to date."""

    def __init__(self, engines: dict[str, Engine], clock: Clock) -> None:
        self._engines = engines
        self._clock = clock
        self._uses: Callable[[Engine], bool] = lambda _: False
        self._group: asyncio.TaskGroup | None = None
        self._tends: dict[Engine, asyncio.Task[None]] = {}
        self._old: dict[Engine, asyncio.Task[None] | None] = {}
        self._looks: set[asyncio.Task[None]] = set()

    def begin(self, group: asyncio.TaskGroup, uses: Callable[[Engine], bool]) -> None:
        """Look after all of them; ``uses`` tells whether a turn runs on an engine."""
        self._group, self._uses = group, uses
        for engine in self._engines.values():
            self._tend(engine)

    def end(self) -> None:
        """Nothing is looked after from now on; what is exchanged then waits for ``close``."""
        self._group = None
        for task in (*self._tends.values(), *self._old.values(), *self._looks):
            if task is not None:
                task.cancel()

    def look(self, name: str) -> None:
        """Ask an agent what it can do, if that is not known yet; turns do not wait for it."""
        engine = self._engines.get(name)
        if self._group is not None and engine is not None and not engine.abilities.side:
            task = self._group.create_task(_look(engine), name=f"abilities of {name}")
            self._looks.add(task)
            task.add_done_callback(self._looks.discard)

    async def close(self) -> None:
        """End every warm process, of old engines as well."""
        for engine in (*self._old, *reversed(self._engines.values())):
            await engine.close()

    async def renew(self, fresh: Mapping[str, Engine], names: Collection[str]) -> None:
        """Exchange those of ``names``, add new ones and take away what is not there any more.

        What of ``fresh`` is not needed is closed; nothing was started in it.
        """
        for name in sorted({*self._engines, *fresh}):
            old, new = self._engines.get(name), fresh.get(name)
            if old is not None and new is not None and name not in names:
                await new.close()
                continue
            if old is not None:
                self._retire(name, old)
                del self._engines[name]
            if new is not None:
                self._engines[name] = new
                self._tend(new)

    def _tend(self, engine: Engine) -> None:
        if self._group is not None:
            task = self._group.create_task(engine.tend(), name=f"tend {engine.name}")
            self._tends[engine] = task

    def _retire(self, name: str, engine: Engine) -> None:
        self._old[engine] = None
        if self._group is not None:
            ending = self._end(engine)
            self._old[engine] = self._group.create_task(
                ending, name=f"end of the old engine {name}"
            )

    async def _end(self, engine: Engine) -> None:
        while self._uses(engine):
            await self._clock.sleep(LOOK_EVERY)
        if task := self._tends.pop(engine, None):
            task.cancel()
        await engine.close()
        del self._old[engine]
        log.info("%s: the old one has ended", engine.name)


async def _look(engine: Engine) -> None:
    try:
        findings = await engine.check()
    except Exception:  # the border to engines: a look that breaks costs nothing else
        log.exception("what the engine %s can do could not be looked at", engine.name)
        return
    for finding in findings:
        if not finding.ok:
            log.warning("%s: %s %s", finding.name, finding.detail, finding.fix)
