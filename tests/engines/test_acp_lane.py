"""A whole lane with an agent that tells the total of its session: which one it goes on with, what
each turn cost, and all of it in one process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.budget_words import day_of
from core.engines.acp import AcpEngine
from core.store import reads
from core.store.records import TurnRow
from tests.engines import scenes
from tests.runner.scene import Scene

PAYS = "/usage 10 5 0.20"  # beside what its session has cost before


@asynccontextmanager
async def lane(home: Path) -> AsyncIterator[Scene]:
    made = Scene(home)
    engine = AcpEngine("demo", scenes.command(home), home=home, clock=made.clock)
    made.engine = engine  # type: ignore[assignment]
    try:
        async with made:
            yield made
    finally:
        await engine.close()


async def answered(scene: Scene, *script: str) -> TurnRow:
    """The turn of this message, once it is over. The script is the agent's, no command of ours."""
    before = len(await scene.turns())
    await scene.says("/" + "\n".join(script))
    await scene.until(lambda: scene.parts.runner.view("main") is None)
    *earlier, turn = await scene.turns()
    assert len(earlier) == before
    return turn


def spent(scene: Scene) -> float:
    day = day_of(scene.clock.now(), scene.settings.timezone)
    return scene.parts.runner.budgeting.budgets.on_day(day)


async def test_a_conversation_that_was_refused_never_comes_back_and_no_cost_jumps(
    tmp_path: Path,
) -> None:
    async with lane(tmp_path) as scene:
        first = await answered(scene, PAYS, "/say one")
        assert first.cost == pytest.approx(0.2)
        refused = await answered(scene, PAYS, "/refuse-old", "/turns")
        assert (refused.status.value, refused.answer) == ("done", "0")  # in a fresh one
        assert refused.session != first.session
        assert refused.cost == pytest.approx(0.4), "both tries, each with its own"
        assert (refused.tokens_in, refused.tokens_out) == (20, 10)
        goes_on = await answered(scene, PAYS, "/turns")
        assert (goes_on.session, goes_on.answer) == (refused.session, "1")
        assert goes_on.cost == pytest.approx(0.2)
        await scene.says("/new")
        await scene.says("/budget 0.25")
        fresh = await answered(scene, PAYS, "/turns")
        assert fresh.answer == "0"
        assert fresh.session not in {first.session, refused.session}
        assert (fresh.status.value, fresh.cost) == ("done", pytest.approx(0.2))
        after = await answered(scene, PAYS, "/turns")
        assert (after.session, after.answer) == (fresh.session, "1")
        assert after.cost == pytest.approx(0.2)
        assert spent(scene) == pytest.approx(6 * 0.2)
        held = await reads.sessions(scene.parts.store, "main")
        assert held["demo"].session == fresh.session


@pytest.mark.parametrize("ends", ["/crash 3", "/kill"])
async def test_what_a_turn_cost_whose_agent_died_is_counted_once(tmp_path: Path, ends: str) -> None:
    """Its conversation is gone on with, until somebody says that a fresh one shall begin."""
    async with lane(tmp_path) as scene:
        first = await answered(scene, PAYS, "/say one")
        cut_off = await answered(scene, PAYS, "/say half", ends)
        assert (cut_off.status.value, cut_off.cost) == ("failed", pytest.approx(0.2))
        goes_on = await answered(scene, PAYS, "/turns")
        assert (goes_on.session, goes_on.answer) == (first.session, "1")
        assert goes_on.cost == pytest.approx(0.2)
        await scene.says("/new")
        fresh = await answered(scene, PAYS, "/turns")
        assert (fresh.answer, fresh.cost) == ("0", pytest.approx(0.2))
        assert fresh.session != first.session
        assert spent(scene) == pytest.approx(4 * 0.2)


async def test_a_cap_is_of_one_turn_though_the_session_has_cost_more_than_it(
    tmp_path: Path,
) -> None:
    """The agent tells 0.40 and 0.60 meanwhile; the last one costs too much by itself."""
    async with lane(tmp_path) as scene:
        await answered(scene, PAYS, "/say one")
        await scene.says("/budget 0.25")
        capped = await answered(scene, PAYS, "/say two")
        assert (capped.status.value, capped.cost) == ("done", pytest.approx(0.2))
        free = await answered(scene, PAYS, "/say three")
        assert (free.status.value, free.cost) == ("done", pytest.approx(0.2))
        await scene.says("/budget 0.15")
        stopped = await answered(scene, PAYS, "/say four", "/hang")
        assert (stopped.status.value, stopped.cost) == ("stopped", pytest.approx(0.2))
        await scene.until(lambda: any("stopped at its cap" in text for text in scene.texts()))
        last = await answered(scene, PAYS, "/say five")
        assert (last.status.value, last.cost) == ("done", pytest.approx(0.2))
