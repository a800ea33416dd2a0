"""What each command says and does, through the whole of intake."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core import commands
from core.approvals import command_hash
from core.channel import ChannelLimits
from core.commands import COMMANDS, menu
from core.commands.base import Who
from core.engines.base import Abilities
from core.folders import workspace
from core.items import Item
from core.lane_commands import News, Refusal, Refuse, Tell
from core.lane_events import LimitsChanged
from core.lane_words import tell
from core.messages import FileKind, FileRef
from core.people import Person, Role
from core.store import reads, rows
from core.store.records import DeliveryKind, LaneRow, RuleRow
from core.turns import Busy, Kind, Limits, Status
from core.wording import FILE_NOT_TAKEN
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, BEN, LAB, Scene, opened

HERE = "telegram:700000001"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def scene(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Scene]:
    async with opened(tmp_path, clock) as made:
        yield made


async def lane(scene: Scene, ident: str = HERE) -> LaneRow:
    found = await reads.lane(scene.store, ident)
    assert found is not None
    return found


# The table


def test_every_command_of_this_version_is_in_the_table() -> None:
    assert set(COMMANDS) == {
        "help", "status", "stop", "skip", "queue", "drop", "btw", "busy", "new", "engine", "model",
        "effort", "approvals", "workspace", "title", "again", "listen", "pause", "resume", "zone",
        "whoami", "usage", "budget", "compact", "every", "at", "in", "watch", "jobs", "job",
        "link",
    }  # fmt: skip


def test_the_menu_fits_the_platforms() -> None:
    for name, line in menu():
        assert name.islower()
        assert name.isascii()
        assert len(name) <= 32
        assert 3 <= len(line) <= 100


def test_members_are_not_offered_what_only_admins_may() -> None:
    member, admin = Person(BEN, "Ben", Role.MEMBER), Person(ANA, "Ana", Role.ADMIN)
    only = {name for name, one in COMMANDS.items() if one.who is Who.ADMINS}
    assert only == {"engine", "approvals", "workspace", "pause", "resume"}
    assert {name for name, one in COMMANDS.items() if not one.open_to(member)} == only
    assert all(one.open_to(admin) for one in COMMANDS.values())


@pytest.mark.parametrize("text", ["/engine codex", "/approvals full", "/workspace /", "/pause"])
async def test_a_member_is_told_what_only_admins_may(scene: Scene, text: str) -> None:
    await scene.say(text, BEN)
    assert scene.said == [f"Only admins can use {text.split()[0]}."]
    row = await lane(scene, BEN)
    assert (row.engine, row.approvals, row.workspace, row.paused) == ("", "", "", False)


async def test_a_command_acts_once_however_often_it_is_delivered(scene: Scene) -> None:
    message = await scene.say("/new")
    await scene.intake.accept([message])
    assert len(scene.said) == 1
    assert (await lane(scene)).epoch == 1


async def test_a_commands_answer_goes_before_everything_else(scene: Scene) -> None:
    await scene.say("/help")
    assert {one.kind for one in scene.rules.deliveries} == {DeliveryKind.COMMAND}


async def test_a_command_is_never_a_prompt_and_does_not_queue(scene: Scene) -> None:
    await scene.say("runs")
    await scene.say("/status")
    assert await scene.prompts() == ["runs"]
    assert "runs" in scene.said[-1]


async def test_an_unknown_word_gets_the_nearest_names(scene: Scene) -> None:
    await scene.say("/stauts")
    assert "/status" in scene.said[0]
    assert await scene.turns() == []


async def test_in_a_group_a_bare_command_counts_only_where_the_platform_shows_commands(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with opened(tmp_path, clock) as scene:
        await scene.say("/status", chat=LAB)
        await scene.say("!status", chat=LAB)
        assert len(scene.said) == 1
    async with opened(tmp_path, clock, limits=ChannelLimits()) as scene:
        await scene.say("/status", chat=LAB)
        assert scene.said == []


async def test_the_nearest_names_have_the_sign_that_was_typed(scene: Scene) -> None:
    await scene.say("!stauts")
    assert scene.said[0].startswith("I do not know !stauts. Did you mean !status")
    assert "/" not in scene.said[0]


async def test_a_command_with_a_file_acts_and_says_that_the_file_was_not_taken(
    scene: Scene,
) -> None:
    file = FileRef("F1", FileKind.IMAGE, "photo.jpg")
    await scene.say("/status", files=(file,))
    assert "State: idle" in scene.said[0]
    assert scene.said[1:] == [FILE_NOT_TAKEN]
    assert await scene.turns() == []


async def test_a_side_question_takes_its_file_along(scene: Scene) -> None:
    file = FileRef("F1", FileKind.IMAGE, "photo.jpg")
    await scene.say("/btw what is this?", files=(file,))
    assert FILE_NOT_TAKEN not in scene.said
    assert "photo.jpg" in (await scene.prompts())[0]


# What runs and waits


async def test_a_skip_says_what_is_true_when_only_messages_wait(scene: Scene) -> None:
    await scene.say("/pause")
    await scene.say("waits")
    await scene.say("/skip")
    assert scene.told == [
        Tell(News.NOTHING, HERE, by=ANA, reason=Refusal.NOTHING_RUNS),
    ]
    assert tell(scene.told[0], str) == "Nothing to skip: nothing runs here."


async def test_a_stop_does_not_say_that_nothing_waits_when_others_wait(scene: Scene) -> None:
    await scene.mention("/pause")
    await scene.mention("waits")
    await scene.mention("/stop", BEN)
    told = scene.told[-1]
    assert isinstance(told, Tell)
    assert tell(told, str).endswith("what waits is not yours.")


async def test_status_of_a_lane_that_waits_for_a_slot_says_that_it_waits(scene: Scene) -> None:
    await scene.rules.take(Item(event=LimitsChanged(Limits(running=1))))
    await scene.mention("runs elsewhere")
    await scene.say("waits for it")
    await scene.say("/status")
    assert "State: waiting to start" in scene.said[-1]


async def test_status_shows_what_runs_waits_and_holds(scene: Scene) -> None:
    await scene.say("fix the tests")
    await scene.say("then the docs")
    await scene.clock.advance(180)
    await scene.say("/status")
    text = scene.said[-1]
    for part in ('"fix the tests"', "Ana", "3 min", "Waiting: 1 message", "demo", "queue"):
        assert part in text


async def test_status_of_an_idle_lane_tells_session_and_cost(scene: Scene) -> None:
    await scene.say("work")
    (turn,) = await scene.turns()
    await scene.run(turn.id)
    await scene.store.save(
        rows.usage(turn.id, 1000, 234, 0.0042), rows.session(HERE, "demo", 0, "abc-1", 1)
    )
    await scene.say("/status")
    for part in ("idle", "abc-1", "1,000 tokens in and 234 out", "$0.0042", "1 turn"):
        assert part in scene.said[-1]


async def test_a_fresh_session_is_not_shown_as_the_old_one(scene: Scene) -> None:
    await scene.say("/new")
    await scene.store.save(rows.session(HERE, "demo", 0, "old-1", 1))
    await scene.say("/status")
    assert "none yet" in scene.said[-1]


async def test_queue_lists_and_drop_takes_out_by_number(scene: Scene) -> None:
    await scene.mention("runs")
    await scene.mention("one")
    await scene.mention("two", BEN)
    await scene.mention("/queue", BEN)
    assert '1. "one" of Ana' in scene.said[-1]
    assert '2. "two" of Ben' in scene.said[-1]
    await scene.mention("/drop 1", BEN)
    assert "somebody else's" in scene.said[-1]
    await scene.mention("/drop 7", BEN)
    assert "from 1 to 2" in scene.said[-1]
    await scene.mention("/drop 2", BEN)
    (told,) = scene.told
    assert isinstance(told, Tell)
    assert told.news is News.DROPPED
    await scene.mention("/drop 1", ANA)
    assert [turn.status for turn in await scene.turns()][1:] == [Status.DROPPED] * 2


async def test_queue_and_drop_of_nothing_say_so(scene: Scene) -> None:
    await scene.say("/queue")
    await scene.say("/drop 1")
    assert scene.said == [
        "Nothing waits here.",
        "Nothing waits here, so there is nothing to drop.",
    ]


async def test_btw_is_answered_on_the_side(scene: Scene) -> None:
    await scene.say("runs")
    await scene.say("/btw what are you doing?")
    side = (await scene.turns())[-1]
    assert (side.kind, side.status, side.label) == (
        Kind.SIDE,
        Status.STARTING,
        "what are you doing?",
    )
    assert (await scene.prompts())[-1] == "what are you doing?"


async def test_a_second_side_answer_is_refused_with_the_reason(scene: Scene) -> None:
    await scene.say("/btw one")
    await scene.say("/btw two")
    (told,) = scene.told
    assert isinstance(told, Refuse)


async def test_btw_says_why_an_agent_has_no_side_answers(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(tmp_path, clock, able=Abilities()) as scene:
        await scene.say("/btw hello?")
        assert [
            (told.reason, told.turn.label) for told in scene.told if isinstance(told, Refuse)
        ] == [(Refusal.NO_SIDE, "hello?")]
        assert [turn.status for turn in await scene.turns()] == [Status.DROPPED]


async def test_a_refused_side_question_can_wait_in_the_queue_instead(scene: Scene) -> None:
    await scene.say("work")
    await scene.say("/btw one")
    await scene.say("/btw two")
    refused = (await scene.turns())[-1]
    assert (refused.label, refused.status) == ("two", Status.DROPPED)
    button = await scene.button(HERE, "queue", refused.id)
    assert await scene.press(button) == "It waits its turn."
    queued = (await scene.turns())[-1]
    assert (queued.kind, queued.status, queued.label) == (Kind.MAIN, Status.WAITING, "two")
    assert await scene.press(button) == "That was pressed already."
    assert (await scene.prompts())[-1] == "two"


@pytest.mark.parametrize(
    ("text", "reads_of_the_past"),
    [
        ("/stop", set()),
        ("/skip", set()),
        ("/queue", set()),
        ("/busy side", set()),
        ("/again", {"turn.last_answer"}),
        ("/status", {"usage.of_lane", "session.of_lane", "pause.list"}),
    ],
)
async def test_a_command_reads_of_the_lanes_past_only_what_it_shows(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, text: str, reads_of_the_past: set[str]
) -> None:
    await scene.say("hello")
    asked: list[str] = []
    fetch = scene.store.fetch

    async def noting(query: str, **parameters: object) -> list[Any]:
        asked.append(query)
        return await fetch(query, **parameters)

    monkeypatch.setattr(scene.store, "fetch", noting)
    await scene.say(text)
    past = {"turn.last_answer", "usage.of_lane", "session.of_lane", "pause.list"}
    assert past.intersection(asked) == reads_of_the_past


async def test_again_repeats_the_last_answer(scene: Scene) -> None:
    await scene.say("/again")
    await scene.say("work")
    (turn,) = await scene.turns()
    await scene.run(turn.id, "**42**")
    await scene.say("/again")
    assert scene.said == ["There is no answer in this thread yet.", "**42**"]


async def test_pause_keeps_messages_and_resume_lets_them_run(scene: Scene) -> None:
    await scene.say("/pause")
    assert (await lane(scene)).paused
    await scene.say("waits")
    assert [turn.status for turn in await scene.turns()] == [Status.WAITING]
    await scene.say("/resume")
    assert [turn.status for turn in await scene.turns()] == [Status.STARTING]


async def test_pause_all_holds_every_lane_and_is_stored(scene: Scene) -> None:
    await scene.say("/pause all")
    await scene.mention("waits", BEN)
    assert [turn.status for turn in await scene.turns()] == [Status.WAITING]
    assert [row.scope for row in await reads.pauses(scene.store)] == ["all"]
    await scene.say("/resume")
    assert "/resume all" in scene.said[-1]
    await scene.say("/resume all")
    assert [turn.status for turn in await scene.turns()] == [Status.STARTING]
    assert await reads.pauses(scene.store) == []


# How a lane works


async def test_busy_is_saved_and_used_for_the_next_message(scene: Scene) -> None:
    await scene.say("/busy")
    assert set(scene.buttons()) == set(Busy)
    await scene.say("/busy zzz")
    assert "Choices" in scene.said[-1]
    await scene.say("/busy collect")
    await scene.say("runs")
    await scene.say("one")
    await scene.say("two")
    assert await scene.prompts() == ["runs", "one\n\ntwo"]


async def test_new_starts_a_fresh_session_and_leaves_what_runs(scene: Scene) -> None:
    await scene.say("runs")
    await scene.say("/new")
    assert "ends as it is" in scene.said[-1]
    assert (await lane(scene)).epoch == 1
    assert scene.rules.cancelled == []


@pytest.mark.parametrize("back", ["default", "-"])
async def test_model_and_effort_are_set_back_in_two_ways(scene: Scene, back: str) -> None:
    for text in ("/model big-1", "/effort high", f"/model {back}", f"/effort {back}"):
        await scene.say(text)
    row = await lane(scene)
    assert (row.model, row.effort) == ("", "")
    assert "default, from the next turn" in scene.said[-1]


async def test_another_engine_has_its_own_model(scene: Scene) -> None:
    await scene.say("/model big-1")
    await scene.say("/effort high")
    row = await lane(scene)
    assert (row.model, row.effort) == ("big-1", "high")
    await scene.say("/engine codex")
    row = await lane(scene)
    assert (row.engine, row.model, row.effort) == ("codex", "", "")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("/engine nosuch", "Choices: codex, demo"),
        ("/busy foo", "There is no busy mode called foo"),
        ("/effort enormous", "Choices"),
        ("/model two words", "one word"),
        ("/approvals maybe", "ask, auto, full"),
        ("/listen all", "nothing to set"),
        ("/zone Mars/Base", "do not know the time zone"),
        ("/workspace relative/path", "whole path"),
        ("/pause forever", "/pause all"),
    ],
)
async def test_a_value_that_does_not_fit_is_refused_with_what_does(
    scene: Scene, text: str, part: str
) -> None:
    await scene.say(text)
    assert part in scene.said[-1]
    row = await lane(scene)
    assert (row.engine, row.effort, row.model, row.approvals) == ("", "", "", "")


@pytest.mark.parametrize("name", ["engine", "model", "effort", "approvals", "busy"])
async def test_without_a_value_each_shows_what_holds_and_offers_the_rest(
    scene: Scene, name: str
) -> None:
    await scene.say(f"/{name}")
    assert "of this thread" in scene.said[0]
    assert scene.buttons()


async def allowed(
    scene: Scene, ident: int, command: str, where: str = HERE, folder: str = ""
) -> None:
    """A rule that somebody made with *always here*."""
    code = command_hash("demo", "shell", command)
    folder = folder or str(workspace(scene.ground.house.home, where, "", "").resolve())
    rule = RuleRow(ident, where, "demo", "shell", command, code, folder, scene.clock.now(), ANA)
    await scene.store.save(rows.always_rule(rule))


async def ruled(scene: Scene) -> list[int]:
    return [rule.id for rule in await reads.always_rules(scene.store)]


async def test_what_is_always_allowed_here_is_listed_with_numbers_and_can_be_revoked(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "laneway.intake")
    await scene.mention("hello", ANA)
    await scene.say("hello")
    await allowed(scene, 3, "make\u202e *check*")
    await allowed(scene, 5, "rm -r build")
    await allowed(scene, 6, "ls", f"telegram:{LAB}")
    await scene.say("/approvals")
    assert "Approvals of this thread: ask" in scene.said[-1]
    assert '- 3: "make' in scene.said[-1]
    assert "\u202e" not in scene.said[-1]
    assert '- 5: "rm -r build" (shell)' in scene.said[-1]
    assert '"ls"' not in scene.said[-1]
    await scene.say("/approvals revoke 5")
    assert 'ask again before this here: "rm -r build"' in scene.said[-1]
    assert "- 3:" in scene.said[-1]
    assert await ruled(scene) == [3, 6]
    (line,) = [one.getMessage() for one in caplog.records if "revoked" in one.getMessage()]
    assert ANA in line
    assert command_hash("demo", "shell", "rm -r build")[:12] in line


async def test_a_button_revokes_one_rule_and_shows_what_is_left(scene: Scene) -> None:
    await scene.say("hello")
    await allowed(scene, 3, "make")
    await allowed(scene, 5, "ls")
    await scene.say("/approvals")
    buttons = scene.buttons()
    assert await scene.press(buttons["Revoke 3"]) == "Saved."
    assert await ruled(scene) == [5]
    assert "- 5:" in scene.said[-1]
    assert "number" in await scene.press(buttons["Revoke 3"])


@pytest.mark.parametrize("number", ["6", "", "x", "99999999999999999999"])
async def test_only_a_rule_of_this_thread_can_be_revoked_here(scene: Scene, number: str) -> None:
    await scene.mention("hello", ANA)
    await scene.say("hello")
    await allowed(scene, 3, "make")
    await allowed(scene, 6, "ls", f"telegram:{LAB}")
    await scene.say(f"/approvals revoke {number}")
    assert "has that number" in scene.said[-1]
    assert "- 3:" in scene.said[-1]
    assert await ruled(scene) == [3, 6]


async def test_what_was_allowed_in_another_folder_is_listed_with_it_and_comes_last(
    scene: Scene,
) -> None:
    await scene.say("hello")
    await allowed(scene, 3, "make", folder="/srv/old *site*")
    await allowed(scene, 5, "ls")
    await scene.say("/approvals")
    first, second = [line for line in scene.said[-1].splitlines() if line.startswith("- ")]
    assert first.startswith('- 5: "ls" (shell), in ')
    assert "works elsewhere" not in first
    assert second.startswith('- 3: "make" (shell), in /srv/old ')
    assert "works elsewhere now" in second
    await scene.say("/approvals revoke 3")
    assert await ruled(scene) == [5]


async def test_members_revoke_nothing(scene: Scene) -> None:
    await scene.mention("hello", ANA)
    await allowed(scene, 6, "ls", f"telegram:{LAB}")
    await scene.mention("/approvals revoke 6", BEN)
    assert "Only admins" in scene.said[-1]
    assert await ruled(scene) == [6]


async def test_a_workspace_must_exist_and_hold_no_secrets(scene: Scene, tmp_path: Path) -> None:
    project = tmp_path.parent / f"{tmp_path.name}-project"
    await scene.say(f"/workspace {project}")
    assert "no folder" in scene.said[-1]
    project.mkdir()
    await scene.say(f"/workspace {project}/../{project.name}")
    assert (await lane(scene)).workspace == str(project.resolve())
    (project / "sly").symlink_to(tmp_path)
    for secret in (tmp_path, project / "sly", tmp_path / "workspaces"):
        secret.mkdir(exist_ok=True)
        await scene.say(f"/workspace {secret}")
        assert "secrets" in scene.said[-1]
    for around in (tmp_path.parent, Path("/")):
        await scene.say(f"/workspace {around}")
        assert "contains the gateway's home" in scene.said[-1]
    (project / "notes.txt").touch()
    await scene.say(f"/workspace {project / 'notes.txt'}")
    assert "is a file" in scene.said[-1]
    assert (await lane(scene)).workspace == str(project.resolve())
    await scene.say("/workspace default")
    assert (await lane(scene)).workspace == ""


async def test_a_title_is_stored_and_shown_on_the_platform(scene: Scene) -> None:
    await scene.say("/title  Release   notes")
    assert (await lane(scene)).title == "Release notes"
    assert scene.signs.titles == [(HERE, "Release notes")]


async def test_listen_mention_makes_an_engaged_thread_need_mentions(scene: Scene) -> None:
    more = {"thread": "36", "engages": True}
    await scene.mention("start", **more)
    await scene.mention("/listen mention", **more)
    await scene.say("not for you", chat=LAB, **more)
    assert len(await scene.turns()) == 1
    await scene.mention("/listen all", **more)
    await scene.say("for you", chat=LAB, **more)
    assert len(await scene.turns()) == 2


async def test_a_zone_is_known_by_any_spelling_and_kept(scene: Scene) -> None:
    await scene.say("/zone europe/berlin", BEN)
    await scene.say("/zone", BEN)
    assert "Europe/Berlin" in scene.said[-1]
    await scene.say("/zone Europe/Berlim", BEN)
    assert "Europe/Berlin" in scene.said[-1]


@pytest.mark.parametrize(
    ("city", "zone"), [("berlin", "Europe/Berlin"), ("New York", "America/New\\_York")]
)
async def test_a_city_alone_is_answered_with_its_zone(scene: Scene, city: str, zone: str) -> None:
    await scene.say(f"/zone {city}")
    assert f"Did you mean {zone}?" in scene.said[-1]


async def test_help_shows_each_person_what_that_person_may(scene: Scene) -> None:
    await scene.say("/help", BEN)
    await scene.say("/help", ANA)
    member, admin = scene.said
    assert "/pause" not in member
    assert "/pause" in admin


def test_an_answer_never_needs_more_than_its_situation() -> None:
    assert commands.nearest("zzz").startswith("I do not know /zzz")
