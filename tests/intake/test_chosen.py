"""Commands of the platforms' own: what only concerns who asked is told in private."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.messages import Part
from core.store import reads
from tests.intake.scene import ANA, BEN, LAB, Scene

TOPIC = {"chat": LAB, "thread": "36"}
ROOT = {"chat": LAB, "no_thread": True}


@pytest.mark.parametrize("where", [TOPIC, {}])
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/status", "State: idle"),
        ("/help", "Write what you want done"),
        ("/queue", "Nothing waits here."),
        ("/usage", ""),
        ("/whoami", ANA),
        ("/again", "There is no answer"),
        ("/zone", "time zone"),
        ("/drop 3", "nothing to drop"),
        ("/title", "/title Release notes"),
    ],
)
async def test_what_tells_something_is_told_in_private_and_makes_no_thread(
    scene: Scene, where: dict[str, str], command: str, told: str
) -> None:
    (shown,) = await scene.choose(command, ANA, **where)
    assert told in shown
    assert scene.said == []
    assert await reads.lane_list(scene.store) == []


async def test_a_change_of_ones_own_is_made_and_told_in_private(scene: Scene) -> None:
    (shown,) = await scene.choose("/zone Europe/Berlin", BEN, **TOPIC)
    assert "Europe/Berlin" in shown
    assert scene.said == []
    assert scene.ground.people.person(BEN, "Ben").zone == "Europe/Berlin"


@pytest.mark.parametrize(
    "command", ["/new", "/title Plans", "/model big", "/busy side", "/pause", "/engine"]
)
async def test_what_changes_a_thread_or_has_buttons_is_said_in_the_thread(
    scene: Scene, command: str
) -> None:
    assert await scene.choose(command, ANA, **TOPIC) == ["Taken."]
    assert len(scene.said) == 1


async def test_a_stop_ends_what_runs_and_is_told_as_one_that_was_typed(scene: Scene) -> None:
    await scene.say("work", chat=LAB, thread="36", addressed=True)
    (turn,) = await scene.turns()
    assert await scene.choose("/stop", ANA, **TOPIC) == ["Taken."]
    assert scene.rules.cancelled
    assert turn.lane == "telegram:" + LAB + ":36"


async def test_a_chosen_command_that_comes_twice_is_carried_out_once(scene: Scene) -> None:
    message = replace(scene.message("/status"), press="i1")
    await scene.intake.accept([message])
    await scene.intake.accept([message])
    assert len(scene.signs.pressed) == 1


async def test_a_long_answer_is_cut_and_says_so(scene: Scene) -> None:
    long = [Part(f"part {n}") for n in range(9)]
    scene.ground.channels["telegram"].render = lambda markdown: long  # type: ignore[method-assign]
    (shown,) = await scene.choose("/help", ANA, **TOPIC)
    assert shown.splitlines()[:3] == ["part 0", "part 1", "part 2"]
    assert "There is more" in shown


# Where threads begin --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["/status", "/stop", "/new", "/jobs", "/btw what", "/pause"])
async def test_where_no_conversation_is_it_says_where_the_command_belongs(
    scene: Scene, command: str
) -> None:
    (shown,) = await scene.choose(command, ANA, **ROOT)
    assert f"!{command[1:].partition(' ')[0]} in its thread" in shown
    assert scene.said == []
    assert await reads.lane_list(scene.store) == []


@pytest.mark.parametrize("command", ["/help", "/whoami", "/usage all", "/zone"])
async def test_what_concerns_no_thread_is_answered_there_all_the_same(
    scene: Scene, command: str
) -> None:
    (shown,) = await scene.choose(command, ANA, **ROOT)
    assert "in its thread" not in shown
    assert scene.said == []
    assert await reads.lane_list(scene.store) == []


async def test_everything_can_be_paused_there_and_nobody_else_is_told(scene: Scene) -> None:
    (shown,) = await scene.choose("/pause all", ANA, **ROOT)
    assert shown.startswith("Paused")
    assert scene.said == []
    assert await reads.pauses(scene.store)


async def test_a_button_is_shown_there_if_only_that_can_let_people_in(scene: Scene) -> None:
    assert await scene.choose("/whoami", ANA, chat="-1005", no_thread=True) == ["Taken."]
    assert "Allow here" in scene.buttons()
