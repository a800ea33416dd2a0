"""Turns of an ACP agent that behaves, seen through the engine port."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from core.engines.asking import COMMAND_MOST
from core.engines.base import (
    ApprovalAsked,
    Approvals,
    ApprovalWithdrawn,
    Attachment,
    Decision,
    FileMade,
    Finished,
    Started,
    Text,
    Thought,
    ToolEnded,
    ToolStarted,
    Unsent,
    Usage,
)
from core.turns import Result
from tests.contracts.engine_contract import Play
from tests.engines.program_scenes import running
from tests.engines.scenes import Scene

Make = Callable[..., Scene]
DONE = Finished(Result.DONE)


def failure(play: Play) -> str:
    """The words of a turn that failed before it began."""
    (event,) = play.events
    assert isinstance(event, Finished)
    assert event.result is Result.FAILED
    return event.error


async def test_nothing_of_the_prompt_leaves_before_the_second_event(make: Make) -> None:
    scene = make()
    play = scene.play("a secret plan")
    events: Any = play.run.events()
    async with aclosing(events):
        assert isinstance(await anext(events), Started)
        await play.run.stop(1.0)
    assert "session/new" in scene.methods()
    assert "session/prompt" not in scene.methods()
    assert "secret" not in json.dumps(scene.log)


async def test_what_an_agent_does_becomes_events(make: Make) -> None:
    play = await make().say("/think well\n/say Looking.\n/tool read a file\n/say Found it.")
    assert play.events[1:] == [
        Thought("well"),
        Text("Looking."),
        ToolStarted("call_0_1", "read a file"),
        ToolEnded("call_0_1", "read a file"),
        Text("\n\nFound it."),  # two messages of the agent, not one sentence
        DONE,
    ]


async def test_pieces_are_joined_as_they_are(make: Make) -> None:
    play = await make().say("/say one \n/say two")
    assert play.text == "one two"


async def test_usage_is_that_of_the_turn_although_agents_tell_the_sessions_total(
    make: Make,
) -> None:
    scene = make()
    first = await scene.say("/usage 10 5 0.25")
    second = await scene.say("/usage 20 7 0.5", session=first.started.session)
    assert first.events[-2] == Usage(10, 5, 0.25)
    assert second.events[-2] == Usage(20, 7, 0.5)
    assert scene.engine.abilities.cost


async def test_a_resumed_session_is_not_charged_with_its_past(make: Make) -> None:
    first = await make().say("/usage 10 5 4.0")
    scene = make()
    second = await scene.say("/usage 20 7 0.5", session=first.started.session)
    assert second.started.resumed
    assert second.events[-2] == Usage(20, 7, 0.5)


async def test_a_total_that_falls_is_a_new_counter(make: Make) -> None:
    play = await make().say("/total 2\n/total 3\n/total 0.5")
    costs = [event.cost for event in play.events if isinstance(event, Usage)]
    assert costs == [2.0, 3.0, 3.5]


async def test_a_file_of_the_answer(make: Make) -> None:
    scene = make()
    play = await scene.say("/file table.csv a,b")
    assert FileMade(scene.folder / "table.csv", "table.csv") in play.events


async def test_a_picture_of_the_answer_is_saved_in_the_workspace(make: Make) -> None:
    scene = make()
    play = await scene.say("/image")
    (made,) = [event for event in play.events if isinstance(event, FileMade)]
    assert made.path.is_relative_to(scene.folder)
    assert made.path.read_bytes().startswith(b"\x89PNG")


async def test_a_picture_goes_through_no_link_the_agent_made(make: Make, tmp_path: Path) -> None:
    scene = make()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (scene.folder / "outbox").symlink_to(elsewhere)
    play = await scene.say("/image\n/say done")
    assert list(elsewhere.iterdir()) == []
    assert "could not be saved as outbox/turn-1-1.png" in play.text
    assert play.text.endswith("done")
    assert play.last == DONE
    (scene.folder / "outbox").unlink()
    (scene.folder / "outbox").mkdir()
    (elsewhere / "precious").write_text("precious")
    (scene.folder / "outbox/turn-2-1.png").symlink_to(elsewhere / "precious")
    await scene.say("/image", session=play.started.session)
    assert (elsewhere / "precious").read_text() == "precious"
    assert not (scene.folder / "outbox/turn-2-1.png").is_symlink()


async def test_a_command_too_long_to_be_shown_is_declined_unasked(make: Make) -> None:
    play = await make().say(f"/approve-big {COMMAND_MOST + 1}")
    assert not play.saw(ApprovalAsked)
    assert "denied: xxx" in play.text
    assert play.last == DONE


async def test_attachments_are_blocks_where_the_agent_takes_them(
    make: Make, tmp_path: Path
) -> None:
    scene = make()
    picture, paper = scene.folder / "a.png", scene.folder / "b c.pdf"
    picture.write_bytes(b"picture")
    paper.write_bytes(b"paper")
    led, outside = scene.folder / "led.png", tmp_path / "outside.png"
    outside.write_bytes(b"not for the agent")
    led.symlink_to(outside)
    drawing = scene.folder / "a.svg"
    drawing.write_bytes(b"<svg/>")
    files = (
        Attachment(picture, "image/png"),
        Attachment(paper, "application/pdf"),
        Attachment(led, "image/png"),
        Attachment(drawing, "image/svg+xml"),  # no service behind an agent takes these
    )
    play = await scene.say("/blocks", attachments=files)
    text, image, link, left, drawn = json.loads(play.text)
    assert text == {"type": "text", "text": "/blocks"}
    assert base64.b64decode(image["data"]) == b"picture"
    assert (link["type"], link["uri"]) == ("resource_link", paper.as_uri())
    assert (left["type"], left["uri"]) == ("resource_link", led.as_uri())
    assert (drawn["type"], drawn["uri"]) == ("resource_link", drawing.as_uri())


async def test_without_the_ability_a_picture_is_a_link(make: Make, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"picture")
    play = await make("--no-images").say("/blocks", attachments=(Attachment(picture, "image/png"),))
    assert [block["type"] for block in json.loads(play.text)] == ["text", "resource_link"]


# Approvals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "outcome", "answer"),
    [
        (Decision.ALLOW, "o-allow_once", "ran: rm -r build. "),
        (Decision.DENY, "o-reject_once", "denied: rm -r build. "),
    ],
)
async def test_a_decision_reaches_the_agent(
    make: Make, decision: Decision, outcome: str, answer: str
) -> None:
    scene = make()
    play = await scene.say("/approve rm -r build\n/say done without it", decision=decision)
    (asked,) = [event for event in play.events if isinstance(event, ApprovalAsked)]
    assert asked.command == "rm -r build"
    assert scene.log[-1]["result"]["outcome"] == {"outcome": "selected", "optionId": outcome}
    assert answer in play.text
    assert "done without it" in play.text
    assert play.last == DONE


async def test_always_is_never_chosen_for_a_person(make: Make) -> None:
    scene = make()
    play = await scene.say("/ask-always rm -r build")
    assert not play.saw(ApprovalAsked)
    assert scene.log[-1]["result"]["outcome"]["optionId"] == "o-reject_once"
    assert "denied" in play.text


async def test_a_change_of_a_file_is_shown_in_full(make: Make) -> None:
    scene = make()
    play = await scene.say("/edit notes.txt")
    (asked,) = [event for event in play.events if isinstance(event, ApprovalAsked)]
    assert asked.command == f"write {scene.folder}/notes.txt\n- old line\n+ new line"


async def test_a_question_that_is_taken_back_is_withdrawn(make: Make) -> None:
    play = await make().say("/withdraw rm -r build", decision=None)
    asked = next(event for event in play.events if isinstance(event, ApprovalAsked))
    assert ApprovalWithdrawn(asked.id) in play.events
    assert play.last == DONE


async def test_open_questions_are_settled_before_a_stop_is_told(make: Make) -> None:
    scene = make("--stubborn")  # it obeys only once its question is answered
    play = scene.play("/approve rm -r build", decision=None)
    async with running(play, lambda: play.saw(ApprovalAsked)):
        await play.run.stop(4.0)
    assert play.last == Finished(Result.CANCELLED)
    answer, cancel = scene.log[-2:]
    assert answer["result"]["outcome"] == {"outcome": "cancelled"}
    assert cancel["method"] == "session/cancel"
    play.run.answer("1-1", Decision.ALLOW)
    assert "ran" not in play.text


# Modes, model, effort -----------------------------------------------------------------------


@pytest.mark.parametrize("how", [(), ("--config-modes",)])
async def test_an_agent_that_starts_asking_nobody_is_made_to_ask(
    make: Make, how: tuple[str, ...]
) -> None:
    scene = make("--auto", *how)
    play = await scene.say("/mode\n/approve tea")
    assert play.text.startswith("default")
    assert play.saw(ApprovalAsked)
    again = await scene.say("/mode", session=play.started.session)
    assert again.text == "default"


async def test_an_agent_that_can_only_approve_by_itself_is_refused(make: Make) -> None:
    scene = make("--only-auto")
    play = await scene.say("hello")
    assert failure(play).startswith("The agent would work in its mode “auto”")
    assert "/approvals full" in failure(play)
    trusted = await scene.say("hello", approvals=Approvals.FULL)
    assert trusted.last == DONE


async def test_an_agent_without_modes_is_taken_as_it_is(make: Make) -> None:
    scene = make("--no-modes")
    first = await scene.say("hello")
    assert (await scene.say("hello", session=first.started.session)).last == DONE


async def test_model_and_effort_are_set_and_set_back(make: Make) -> None:
    scene = make("--models", "small,large", "--efforts", "low,high")
    first = await scene.say("hello")
    assert first.started.model == "small"
    session = first.started.session
    second = await scene.say("hello", session=session, model="Large", effort="high")
    assert second.started.model == "large"
    third = await scene.say("hello", session=session)
    assert third.started.model == "small"


async def test_an_unknown_model_is_told_before_anything_is_sent(make: Make) -> None:
    scene = make("--models", "small,large")
    play = await scene.say("hello", model="huge")
    assert failure(play) == (
        "The agent offers no model “huge”; it offers: small, large. "
        "Set another with /model, or /model default."
    )
    assert "session/prompt" not in scene.methods()


@pytest.mark.parametrize(("what", "other"), [("model", "--efforts"), ("effort", "--models")])
async def test_a_choice_the_agent_does_not_offer_is_never_passed_over(
    make: Make, what: str, other: str
) -> None:
    scene = make(other, "low,high")
    play = await scene.say("hello", **{what: "high"})
    assert failure(play) == (
        f"The agent offers no choice of {what}, so it cannot use “high”. "
        f"Set it back with /{what} default."
    )
    assert "session/prompt" not in scene.methods()
    assert (await scene.say("hello")).last == DONE


async def test_of_many_models_so_many_are_named_that_the_next_step_is_seen(make: Make) -> None:
    scene = make("--models", ",".join(f"model-number-{n}" for n in range(100)))
    text = failure(await scene.say("hello", model="huge"))
    assert "model-number-5, " in text
    assert ", …. Set another with /model" in text
    assert len(text) < 350


# Sessions and processes ---------------------------------------------------------------------


async def test_the_process_stays_warm_after_a_good_turn(make: Make) -> None:
    scene = make()
    first = await scene.say("/pid")
    second = await scene.say("/pid", session=first.started.session)
    assert second.text == first.text
    assert scene.methods().count("initialize") == 1


async def test_another_session_is_another_process(make: Make) -> None:
    scene = make()
    first = await scene.say("/pid")
    second = await scene.say("/pid")
    assert second.text != first.text


async def test_a_warm_process_that_died_is_started_again(make: Make) -> None:
    scene = make()
    first = await scene.say("/say x\n/exit-after 3")
    second = await scene.say("/turns", session=first.started.session)
    assert second.started.resumed
    assert (second.text, second.last) == ("1", DONE)


async def test_text_between_two_turns_belongs_to_neither(make: Make) -> None:
    scene = make()
    first = await scene.say("/say one\n/late stray words")
    second = await scene.say("/say two", session=first.started.session)
    assert (first.text, second.text) == ("one", "two")


async def test_a_replayed_history_is_no_answer(make: Make) -> None:
    first = await make("--no-resume").say("/say old words")
    second = await make("--no-resume").say("/turns", session=first.started.session)
    assert second.started.resumed
    assert second.text == "1"


async def test_an_agent_that_forgets_starts_afresh_and_says_so(make: Make) -> None:
    first = await make("--no-resume", "--no-load").say("hello")
    second = await make("--no-resume", "--no-load").say("hello", session=first.started.session)
    assert not second.started.resumed


async def test_two_turns_at_once_in_a_lane_are_refused(make: Make) -> None:
    scene = make()
    play = scene.play("/hang")
    async with running(play, lambda: play.saw(Started)):
        second = await scene.say("hello")
        assert isinstance(second.last, Unsent)
        await play.run.stop(1.0)
    assert scene.methods().count("session/prompt") <= 1


# Side answers -------------------------------------------------------------------------------


async def test_a_side_answer_runs_in_a_fork_that_cannot_write(make: Make) -> None:
    scene = make(read_only_mode="read-only")
    main = scene.play("remember this\n/hang")
    first = await scene.say("hello", lane="another")
    assert first.last == DONE
    assert scene.engine.abilities.side
    async with running(main):
        session = main.started.session
        side = await scene.say(
            "/mode\n/write x.txt hello\n/approve tea", session=session, read_only=True
        )
        assert not main.over
        await main.run.stop(1.0)
    assert side.text.startswith("read-only")
    assert "not written" in side.text
    assert not side.saw(ApprovalAsked)
    assert not (scene.folder / "x.txt").exists()
    assert side.started.session != session


@pytest.mark.parametrize(
    ("options", "settings", "word"),
    [
        ((), {}, "LANEWAY_ACP_READONLY_MODE"),
        ((), {"read_only_mode": "no-such-mode"}, "no-such-mode"),
        (("--no-modes",), {"read_only_mode": "read-only"}, "no modes"),
        (("--no-fork",), {"read_only_mode": "read-only"}, "fork"),
    ],
)
async def test_what_cannot_be_enforced_gives_no_side_answer(
    make: Make, options: tuple[str, ...], settings: dict[str, str], word: str
) -> None:
    scene = make(*options, **settings)
    first = await scene.say("hello")
    side = await scene.say("hello", session=first.started.session, read_only=True)
    assert word in failure(side)
    assert scene.methods().count("session/prompt") == 1


async def test_the_doctor_proves_that_a_mode_is_read_only(make: Make) -> None:
    honest = await make(read_only_mode="read-only").engine.prove_read_only()
    assert honest.ok, honest
    missing = await make(read_only_mode="no-such-mode").engine.prove_read_only()
    assert not missing.ok
    assert "no-such-mode" in missing.fix


async def test_the_doctor_finds_out_a_mode_that_writes(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engines.acp.WRITE_ATTEMPT", "/write laneway-test.txt x")
    lying = await make(read_only_mode="auto").engine.prove_read_only()
    assert not lying.ok
    assert "wrote a file" in lying.detail
    assert (await make(read_only_mode="read-only").engine.prove_read_only()).ok


async def test_a_side_answer_asks_nobody(make: Make) -> None:
    scene = make(read_only_mode="default")  # a mode that asks, named read-only by mistake
    first = await scene.say("hello")
    side = await scene.say("/approve tea", session=first.started.session, read_only=True)
    assert not side.saw(ApprovalAsked)
    assert "denied: tea" in side.text


# Environment --------------------------------------------------------------------------------


async def test_an_agent_sees_only_what_it_was_given(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
    monkeypatch.setenv("LANEWAY_TELEGRAM_TOKEN", "7000:secret")
    monkeypatch.setenv("SOME_API_KEY", "given")
    scene = make(env=("SOME_API_KEY", "NOT_SET_AT_ALL"))
    names = set(json.loads((await scene.say("/env")).text))
    assert names <= {
        "HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR",
        "LANEWAY_TURN_MARK", "SOME_API_KEY",
    }  # fmt: skip
    assert (await scene.say("/env SOME_API_KEY")).text == "given"


async def test_every_lane_has_a_temporary_folder_of_its_own(make: Make) -> None:
    scene = make()
    first = await scene.say("/env TMPDIR", lane="one")
    second = await scene.say("/env TMPDIR", lane="two")
    assert first.text != second.text
    assert Path(first.text).is_relative_to(scene.home)
    assert Path(first.text).is_dir()
