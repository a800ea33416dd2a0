"""What a thread can be set to: values and choices are shown, unknown ones get the nearest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.engines.base import Abilities, Choices
from core.items import Item
from core.lane_events import PauseAsked
from core.store import reads, rows
from core.store.records import LaneRow
from core.turns import EnginePause, Kind, Status
from tests.fakes.clock import FakeClock
from tests.intake.scene import ABLE, ANA, Scene, opened

HERE = ANA


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def scene(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Scene]:
    async with opened(tmp_path, clock, able=replace(ABLE, compact=True)) as made:
        yield made


async def lane(scene: Scene) -> LaneRow:
    found = await reads.lane(scene.store, HERE)
    assert found is not None
    return found


async def remembers(scene: Scene) -> None:
    """The agent has a conversation here."""
    await scene.say("hello")
    (turn,) = await scene.turns()
    await scene.run(turn.id)
    await scene.store.save(rows.session(HERE, "demo", 0, "s", scene.clock.now()))


# Models and efforts

KNOWN = Choices(("big-1", "big-2", "small"), ("low", "high"), open=False)


async def test_a_model_is_chosen_among_those_the_engine_has(scene: Scene) -> None:
    scene.rules.offered = KNOWN
    await scene.say("/model")
    assert scene.said[-1] == (
        "Model of this thread: default. Choices: default, big-1, big-2, small."
    )
    await scene.press(scene.buttons()["big-2"])
    assert (await lane(scene)).model == "big-2"
    await scene.say("/model SMALL")
    assert (await lane(scene)).model == "small"


async def test_an_unknown_model_gets_the_nearest_ones_with_buttons(scene: Scene) -> None:
    scene.rules.offered = KNOWN
    await scene.say("/model big-3")
    assert "no model called big-3 here. Did you mean big-" in scene.said[-1]
    assert set(scene.buttons()) == {"big-1", "big-2"}
    await scene.say("/model zzz")
    assert "Choices: default, big-1, big-2, small." in scene.said[-1]
    assert (await lane(scene)).model == ""


async def test_names_that_look_right_are_taken_beside_those_that_are_listed(scene: Scene) -> None:
    scene.rules.offered = replace(KNOWN, like=("claude",))
    await scene.say("/model claude-next-9")
    assert (await lane(scene)).model == "claude-next-9"


async def test_an_engine_without_a_choice_says_so(scene: Scene) -> None:
    scene.rules.offered = Choices(open=False)
    await scene.say("/model big")
    assert scene.said == ["demo offers no choice of model here."]


async def test_a_long_list_is_shown_in_part(scene: Scene) -> None:
    scene.rules.offered = Choices(tuple(f"m{number}" for number in range(200)), open=False)
    await scene.say("/model")
    assert scene.said[-1].endswith("and 171 more.")
    assert len(scene.buttons()) == 12


async def test_efforts_are_those_of_the_model(scene: Scene) -> None:
    scene.rules.offered = KNOWN
    await scene.say("/effort")
    assert scene.said[-1].endswith("Choices: default, low, high.")
    await scene.say("/effort hihg")
    assert "Did you mean high?" in scene.said[-1]
    await scene.say("/effort max")
    assert "no effort called max here" in scene.said[-1]
    assert (await lane(scene)).effort == ""
    await scene.say("/effort HIGH")
    assert (await lane(scene)).effort == "high"


async def test_an_engine_without_a_choice_of_effort_takes_none_but_lets_go_of_one(
    scene: Scene,
) -> None:
    await scene.say("/effort high")  # nothing is known of the agent yet
    scene.rules.offered = Choices(open=False)
    for text in ("/effort", "/effort low"):
        await scene.say(text)
        assert scene.said[-1] == "demo offers no choice of effort here."
    assert (await lane(scene)).effort == "high"
    await scene.say("/effort default")
    assert (await lane(scene)).effort == ""


@pytest.mark.parametrize("name", ["claude", "openai", "acp"])
async def test_an_engine_that_is_not_set_up_is_told_with_what_it_needs(
    scene: Scene, name: str
) -> None:
    await scene.say(f"/engine {name}")
    assert f"{name} is not set up here: it needs" in scene.said[-1]
    assert f"LANEWAY_{name.upper()}" in scene.said[-1]
    assert set(scene.buttons()) == {"codex", "demo"}
    assert (await lane(scene)).engine == ""


async def test_an_unknown_engine_gets_the_nearest(scene: Scene) -> None:
    await scene.say("/engine dmeo")
    assert "Did you mean demo?" in scene.said[-1]


async def test_a_workspace_is_shown_with_a_way_back_and_a_near_name(
    scene: Scene, tmp_path: Path
) -> None:
    project = tmp_path.parent / f"{tmp_path.name}-project"
    project.mkdir()
    await scene.say("/workspace")
    assert set(scene.buttons()) == {"default"}
    await scene.say(f"/workspace {project}s")
    assert "Did you mean" in scene.said[-1]
    assert "-project" in scene.said[-1]


# Compacting


async def test_a_compaction_is_a_turn_of_its_own_kind(scene: Scene) -> None:
    await remembers(scene)
    await scene.say("/compact the names of the files")
    assert scene.said == ["I shorten the conversation; that takes a moment."]
    turn = (await scene.turns())[-1]
    assert (turn.kind, turn.status) == (Kind.COMPACT, Status.STARTING)
    assert (await scene.prompts())[-1] == "the names of the files"


async def test_in_a_busy_thread_it_waits_its_turn_once(scene: Scene) -> None:
    await remembers(scene)
    await scene.say("work")
    await scene.say("/compact")
    assert scene.said == ["I shorten the conversation when its turn comes."]
    turn = (await scene.turns())[-1]
    assert (turn.kind, turn.status) == (Kind.COMPACT, Status.WAITING)
    await scene.say("/compact")
    assert scene.said[-1] == "That is on its way already."
    assert len(await scene.turns()) == 3


async def test_without_a_conversation_there_is_nothing_to_compact(scene: Scene) -> None:
    await scene.say("/compact")
    assert "nothing to shorten yet" in scene.said[-1]
    assert await scene.turns() == []


async def test_an_engine_that_cannot_compact_says_what_helps(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with opened(tmp_path, clock, able=Abilities(resume=True)) as scene:
        await scene.say("/compact")
        assert "/new begins a fresh one" in scene.said[-1]


# Paused engines


async def limited(scene: Scene, until: int | None) -> None:
    why = EnginePause("its limit of use is reached", until)
    row = rows.pause("engine:demo", why.reason, scene.clock.now(), until)
    await scene.rules.take(Item(event=PauseAsked(engine="demo", why=why), rows=(row,)))


async def test_status_and_pause_tell_what_an_engine_waits_for(scene: Scene) -> None:
    await limited(scene, scene.clock.now() + 2 * 3_600_000)
    await scene.say("/status")
    assert "State: paused" in scene.said[-1]
    assert "Demo is paused (its limit of use is reached); it goes on at " in scene.said[-1]
    assert ", in 2 h" in scene.said[-1]
    await scene.say("/pause")
    assert "Demo is paused (its limit" in scene.said[-1]


async def test_resuming_a_thread_tells_that_its_engine_is_still_paused_and_offers_more(
    scene: Scene,
) -> None:
    await limited(scene, None)
    await scene.say("waits")
    await scene.say("/resume")
    assert "This thread goes on." in scene.said[-1]
    assert "an admin lets it go on with /resume demo" in scene.said[-1]
    assert (await scene.turns())[-1].status is Status.WAITING
    await scene.press(scene.buttons()["Resume demo now"])
    assert (await scene.turns())[-1].status is Status.STARTING
    assert await reads.pauses(scene.store) == []


async def test_an_engine_is_paused_and_resumed_by_its_name(scene: Scene) -> None:
    await scene.say("/pause codex")
    await scene.say("runs")
    assert (await scene.turns())[-1].status is Status.STARTING
    (row,) = await reads.pauses(scene.store)
    assert (row.scope, row.until) == ("engine:codex", None)
    await scene.say("/resume codex")
    assert await reads.pauses(scene.store) == []
    await scene.say("/resume codex")
    assert scene.said[-1] == "codex is not paused."


@pytest.mark.parametrize("text", ["/pause nosuch", "/resume nosuch"])
async def test_what_cannot_be_paused_is_told(scene: Scene, text: str) -> None:
    await scene.say(text)
    assert scene.said[-1].startswith(f"Write {text.split()[0]} for this thread")
