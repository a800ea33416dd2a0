"""What admins do in chats is kept with who did it, in the commit of its effect and once."""

from __future__ import annotations

import logging

import pytest

from core.job_rules import Job, JobKind
from core.store import housekeeping, rows, web
from core.store import jobs as stored
from core.store.records import RuleRow
from core.store.web import Act
from tests.intake.scene import ANA, BEN, Scene


async def acts(scene: Scene) -> list[Act]:
    return await web.acts(scene.store, 2**62, 50)


async def test_an_allowed_place_is_an_act(scene: Scene) -> None:
    await scene.say("/whoami", ANA, chat="-5", addressed=True)
    await scene.press(scene.buttons()["Allow here"], ANA, "-5")
    (act,) = await acts(scene)
    assert (act.person, act.act, act.about) == (ANA, "place.allowed", "telegram:-5")
    assert act.at == scene.clock.now()


async def test_a_button_of_a_command_is_the_same_act(scene: Scene) -> None:
    await scene.say("/engine")
    await scene.press(scene.buttons()["codex"])
    (act,) = await acts(scene)
    assert (act.act, act.detail) == ("engine.chosen", "codex")


async def test_a_redelivered_command_is_one_act(scene: Scene) -> None:
    message = await scene.say("/pause all")
    await scene.intake.accept([message])
    assert [act.act for act in await acts(scene)] == ["all.paused"]


async def test_a_member_who_is_refused_did_nothing(scene: Scene) -> None:
    for said in ("/pause", "/engine codex", "/approvals full", "/workspace default"):
        await scene.say(said, BEN)
    assert await acts(scene) == []


async def test_what_everybody_may_set_is_no_act(scene: Scene) -> None:
    for said in ("/busy side", "/title Release", "/new", "/zone Europe/Berlin"):
        await scene.say(said, ANA)
    assert await acts(scene) == []


async def test_a_rule_that_is_revoked_is_named_by_its_hash_and_never_by_its_words(
    scene: Scene,
) -> None:
    await scene.say("hello")
    (turn,) = await scene.turns()
    code = "92ab33d01cc2ffff"
    rule = RuleRow(1, turn.lane, "demo", "shell", "curl -H secret", code, "", 1, ANA)
    await scene.store.save(rows.always_rule(rule))
    await scene.say("/approvals revoke 1")
    (act,) = await acts(scene)
    assert (act.act, act.about) == ("rule.revoked", turn.lane)
    assert act.detail == "rule 1, command 92ab33d01cc2"


@pytest.mark.parametrize(("whose", "kept"), [(BEN, ["job.cancel"]), (ANA, [])])
async def test_a_job_of_somebody_else_that_an_admin_changes_is_an_act(
    scene: Scene, whose: str, kept: list[str]
) -> None:
    await scene.say("hello")
    (turn,) = await scene.turns()
    job = Job(1, turn.lane, whose, JobKind.SCHEDULE, "every 1d", "UTC", 1, "x", 1, next_at=2**50)
    await scene.store.save(stored.new(job))
    await scene.say("/job 1 cancel")
    assert [act.act for act in await acts(scene)] == kept


async def test_an_act_is_a_line_of_the_log(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "laneway")
    await scene.say("/pause demo")
    assert f"engine.paused: demo by {ANA}" in caplog.text


async def test_acts_older_than_a_year_are_forgotten(scene: Scene) -> None:
    now = scene.clock.now()
    await scene.store.save(web.act(now - 366 * 86_400_000, ANA, "all.paused"))
    await scene.store.save(*housekeeping.tidy(now))
    assert await acts(scene) == []
