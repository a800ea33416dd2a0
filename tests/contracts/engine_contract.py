"""The contract of the Engine port, as one test class that every engine passes.

Subclass it, give it an engine and the prompts that make its agent do a few things. Processes are
real; waiting is always for a condition, with a deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from core.engines.base import (
    ApprovalAsked,
    Approvals,
    ApprovalWithdrawn,
    Decision,
    Engine,
    Event,
    Finished,
    Request,
    Run,
    Started,
    SteerSettled,
    Text,
    Unsent,
)
from core.engines.trees import home_mark, living, marked
from core.turns import Result

GRACE = 2.0
SLACK = 8.0  # s: looking at every process takes long where much else runs


class Act(StrEnum):
    """What a prompt makes the agent do; an engine without a prompt for one skips its tests."""

    ANSWER = "answer"  # says something and ends
    HANG = "hang"  # says something, then works without end
    APPROVE = "approve"  # asks once, then ends
    RECALL = "recall"  # says something that shows whether it remembers ANSWER's prompt
    FAIL = "fail"
    CRASH = "crash"


def processes_of(home: Path) -> list[psutil.Process]:
    """Every living process that an engine of this home has started, directly or not."""
    prefix = f"{home_mark(home)}:"
    return [process for process in marked(lambda mark: mark.startswith(prefix)) if living(process)]


async def until(condition: Callable[[], object], within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # a process or another list: there is no event to wait for
            await asyncio.sleep(0.01)


class Play:
    """A run with a consumer: takes the events, answers approvals as told."""

    def __init__(self, run: Run, decision: Decision | None = Decision.ALLOW) -> None:
        self.run = run
        self.decision = decision
        self.events: list[Event] = []
        self.over = False

    async def through(self) -> list[Event]:
        events: Any = self.run.events()
        async with aclosing(events):
            async for event in events:
                self.events.append(event)
                if isinstance(event, ApprovalAsked) and self.decision is not None:
                    self.run.answer(event.id, self.decision)
        self.over = True
        return self.events

    def saw(self, kind: type) -> bool:
        return any(isinstance(event, kind) for event in self.events)

    @property
    def text(self) -> str:
        return text_of(self.events)

    @property
    def last(self) -> Event:
        return self.events[-1]

    @property
    def started(self) -> Started:
        return next(event for event in self.events if isinstance(event, Started))


def text_of(events: Iterable[Event]) -> str:
    return "".join(event.delta for event in events if isinstance(event, Text))


def assert_in_order(events: list[Event]) -> None:
    """Started first, exactly one Finished or Unsent, and that the last."""
    ends = [event for event in events if isinstance(event, Finished | Unsent)]
    starts = [event for event in events if isinstance(event, Started)]
    assert ends == events[-1:], "one end, and the last event"
    assert starts == events[:1] if len(events) > 1 else len(starts) == 0, "Started first, once"


class EngineContract:
    """What the gateway may rely on."""

    prompts: ClassVar[Mapping[Act, str]] = {}
    remembered: ClassVar[str] = ""  # in the text of RECALL after ANSWER

    def make_engine(self, home: Path) -> Engine:
        raise NotImplementedError

    # Scenery --------------------------------------------------------------------------------

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        home = tmp_path / "home"
        home.mkdir()
        return home

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "workspace"
        folder.mkdir()
        return folder

    @pytest.fixture
    async def engine(self, home: Path) -> AsyncIterator[Engine]:
        engine = self.make_engine(home)
        yield engine
        await engine.close()
        assert processes_of(home) == []

    def request(self, folder: Path, act: Act | str, turn: int = 1, **more: Any) -> Request:
        if isinstance(act, Act) and act not in self.prompts:
            pytest.skip(f"this engine's agent cannot be made to: {act.name.lower()}")
        prompt = self.prompts[act] if isinstance(act, Act) else act
        return Request(
            **{"lane": "lane one", "turn": turn, "folder": folder, "prompt": prompt, **more}
        )

    # Order ----------------------------------------------------------------------------------

    async def test_started_is_first_and_finished_is_last(
        self, engine: Engine, folder: Path
    ) -> None:
        play = Play(engine.run(self.request(folder, Act.ANSWER)))
        events = await play.through()
        assert_in_order(events)
        assert events[-1] == Finished(Result.DONE)
        assert play.started.session
        assert not play.started.resumed
        assert play.text.strip()

    async def test_making_a_run_starts_nothing(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        engine.run(self.request(folder, Act.ANSWER))
        assert processes_of(home) == []

    async def test_a_failing_agent_ends_the_turn_with_words(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        play = Play(engine.run(self.request(folder, Act.FAIL)))
        assert_in_order(await play.through())
        assert isinstance(play.last, Finished)
        assert play.last.result is Result.FAILED
        assert play.last.error
        assert processes_of(home) == []

    async def test_a_crash_ends_the_turn_and_the_next_one_goes_on(
        self, engine: Engine, folder: Path
    ) -> None:
        crashed = Play(engine.run(self.request(folder, Act.CRASH)))
        assert_in_order(await crashed.through())
        assert isinstance(crashed.last, Finished)
        assert crashed.last.result is Result.FAILED
        assert crashed.last.error
        after = Play(
            engine.run(self.request(folder, Act.ANSWER, 2, session=crashed.started.session))
        )
        await after.through()
        assert after.last == Finished(Result.DONE)

    # The conversation -----------------------------------------------------------------------

    async def test_a_session_goes_on(self, engine: Engine, folder: Path) -> None:
        first = Play(engine.run(self.request(folder, Act.ANSWER)))
        await first.through()
        session = first.started.session
        second = Play(engine.run(self.request(folder, Act.RECALL, 2, session=session)))
        await second.through()
        assert second.started.resumed
        assert self.remembered in second.text

    async def test_a_session_goes_on_after_a_restart(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        if not engine.abilities.resume:
            pytest.skip("this engine cannot resume")
        first = Play(engine.run(self.request(folder, Act.ANSWER)))
        await first.through()
        await engine.close()
        later = self.make_engine(home)
        second = Play(later.run(self.request(folder, Act.RECALL, 2, session=first.started.session)))
        await second.through()
        await later.close()
        assert second.started == Started(first.started.session, second.started.model, resumed=True)
        assert self.remembered in second.text

    async def test_no_session_asked_for_is_a_fresh_one(self, engine: Engine, folder: Path) -> None:
        first = Play(engine.run(self.request(folder, Act.ANSWER)))
        await first.through()
        second = Play(engine.run(self.request(folder, Act.ANSWER, 2)))
        await second.through()
        assert second.started.session != first.started.session
        assert not second.started.resumed

    async def test_a_lost_session_becomes_a_fresh_one_and_says_so(
        self, engine: Engine, folder: Path
    ) -> None:
        play = Play(engine.run(self.request(folder, Act.ANSWER, session="long-gone")))
        assert_in_order(await play.through())
        assert not play.started.resumed
        assert play.started.session != "long-gone"
        assert play.last == Finished(Result.DONE)

    async def test_lanes_do_not_share_a_session(self, engine: Engine, folder: Path) -> None:
        plays = [
            Play(engine.run(self.request(folder, Act.ANSWER, turn, lane=f"lane {turn}")))
            for turn in (1, 2, 3)
        ]
        async with asyncio.TaskGroup() as group:
            for play in plays:
                group.create_task(play.through())
        assert len({play.started.session for play in plays}) == 3
        assert [play.last for play in plays] == [Finished(Result.DONE)] * 3

    # Approvals ------------------------------------------------------------------------------

    @pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.DENY])
    async def test_a_question_waits_for_its_answer(
        self, engine: Engine, folder: Path, decision: Decision
    ) -> None:
        play = Play(engine.run(self.request(folder, Act.APPROVE)), decision)
        assert_in_order(await play.through())
        asked = [event for event in play.events if isinstance(event, ApprovalAsked)]
        assert len(asked) == 1
        assert asked[0].command
        assert play.last == Finished(Result.DONE)
        play.run.answer(asked[0].id, Decision.ALLOW)  # too late: changes nothing, fails not

    async def test_an_unknown_approval_is_ignored(self, engine: Engine, folder: Path) -> None:
        run = engine.run(self.request(folder, Act.ANSWER))
        run.answer("no such thing", Decision.ALLOW)
        play = Play(run)
        await play.through()
        assert play.last == Finished(Result.DONE)

    async def test_stop_while_a_question_is_open(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        play = Play(engine.run(self.request(folder, Act.APPROVE)), decision=None)
        async with asyncio.TaskGroup() as group:
            group.create_task(play.through())
            await until(lambda: play.saw(ApprovalAsked))
            await play.run.stop(GRACE)
        assert_in_order(play.events)
        assert play.last == Finished(Result.CANCELLED)
        assert processes_of(home) == []

    # Stop -----------------------------------------------------------------------------------

    async def test_stop_ends_a_working_agent(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        play = Play(engine.run(self.request(folder, Act.HANG)))
        async with asyncio.TaskGroup() as group:
            group.create_task(play.through())
            await until(lambda: play.saw(Text))
            async with asyncio.timeout(GRACE + SLACK):
                await play.run.stop(GRACE)
            assert processes_of(home) == []
        assert_in_order(play.events)
        assert play.last == Finished(Result.CANCELLED)

    async def test_a_stopped_session_goes_on(self, engine: Engine, folder: Path) -> None:
        if not engine.abilities.resume:
            pytest.skip("this engine cannot resume")
        play = Play(engine.run(self.request(folder, Act.HANG)))
        async with asyncio.TaskGroup() as group:
            group.create_task(play.through())
            await until(lambda: play.saw(Text))
            await play.run.stop(GRACE)
        after = Play(engine.run(self.request(folder, Act.ANSWER, 2, session=play.started.session)))
        await after.through()
        assert after.started.resumed
        assert after.last == Finished(Result.DONE)

    async def test_stop_before_the_turn_begins(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        run = engine.run(self.request(folder, Act.ANSWER))
        await run.stop(GRACE)
        assert await Play(run).through() == [Finished(Result.CANCELLED)]
        assert processes_of(home) == []

    async def test_stop_during_the_hand_shake(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        play = Play(engine.run(self.request(folder, Act.ANSWER)))
        async with asyncio.TaskGroup() as group:
            group.create_task(play.through())
            await asyncio.sleep(0)
            await play.run.stop(GRACE)
        assert_in_order(play.events)
        assert play.last == Finished(Result.CANCELLED)
        assert processes_of(home) == []

    async def test_stop_between_started_and_the_prompt(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        run = engine.run(self.request(folder, Act.ANSWER))
        events: Any = run.events()
        async with aclosing(events):
            assert isinstance(await anext(events), Started)
            await run.stop(GRACE)
            assert [event async for event in events] == [Finished(Result.CANCELLED)]
        assert processes_of(home) == []

    async def test_stop_after_the_end_does_nothing(self, engine: Engine, folder: Path) -> None:
        play = Play(engine.run(self.request(folder, Act.ANSWER)))
        await play.through()
        await play.run.stop(GRACE)
        assert play.last == Finished(Result.DONE)

    async def test_two_stops_are_one(self, engine: Engine, folder: Path) -> None:
        play = Play(engine.run(self.request(folder, Act.HANG)))
        async with asyncio.TaskGroup() as group:
            group.create_task(play.through())
            await until(lambda: play.saw(Text))
            group.create_task(play.run.stop(GRACE))
            group.create_task(play.run.stop(GRACE))
        assert_in_order(play.events)

    async def test_a_consumer_that_leaves_takes_the_processes_along(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        events: Any = engine.run(self.request(folder, Act.HANG)).events()
        async for event in events:
            if isinstance(event, Text):
                break
        await events.aclose()
        assert processes_of(home) == []

    async def test_a_cancelled_consumer_takes_the_processes_along(
        self, engine: Engine, folder: Path, home: Path
    ) -> None:
        play = Play(engine.run(self.request(folder, Act.HANG)))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(play.through())
            await until(lambda: play.saw(Text))
            task.cancel()
        assert processes_of(home) == []

    # The rest -------------------------------------------------------------------------------

    async def test_an_offered_message_is_settled_before_the_end(
        self, engine: Engine, folder: Path
    ) -> None:
        if engine.abilities.steer:
            pytest.skip("this engine can take it; its own tests say how")
        play = Play(engine.run(self.request(folder, Act.APPROVE)), decision=None)
        async with asyncio.TaskGroup() as group:
            group.create_task(play.through())
            await until(lambda: play.saw(ApprovalAsked))
            await play.run.steer(7, "and be quick")
            asked = next(event for event in play.events if isinstance(event, ApprovalAsked))
            play.run.answer(asked.id, Decision.ALLOW)
        assert SteerSettled(7, taken=False) in play.events
        assert_in_order(play.events)

    async def test_close_leaves_no_process(self, engine: Engine, folder: Path, home: Path) -> None:
        await Play(engine.run(self.request(folder, Act.ANSWER))).through()
        await engine.close()
        assert processes_of(home) == []

    async def test_the_doctor_finds_it_well(self, engine: Engine, home: Path) -> None:
        findings = await engine.check()
        assert findings
        assert all(finding.ok for finding in findings), findings
        assert processes_of(home) == []

    async def test_full_approvals_still_answer(self, engine: Engine, folder: Path) -> None:
        request = self.request(folder, Act.APPROVE, approvals=Approvals.FULL)
        play = Play(engine.run(request))
        await play.through()
        assert play.last == Finished(Result.DONE)
        assert not play.saw(ApprovalWithdrawn)
