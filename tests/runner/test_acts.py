"""Decisions about commands, and what a backup held back, are kept with who did it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engines.base import ApprovalAsked, Finished, Started
from core.store import web
from core.turns import Result
from gateway.control import OWNER
from gateway.reports import Reports
from tests.runner.scene import ANA, Scene

COMMAND = "curl -H 'Authorization: secret' https://example.org/"


@pytest.mark.parametrize(
    ("choice", "act"),
    [("allow", "approval.allowed"), ("always", "approval.always"), ("deny", "approval.denied")],
)
async def test_a_decision_is_an_act_that_names_the_command_by_its_hash(
    tmp_path: Path, choice: str, act: str
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s"), ApprovalAsked("q", "shell", COMMAND))
        await scene.until(lambda: any("curl" in text for text in scene.texts()))
        decides = scene.parts.intake.ground.decides
        await decides.decide(1, choice, ANA, may=True, admin=True)
        await decides.decide(1, choice, ANA, may=True, admin=True)
        run.say(Finished(Result.DONE))
        run.end()
        (found,) = await web.acts(scene.parts.store, 2**62, 10)
        assert (found.person, found.act, found.about) == (ANA, act, "main")
        assert found.detail.startswith("turn 1, command ")
        assert "curl" not in found.detail


async def test_a_decision_that_somebody_may_not_make_is_no_act(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s"), ApprovalAsked("q", "shell", COMMAND))
        await scene.until(lambda: any("curl" in text for text in scene.texts()))
        decides = scene.parts.intake.ground.decides
        await decides.decide(1, "allow", ANA, may=False, admin=False)
        run.say(Finished(Result.DONE))
        run.end()
        assert await web.acts(scene.parts.store, 2**62, 10) == []


async def test_letting_go_of_a_backup_is_an_act_of_the_owner(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        parts = scene.parts
        reports = Reports(parts.store, "demo", parts.runner, parts.people, parts.intake.released)
        await reports.asks()["release"]({})
        (found,) = await web.acts(scene.parts.store, 2**62, 10)
        assert (found.person, found.act) == (OWNER, "backup.released")
        assert found.detail == "0 turns, 0 messages"
