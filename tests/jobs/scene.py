"""Jobs over a real store and the real lane rules, by a clock that a test moves.

Turns that start are run by a puppet: each takes ``takes`` seconds and ends as ``ends`` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.alarm import TICK
from core.engines.base import Approvals
from core.firing import Firing
from core.items import Item
from core.job_rules import Job
from core.jobs import Jobs
from core.lane_commands import Command, Save, Start
from core.lane_events import DrainAsked, Ended, Finished, Prompted
from core.lane_ids import LOCAL
from core.preparing import Defaults
from core.store import jobs as stored
from core.store import reads, rows
from core.store.jobs import FiringRow
from core.store.records import TurnRow
from core.turns import Result, Turn
from core.when.plan import to_instant
from tests.fakes.alarm import ClockAlarm
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, PlainChannel, Scene, opened

CHAT = "telegram:700000001"
HOUR = 3600.0  # seconds


def clock_at(moment: str) -> FakeClock:
    return FakeClock(to_instant(datetime.fromisoformat(moment).replace(tzinfo=UTC)))


@dataclass
class JobScene:
    scene: Scene
    jobs: Jobs
    clock: FakeClock
    stopping: asyncio.Event
    takes: float = 0.0  # seconds
    ends: Result = Result.DONE
    running: set[int] = field(default_factory=set)

    @property
    def store(self) -> Any:
        return self.scene.store

    @property
    def said(self) -> list[str]:
        return self.scene.said

    async def says(self, text: str, **more: Any) -> str:
        """Give a command; the answer."""
        before = len(self.said)
        await self.scene.say(text, **more)
        await self.clock.settle()
        return "\n".join(self.said[before:])

    async def made(self, text: str, **more: Any) -> Job:
        answer = await self.says(text, **more)
        assert answer.startswith("Job "), answer
        return await self.job(int(answer.split()[1]))

    async def job(self, ident: int = 1) -> Job:
        found = await stored.job(self.store, ident)
        assert found is not None
        return found

    async def firings(self, ident: int = 1) -> list[FiringRow]:
        """Oldest first."""
        return list(reversed(await stored.firings(self.store, ident, 10_000)))

    async def states(self, ident: int = 1) -> list[str]:
        return [firing.state.value for firing in await self.firings(ident)]

    async def turns(self) -> list[TurnRow]:
        return await self.scene.turns()

    async def end(self, turn: Turn) -> None:
        """What an engine would do with a turn."""
        rules = self.scene.rules
        now = self.clock.now()
        began = rows.turn_started(turn.id, now, "demo", "")
        await rules.take(Item(event=Prompted(turn.id, turn.lane), rows=(began,)))
        if self.takes:
            await self.clock.sleep(self.takes)
        now = self.clock.now()
        failed = self.ends is Result.FAILED
        result = rows.turn_result(turn.id, now, "done", "no such luck" if failed else "")
        event = Finished(turn.id, turn.lane, self.ends)
        await rules.take(Item(event=event, rows=(result,)))
        await rules.take(Item(event=Ended(turn.id, turn.lane, now)))
        self.running.discard(turn.id)

    async def drain(self) -> None:
        self.stopping.set()
        await self.scene.rules.take(Item(event=DrainAsked()))


@asynccontextmanager
async def jobs_in(
    home: Path,
    clock: FakeClock,
    *,
    takes: float = 0.0,
    ends: Result = Result.DONE,
    runs: bool = True,
    tick: float = TICK,
    **more: Any,
) -> AsyncIterator[JobScene]:
    """``runs``: turns that start are run; else they start and nothing more comes of them."""
    async with opened(home, clock, **more) as scene:
        ground, rules = scene.ground, scene.rules
        ground.channels = {**ground.channels, LOCAL: PlainChannel(LOCAL, ground.limits("telegram"))}
        defaults = Defaults(home, "demo", Approvals.ASK)
        firing = Firing(
            scene.store,
            ground.people,
            frozenset(ground.channels),
            ground.showing,
            clock,
            defaults,
            ground.house.jobs.catch_up,
            "UTC",
        )
        jobs = Jobs(firing, rules, ClockAlarm(clock, tick))
        ground.jobs_changed = jobs.changed
        clock.watch(lambda: scene.store.busy)
        made = JobScene(scene, jobs, clock, asyncio.Event(), takes, ends)
        async with asyncio.TaskGroup() as group:
            follow = _run_turns(group, made, jobs, runs)
            follow(await _restore(scene))
            task = group.create_task(jobs.run(made.stopping), name="jobs")
            await clock.settle()
            try:
                yield made
            finally:
                task.cancel()
                for other in [one for one in asyncio.all_tasks() if one.get_name() == "a turn"]:
                    other.cancel()


def _run_turns(
    group: asyncio.TaskGroup, made: JobScene, jobs: Jobs, runs: bool
) -> Callable[[Sequence[Command]], None]:
    """Do what the runner does after each commit: start turns, tell of ends."""
    rules = made.scene.rules
    take = rules.take

    def follow(commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case Save(turn) if turn.status.over:
                    jobs.over(turn)
                case Start(turn) if turn.id not in made.running:
                    made.running.add(turn.id)
                    if runs:
                        group.create_task(made.end(turn), name="a turn")
                case _:
                    pass

    async def watched(*items: Item) -> list[bool]:
        before = len(rules.commands)
        taken = await take(*items)
        follow(rules.commands[before:])
        return taken

    rules.take = watched  # type: ignore[method-assign]
    return follow


async def _restore(scene: Scene) -> Sequence[Command]:
    """What waited before a restart waits again; what ran is over."""
    turns = [replace(row.turn(), asking=0) for row in await reads.open_turns(scene.store)]
    rules = scene.rules
    commands = rules.lanes.restore(turns, {}, False, frozenset())
    from core.steps import rows_of

    await scene.store.save(*rows_of(commands, scene.clock.now()))
    rules.lanes.settle()
    rules.commands.extend(commands)
    return commands


__all__ = ["ANA", "CHAT", "JobScene", "jobs_in"]
